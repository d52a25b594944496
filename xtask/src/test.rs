//! The test command.

use crate::{
    packages,
    run::{cargo, command, root, run},
    services, web,
};
use std::path::PathBuf;

/// Runs every test, or those that the arguments for cargo name.
pub fn test(args: &[String]) -> Result<(), String> {
    packages::ensure()?;
    let postgres = services::postgres()?;
    let nats = services::nats()?;
    let mcp = mcp_server()?;
    let a2a = a2a_sdk()?;
    let mut tests = cargo();
    tests
        .arg("test")
        .env("SC_TEST_POSTGRES_URL", &postgres.url)
        .env("SC_TEST_NATS_URL", &nats.url)
        .env("STARCHILD_TEST_MCP", &mcp)
        .env("SC_TEST_A2A_PYTHON", &a2a);
    if !args
        .iter()
        .any(|arg| arg == "-p" || arg.starts_with("--package"))
    {
        tests.arg("--workspace");
    }
    run(tests.args(args))?;
    match args.is_empty() {
        true => web::test(&[]),
        false => Ok(()),
    }
}

/// Installs an MCP server that nobody here wrote, for the agent's tools to use. It is kept.
fn mcp_server() -> Result<PathBuf, String> {
    installed("crates/openstarry/tests/install-mcp.sh", "target/test-mcp")
}

/// Installs the A2A project's own SDK, which reads the agent card. It is kept. Gives its Python.
fn a2a_sdk() -> Result<PathBuf, String> {
    let folder = installed("crates/chatroom/tests/a2a/install.sh", "target/test-a2a")?;
    Ok(folder.join("bin/python"))
}

/// Runs a script that installs something into a folder; gives the folder.
fn installed(script: &str, folder: &str) -> Result<PathBuf, String> {
    let folder = std::path::absolute(root().join(folder)).map_err(|error| error.to_string())?;
    run(command("sh").arg(script).arg(&folder))?;
    Ok(folder)
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
