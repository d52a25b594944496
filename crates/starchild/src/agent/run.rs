//! `starchild agent run`: a conversation in the terminal.

use super::gate::{AskPerson, Question};
use super::screen::{Screen, cut_call};
use super::{Common, Failure, Ready};
use openstarry::session::{EndReason, SessionEvent, TurnEvents, slash};
use openstarry::tool::Registry;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Commands of the terminal itself.
const QUIT: [&str; 2] = ["/quit", "/exit"];

/// Talks until the person leaves.
pub async fn run(args: Common) -> Result<ExitCode, Failure> {
    let (gate, mut questions) = AskPerson::new();
    let Ready {
        built,
        session,
        place,
        turns,
    } = args.ready(Arc::new(gate)).await?;
    let typed = place.typed();
    let mut lines = Lines::new(built.agent.registry().clone())?;
    let _ = lines.editor()?.load_history(&typed);
    let mut screen = Screen::conversation();
    if lines.at_terminal {
        let before = match turns {
            0 => String::new(),
            1 => " (one turn so far)".into(),
            turns => format!(" ({turns} turns so far)"),
        };
        screen.aside(&format!(
            "session {}{before}. /help tells what exists, /quit leaves.",
            session.id()
        ))?;
    }
    let mut clean = true;
    while let Some(line) = lines.read("> ").await? {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if QUIT.contains(&line) {
            break;
        }
        let _ = lines.editor()?.add_history_entry(line);
        let turn = session.say(line)?;
        clean = follow(turn, &mut screen, &mut lines, &mut questions).await?;
        let _ = lines.editor()?.save_history(&typed);
    }
    if lines.at_terminal {
        screen.aside(&format!(
            "To go on: starchild agent run --resume={}",
            session.id()
        ))?;
    }
    drop(built);
    // A script that pipes its questions in wants to know.
    Ok(match clean || lines.at_terminal {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Shows a turn until it ends. Ctrl-C cancels it, and it alone.
async fn follow(
    mut turn: TurnEvents,
    screen: &mut Screen,
    lines: &mut Lines,
    questions: &mut mpsc::Receiver<Question>,
) -> Result<bool, Failure> {
    // One listener for the whole turn, so that no key press is lost in between.
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupted => {
                drop(turn);
                screen.aside("! cancelled")?;
                return Ok(false);
            }
            event = turn.next() => {
                let Some(event) = event else { return Ok(false) };
                screen.show(&event)?;
                if let SessionEvent::End(outcome) = event {
                    return Ok(matches!(outcome.end, EndReason::Answered | EndReason::Command));
                }
            }
            Some(question) = questions.recv() => {
                let yes = lines.confirm(&question, screen).await?;
                let _ = question.answer.send(yes);
            }
        }
    }
}

/// Reads lines, with completion at a terminal.
struct Lines {
    editor: Option<Editor<Slashes, FileHistory>>,
    at_terminal: bool,
}

impl Lines {
    fn new(registry: Registry) -> Result<Self, Failure> {
        let list = Config::builder().completion_type(CompletionType::List);
        let mut editor = Editor::with_config(list.build())?;
        editor.set_helper(Some(Slashes(registry)));
        Ok(Self {
            editor: Some(editor),
            at_terminal: std::io::stdin().is_terminal(),
        })
    }

    fn editor(&mut self) -> Result<&mut Editor<Slashes, FileHistory>, Failure> {
        Ok(self.editor.as_mut().ok_or("the terminal is gone")?)
    }

    /// The next line; `None` at the end. Ctrl-C gives up the line.
    async fn read(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        let prompt = prompt.to_owned();
        let mut editor = self.editor.take().ok_or("the terminal is gone")?;
        // The editor waits for keys, so it waits elsewhere.
        let read = tokio::task::spawn_blocking(move || (editor.readline(&prompt), editor));
        let (line, editor) = read.await?;
        self.editor = Some(editor);
        match line {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Without a person at the terminal the answer is no.
    async fn confirm(&mut self, question: &Question, screen: &mut Screen) -> Result<bool, Failure> {
        if !self.at_terminal {
            return Ok(false);
        }
        // Nobody should say yes to what they have not seen.
        if let Some(whole) = cut_call(&question.call) {
            screen.aside(&whole)?;
        }
        let risk = format!("{:?}", question.risk).to_lowercase();
        let answer = self.read(&format!("  {risk}: run it? [y/N] ")).await?;
        Ok(answer.is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes")))
    }
}

/// Completes slash commands.
struct Slashes(Registry);

impl Completer for Slashes {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
            return Ok((at, Vec::new()));
        }
        let mut all = slash::commands(&self.0.snapshot());
        all.extend(QUIT.map(String::from));
        all.retain(|command| command.starts_with(typed));
        all.sort_unstable();
        if let [only] = all.as_mut_slice() {
            only.push(' ');
        }
        Ok((0, all))
    }
}

impl Helper for Slashes {}
impl Hinter for Slashes {
    type Hint = String;
}
impl Highlighter for Slashes {}
impl Validator for Slashes {}
