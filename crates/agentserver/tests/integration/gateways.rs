//! The outside, by correlation id: many conversations at once, answers that are
//! taken once.

use crate::common::{Ask, Told, ask, at_rest, organism, soon, told};
use agentserver::gateway::{
    Answer, CorrelationId, DeliveryError, GatewayConversations, Idle, Outlet,
};
use agentserver::{HandlerResponse, HopId, Listener, Payload, Pump, SendError, Settings};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// Keeps what it is given, after refusing each answer as often as it is told.
#[derive(Default)]
struct Inbox {
    taken: Mutex<HashMap<String, Vec<(u64, String)>>>,
    tries: AtomicUsize,
    refusals: usize,
    rested: AtomicUsize,
    closed: AtomicUsize,
    changed: Notify,
}

struct Out(Arc<Inbox>);

impl Outlet for Out {
    fn deliver<'a>(&'a self, answer: &'a Answer) -> BoxFuture<'a, Result<(), DeliveryError>> {
        async move {
            let tries = self.0.tries.fetch_add(1, Ordering::SeqCst);
            if tries % (self.0.refusals + 1) < self.0.refusals {
                return Err(DeliveryError::Retry("busy".into()));
            }
            let text = answer.message.payload.read::<Told>().unwrap().text;
            let mut taken = self.0.taken.lock().unwrap();
            let own = taken.entry(answer.correlation.to_string()).or_default();
            own.push((answer.number, text));
            self.0.changed.notify_waiters();
            Ok(())
        }
        .boxed()
    }

    fn rested(&self, _: &CorrelationId, _: Option<HopId>) {
        self.0.rested.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }

    fn closed(&self, _: &CorrelationId) {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl Inbox {
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        soon(async {
            loop {
                let changed = self.changed.notified();
                if is_so(self) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }

    fn count(&self) -> usize {
        self.taken.lock().unwrap().values().map(Vec::len).sum()
    }
}

fn echo() -> Listener {
    Listener::named("echo")
        .on(|payload: Ask, _| async move { Ok(HandlerResponse::respond(told(payload.text))) })
}

fn start(inbox: Inbox, idle: Duration) -> (Pump, Arc<Inbox>, GatewayConversations<Out>) {
    let pump = Pump::start(organism([echo()]), Settings::default());
    let inbox = Arc::new(inbox);
    let conversations =
        GatewayConversations::new(pump.clone(), "console", Out(inbox.clone()), Idle(idle));
    (pump, inbox, conversations)
}

const LONG: Duration = Duration::from_secs(600);

fn id(text: &str) -> CorrelationId {
    CorrelationId::parse(text).unwrap()
}

#[tokio::test]
async fn each_of_many_conversations_gets_its_own_answers_in_order() {
    let (_pump, inbox, conversations) = start(Inbox::default(), LONG);
    for round in 0..5 {
        for number in 0..200 {
            let xml = ask(format!("{number}/{round}")).to_xml().unwrap();
            let correlation = id(&number.to_string());
            soon(conversations.send(&correlation, Some("echo"), &xml))
                .await
                .unwrap();
        }
    }
    inbox.until(|inbox| inbox.count() == 1000).await;
    for (correlation, answers) in &*inbox.taken.lock().unwrap() {
        let expected: Vec<_> = (0..5)
            .map(|round| (round + 1, format!("{correlation}/{round}")))
            .collect();
        assert_eq!(*answers, expected);
    }
    assert_eq!(conversations.count(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_comes_again_and_in_its_place() {
    let inbox = Inbox {
        refusals: 3,
        ..Inbox::default()
    };
    let (_pump, inbox, conversations) = start(inbox, LONG);
    for text in ["a", "b"] {
        let xml = ask(text).to_xml().unwrap();
        conversations.send(&id("x"), None, &xml).await.unwrap();
    }
    inbox.until(|inbox| inbox.count() == 2).await;
    let expected = vec![(1, "a".to_owned()), (2, "b".to_owned())];
    assert_eq!(inbox.taken.lock().unwrap()["x"], expected);
    assert_eq!(inbox.tries.load(Ordering::SeqCst), 8);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_at_rest_is_let_go_and_begins_anew() {
    let (pump, inbox, conversations) = start(Inbox::default(), Duration::from_secs(5));
    let xml = ask("a").to_xml().unwrap();
    for turn in 1..=2 {
        conversations.send(&id("x"), None, &xml).await.unwrap();
        inbox
            .until(|inbox| inbox.closed.load(Ordering::SeqCst) == turn)
            .await;
        assert_eq!(conversations.count(), 0);
    }
    let answers = inbox.taken.lock().unwrap()["x"].clone();
    assert_eq!(answers, vec![(1, "a".to_owned()), (1, "a".to_owned())]);
    drop(conversations);
    at_rest(&pump).await;
}

#[tokio::test]
async fn what_is_refused_is_told_to_the_sender_and_a_closed_conversation_is_gone() {
    let (pump, inbox, conversations) = start(Inbox::default(), LONG);
    let refused = conversations
        .send(&id("x"), Some("nobody"), "<Ask><text/></Ask>")
        .await;
    assert!(matches!(refused, Err(SendError::Refused(_))));
    let xml = ask("a").to_xml().unwrap();
    conversations.send(&id("x"), None, &xml).await.unwrap();
    inbox.until(|inbox| inbox.count() == 1).await;
    assert!(conversations.close(&id("x")));
    assert!(!conversations.close(&id("x")));
    at_rest(&pump).await;
    for text in ["", "a b", "a\n", "ä", &"x".repeat(129)] {
        assert!(CorrelationId::parse(text).is_err(), "{text:?}");
    }
}

#[tokio::test]
async fn a_conversation_is_taken_up_under_its_name_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let start = |folder: &std::path::Path, inbox: &Arc<Inbox>| {
        let pump = Pump::start_durable(organism([echo()]), Settings::default(), folder);
        GatewayConversations::new(pump.unwrap(), "console", Out(inbox.clone()), Idle(LONG))
    };
    let deaf = Arc::new(Inbox {
        refusals: usize::MAX - 1,
        ..Inbox::default()
    });
    let conversations = start(folder.path(), &deaf);
    let xml = ask("a").to_xml().unwrap();
    conversations.send(&id("x"), None, &xml).await.unwrap();
    let left = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("journal"), left.path().join("journal")).unwrap();

    let inbox = Arc::new(Inbox::default());
    let conversations = start(left.path(), &inbox);
    inbox.until(|inbox| inbox.count() == 1).await;
    assert_eq!(inbox.taken.lock().unwrap()["x"], [(1, "a".to_owned())]);
    assert_eq!(conversations.count(), 1);
}
