//! Running test programs in parallel: each one's output whole, and a count at the end.

use crate::run::target;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Something that runs tests and ends.
pub struct Job {
    /// What people call it.
    pub name: String,
    /// What runs it.
    pub command: Command,
}

/// What came of tests.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: usize,
    failed: usize,
    /// The tests that failed, and programs that ended badly for another reason.
    failures: Vec<String>,
}

/// Runs the jobs in their order, so many at once. Errs with what failed, after all have ended.
pub fn run_parallel(jobs: Vec<Job>, at_once: usize) -> Result<(), String> {
    let folder = target()?.join("test-output");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let waiting = Mutex::new(jobs.into_iter());
    let total = Mutex::new(Tally::default());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = lock(&waiting).next();
                    let Some(job) = next else { break };
                    let tally = run_job(job, &folder);
                    lock(&total).add(tally);
                }
            });
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !total.failures.is_empty() {
        println!("\nFailed:");
        for failure in &total.failures {
            println!("    {failure}");
        }
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    match (total.failures.is_empty(), total.passed) {
        (false, _) => Err("some tests failed".into()),
        (true, 0) => Err("no test was run: is there one of this name?".into()),
        (true, _) => Ok(()),
    }
}

/// Runs one job to its end, its output in a file: a pipe would stay open as long as anything that
/// the job left behind.
fn run_job(job: Job, folder: &Path) -> Tally {
    let Job { name, mut command } = job;
    let file = folder.join(format!("{}.log", name.replace(' ', "-")));
    println!("Running {name} (its output so far: {})", file.display());
    let began = Instant::now();
    let ended = File::create(&file).and_then(|output| {
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
    });
    let output = fs::read(&file).unwrap_or_default();
    show(&name, &output, began.elapsed());
    let mut tally = Tally::read(&name, &String::from_utf8_lossy(&output));
    match ended {
        Ok(status) if status.success() || !tally.failures.is_empty() => {}
        Ok(status) => tally.fail(format!("{name}: ended with {status}")),
        Err(error) => tally.fail(format!("{name}: cannot be run: {error}")),
    }
    tally
}

fn show(name: &str, output: &[u8], took: Duration) {
    let mut stdout = io::stdout().lock();
    // Whoever reads this may have gone; the tests go on.
    let _ = writeln!(stdout, "\n──── {name}, {} s", took.as_secs());
    let _ = stdout.write_all(output);
    let _ = stdout.flush();
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    /// Counts what test programs print, and the browser's and the clients' tests.
    fn read(job: &str, output: &str) -> Self {
        let mut tally = Self::default();
        for line in output.lines() {
            if let Some(result) = line.strip_prefix("test result: ") {
                tally.passed += number_before(result, " passed");
                tally.failed += number_before(result, " failed");
            } else if line.ends_with(" failed") && line.contains(" passed, ") {
                tally.passed += number_before(line, " passed");
                tally.failed += number_before(line, " failed");
            } else if let Some(test) = failed_test(line) {
                tally.failures.push(format!("{job}: {test}"));
            }
        }
        tally
    }

    /// Counts something that failed as a whole.
    fn fail(&mut self, failure: String) {
        self.failed += 1;
        self.failures.push(failure);
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}

/// The test that this line says has failed.
fn failed_test(line: &str) -> Option<&str> {
    let of_rust = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
    of_rust().or_else(|| line.strip_prefix("FAIL  "))
}

/// The number that stands before these words.
fn number_before(line: &str, words: &str) -> usize {
    let Some((before, _)) = line.split_once(words) else {
        return 0;
    };
    let digits = before.rsplit(|character: char| !character.is_ascii_digit());
    digits
        .take(1)
        .find_map(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rusts_tests_are_counted() {
        let output = "test a::b ... ok\ntest a::c ... FAILED\n\
                      test result: FAILED. 7 passed; 1 failed; 2 ignored; 0 measured; 3 filtered out\n";
        let tally = Tally::read("chatroom api", output);
        assert_eq!((tally.passed, tally.failed), (7, 1));
        assert_eq!(tally.failures, ["chatroom api: a::c"]);
    }

    #[test]
    fn the_browsers_tests_are_counted() {
        let tally = Tally::read(
            "web",
            "ok    one (3 ms)\nFAIL  two\n\n12 passed, 1 failed\n",
        );
        assert_eq!((tally.passed, tally.failed), (12, 1));
        assert_eq!(tally.failures, ["web: two"]);
    }

    #[test]
    fn words_that_tests_print_are_no_counts() {
        let tally = Tally::read("x", "it has failed\nthe 3 failed\n");
        assert_eq!(tally, Tally::default());
    }
}
