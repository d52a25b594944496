//! The journal for the page: its newest hops, and the state at one of them.

use super::Ui;
use crate::organism::observe::recent::{KEPT, Seen};
use agentserver::HopId;
use agentserver::journal::{JournalError, replay};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

type Refused = (StatusCode, String);

/// Entries of each kind of a state that are shown.
const SHOWN: usize = 200;

/// The newest hops that the journal knows of.
pub async fn hops(State(ui): State<Arc<Ui>>) -> Result<Json<Value>, Refused> {
    let hops = from_journal(&ui, |folder| {
        let (mut hops, mut number) = (VecDeque::new(), 0);
        replay(&folder, |replayed| {
            if hops.len() == KEPT {
                hops.pop_front();
            }
            number += 1;
            hops.push_back(Seen::of(&replayed.hop, number, replayed.at.as_secs_f64()));
            ControlFlow::Continue(())
        })?;
        Ok(hops)
    });
    Ok(Json(json!({ "hops": hops.await? })))
}

/// What waited, ran and was open at a hop.
pub async fn state(
    State(ui): State<Arc<Ui>>,
    Path(hop): Path<String>,
) -> Result<Json<Value>, Refused> {
    let unknown = || {
        (
            StatusCode::NOT_FOUND,
            "the journal knows of no such hop".to_owned(),
        )
    };
    let until = HopId::parse(&hop).ok_or_else(unknown)?;
    let found = from_journal(&ui, move |folder| {
        let mut is_found = false;
        let mut state = replay(&folder, |replayed| {
            is_found = replayed.hop.id == Some(until);
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        state.waiting.truncate(SHOWN);
        state.running.truncate(SHOWN);
        state.threads.truncate(SHOWN);
        state.todos.truncate(SHOWN);
        state.budgets.truncate(SHOWN);
        Ok(is_found.then_some(state))
    });
    found
        .await?
        .map(|state| Json(json!(state)))
        .ok_or_else(unknown)
}

/// Reads the journal where it does not hold up others, one reader at a time.
async fn from_journal<T: Send + 'static>(
    ui: &Ui,
    read: impl FnOnce(PathBuf) -> Result<T, JournalError> + Send + 'static,
) -> Result<T, Refused> {
    let none = "there is no journal: start it with --state FOLDER";
    let folder = ui.journal.clone();
    let folder = folder.ok_or_else(|| (StatusCode::NOT_FOUND, none.to_owned()))?;
    let failed = |error: &dyn std::fmt::Display| {
        let words = error.to_string();
        (StatusCode::INTERNAL_SERVER_ERROR, words)
    };
    let _turn = ui.replays.acquire().await.map_err(|error| failed(&error))?;
    let read = tokio::task::spawn_blocking(move || read(folder)).await;
    let read = read.map_err(|error| failed(&error))?;
    read.map_err(|error| failed(&error))
}
