//! A pump with a journal, and what it is after a crash. A crash is a copy of the
//! journal's file, taken at some moment, that another pump starts with.

use crate::common::*;
use agentserver::journal::{JournalError, replay};
use agentserver::system::SystemError;
use agentserver::trace::HopKind;
use agentserver::{Conversation, HandlerMetadata, HandlerResponse, Listener, Pump, Settings};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::Semaphore;

fn start(listeners: impl IntoIterator<Item = Listener>, folder: &Path) -> Pump {
    Pump::start_durable(organism(listeners), Settings::default(), folder).unwrap()
}

/// All that is left after a crash.
fn crash(folder: &Path) -> TempDir {
    let left = TempDir::new().unwrap();
    std::fs::copy(folder.join("journal"), left.path().join("journal")).unwrap();
    left
}

fn echo() -> Listener {
    Listener::named("echo")
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::respond(told(ask.text))) })
}

/// Answers when it is let.
fn gated(gate: &Arc<Semaphore>, hops: &Arc<Mutex<Vec<String>>>) -> Listener {
    let (gate, hops) = (gate.clone(), hops.clone());
    Listener::named("gated").on(move |ask: Ask, metadata: HandlerMetadata| {
        let (gate, hops) = (gate.clone(), hops.clone());
        async move {
            hops.lock().unwrap().push(metadata.dedup_key());
            gate.acquire().await?.forget();
            Ok(HandlerResponse::respond(told(ask.text)))
        }
    })
}

async fn texts(conversation: &Conversation) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(delivered) = soon(conversation.next()).await {
        texts.push(delivered.payload.read::<Told>().unwrap().text);
    }
    texts
}

fn only(mut conversations: Vec<Conversation>) -> Conversation {
    assert_eq!(conversations.len(), 1);
    conversations.remove(0)
}

#[tokio::test]
async fn what_was_accepted_is_done_after_a_crash_and_handlers_see_the_same_hop() {
    let (gate, hops) = (Arc::new(Semaphore::new(0)), Arc::default());
    let folder = TempDir::new().unwrap();
    let pump = start([gated(&gate, &hops)], folder.path());
    let conversation = pump.open("console").unwrap();
    for text in ["one", "two"] {
        conversation.send("gated", ask(text)).await.unwrap();
    }
    soon(async {
        while hops.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let left = crash(folder.path());

    let (open, again) = (Arc::new(Semaphore::new(9)), Arc::default());
    let pump = start([gated(&open, &again)], left.path());
    let conversation = only(pump.recovered("console"));
    assert_eq!(texts(&conversation).await, ["one", "two"]);
    assert_eq!(again.lock().unwrap()[0], hops.lock().unwrap()[0]);
    drop(conversation);
    at_rest(&pump).await;
    assert!(pump.recovered("console").is_empty());
}

#[tokio::test]
async fn an_answer_is_given_again_with_its_id_until_it_is_acknowledged() {
    let folder = TempDir::new().unwrap();
    let pump = start([echo()], folder.path());
    let conversation = pump.open("console").unwrap();
    let sent = conversation.send("echo", ask("one")).await.unwrap();
    let answer = soon(conversation.next()).await.unwrap();
    assert_eq!(answer.request, Some(sent));
    let left = crash(folder.path());

    let pump = start([echo()], left.path());
    let conversation = only(pump.recovered("console"));
    let again = soon(conversation.next()).await.unwrap();
    assert_eq!((again.id, again.request), (answer.id, answer.request));
    assert!(soon(conversation.next()).await.is_none());
    conversation.send("echo", ask("two")).await.unwrap();
    let left = crash(left.path());

    let pump = start([echo()], left.path());
    let conversation = only(pump.recovered("console"));
    assert_eq!(texts(&conversation).await, ["two"]);
}

#[tokio::test]
async fn a_message_that_is_sent_again_with_its_key_is_accepted_once() {
    let folder = TempDir::new().unwrap();
    let pump = start([echo()], folder.path());
    let conversation = pump.open("console").unwrap();
    let xml = "<Ask><text>one</text></Ask>";
    let sent = conversation.send_once("k", Some("echo"), xml).await;
    assert!(sent.unwrap().is_some());
    let refused = conversation.send_once("r", Some("nobody"), xml).await;
    assert!(refused.is_err());
    let left = crash(folder.path());

    let pump = start([echo()], left.path());
    let conversation = only(pump.recovered("console"));
    let again = conversation.send_once("k", Some("echo"), xml).await;
    assert!(again.unwrap().is_none());
    let other = conversation.send_once("r", Some("echo"), xml).await;
    assert!(
        other.unwrap().is_some(),
        "what was refused was not accepted"
    );
    assert_eq!(texts(&conversation).await, ["one", "one"]);
}

#[tokio::test]
async fn wherever_the_journal_is_cut_each_message_in_it_is_answered_once() {
    let folder = TempDir::new().unwrap();
    let relay = || {
        Listener::named("relay")
            .agent(true)
            .peers(["echo"])
            .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("echo", ask)) })
            .on(|told: Told, _| async move { Ok(HandlerResponse::respond(told)) })
    };
    let pump = start([relay(), echo()], folder.path());
    let conversation = pump.open("console").unwrap();
    for number in 0..6 {
        conversation
            .send("relay", ask(number.to_string()))
            .await
            .unwrap();
    }
    assert_eq!(texts(&conversation).await.len(), 6);
    let whole = std::fs::read(crash(folder.path()).path().join("journal")).unwrap();

    let first = whole.len() - whole.len() / 2;
    for cut in (first..=whole.len()).step_by(whole.len() / 150) {
        let left = TempDir::new().unwrap();
        std::fs::write(left.path().join("journal"), &whole[..cut]).unwrap();
        let accepted = count(left.path(), "relay", &HopKind::Call);
        let pump = start([relay(), echo()], left.path());
        for conversation in pump.recovered("console") {
            texts(&conversation).await;
        }
        soon(pump.drain()).await.unwrap();
        let given = count(left.path(), "console", &HopKind::Answer);
        assert_eq!(given, accepted, "cut at {cut}");
    }
}

/// How many different messages of a kind reached someone, as the journal tells.
fn count(folder: &Path, to: &str, kind: &HopKind) -> usize {
    let mut ids = BTreeSet::new();
    replay(folder, |replayed| {
        let hop = replayed.hop;
        if *hop.to == *to && hop.kind == *kind {
            assert!(ids.insert(hop.id.unwrap()));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    ids.len()
}

#[tokio::test]
async fn a_long_journal_is_replaced_by_a_short_one_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let pump = start([echo()], folder.path());
    let conversation = pump.open("console").unwrap();
    let text = "x".repeat(900_000);
    for _ in 0..12 {
        conversation.send("echo", ask(&text)).await.unwrap();
        assert!(soon(conversation.next()).await.is_some());
    }
    assert!(folder.path().join("journal.previous").exists());
    let size = std::fs::metadata(folder.path().join("journal"))
        .unwrap()
        .len();
    assert!(size < 16 << 20, "{size}");
    conversation.send("echo", ask("last")).await.unwrap();
    let left = crash(folder.path());

    let pump = start([echo()], left.path());
    let heard = texts(&only(pump.recovered("console"))).await;
    assert_eq!(heard.last().unwrap(), "last");
    assert!(heard.len() <= 2, "what was acknowledged is not given again");
}

#[tokio::test]
async fn a_question_that_was_answered_before_a_crash_is_not_asked_again() {
    let (runs, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let asker = |gate: &Arc<Semaphore>| {
        let gate = gate.clone();
        Listener::named("asker").agent(true).peers(["counter"]).on(
            move |question: Ask, metadata: HandlerMetadata| {
                let gate = gate.clone();
                async move {
                    let answer = metadata.ask("counter", question).await?.read::<Told>()?;
                    gate.acquire().await?.forget();
                    Ok(HandlerResponse::respond(answer))
                }
            },
        )
    };
    let counter = || {
        let runs = runs.clone();
        Listener::named("counter").on(move |ask: Ask, _| {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok(HandlerResponse::respond(told(ask.text)))
            }
        })
    };
    let folder = TempDir::new().unwrap();
    let pump = start([asker(&gate), counter()], folder.path());
    let conversation = pump.open("console").unwrap();
    conversation.send("asker", ask("one")).await.unwrap();
    soon(async {
        while count(folder.path(), "asker", &HopKind::Answer) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let left = crash(folder.path());

    let open = Arc::new(Semaphore::new(9));
    let pump = start([asker(&open), counter()], left.path());
    let conversation = only(pump.recovered("console"));
    assert_eq!(texts(&conversation).await, ["one"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    drop(conversation);
    at_rest(&pump).await;
}

#[tokio::test]
async fn work_for_a_listener_that_is_gone_fails_and_its_caller_is_told() {
    let (gate, hops) = (Arc::new(Semaphore::new(0)), Arc::default());
    let folder = TempDir::new().unwrap();
    let pump = start([gated(&gate, &hops)], folder.path());
    let conversation = pump.open("console").unwrap();
    conversation.send("gated", ask("one")).await.unwrap();
    let left = crash(folder.path());

    let pump = start([echo()], left.path());
    let conversation = only(pump.recovered("console"));
    let told = soon(conversation.next()).await.unwrap();
    assert_eq!(told.payload.read::<SystemError>().unwrap().code, "handler");
    drop(conversation);
    at_rest(&pump).await;
}

/// A program that was killed while it started another leaves its files to that one for a moment.
#[tokio::test]
async fn a_journal_whose_lock_is_about_to_be_left_is_waited_for() {
    let folder = TempDir::new().unwrap();
    let held = std::fs::File::create(folder.path().join("lock")).unwrap();
    held.try_lock().unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(held);
    });
    let pump = start([echo()], folder.path());
    soon(pump.request("console", "echo", ask("x")))
        .await
        .unwrap();
}

#[tokio::test]
async fn two_pumps_do_not_share_a_journal_and_a_damaged_one_is_told() {
    let folder = TempDir::new().unwrap();
    let pump = start([echo()], folder.path());
    let second = Pump::start_durable(organism([echo()]), Settings::default(), folder.path());
    assert!(matches!(second, Err(JournalError::InUse(_))));
    soon(pump.request("console", "echo", ask("x")))
        .await
        .unwrap();
    soon(pump.drain()).await.unwrap();

    let left = crash(folder.path());
    let path = left.path().join("journal");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = Pump::start_durable(organism([echo()]), Settings::default(), left.path());
    let damaged = damaged.map(drop).unwrap_err();
    assert!(matches!(damaged, JournalError::Damaged { .. }), "{damaged}");
}
