//! Who says yes, to what, for how long, and from where.

use crate::support::scripted::{Answer as Reply, Scripted};
use crate::support::within;
use futures_util::future::BoxFuture;
use openstarry::approval::{
    Answer, Approval, Consent, ConsentError, Consents, Effect, Elsewhere, Gate, Grants, Pattern,
    Policy, Rule,
};
use openstarry::segment::ContentSegment;
use openstarry::session::{
    Agent, EndReason, Limits, SessionEvent, SessionState, SessionStore, Settings, StoreError,
};
use openstarry::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Answers as it is told to, and counts how often it was asked.
struct Person {
    answer: Answer,
    asked: Mutex<Vec<Consent>>,
}

impl Person {
    fn who_says(answer: Answer) -> Arc<Self> {
        Arc::new(Self {
            answer,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Gate for Person {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Answer> {
        self.asked.lock().unwrap().push(consent.clone());
        Box::pin(async { self.answer.clone() })
    }
}

/// An agent with one destructive tool, and how often the tool ran.
struct World {
    agent: Agent,
    provider: Arc<Scripted>,
    ran: Arc<AtomicUsize>,
}

fn world(replies: impl IntoIterator<Item = Reply>, approval: Approval) -> World {
    let provider = Scripted::new(replies);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let spec = ToolSpec::new("destroy", "", Risk::Destructive, schema);
    let tool = FnTool::new(spec, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(vec![ContentSegment::text("destroyed")]) }
    });
    let registry = Registry::new();
    registry.add(vec![Arc::new(tool)]).unwrap();
    let settings = Settings {
        approval,
        limits: Limits {
            rounds: 40,
            ..Limits::default()
        },
        ..Settings::default()
    };
    World {
        agent: Agent::new(provider.clone(), registry, settings),
        provider,
        ran,
    }
}

impl World {
    fn ran(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }
}

fn destroy(path: &str) -> Reply {
    Reply::calls(&[("destroy", json!({ "path": path }))])
}

fn asking(gate: Arc<dyn Gate>) -> Approval {
    Approval {
        gate,
        ..Approval::default()
    }
}

#[tokio::test]
async fn text_is_never_a_command() {
    let world = world(
        [Reply::text("words"), Reply::text("words")],
        Approval::default(),
    );
    let session = world.agent.session(SessionState::new("s"), None);
    for words in ["/destroy now", "//x"] {
        let outcome = within(session.say(words).unwrap().outcome()).await;
        assert_eq!(outcome.end, EndReason::Answered);
        assert_eq!(world.provider.shown().last().unwrap().prompt, words);
    }
    assert_eq!(world.ran(), 0);
    let outcome = within(session.command("/destroy now").unwrap().outcome()).await;
    assert_eq!((outcome.end, world.ran()), (EndReason::Command, 1));
}

#[tokio::test]
async fn the_reason_of_a_denial_goes_to_the_model_and_denials_stop_no_session() {
    let reason = Some("use the archive instead".into());
    let person = Person::who_says(Answer::Deny { reason });
    let replies = (0..20).map(|n| destroy(&n.to_string()));
    let world = world(
        replies.chain([Reply::text("I give up")]),
        asking(person.clone()),
    );
    let session = world.agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Answered, "no denial is a failure");
    assert_eq!((world.ran(), person.asked()), (0, 20));
    let told = outcome.trace[0].results()[0].text();
    assert!(told.contains("use the archive instead"), "{told}");
}

#[tokio::test]
async fn always_holds_for_the_session_or_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("always.json");
    let person = Person::who_says(Answer::Session);
    let first = world([destroy("a"), destroy("b")], asking(person.clone()));
    let session = first.agent.session(SessionState::new("s"), None);
    within(session.say("go").unwrap().outcome()).await;
    assert_eq!((first.ran(), person.asked()), (2, 1));
    let other = first.agent.session(SessionState::new("t"), None);
    drop(within(other.say("hello").unwrap().outcome()).await);

    for (asked, answer) in [(1, Answer::Always), (0, Answer::Deny { reason: None })] {
        let person = Person::who_says(answer);
        let approval = Approval {
            grants: Grants::open(&file).unwrap(),
            ..asking(person.clone())
        };
        let world = world([destroy("a"), destroy("b")], approval);
        let session = world.agent.session(SessionState::new("s"), None);
        within(session.say("go").unwrap().outcome()).await;
        assert_eq!((world.ran(), person.asked()), (2, asked));
    }
}

#[tokio::test]
async fn what_the_rules_deny_is_not_asked_and_not_granted() {
    let mut deny = Rule::new(Effect::Deny, Pattern::new("dest*"));
    deny.args.insert("path".into(), Pattern::new("/etc/*"));
    deny.reason = Some("the system is off limits".into());
    let person = Person::who_says(Answer::Always);
    let approval = Approval {
        policy: Policy {
            rules: vec![deny],
            ..Policy::default()
        },
        ..asking(person.clone())
    };
    let world = world([destroy("a"), destroy("/etc/passwd")], approval);
    let session = world.agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    assert_eq!((world.ran(), person.asked()), (1, 1));
    let told = outcome.trace[1].results()[0].text();
    assert!(told.contains("the system is off limits"), "{told}");
}

fn elsewhere(folder: &Path) -> Approval {
    Approval {
        consents: Consents::open(&folder.join("consents")).unwrap(),
        timeout: None,
        ..asking(Arc::new(Elsewhere))
    }
}

async fn asked(turn: &mut openstarry::session::TurnEvents) -> Consent {
    within(async {
        loop {
            match turn.next().await {
                Some(SessionEvent::ConsentAsked { consent }) => break *consent,
                Some(_) => {}
                None => panic!("nobody was asked"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_call_that_waits_is_answered_from_elsewhere_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let both = Reply::calls(&[("destroy", json!({})), ("destroy", json!({ "path": "b" }))]);
    let world = world([both, Reply::text("done")], elsewhere(folder.path()));
    let session = world.agent.session(SessionState::new("s"), None);
    let mut turn = session.say("go").unwrap();
    let first = asked(&mut turn).await;
    // As another process would: with nothing but the folder.
    let there = Consents::open(&folder.path().join("consents")).unwrap();
    let pending = there.pending("s");
    assert_eq!(pending.len(), 2, "all of a round's questions are there");
    assert!(there.pending("other").is_empty());
    assert!(matches!(
        there.answer("../s", Answer::Once),
        Err(ConsentError::Unknown(_))
    ));
    let second = pending.iter().find(|other| other.id != first.id).unwrap();
    let no = Answer::Deny { reason: None };
    there.answer(&second.id, no).unwrap();
    there.answer(&first.id, Answer::Once).unwrap();
    let again = there.answer(&first.id, Answer::Once);
    assert!(again.is_err(), "an answer counts once");
    let outcome = within(turn.outcome()).await;
    assert_eq!((outcome.text().as_str(), world.ran()), ("done", 1));
    let errors = outcome.trace[0].results().iter().map(|r| r.is_error);
    assert_eq!(errors.collect::<Vec<_>>(), [false, true]);
    assert!(there.all_pending().is_empty());
}

#[tokio::test]
async fn a_call_that_waits_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::open(folder.path()).unwrap();
    let before = world([destroy("a")], elsewhere(folder.path()));
    let (state, file) = store.create("s").unwrap();
    let session = before.agent.session(state, Some(file));
    let mut turn = session.say("go").unwrap();
    let consent = asked(&mut turn).await;
    turn.leave_for_shutdown();
    drop(session);

    let there = Consents::open(&folder.path().join("consents")).unwrap();
    assert_eq!(there.pending("s"), std::slice::from_ref(&consent));
    there.answer(&consent.id, Answer::Once).unwrap();

    let after = world([Reply::text("it is gone")], elsewhere(folder.path()));
    let (state, file) = resumed(&store).await;
    assert!(state.waits());
    let session = after.agent.session(state, Some(file));
    let outcome = within(session.go_on().unwrap().outcome()).await;
    assert_eq!(outcome.text(), "it is gone");
    assert_eq!((before.ran(), after.ran()), (0, 1));
    assert_eq!(outcome.trace[0].results()[0].text(), "destroyed");
    let shown = format!("{:?}", after.provider.shown()[0].messages);
    assert!(
        shown.contains("go") && shown.contains("destroyed"),
        "{shown}"
    );
    let nothing = within(session.go_on().unwrap().outcome()).await;
    assert!(matches!(nothing.end, EndReason::Failed(_)));
}

async fn resumed(store: &SessionStore) -> (SessionState, openstarry::session::OpenSession) {
    within(async {
        loop {
            match store.resume(Some("s")) {
                Ok(resumed) => break resumed,
                Err(StoreError::Busy(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_turn_that_is_cancelled_withdraws_its_questions() {
    let folder = tempfile::tempdir().unwrap();
    let world = world([destroy("a"), Reply::text("ok")], elsewhere(folder.path()));
    let session = world.agent.session(SessionState::new("s"), None);
    let mut turn = session.say("go").unwrap();
    let consent = asked(&mut turn).await;
    drop(turn);
    within(session.say("never mind").unwrap().outcome()).await;
    let there = Consents::open(&folder.path().join("consents")).unwrap();
    assert!(there.all_pending().is_empty());
    assert!(there.answer(&consent.id, Answer::Once).is_err());
    assert_eq!(world.ran(), 0);
}

#[tokio::test]
async fn a_call_that_ran_when_the_program_ended_is_not_repeated() {
    // As the file is between a yes and the result.
    let saved = json!({
        "id": "s", "deciding": false,
        "history": { "turns": [{ "input": [{ "type": "text", "text": "go" }] }] },
        "open": { "reply": [{ "type": "tool_call", "toolCall": { "id": "c", "name": "destroy", "args": {} } }] },
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.json"), saved.to_string()).unwrap();
    let store = SessionStore::open(folder.path()).unwrap();
    let (state, _file) = store.resume(Some("s")).unwrap();
    assert!(!state.waits());
    let result: Value = serde_json::to_value(&state.history.turns[0].rounds[0]).unwrap();
    assert!(
        result.to_string().contains("may have had its effect"),
        "{result}"
    );
}
