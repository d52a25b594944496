//! What an operator can see of a pump: every hop's duration and cost, counters, and
//! the state at any hop of a run that was kept.

use crate::common::*;
use agentserver::journal::{Overview, replay};
use agentserver::system::{self, TodoRegistered, TodoUntil};
use agentserver::trace::{Handling, Hop, HopKind};
use agentserver::{HandlerMetadata, HandlerResponse, Listener, Pump, Settings};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A model that is asked twice and takes its time.
fn model() -> Listener {
    Listener::named("model").on(|_: Ask, metadata: HandlerMetadata| async move {
        for _ in 0..2 {
            metadata.admit_model_call().await?;
            metadata.charge(100, 7);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        Ok(HandlerResponse::respond(told("x")))
    })
}

fn traced(listeners: impl IntoIterator<Item = Listener>) -> (Pump, mpsc::Receiver<Hop>) {
    let (sender, hops) = mpsc::channel(100);
    let settings = Settings {
        trace: Some(sender),
        ..Settings::default()
    };
    (Pump::start(organism(listeners), settings), hops)
}

async fn handled(hops: &mut mpsc::Receiver<Hop>) -> (Hop, Handling) {
    loop {
        let hop = soon(hops.recv()).await.unwrap();
        if let HopKind::Handled(handling) = hop.kind {
            return (hop, handling);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hop_that_was_handled_has_its_duration_and_its_cost() {
    let (pump, mut hops) = traced([model().concurrency(1)]);
    let first = pump.open("console").unwrap();
    let second = pump.open("console").unwrap();
    for conversation in [&first, &second] {
        conversation.send("model", ask("x")).await.unwrap();
    }
    let mut call = hops.recv().await.unwrap();
    let (hop, handling) = handled(&mut hops).await;
    call.kind = hop.kind.clone();
    assert_eq!(call, hop, "the same hop, with the same parent");
    assert_eq!(
        (handling.model_calls, handling.tokens, handling.money),
        (2, 200, 14)
    );
    // The paused clock moves by whole milliseconds.
    let took = |ms: u64| Duration::from_millis(ms)..Duration::from_millis(ms + 20);
    assert!(took(250).contains(&handling.took), "{handling:?}");
    assert!(took(0).contains(&handling.waited), "{handling:?}");
    let (hop, handling) = handled(&mut hops).await;
    assert!(took(250).contains(&handling.waited), "{handling:?}");
    let line = hop.to_string();
    let id = hop.id.unwrap();
    assert!(
        line.contains(&format!("  #{id}  console -> model")),
        "{line}"
    );
    assert!(
        line.ends_with("; 2 model calls, 200 tokens, 0.000014 of money"),
        "{line}"
    );
}

#[tokio::test]
async fn what_happened_and_what_waits_is_counted() {
    let broken = Listener::named("broken")
        .on(|_: Ask, _| async { agentserver::Result::<()>::Err("no".into()) });
    let stuck = Listener::named("stuck")
        .concurrency(1)
        .on(|_: Ask, _| std::future::pending::<agentserver::Result<()>>());
    let pump = pump([broken, stuck, model()]);
    for to in ["broken", "model"] {
        soon(pump.request("console", to, ask("x"))).await.unwrap();
    }
    let conversations: Vec<_> = (0..3).map(|_| pump.open("console").unwrap()).collect();
    for conversation in &conversations {
        conversation.send("stuck", ask("x")).await.unwrap();
    }
    assert!(conversations[0].send("nobody", ask("x")).await.is_err());
    let stats = pump.stats();
    assert_eq!(stats.conversations, 3);
    assert_eq!(stats.hops["call"], 5);
    assert_eq!(stats.hops["answer"], 1);
    assert_eq!(
        stats.errors.into_iter().collect::<Vec<_>>(),
        [("handler", 1), ("routing", 1)]
    );
    let [broken, model, stuck] = ["broken", "model", "stuck"].map(|name| stats.listeners[name]);
    assert_eq!((stuck.waiting, stuck.running, stuck.handled), (2, 1, 0));
    assert_eq!((broken.waiting, broken.running, broken.handled), (0, 0, 1));
    assert_eq!((model.tokens, model.money, model.model_calls), (200, 14, 2));
}

/// The state when a message of this type reached someone.
fn state_at(folder: &Path, to: &str, payload: &str) -> Overview {
    let mut is_found = false;
    let state = replay(folder, |replayed| {
        let hop = replayed.hop;
        is_found = *hop.to == *to && hop.payload.root() == payload;
        match is_found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    assert!(is_found);
    state.unwrap()
}

#[tokio::test]
async fn a_run_that_was_kept_tells_its_state_at_any_hop() {
    let folder = TempDir::new().unwrap();
    let planner = Listener::named("planner")
        .agent(true)
        .peers([system::TODO_UNTIL])
        .on(|_: Ask, _| async {
            Ok(HandlerResponse::to(
                system::TODO_UNTIL,
                TodoUntil {
                    wait_for: "Told".to_owned(),
                    from_listener: String::new(),
                    description: "the news".to_owned(),
                },
            ))
        })
        .on(|_: TodoRegistered, _| async { Ok(()) });
    let pump =
        Pump::start_durable(organism([planner]), Settings::default(), folder.path()).unwrap();
    let conversation = pump.open("console").unwrap();
    conversation.send("planner", ask("x")).await.unwrap();
    soon(async {
        while pump.stats().listeners["planner"].handled < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(conversation);
    drop(pump);
    let before = state_at(folder.path(), "planner", "Ask");
    assert_eq!(before.running.len(), 1);
    assert_eq!(before.running[0].payload, "Ask");
    assert_eq!(before.threads.len(), 2);
    assert_eq!(&*before.threads[1].owner, "planner");
    assert!(before.todos.is_empty());
    let request = before.budgets.iter().find(|b| b.of.starts_with("request"));
    assert_eq!(request.unwrap().messages, 1);
    let after = state_at(folder.path(), "planner", "TodoRegistered");
    assert_eq!(after.todos.len(), 1);
    assert_eq!(after.todos[0].owner.as_deref(), Some("planner"));
    assert_eq!(after.todos[0].wait_for, "Told");
    let request = after.budgets.iter().find(|b| b.of.starts_with("request"));
    assert_eq!(request.unwrap().messages, 2);
}
