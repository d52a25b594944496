//! What developers run: `cargo xtask test`, `cargo xtask ci` and `cargo xtask bench`.
//!
//! Nothing but Rust is needed beforehand: what the tests need besides is installed or named.

mod bench;
mod clients;
mod deny;
mod dependencies;
mod environment;
mod man;
mod packages;
mod parallel;
mod programs;
mod run;
mod sbom;
mod seed_data;
mod selection;
mod services;
mod single_job;
mod test;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [-p PACKAGE]… [--test NAME]… [FILTER] [-- OPTIONS]
                           install what the tests need, start PostgreSQL and NATS, build the
                           workspace, run every test or those named; OPTIONS go to the test programs
cargo xtask test --doc     only the examples in the documentation
cargo xtask test web [NAME]  only the tests in a browser, or those whose name holds NAME
cargo xtask test clients [NAME]  the same for the API's description in others' programs
cargo xtask ci             formatting and licences, then lints and every test from one build
cargo xtask deny           what the programs are built from, checked against deny.toml
cargo xtask sbom           the bill of materials of each program, as CycloneDX, into target/sbom
cargo xtask man            man pages and completions of the programs, into target/man and target/completions
cargo xtask bench [ARGS…]  build the server as it ships and measure it beside its limits;
                           ARGS go to the bench, e.g. `cargo xtask bench posts --rounds 5`
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let done = match command.as_deref() {
        Some("test") => match rest.first().map(String::as_str) {
            Some("web") => web::test(&rest[1..]),
            Some("clients") => clients::test(&rest[1..]),
            _ => test::test(&rest),
        },
        Some("ci") => test::ci(),
        Some("deny") => deny::deny(),
        Some("sbom") => sbom::sbom(),
        Some("man") => man::man(),
        Some("bench") => bench::run_bench(&rest),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("there is no `cargo xtask {other}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
