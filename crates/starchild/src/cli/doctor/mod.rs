//! `starchild doctor`: says what is missing on this machine, and how to get it.

mod checks;
mod server;

use crate::{
    cli::show,
    home::Home,
    terminal::{one_line, printable},
};
use clap::Args;
use serde::Serialize;
use std::{io, process::ExitCode};

/// What `doctor` takes.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Must be mended.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What it is about: `home`, `login`, an agent's id, a server.
    pub about: String,
    /// How it was found.
    pub state: State,
    /// In words.
    pub says: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    /// As it should be.
    pub fn good(about: &str, says: impl Into<String>) -> Self {
        Self::new(about, State::Good, says, None)
    }

    /// Worth knowing.
    pub fn note(about: &str, says: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::new(about, State::Note, says, Some(mend.into()))
    }

    /// Must be mended.
    pub fn bad(about: &str, says: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::new(about, State::Bad, says, Some(mend.into()))
    }

    fn new(about: &str, state: State, says: impl Into<String>, mend: Option<String>) -> Self {
        Self {
            about: about.to_owned(),
            state,
            says: says.into(),
            mend,
        }
    }
}

/// Looks at everything. Exit 1 when something must be mended.
pub async fn run(args: DoctorArgs) -> ExitCode {
    let findings = match Home::find() {
        Ok(home) => look(&home).await,
        Err(error) => vec![Finding::bad("home", "there is none", error.to_string())],
    };
    let shown = match args.json {
        true => show::json(&findings),
        false => show_all(&findings),
    };
    let is_well = findings.iter().all(|finding| finding.state != State::Bad);
    match (shown, is_well) {
        (Ok(()), true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

async fn look(home: &Home) -> Vec<Finding> {
    let mut findings = checks::home(home);
    findings.push(checks::login(home));
    let (agents, servers) = checks::agents(home);
    findings.extend(agents);
    for server in servers {
        findings.extend(server::look(&server).await);
    }
    findings
}

fn show_all(findings: &[Finding]) -> io::Result<()> {
    let has_colour = show::has_colour(&io::stdout());
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.state {
            State::Good => ("good", 32),
            State::Note => ("note", 33),
            State::Bad => ("BAD ", 31),
        };
        let word = match has_colour {
            true => format!("\x1b[{colour}m{word}\x1b[0m"),
            false => word.to_owned(),
        };
        let (about, says) = (one_line(&finding.about), printable(&finding.says));
        text += &format!("{word}  {about}: {says}\n");
        if let Some(mend) = &finding.mend {
            text += &format!("      {}\n", printable(mend));
        }
    }
    show::print_styled(&text)
}
