//! What the page is told as it happens, as server-sent events: `graph`, `stats` and
//! `hops`. A reader who is slow gets fewer and larger ones; nothing is kept for it.

use super::Ui;
use agentserver::Stats;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Between two looks.
const PACE: Duration = Duration::from_millis(200);

pub async fn events(
    State(ui): State<Arc<Ui>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let reader = Reader {
        hops: ui.recent.subscribe(),
        graph: ui.graph.clone(),
        is_drawn: false,
        read: 0,
        stats: None,
        next: Instant::now(),
        ui,
    };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await;
        Some((Ok(event), reader))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// One page that is open.
struct Reader {
    ui: Arc<Ui>,
    hops: watch::Receiver<u64>,
    graph: watch::Receiver<Value>,
    is_drawn: bool,
    /// The last hop it was told.
    read: u64,
    stats: Option<Stats>,
    next: Instant,
}

impl Reader {
    /// The next thing that is new.
    async fn next(&mut self) -> Event {
        loop {
            if !self.is_drawn || self.graph.has_changed().unwrap_or(false) {
                self.is_drawn = true;
                let graph = self.graph.borrow_and_update().clone();
                return event("graph", &graph);
            }
            let newest = *self.hops.borrow_and_update();
            if newest > self.read {
                let hops = self.ui.recent.after(self.read);
                let first = hops.first().map_or(newest, |hop| hop.number);
                let missed = first - self.read - 1;
                self.read = hops.last().map_or(newest, |hop| hop.number);
                return event("hops", &json!({ "missed": missed, "hops": hops }));
            }
            let stats = self.ui.pump.stats();
            if self.stats.as_ref() != Some(&stats) {
                let told = event("stats", &figures(&stats));
                self.stats = Some(stats);
                return told;
            }
            tokio::time::sleep_until(self.next).await;
            self.next = Instant::now() + PACE;
        }
    }
}

fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

fn figures(stats: &Stats) -> Value {
    let listeners = stats.listeners.iter().map(|(name, listener)| {
        json!({
            "name": name,
            "waiting": listener.waiting,
            "running": listener.running,
            "handled": listener.handled,
            "took": listener.took.as_secs_f64(),
            "model_calls": listener.model_calls,
            "tokens": listener.tokens,
            "money": listener.money as f64 / 1e6,
        })
    });
    json!({
        "conversations": stats.conversations,
        "todos": stats.todos,
        "hops": stats.hops,
        "errors": stats.errors,
        "budget_ends": stats.budget_ends,
        "listeners": listeners.collect::<Vec<_>>(),
    })
}
