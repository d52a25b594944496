//! `starchild agent ask`.

use super::follow::TICK;
use super::screen::Screen;
use super::{AgentSession, Common, Failure};
use crate::cli::show;
use clap::Args;
use openstarry::approval::{AllowAll, DenyAll, Gate};
use openstarry::segment::ContentSegment;
use openstarry::session::{EndReason, Outcome, SessionEvent, TurnEvents};
use serde_json::json;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

const MAX_QUESTION: u64 = 4 << 20;

/// What `ask` takes.
#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    common: Common,
    /// The question; read from standard input when left out.
    question: Option<String>,
    /// Print segments, trace and usage as JSON.
    #[arg(long)]
    json: bool,
    /// Say yes to dangerous calls. Without it they are denied.
    #[arg(long)]
    yes: bool,
}

/// Asks, and prints the answer.
pub async fn ask(args: AskArgs) -> Result<ExitCode, Failure> {
    let question = match args.question {
        Some(question) => question,
        None => {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_QUESTION)
                .read_to_string(&mut text)?;
            text
        }
    };
    if question.trim().is_empty() {
        return Err("there is no question".into());
    }
    let gate: Arc<dyn Gate> = match args.yes {
        true => Arc::new(AllowAll),
        false => Arc::new(DenyAll),
    };
    let AgentSession { built, session, .. } = args.common.open_session(gate).await?;
    let mut said = args.common.images()?;
    said.push(ContentSegment::text(question.trim()));
    let mut turn = session.send(said)?;
    let mut screen = (!args.json).then(Screen::answer_alone);
    let outcome = tokio::select! {
        outcome = follow(&mut turn, screen.as_mut()) => outcome?,
        _ = tokio::signal::ctrl_c() => {
            // What was asked is part of the session that `--resume` goes on with.
            tokio::select! {
                () = turn.cancel() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return Ok(ExitCode::from(130));
        }
    };
    if args.json {
        let mut whole = serde_json::to_value(&outcome)?;
        whole["session"] = json!(session.id());
        show::json(&whole)?;
    }
    drop(built);
    Ok(match outcome.end {
        EndReason::Answered | EndReason::Command => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

async fn follow(turn: &mut TurnEvents, screen: Option<&mut Screen>) -> Result<Outcome, Failure> {
    let mut screen = screen;
    if let Some(screen) = &mut screen {
        screen.begin();
    }
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            event = turn.next() => {
                let event = event.ok_or("the session ended")?;
                if let Some(screen) = &mut screen {
                    screen.show(&event)?;
                }
                if let SessionEvent::End(outcome) = event {
                    return Ok(outcome);
                }
            }
            _ = tick.tick() => {
                if let Some(screen) = &mut screen {
                    screen.tick()?;
                }
            }
        }
    }
}
