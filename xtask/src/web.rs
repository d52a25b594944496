//! The tests of the pages, in a real browser against the real server.

use crate::{
    environment::web_modules,
    run::{command, run, target},
    single_job::run_single_job,
};
use std::{path::Path, process::Command};

/// Only these tests; the arguments choose some by name.
pub fn test(args: &[String]) -> Result<(), String> {
    run_single_job(web_modules, tests, args)
}

/// Checks the pages' types; gives what drives the pages.
pub fn tests(modules: &Path) -> Result<Command, String> {
    run(command("node")
        .arg(modules.join("node_modules/typescript/bin/tsc"))
        .args(["-p", "web"]))?;
    let mut tests = command("node");
    tests
        .arg("web/tests/run.mjs")
        .env("SC_TEST_WEB", modules)
        .env("SC_TEST_SCREENSHOTS", target()?.join("screenshots"));
    Ok(tests)
}
