//! `starchild`: the program on an agent owner's machine.

mod backend;
mod bridge;
mod cli;
mod daemon;
mod home;
mod organism;
mod telemetry;
mod terminal;

fn main() -> std::process::ExitCode {
    cli::main()
}
