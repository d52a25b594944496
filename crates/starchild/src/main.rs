//! `starchild`: the program on an agent owner's machine.

mod backend;
mod bridge;
mod cli;
mod daemon;
mod dedup_key;
mod home;
mod host;
mod http_server;
mod organism;
mod telemetry;
mod terminal;
mod up;

fn main() -> std::process::ExitCode {
    cli::main()
}
