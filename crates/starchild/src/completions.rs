//! `starchild completions`: what a shell needs to complete commands.

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
    clap_complete::generate(args.shell, &mut command, name, &mut std::io::stdout());
    ExitCode::SUCCESS
}
