//! `starchild`: the program on an agent owner's machine.

mod agent;
mod agents;
mod backend;
mod cli;
mod daemon;
mod home;
mod organism;
mod rooms;

fn main() -> std::process::ExitCode {
    cli::main()
}
