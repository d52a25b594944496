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
pub fn run(args: CompletionsArgs, command: Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut command = without_question(&command);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    show::print_and_end(&String::from_utf8_lossy(&script))
}

/// The command line without the question that may stand in a command's place: zsh would offer files there,
/// and look for each command one word too late.
fn without_question(command: &Command) -> Command {
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    Command::new("starchild")
        .version(env!("CARGO_PKG_VERSION"))
        .args(options)
        .subcommands(command.get_subcommands())
}
