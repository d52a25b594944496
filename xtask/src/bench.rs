//! `cargo xtask bench [ARGS…]`: builds the server and the bench as they ship, and runs the bench.

use crate::run::{cargo, run};

/// Builds what is measured and what measures, then measures; the arguments go to the bench.
pub fn run_bench(args: &[String]) -> Result<(), String> {
    // Built apart, so that the bench's dependencies do not change what the server is built with.
    run(cargo().args(["build", "--profile=dist", "--package", "chatroom"]))?;
    run(cargo().args(["build", "--profile=dist", "--package", "bench", "--bins"]))?;
    let bench = ["--package", "bench", "--bin", "bench", "--"];
    run(cargo()
        .args(["run", "--quiet", "--profile=dist"])
        .args(bench)
        .args(args))
}
