//! `starchild "a question"`: asks the owner's hosted agent. The answer alone goes to standard
//! output, the rest to standard error.

use crate::{
    bridge::{
        AnswerStream, Bridge, BridgeError, BridgeRequest, CHANNEL,
        login::{Login, LoginError},
    },
    cli::show::{self, Spinner},
    home::Home,
    terminal::printable,
};
use clap::Args;
use std::{
    io::{self, IsTerminal, Read, Write},
    process::ExitCode,
};

const MAX_QUESTION_BYTES: u64 = 1 << 20;
/// What the caller can mend.
const MENDABLE: u8 = 1;
/// What may pass on a retry.
const PASSING: u8 = 2;

/// What a question takes.
#[derive(Args, Debug)]
pub struct QuestionArgs {
    /// Ask your hosted agent; read from standard input when that is a pipe.
    #[arg(value_name = "QUESTION")]
    question: Option<String>,
    /// Print the answer as it comes.
    #[arg(long)]
    stream: bool,
    /// The conversation to go on with.
    #[arg(long, value_name = "ID", default_value = "starchild-cli")]
    thread: String,
    /// The model to answer with, if not the agent's own choice.
    #[arg(long)]
    model: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("there is no question; try: starchild \"how are you?\"")]
    NoQuestion,
    #[error("the question has more than {MAX_QUESTION_BYTES} bytes; ask something shorter")]
    TooLong,
    #[error("standard input cannot be read as text: {0}")]
    Input(io::Error),
    /// The question may have been meant as a command.
    #[error("{0}\nstarchild --help lists the commands there are")]
    Login(#[from] LoginError),
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    #[error("the answer cannot be printed: {0}")]
    Output(#[from] io::Error),
}

impl AskError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Bridge(error) if error.is_transient() => PASSING,
            _ => MENDABLE,
        }
    }
}

impl QuestionArgs {
    /// The question, where it is a single word and could be a command.
    pub fn word(&self) -> Option<&str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        self.question
            .as_deref()
            .filter(|word| word.chars().all(plain))
    }

    /// Whether there is anything to ask: a question, or a pipe to read one from.
    pub fn is_asked(&self) -> bool {
        self.question.is_some() || !io::stdin().is_terminal()
    }
}

/// Asks, and prints the answer.
pub async fn run(args: QuestionArgs) -> ExitCode {
    let asked = tokio::select! {
        asked = ask(args) => asked,
        _ = tokio::signal::ctrl_c() => return ExitCode::from(130),
    };
    match asked {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the answer has heard enough.
        Err(AskError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            show::failure(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

async fn ask(args: QuestionArgs) -> Result<(), AskError> {
    let question = match args.question {
        Some(question) => question,
        None => piped()?,
    };
    if question.trim().is_empty() {
        return Err(AskError::NoQuestion);
    }
    let home = Home::find().map_err(LoginError::from)?;
    let login = Login::load(&home)?;
    let question = BridgeRequest {
        message: question.trim(),
        thread_id: &args.thread,
        channel: CHANNEL,
        model: args.model.as_deref(),
    };
    let spinner = Spinner::new("asking");
    let answer = Bridge::new(&login)?.ask(&question).await?;
    match args.stream {
        true => print_as_it_comes(answer, spinner).await,
        false => {
            let whole = answer.whole().await?;
            drop(spinner);
            let mut screen = Screen::new();
            screen.print(whole.trim_end())?;
            screen.finish()
        }
    }
}

fn piped() -> Result<String, AskError> {
    let mut text = String::new();
    let mut bounded = io::stdin().take(MAX_QUESTION_BYTES + 1);
    bounded.read_to_string(&mut text).map_err(AskError::Input)?;
    match text.len() as u64 > MAX_QUESTION_BYTES {
        true => Err(AskError::TooLong),
        false => Ok(text),
    }
}

async fn print_as_it_comes(mut answer: AnswerStream, spinner: Spinner) -> Result<(), AskError> {
    let mut spinner = Some(spinner);
    let mut screen = Screen::new();
    loop {
        match answer.next().await {
            Ok(Some(text)) => {
                spinner.take();
                screen.print(&text)?;
            }
            Ok(None) => break,
            Err(error) => {
                // What was printed stays; the error begins on its own line.
                screen.finish()?;
                return Err(error.into());
            }
        }
    }
    drop(spinner);
    screen.finish()
}

/// Standard output; a terminal is spared control characters.
struct Screen {
    out: io::Stdout,
    at_terminal: bool,
    printed: bool,
    at_line_start: bool,
}

impl Screen {
    fn new() -> Self {
        let out = io::stdout();
        Self {
            at_terminal: out.is_terminal(),
            out,
            printed: false,
            at_line_start: true,
        }
    }

    fn print(&mut self, text: &str) -> Result<(), AskError> {
        let text = match self.at_terminal {
            true => printable(text),
            false => text.into(),
        };
        if text.is_empty() {
            return Ok(());
        }
        self.printed = true;
        self.at_line_start = text.ends_with('\n');
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn finish(mut self) -> Result<(), AskError> {
        if !self.printed {
            eprintln!("starchild: the agent said nothing");
        } else if !self.at_line_start {
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        Ok(())
    }
}
