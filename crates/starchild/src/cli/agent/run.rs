//! `starchild agent run`: a conversation in the terminal.

use super::follow::follow;
use super::gate::AskPerson;
use super::lines::{Lines, Read};
use super::prompts::{self, Prompt};
use super::screen::Screen;
use super::{AgentSession, Common, Failure};
use openstarry::segment::ContentSegment;
use openstarry::session::slash::{self, Typed};
use openstarry::session::{EndReason, TurnEvents};
use std::process::ExitCode;
use std::sync::Arc;

/// Talks until the person leaves.
pub async fn run(args: Common) -> Result<ExitCode, Failure> {
    let (gate, mut questions) = AskPerson::new();
    let ready = args.open_session(Arc::new(gate)).await?;
    let typed = ready.state_folder.typed();
    let mut lines = Lines::new(ready.built.agent.registry().clone(), &typed)?;
    let mut screen = Screen::conversation();
    if lines.at_terminal {
        let before = match ready.turns {
            0 => String::new(),
            1 => " (one turn so far)".into(),
            turns => format!(" ({turns} turns so far)"),
        };
        screen.aside(&format!(
            "session {}{before}. /help tells what exists, /quit leaves.",
            ready.session.id()
        ))?;
    }
    let mut images = args.images()?;
    let mut clean = true;
    if ready.waits {
        let turn = ready.session.go_on()?;
        follow(turn, &mut screen, &mut lines, &mut questions).await?;
    }
    loop {
        let line = match lines.read("> ").await? {
            Read::Line(line) => line,
            Read::Interrupted => continue,
            Read::End => break,
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        lines.remember(line, &typed);
        let turn = match lines.at_terminal.then(|| own_command(line)).flatten() {
            Some(Own::Quit) => break,
            Some(Own::Thoughts) => {
                screen.thoughts()?;
                continue;
            }
            Some(Own::Prompt(words)) => match prompts::run(&ready.built.servers, words).await {
                Ok(Prompt::Said(said)) => ready.session.send(said)?,
                Ok(Prompt::List(text)) => {
                    screen.aside(&text)?;
                    continue;
                }
                Err(why) => {
                    screen.aside(&format!("! {why}"))?;
                    continue;
                }
            },
            None => say(&ready, &lines, line, &mut images)?,
        };
        let outcome = follow(turn, &mut screen, &mut lines, &mut questions).await?;
        let end = outcome.map(|outcome| outcome.end);
        clean = matches!(end, Some(EndReason::Answered | EndReason::Command));
    }
    if lines.at_terminal {
        screen.aside(&format!(
            "To go on: {}",
            args.resume_line(ready.session.id())
        ))?;
    }
    drop(ready);
    // A script that pipes its questions in wants to know.
    Ok(match clean || lines.at_terminal {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Words go to the model. Commands are for the owner of a terminal: what comes
/// through a pipe is words, whatever it begins with.
fn say(
    ready: &AgentSession,
    lines: &Lines,
    line: &str,
    images: &mut Vec<ContentSegment>,
) -> Result<TurnEvents, Failure> {
    let words = match slash::typed(line) {
        _ if !lines.at_terminal => line,
        Typed::Command(command) => return Ok(ready.session.command(command)?),
        Typed::Words(words) => words,
    };
    let mut said = std::mem::take(images);
    said.push(ContentSegment::text(words));
    Ok(ready.session.send(said)?)
}

/// What the terminal does by itself.
enum Own<'a> {
    Quit,
    Thoughts,
    Prompt(&'a str),
}

fn own_command(line: &str) -> Option<Own<'_>> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "/quit" | "/exit" => Some(Own::Quit),
        "/thoughts" => Some(Own::Thoughts),
        "/prompt" => Some(Own::Prompt(rest.trim())),
        _ => None,
    }
}
