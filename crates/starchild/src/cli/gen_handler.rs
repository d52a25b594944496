//! `starchild gen-handler`: a handler to start from, with a backend of one's choice in it.

use crate::cli::show;
use clap::{Args, ValueEnum};
use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// What `gen-handler` takes.
#[derive(Args, Debug)]
pub struct GenHandlerArgs {
    /// What answers in it.
    #[arg(long, value_enum, default_value = "custom")]
    backend: Choice,
    /// Where to write it; `-` is standard output.
    #[arg(long, short, default_value = "handler.sh")]
    output: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    force: bool,
}

/// The backends that a script can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The codex command line.
    Codex,
    /// The claude command line.
    Claude,
    /// Any server that speaks like OpenAI's.
    Openai,
    /// Your own words.
    Custom,
}

const BEFORE: &str = include_str!("gen_handler/before.sh");
const CODEX: &str = include_str!("gen_handler/codex.sh");
const CLAUDE: &str = include_str!("gen_handler/claude.sh");
const OPENAI: &str = include_str!("gen_handler/openai.sh");
const CUSTOM: &str = include_str!("gen_handler/custom.sh");
const AFTER: &str = include_str!("gen_handler/after.sh");

/// Writes the script.
pub fn run(args: GenHandlerArgs) -> ExitCode {
    let text = script(args.backend);
    if args.output == Path::new("-") {
        return show::print_and_end(&text);
    }
    match write(&args.output, &text, args.force) {
        Ok(()) => {
            let path = std::path::absolute(&args.output).unwrap_or(args.output);
            let path = path.display();
            show::next(&format!(
                "starchild agents add --prefix my_agent --backend handler --handler-path '{path}'"
            ));
            show::print_and_end(&format!("{path}\n"))
        }
        Err(error) => {
            let path = args.output.display();
            match error.kind() {
                io::ErrorKind::AlreadyExists => eprintln!(
                    "starchild: {path} is there already; --force writes over it, --output names another"
                ),
                _ => eprintln!("starchild: cannot write {path}: {error}"),
            }
            ExitCode::FAILURE
        }
    }
}

fn script(backend: Choice) -> String {
    let answer = match backend {
        Choice::Codex => CODEX,
        Choice::Claude => CLAUDE,
        Choice::Openai => OPENAI,
        Choice::Custom => CUSTOM,
    };
    format!("{BEFORE}\n{answer}\n{AFTER}")
}

fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match force {
        // A new file, so that the mode is ours too.
        true => match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => options.create_new(true),
        },
        false => options.create_new(true),
    };
    let mut file = options.write(true).mode(0o755).open(path)?;
    file.write_all(text.as_bytes())
}
