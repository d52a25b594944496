//! The tests of the pages, in a real browser against the real server.

use crate::{
    packages,
    run::{cargo, command, root, run},
};
use std::path::PathBuf;

/// Checks the pages' types, then drives them; the arguments choose tests by name.
pub fn test(args: &[String]) -> Result<(), String> {
    packages::ensure()?;
    let modules = target()?.join("test-web");
    run(command("sh").arg("web/tests/install.sh").arg(&modules))?;
    run(command("node")
        .arg(modules.join("node_modules/typescript/bin/tsc"))
        .args(["-p", "web"]))?;
    let agent = ["--bins", "--example", "echo_agent"];
    run(cargo().args(["build", "--package", "chatroom"]).args(agent))?;
    run(command("node")
        .arg("web/tests/run.mjs")
        .args(args)
        .env("SC_TEST_SERVER", target()?.join("debug/sc-chatroom"))
        .env("SC_TEST_WEB", &modules)
        .env("SC_TEST_SCREENSHOTS", target()?.join("screenshots")))
}

/// Cargo's own folder for what it builds.
fn target() -> Result<PathBuf, String> {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    std::path::absolute(folder).map_err(|error| error.to_string())
}
