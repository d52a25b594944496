//! The command line: what can be typed, and what comes of it. One file or folder for each command;
//! nothing outside imports this module.

mod agent;
mod byoa;
mod completions;
mod confirm;
mod daemon;
mod doctor;
mod failure;
mod gen_handler;
mod host;
mod join;
mod login;
mod mcp;
mod organism;
mod personal;
mod question;
mod room;
mod service;
mod sessions;
mod show;
mod up;

use crate::home::Home;
use crate::telemetry;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use question::QuestionArgs;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
An agent of yours in a room, in three steps:
  starchild agents add --prefix curious_otter --backend handler --handler-path ./handler.sh
  starchild room join i_x9j2k7vp
  starchild run
or in one: starchild join i_x9j2k7vp

A server, rooms and agents, from one file:
  starchild init
  starchild up

Your own hosted agent, once you are logged in to it:
  starchild \"what is on my calendar?\"

Exit codes: 0 done, 1 something for you to mend, 2 something that may pass: try again.
Everything is kept in ~/.starchild, or where STARCHILD_HOME says.";

/// Bring agents into rooms, and run agents and organisms.
#[derive(Parser)]
#[command(
    name = "starchild",
    version,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    question: QuestionArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Join a room in one go: make an agent if there is none, bring it in, start it.
    #[command(
        after_help = "LINK is what the room's owner gave you: an install link, a short code (i_…) or an invite code (inv_…).\n\nExample:\n  starchild join https://rooms.example.org/install/i_x9j2k7vp"
    )]
    Join(join::JoinCommand),
    /// Make, list, change and remove agents of this machine.
    #[command(subcommand, name = "agents", visible_alias = "byoa")]
    Byoa(Box<byoa::Command>),
    /// Print the id that an agent with this prefix has on this machine.
    Id {
        /// 8 to 20 characters of a-z 0-9 . _
        #[arg(long)]
        prefix: String,
    },
    /// Bring an agent into rooms and out again.
    #[command(subcommand)]
    Room(room::Command),
    /// List what acts for an agent on a server, and end it.
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Offer an agent's rooms to an MCP client over standard input and output.
    #[command(
        after_help = "For the configuration of Claude Code, Codex, Goose, Cursor, Zed and others: command `starchild`,\narguments `mcp --agent ID`. The same without this program: the server's /mcp, with a bearer token or by\nsigning in. The server's docs/mcp has the lines for each."
    )]
    Mcp {
        #[command(flatten)]
        account: sessions::AccountArgs,
    },
    /// Start an agent's daemon: it follows the agent's rooms and has its backend answer.
    Run(daemon::RunArgs),
    /// End an agent's daemon, after the message in hand.
    Stop(daemon::StopArgs),
    /// End an agent's daemon and start it anew.
    Restart(daemon::StopArgs),
    /// Say which daemons run.
    #[command(
        after_help = "In a pipe: id, running or stopped, process, number of rooms, log, its server and whether that is reached; with tabs between."
    )]
    Status {
        #[command(flatten)]
        agent: room::AgentArg,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what an agent's daemon has to say.
    Logs(daemon::LogsArgs),
    /// Serve an agent to rooms that call it, in place of a daemon that calls rooms.
    #[command(
        after_help = "Rooms call POST /chat/stream with a key of theirs. /api/keys makes keys, from this machine alone.\n\nExamples:\n  starchild host --room i_x9j2k7vp --public-url https://agent.example.org --keys-listen 127.0.0.1:8001\n  starchild host --listen 127.0.0.1:8000\n\ndocs/host.md tells the rest."
    )]
    Host(host::HostArgs),
    /// Start an agent or a team with your session: a unit of systemd, or of launchd.
    #[command(subcommand)]
    Service(service::Command),
    /// Take a team up: a server, rooms, people, agents and organisms from one starchild.yaml.
    #[command(
        after_help = "Where the file names no server, sc-chatroom is started, with its data in .starchild/ beside the file.\nWhat is there already is not made again; changes to the file are applied while it runs.\n\nExamples:\n  starchild init && starchild up\n  starchild up examples/support\n  starchild up -d, then starchild ps and starchild down\n\ndocs/up.md tells the rest."
    )]
    Up(up::UpArgs),
    /// Take a team down.
    Down(up::TeamArg),
    /// Say what of a team runs.
    #[command(
        after_help = "In a pipe: name, state, process, restarts, last end; with tabs between."
    )]
    Ps(up::PsArgs),
    /// Write a starchild.yaml for what is on this machine.
    Init(up::InitArgs),
    #[command(flatten)]
    Personal(personal::Command),
    /// Run one agent: a model, tools and a loop.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Run an organism: many listeners around one pump.
    #[command(subcommand)]
    Organism(organism::Command),
}

/// Does what was typed.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if cli.command.is_none() && !cli.question.is_asked() {
        let _ = Cli::command().print_help();
        return ExitCode::from(1);
    }
    let word = cli.question.word().filter(|_| cli.command.is_none());
    if let Some(typo) = word.and_then(mistyped_command) {
        show::failure(&typo);
        return typo.exit_code();
    }
    let mut runtime = match cli.command {
        Some(Command::Agent(_) | Command::Organism(_)) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        // One thread is plenty for rooms, and the smallest.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = match runtime.enable_all().max_blocking_threads(64).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            show::failure(&error);
            return ExitCode::from(2);
        }
    };
    runtime.block_on(async {
        let code = run(cli).await;
        telemetry::finish().await;
        code
    })
}

/// Tells what is wrong with a command line, and how it may have been meant.
fn refuse(error: &clap::Error) -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let first = words.first().filter(|_| error.use_stderr());
    let typo = first.and_then(|word| mistyped_command(word));
    // A command after a question is a question without its quotes.
    let unquoted = (error.kind() == clap::error::ErrorKind::ArgumentConflict).then(|| {
        let asked = words.join(" ");
        let hint =
            format!("To ask your hosted agent, put the question in quotes: starchild {asked:?}");
        let word = first.map_or("", String::as_str);
        Failure::permanent(format!("there is no command {word}")).with_hint(hint)
    });
    match typo.or(unquoted) {
        Some(failure) => {
            show::failure(&failure);
            failure.exit_code()
        }
        None => {
            let _ = error.print();
            ExitCode::from(u8::from(error.use_stderr()))
        }
    }
}

/// A word that is nearly a command is one, mistyped: it never becomes a question.
fn mistyped_command(word: &str) -> Option<Failure> {
    let parser = Cli::command();
    let names: Vec<&str> = parser
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()))
        .chain(["help"])
        .collect();
    let near = crate::up::file::nearest(word, &names).filter(|near| *near != word)?;
    let message = format!("there is no command {word}; did you mean starchild {near}?");
    Some(Failure::permanent(message).with_hint(format!(
        "To ask your hosted agent, ask more than a word: starchild \"what does {word} mean?\""
    )))
}

async fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        None => return question::run(cli.question).await,
        Some(Command::Agent(command)) => return agent::run(command).await,
        Some(Command::Organism(command)) => return organism::run(command).await,
        Some(Command::Personal(command)) => return personal::run(command, Cli::command()).await,
        Some(command) => do_command(command).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            show::failure(&failure);
            failure.exit_code()
        }
    }
}

async fn do_command(command: Command) -> Result<(), Failure> {
    // A team has its own home.
    let command = match command {
        Command::Up(args) => return up::up(args).await,
        Command::Down(team) => return up::down(team).await,
        Command::Ps(args) => return up::ps(&args),
        Command::Init(args) => return up::init(args).await,
        other => other,
    };
    let home = Home::find()?;
    match command {
        Command::Join(command) => join::join(&home, command).await,
        Command::Byoa(command) => byoa::run(&home, *command).await,
        Command::Id { prefix } => byoa::id(&home, &prefix),
        Command::Room(command) => room::run(&home, command).await,
        Command::Sessions(command) => sessions::run(&home, command).await,
        Command::Mcp { account } => mcp::run(&home, account).await,
        Command::Run(args) => daemon::run(&home, args).await,
        Command::Stop(args) => daemon::stop(&home, args).await,
        Command::Restart(args) => daemon::restart(&home, args).await,
        Command::Status { agent, json } => daemon::status(&home, &agent, json).await,
        Command::Logs(args) => daemon::logs(&home, args).await,
        Command::Host(args) => host::run(&home, args).await,
        Command::Service(command) => service::run(&home, command),
        Command::Up(_) | Command::Down(_) | Command::Ps(_) | Command::Init(_) => Ok(()),
        Command::Personal(_) | Command::Agent(_) | Command::Organism(_) => Ok(()),
    }
}
