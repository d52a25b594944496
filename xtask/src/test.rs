//! The test command.

use crate::{
    clients,
    environment::Environment,
    parallel::{Job, run_parallel},
    programs::{Built, Lints, TestProgram, build_tests},
    run::{cargo, run},
    seed_data::SeedData,
    selection::Selection,
    web,
};
use std::{num::NonZero, process::Command, thread};

/// How many test programs run at once.
const PROGRAMS_AT_ONCE: usize = 3;
/// How many tests run at once, for each core: most of them wait most of the time.
const TESTS_PER_CORE: usize = 9;
/// The same for one program.
const TESTS_PER_CORE_OF_ONE: usize = 7;
/// The packages whose integration tests take minutes: the others fit in beside them.
const LONGEST: [&str; 2] = ["chatroom", "starchild"];

/// Runs every test, or those that the arguments name.
pub fn test(args: &[String]) -> Result<(), String> {
    build_and_run(&Selection::parse(args)?, Lints::Off)
}

/// What CI runs: formatting, then lints and every test, from one build.
pub fn ci() -> Result<(), String> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    crate::deny::deny()?;
    build_and_run(&Selection::default(), Lints::Deny)
}

fn build_and_run(selection: &Selection, lints: Lints) -> Result<(), String> {
    // What is downloaded comes in while the compiler works.
    let (built, environment) = thread::scope(|scope| {
        let preparing = scope.spawn(Environment::prepare);
        let built = build_tests(lints);
        let environment = preparing
            .join()
            .unwrap_or_else(|_| Err("preparing the tests panicked".into()));
        (built, environment)
    });
    let (built, environment) = (built?, environment?);
    let data = SeedData::make(&built.server)?;

    let mut jobs = Vec::new();
    if selection.is_everything() {
        jobs.push(Job {
            name: "web".into(),
            command: web::tests(environment.web_modules())?,
        });
    }
    jobs.extend(rust_tests(&built, selection));
    if selection.is_everything() {
        // Right after those that take longest.
        let clients = Job {
            name: "clients".into(),
            command: clients::tests(environment.clients()),
        };
        jobs.insert(PROGRAMS_AT_ONCE.min(jobs.len()), clients);
        jobs.extend(environment.sdk_tests().map(|(name, command)| Job {
            name: name.into(),
            command,
        }));
    }
    if selection.is_everything() || selection.documentation_only {
        jobs.push(doc_tests(lints, &selection.rest));
    }
    for job in &mut jobs {
        environment.apply(&mut job.command);
        job.command
            .env("SC_TEST_SERVER", &built.server)
            .env("SC_TEST_DATA", data.folder());
    }
    run_parallel(jobs, PROGRAMS_AT_ONCE)
}

/// The chosen test programs, those that take longest first.
fn rust_tests(built: &Built, selection: &Selection) -> Vec<Job> {
    let chosen = |program: &&TestProgram| selection.has(&program.package, program.test.as_deref());
    let mut programs: Vec<_> = built.tests.iter().filter(chosen).collect();
    let is_short = |program: &&TestProgram| !LONGEST.contains(&program.package.as_str());
    programs.sort_by_key(|program| (program.test.is_none(), is_short(program)));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    // Unit tests have ended soon.
    let lasting = programs.iter().filter(|program| program.test.is_some());
    let at_once = lasting.count().clamp(1, PROGRAMS_AT_ONCE);
    let threads = cores * (TESTS_PER_CORE / at_once).min(TESTS_PER_CORE_OF_ONE);
    let job = |program: &TestProgram| {
        let mut command = Command::new(&program.path);
        command
            .args(&selection.rest)
            .current_dir(&program.folder)
            // As Cargo would set them.
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("RUST_TEST_THREADS", threads.to_string());
        let test = program.test.as_deref().unwrap_or("unit tests");
        Job {
            name: format!("{} {test}", program.package),
            command,
        }
    };
    programs.into_iter().map(job).collect()
}

/// The examples in the documentation, which Cargo builds and runs itself. Those of every package:
/// for one alone, Cargo would build the dependencies anew with fewer features.
fn doc_tests(lints: Lints, rest: &[String]) -> Job {
    let mut command = lints.cargo();
    command
        .args(["test", "--workspace", "--doc", "--"])
        .args(rest);
    Job {
        name: "documentation".into(),
        command,
    }
}
