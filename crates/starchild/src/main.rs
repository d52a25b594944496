//! `starchild`: the program on an agent owner's machine.

mod agent;
mod agents;
mod backend;
mod bridge;
mod cli;
mod completions;
mod daemon;
mod doctor;
mod gen_handler;
mod home;
mod login;
mod organism;
mod question;
mod rooms;
mod sessions;
mod terminal;

fn main() -> std::process::ExitCode {
    cli::main()
}
