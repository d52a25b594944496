//! Follows a turn to its end: shows it, puts its questions, and gives it up on
//! Ctrl-C, wherever it is.

use super::gate::TerminalQuestion;
use super::lines::Lines;
use super::screen::Screen;
use super::{Failure, questions};
use openstarry::session::{Outcome, SessionEvent, TurnEvents};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the status line is drawn.
pub const TICK: Duration = Duration::from_millis(200);

/// Shows a turn until it ends. `None` when it was cancelled.
pub async fn follow(
    mut turn: TurnEvents,
    screen: &mut Screen,
    lines: &mut Lines,
    questions: &mut mpsc::Receiver<TerminalQuestion>,
) -> Result<Option<Outcome>, Failure> {
    // One listener for the whole turn, so that no key press is lost in between.
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let mut tick = tokio::time::interval(TICK);
    screen.begin();
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupted => break,
            event = turn.next() => {
                let Some(event) = event else {
                    return Err("the session ended".into());
                };
                screen.show(&event)?;
                if let SessionEvent::End(outcome) = event {
                    return Ok(Some(outcome));
                }
            }
            Some(question) = questions.recv() => {
                if questions::put(question, lines, screen).await?.is_some() {
                    break;
                }
                screen.begin();
            }
            _ = tick.tick() => screen.tick()?,
        }
    }
    drop(turn);
    screen.cancelled()?;
    Ok(None)
}
