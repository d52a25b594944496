//! The test command.

use crate::{
    packages,
    run::{cargo, run},
    services,
};

/// Runs every test, or those that the arguments for cargo name.
pub fn test(args: &[String]) -> Result<(), String> {
    packages::ensure()?;
    let postgres = services::postgres()?;
    let nats = services::nats()?;
    let mut tests = cargo();
    tests
        .arg("test")
        .env("SC_TEST_POSTGRES_URL", &postgres.url)
        .env("SC_TEST_NATS_URL", &nats.url);
    if !args
        .iter()
        .any(|arg| arg == "-p" || arg.starts_with("--package"))
    {
        tests.arg("--workspace");
    }
    run(tests.args(args))
}

/// What CI runs: formatting, lints, then every test.
pub fn ci() -> Result<(), String> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    test(&[])
}
