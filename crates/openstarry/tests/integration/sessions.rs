//! The loop as a user meets it.

use crate::support::scripted::{Answer, Scripted};
use crate::support::within;
use futures_util::future::BoxFuture;
use openstarry::approval::{Answer as Yes, Approval, Consent, Effect, Gate, Pattern, Policy, Rule};
use openstarry::pain::AgentPain;
use openstarry::provider::Event;
use openstarry::segment::{ContentSegment, Role, ToolCall};
use openstarry::session::{
    Agent, Audit, AuditLine, EndReason, Limits, Session, SessionEvent, SessionState, SessionStore,
    Settings, Verdict,
};
use openstarry::tool::builtin::{TodoTool, Workspace};
use openstarry::tool::{FnTool, Principal, Registry, Risk, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

fn tool<F, Fut>(name: &str, risk: Risk, run: F) -> Arc<dyn Tool>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<ContentSegment>, ToolError>> + Send + 'static,
{
    let schema = json!({ "type": "object", "properties": { "location": { "type": "string" } } });
    Arc::new(FnTool::new(
        ToolSpec::new(name, "A tool.", risk, schema),
        run,
    ))
}

fn weather() -> Arc<dyn Tool> {
    tool("get_weather", Risk::Safe, async |_| {
        Ok(vec![ContentSegment::text("25°C, Sunny")])
    })
}

fn agent(provider: &Arc<Scripted>, tools: Vec<Arc<dyn Tool>>, settings: Settings) -> Agent {
    let registry = Registry::new();
    registry.add(tools).unwrap();
    Agent::new(provider.clone(), registry, settings)
}

fn session(provider: &Arc<Scripted>, tools: Vec<Arc<dyn Tool>>, settings: Settings) -> Session {
    agent(provider, tools, settings).session(SessionState::new("s"), None)
}

#[tokio::test]
async fn a_call_is_run_and_its_result_goes_back_to_the_model() {
    let provider = Scripted::new([
        Answer::calls(&[("get_weather", json!({ "location": "Taipei" }))]),
        Answer::text("25 degrees and sunny."),
    ]);
    let session = session(&provider, vec![weather()], Settings::default());
    let outcome = within(session.say("Query weather in Taipei").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Answered);
    assert_eq!(outcome.text(), "25 degrees and sunny.");
    assert_eq!(outcome.trace.len(), 2);
    let shown = provider.shown();
    assert_eq!(shown[0].prompt, "Query weather in Taipei");
    assert_eq!(shown[0].tools, ["get_weather"]);
    let roles: Vec<_> = shown[1]
        .messages
        .iter()
        .map(|message| message.role)
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    let ContentSegment::ToolResult { tool_result } = &shown[1].messages[2].segments[0] else {
        panic!();
    };
    assert_eq!(tool_result.text(), "25°C, Sunny");
}

#[tokio::test(start_paused = true)]
async fn denied_failed_late_broken_and_unknown_calls_all_have_results() {
    let provider = Scripted::new([
        Answer::calls(&[
            ("destroy", json!({})),
            ("fail", json!({})),
            ("hang", json!({})),
            ("panic", json!({})),
            ("nowhere", json!({})),
            ("get_weather", json!({ "location": 7 })),
            ("get_weather", json!({})),
        ]),
        Answer::text("done"),
    ]);
    let ran = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&ran);
    let tools = vec![
        weather(),
        tool("destroy", Risk::Destructive, move |_| {
            mark.store(true, Ordering::SeqCst);
            async { Ok(vec![]) }
        }),
        tool("fail", Risk::Safe, async |_| Err(ToolError::new("no luck"))),
        tool("hang", Risk::Safe, async |_| std::future::pending().await),
        tool("panic", Risk::Safe, async |_| panic!("a tool panics")),
    ];
    let session = session(&provider, tools, Settings::default());
    let outcome = session.say("go").unwrap().outcome().await;
    let results = outcome.trace[0].results();
    let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [true, true, true, true, true, true, false]);
    for (result, word) in results.iter().zip([
        "Denied",
        "no luck",
        "ended after 30",
        "broke",
        "no tool named",
        "/location",
        "Sunny",
    ]) {
        assert!(result.text().contains(word), "{word}: {}", result.text());
    }
    assert!(!ran.load(Ordering::SeqCst), "a denied tool ran");
}

#[tokio::test]
async fn independent_calls_run_side_by_side_and_results_keep_the_order_of_the_calls() {
    let barrier = Arc::new(Barrier::new(3));
    let meet = tool("meet", Risk::Safe, move |args| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(vec![ContentSegment::text(
                args["location"].as_str().unwrap_or_default(),
            )])
        }
    });
    let call = |place: &str| ("meet", json!({ "location": place }));
    let provider = Scripted::new([Answer::calls(&[call("a"), call("b"), call("c")])]);
    let session = session(&provider, vec![meet], Settings::default());
    let outcome = within(session.say("go").unwrap().outcome()).await;
    let texts: Vec<_> = outcome.trace[0]
        .results()
        .iter()
        .map(|result| result.text())
        .collect();
    assert_eq!(texts, ["a", "b", "c"]);
}

#[tokio::test]
async fn calls_that_change_something_run_one_after_another() {
    let running = Arc::new(AtomicUsize::new(0));
    let change = tool("change", Risk::Moderate, move |_| {
        let running = Arc::clone(&running);
        async move {
            let others = running.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            match others {
                0 => Ok(vec![]),
                _ => Err(ToolError::new("not alone")),
            }
        }
    });
    let provider = Scripted::new([Answer::calls(&[
        ("change", json!({})),
        ("change", json!({})),
        ("change", json!({})),
    ])]);
    let session = session(&provider, vec![change], Settings::default());
    let outcome = within(session.say("go").unwrap().outcome()).await;
    assert!(
        outcome.trace[0]
            .results()
            .iter()
            .all(|result| !result.is_error)
    );
}

#[tokio::test]
async fn a_provider_that_fails_or_panics_ends_one_turn_and_not_the_session() {
    let provider = Scripted::new([
        Answer::Pain(AgentPain::unavailable("down")),
        Answer::Panic,
        Answer::text("back again"),
    ]);
    let session = session(&provider, vec![], Settings::default());
    for _ in 0..2 {
        let outcome = within(session.say("hello").unwrap().outcome()).await;
        assert!(
            matches!(outcome.end, EndReason::Failed(_)),
            "{:?}",
            outcome.end
        );
    }
    let outcome = within(session.say("hello").unwrap().outcome()).await;
    assert_eq!(outcome.text(), "back again");
}

#[tokio::test]
async fn a_session_that_hangs_delays_no_other() {
    let provider = Scripted::new([Answer::Hang(vec![]), Answer::text("quick")]);
    let agent = agent(&provider, vec![], Settings::default());
    let slow = agent.session(SessionState::new("slow"), None);
    let waiting = slow.say("hello").unwrap();
    while provider.shown().is_empty() {
        tokio::task::yield_now().await;
    }
    let quick = agent.session(SessionState::new("quick"), None);
    let outcome = within(quick.say("hello").unwrap().outcome()).await;
    assert_eq!(outcome.text(), "quick");
    drop(waiting);
}

#[tokio::test]
async fn dropping_a_turn_cancels_it_and_keeps_what_was_heard() {
    let provider = Scripted::new([
        Answer::Hang(vec![Event::Text("as I was say".into())]),
        Answer::text("yes"),
    ]);
    let session = session(&provider, vec![], Settings::default());
    let mut turn = session.say("first").unwrap();
    let heard = within(turn.next()).await;
    assert_eq!(
        heard,
        Some(SessionEvent::Text {
            text: "as I was say".into()
        })
    );
    drop(turn);
    let usage = within(session.command("/usage").unwrap().outcome())
        .await
        .usage;
    assert!(
        usage.output_tokens > 0 && usage.estimated,
        "what was heard is paid for"
    );
    within(session.say("second").unwrap().outcome()).await;
    let shown = provider.shown();
    let said = format!("{:?}", shown[1].messages);
    assert!(
        said.contains("as I was say") && said.contains("cancelled"),
        "{said}"
    );
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let provider = Scripted::new([Answer::Hang(vec![])]);
    let session = session(&provider, vec![], Settings::default());
    let mut turns = Vec::new();
    let refused = loop {
        match session.say("more") {
            Ok(turn) => turns.push(turn),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, openstarry::session::AskError::Busy);
    assert!(turns.len() <= 17);
}

struct Answering(fn(&ToolCall) -> Option<bool>);

impl Gate for Answering {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Yes> {
        Box::pin(async move {
            match (self.0)(&consent.call) {
                Some(true) => Yes::Once,
                Some(false) => Yes::Deny { reason: None },
                None => std::future::pending().await,
            }
        })
    }
}

async fn destroy(approval: Approval) -> bool {
    let ran = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&ran);
    let destroy = tool("destroy", Risk::Destructive, move |_| {
        mark.store(true, Ordering::SeqCst);
        async { Ok(vec![]) }
    });
    let provider = Scripted::new([Answer::calls(&[("destroy", json!({}))]), Answer::text("ok")]);
    let settings = Settings {
        approval,
        ..Settings::default()
    };
    let session = session(&provider, vec![destroy], settings);
    let outcome = session.say("go").unwrap().outcome().await;
    assert_eq!(outcome.trace[0].results().len(), 1);
    ran.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn the_gate_fails_closed() {
    let gate = |answer: fn(&ToolCall) -> Option<bool>| Approval {
        gate: Arc::new(Answering(answer)),
        ..Approval::default()
    };
    assert!(!destroy(Approval::default()).await, "nobody was asked");
    assert!(!destroy(gate(|_| Some(false))).await, "no");
    assert!(!destroy(gate(|_| None)).await, "no answer");
    assert!(
        !destroy(gate(|_| panic!("the gate breaks"))).await,
        "a broken gate"
    );
    assert!(destroy(gate(|_| Some(true))).await, "yes");
    let allow = Rule::new(Effect::Allow, Pattern::new("destroy"));
    let approved = Approval {
        policy: Policy {
            rules: vec![allow],
            ..Policy::default()
        },
        ..Approval::default()
    };
    assert!(destroy(approved).await, "approved beforehand");
}

#[derive(Default)]
struct Lines(Mutex<Vec<AuditLine>>);

impl Audit for Lines {
    fn record(&self, line: &AuditLine) {
        self.0.lock().unwrap().push(line.clone());
    }
}

#[tokio::test]
async fn a_slash_command_runs_the_same_tool_past_the_model_with_an_audit_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    let mut tools = workspace.read_tools();
    tools.extend(workspace.write_tools());
    let lines = Arc::new(Lines::default());
    let provider = Scripted::new([]);
    let settings = Settings {
        audit: lines.clone(),
        ..Settings::default()
    };
    let session = session(&provider, tools, settings);
    let outcome = within(session.command("/read a.txt").unwrap().outcome()).await;
    assert_eq!(
        (outcome.end, outcome.segments),
        (EndReason::Command, vec![ContentSegment::text("hello")])
    );
    // The user's own word is the yes to a destructive tool.
    within(
        session
            .command("/write b.txt some words")
            .unwrap()
            .outcome(),
    )
    .await;
    assert_eq!(
        std::fs::read_to_string(folder.path().join("b.txt")).unwrap(),
        "some words"
    );
    // The same jail, and the same validation.
    let outcome = within(session.command("/read ../x").unwrap().outcome()).await;
    assert!(!outcome.segments.is_empty());
    let outcome = within(session.command("/read {\"path\": 7}").unwrap().outcome()).await;
    assert!(format!("{:?}", outcome.segments).contains("/path"));
    let outcome = within(session.command("/nonsense").unwrap().outcome()).await;
    assert!(format!("{:?}", outcome.segments).contains("/read"));
    assert!(provider.shown().is_empty(), "the model was asked");
    let lines = lines.0.lock().unwrap();
    let verdicts: Vec<_> = lines
        .iter()
        .map(|line| (line.principal, line.verdict))
        .collect();
    let user = |verdict| (Principal::User, verdict);
    assert_eq!(
        verdicts,
        [
            user(Verdict::Done),
            user(Verdict::Done),
            user(Verdict::Failed),
            user(Verdict::Refused)
        ]
    );
}

#[tokio::test]
async fn the_same_call_failing_again_is_told_to_the_model_then_the_user_then_ends_the_session() {
    let fail = tool("fail", Risk::Safe, async |_| Err(ToolError::new("no luck")));
    let answers = (0..12).map(|_| Answer::calls(&[("fail", json!({}))]));
    let provider = Scripted::new(answers);
    let settings = Settings {
        limits: Limits {
            rounds: 20,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let agent = agent(&provider, vec![fail], settings);
    let session = agent.session(SessionState::new("s"), None);
    let mut turn = session.say("go").unwrap();
    let mut notices = 0;
    let outcome = loop {
        match within(turn.next()).await {
            Some(SessionEvent::Notice { .. }) => notices += 1,
            Some(SessionEvent::End(outcome)) => break outcome,
            Some(_) => {}
            None => panic!(),
        }
    };
    assert!(matches!(outcome.end, EndReason::Stopped(_)));
    assert_eq!(notices, 2);
    assert!(outcome.trace[2].observations()[0].contains("3 times"));
    let again = within(session.say("go").unwrap().outcome()).await;
    assert!(matches!(again.end, EndReason::Stopped(_)));
    let other = agent.session(SessionState::new("other"), None);
    let fine = within(other.command("/help").unwrap().outcome()).await;
    assert_eq!(fine.end, EndReason::Command);
    within(session.command("/reset").unwrap().outcome()).await;
    assert!(within(session.say("go").unwrap().outcome()).await.end != again.end);
}

#[tokio::test]
async fn the_budget_ends_a_turn_before_the_request_is_sent() {
    let provider = Scripted::new([Answer::text("hi"), Answer::text("hi")]);
    let settings = Settings {
        limits: Limits {
            tokens: Some(20),
            ..Limits::default()
        },
        ..Settings::default()
    };
    let session = session(&provider, vec![], settings);
    let first = within(session.say("short").unwrap().outcome()).await;
    assert_eq!(first.end, EndReason::Answered);
    assert!(first.usage.estimated && first.usage.total() > 0);
    let second = within(session.say("x".repeat(100)).unwrap().outcome()).await;
    assert!(matches!(second.end, EndReason::Budget(_)));
    assert_eq!(provider.shown().len(), 1);
}

#[tokio::test]
async fn a_session_is_saved_as_it_goes_and_resumed_with_all_it_held() {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::open(folder.path()).unwrap();
    let provider = Scripted::new([
        Answer::calls(&[("todo", json!({ "action": "add", "text": "buy milk" }))]),
        Answer::text("noted"),
        Answer::text("milk"),
    ]);
    let agent = agent(
        &provider,
        vec![Arc::new(TodoTool::default())],
        Settings::default(),
    );
    let (state, file) = store.create("first").unwrap();
    let session = agent.session(state, Some(file));
    within(session.say("remember milk").unwrap().outcome()).await;
    drop(session);
    let (state, file) = loop {
        match store.resume(None) {
            Ok(resumed) => break resumed,
            Err(openstarry::session::StoreError::Busy(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(state.todos.lock().unwrap()[0].text, "buy milk");
    let session = agent.session(state, Some(file));
    within(session.say("what was it?").unwrap().outcome()).await;
    let shown = provider.shown();
    assert!(format!("{:?}", shown[2].messages).contains("remember milk"));
}

#[tokio::test(start_paused = true)]
async fn a_late_tool_is_really_ended() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&ended);
    let hang = tool("hang", Risk::Safe, move |_| {
        let guard = Guard(Arc::clone(&mark));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let provider = Scripted::new([Answer::calls(&[("hang", json!({}))]), Answer::text("ok")]);
    let settings = Settings {
        tool_timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    let session = session(&provider, vec![hang], settings);
    session.say("go").unwrap().outcome().await;
    while !ended.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
}
