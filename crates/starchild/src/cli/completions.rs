//! `starchild completions`: what a shell needs to complete commands.

use crate::cli::show;
use clap::{Args, Command};
use clap_complete::Shell;
use std::process::ExitCode;

/// What `completions` takes.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

/// Prints the script.
pub fn run(args: CompletionsArgs, mut command: Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    show::print_and_end(&String::from_utf8_lossy(&script))
}
