//! The tests of the pages, in a real browser against the real server.

use crate::{
    environment::web_modules,
    first_start::FirstData,
    packages,
    programs::build_programs,
    run::{command, run, target},
    services::memory_or_disk,
};
use std::{path::Path, process::Command};

/// Only these tests; the arguments choose some by name.
pub fn test(args: &[String]) -> Result<(), String> {
    packages::ensure()?;
    let modules = web_modules()?;
    let built = build_programs()?;
    let data = FirstData::make(&built.server)?;
    run(tests(&built.server, &modules)?
        .env("SC_TEST_DATA", data.folder())
        .env("SC_TEST_SCRATCH", memory_or_disk())
        .args(args))
}

/// Checks the pages' types; gives what drives the pages.
pub fn tests(server: &Path, modules: &Path) -> Result<Command, String> {
    run(command("node")
        .arg(modules.join("node_modules/typescript/bin/tsc"))
        .args(["-p", "web"]))?;
    let mut tests = command("node");
    tests
        .arg("web/tests/run.mjs")
        .env("SC_TEST_SERVER", server)
        .env("SC_TEST_WEB", modules)
        .env("SC_TEST_SCREENSHOTS", target()?.join("screenshots"));
    Ok(tests)
}
