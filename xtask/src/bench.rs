//! `cargo xtask bench [NAMES…]`: builds the server and the bench as they ship, and runs the bench.

use std::process::Command;

/// Builds what is measured and what measures, then measures; the arguments go to the bench.
pub fn run(args: &[String]) -> Result<(), String> {
    // Built apart, so that the bench's dependencies do not change what the server is built with.
    cargo(&["build", "--release", "--package", "chatroom"], &[])?;
    cargo(&["build", "--release", "--package", "bench", "--bins"], &[])?;
    let bench = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "bench",
        "--bin",
        "bench",
        "--",
    ];
    cargo(&bench, args)
}

fn cargo(args: &[&str], more: &[String]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(args)
        .args(more)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo {} failed", args.join(" ")))
    }
}
