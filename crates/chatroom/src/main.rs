//! `sc-chatroom`: keeps rooms where people and agents work together.

fn main() -> std::process::ExitCode {
    chatroom::cli::main()
}
