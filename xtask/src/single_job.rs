//! A single job of the test command, with only what it needs installed and built.

use crate::{
    packages, programs::build_programs, run::run, seed_data::SeedData, services::memory_or_disk,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Runs what `tests` makes of the folder that `install` has filled; the arguments choose some tests
/// by name.
pub fn run_single_job(
    install: impl FnOnce() -> Result<PathBuf, String>,
    tests: impl FnOnce(&Path) -> Result<Command, String>,
    args: &[String],
) -> Result<(), String> {
    packages::ensure()?;
    let folder = install()?;
    let built = build_programs()?;
    let data = SeedData::make(&built.server)?;
    run(tests(&folder)?
        .env("SC_TEST_SERVER", &built.server)
        .env("SC_TEST_DATA", data.folder())
        .env("SC_TEST_SCRATCH", memory_or_disk())
        .args(args))
}
