//! A conversation is kept within the model's context, and what that changes is
//! told to the model and to the user.

use crate::support::scripted::{Answer, Scripted};
use crate::support::wire::{self, Say};
use crate::support::{ALL, Reply, Server, within};
use openstarry::pain::AgentPain;
use openstarry::provider::{Event, ProviderKind};
use openstarry::segment::{ContentSegment, StopReason, Usage};
use openstarry::session::{
    Agent, EndReason, Limits, Outcome, Session, SessionEvent, SessionState, Settings, Window,
};
use openstarry::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::json;
use std::sync::Arc;

fn settings(tokens: u64) -> Settings {
    Settings {
        window: Window {
            tokens,
            turns: None,
        },
        ..Settings::default()
    }
}

fn session(provider: &Arc<Scripted>, settings: Settings) -> Session {
    let schema = json!({ "type": "object", "properties": {} });
    let spec = ToolSpec::new("read", "Read.", Risk::Safe, schema);
    let registry = Registry::new();
    let long = FnTool::new(spec, async |_| {
        Ok(vec![ContentSegment::text("line of a file\n".repeat(200))])
    });
    registry.add(vec![Arc::new(long)]).unwrap();
    Agent::new(provider.clone(), registry, settings).session(SessionState::new("s"), None)
}

/// The outcome of a turn, and what the user was told in it.
async fn ask(session: &Session, question: &str) -> (Outcome, Vec<String>) {
    let mut turn = session.say(question).unwrap();
    let mut notices = Vec::new();
    loop {
        match within(turn.next()).await {
            Some(SessionEvent::Notice { text }) => notices.push(text),
            Some(SessionEvent::End(outcome)) => return (outcome, notices),
            Some(_) => {}
            None => panic!("the session ended"),
        }
    }
}

#[tokio::test]
async fn a_conversation_that_fits_is_shown_whole() {
    let provider = Scripted::new((0..12).map(|n| Answer::text(&format!("answer {n}"))));
    let session = session(&provider, settings(50_000));
    for n in 0..12 {
        let (_, notices) = ask(&session, &format!("question {n}")).await;
        assert!(notices.is_empty(), "{notices:?}");
    }
    let shown = provider.shown();
    let last = format!("{:?}", shown.last().unwrap().messages);
    assert!(
        last.contains("question 0") && last.contains("answer 10"),
        "{last}"
    );
}

#[tokio::test]
async fn old_results_are_shortened_first_and_turns_are_summed_up_next() {
    let mut answers = Vec::new();
    for _ in 0..8 {
        answers.push(Answer::calls(&[("read", json!({}))]));
        answers.push(Answer::text(&"words ".repeat(40)));
    }
    let provider = Scripted::new(answers);
    // A result has about 750 tokens, in short about 110.
    let session = session(&provider, settings(1800));
    let mut told = Vec::new();
    for n in 0..8 {
        let (outcome, notices) = ask(&session, &format!("question {n}")).await;
        assert_eq!(outcome.end, EndReason::Answered, "{n}");
        told.extend(notices);
    }
    let at = |word: &str| told.iter().position(|text| text.contains(word));
    let (shortened, summed) = (at("in short"), at("summed up"));
    assert!(shortened.is_some() && shortened < summed, "{told:?}");
    let shown = provider.shown();
    let short = shown
        .iter()
        .position(|shown| format!("{:?}", shown.messages).contains("[shortened: "));
    let summary = shown.iter().position(|shown| {
        format!("{:?}", shown.messages).contains("What was said before, in short")
    });
    assert!(short.is_some() && short < summary, "{short:?} {summary:?}");
    let summing = shown
        .iter()
        .find(|shown| shown.prompt.starts_with("Sum up"));
    let summing = format!("{:?}", summing.unwrap().messages);
    // Without tools on offer some APIs take no calls.
    assert!(summing.contains("[called read {}]"), "{summing}");
    assert!(
        !summing.contains("ToolCall") && !summing.contains("ToolResult"),
        "{summing}"
    );
    let last = format!("{:?}", shown.last().unwrap().messages);
    assert!(
        !last.contains("question 0") && last.contains("question 7"),
        "{last}"
    );
}

#[tokio::test]
async fn without_summaries_old_turns_are_left_out_and_both_are_told() {
    let provider = Scripted::new((0..8).map(|_| Answer::text(&"words ".repeat(200))));
    let settings = Settings {
        summarize: false,
        ..settings(1500)
    };
    let session = session(&provider, settings);
    let mut told = Vec::new();
    for n in 0..8 {
        told.extend(ask(&session, &format!("question {n}")).await.1);
    }
    assert!(
        told.iter().any(|text| text.contains("no longer shown")),
        "{told:?}"
    );
    let shown = provider.shown();
    let last = format!("{:?}", shown.last().unwrap().messages);
    assert!(
        last.contains("are left out here") && last.contains("question 7"),
        "{last}"
    );
}

#[tokio::test]
async fn a_request_that_the_api_finds_too_long_is_made_shorter_and_sent_again() {
    let mut answers: Vec<Answer> = (0..5)
        .map(|_| Answer::text(&"words ".repeat(300)))
        .collect();
    answers.push(Answer::Pain(AgentPain::Refused {
        status: 400,
        message: "This model's maximum context length is 1024 tokens.".into(),
    }));
    answers.push(Answer::text("SUMMARY"));
    answers.push(Answer::text("here"));
    let provider = Scripted::new(answers);
    let session = session(&provider, settings(50_000));
    for n in 0..5 {
        ask(&session, &format!("question {n}")).await;
    }
    let (outcome, notices) = ask(&session, "question 5").await;
    assert_eq!(outcome.end, EndReason::Answered, "{notices:?}");
    assert_eq!(outcome.text(), "here");
    assert!(
        notices.iter().any(|text| text.contains("too long")),
        "{notices:?}"
    );
    let shown = provider.shown();
    let last = format!("{:?}", shown.last().unwrap().messages);
    assert!(
        last.contains("SUMMARY") && !last.contains("question 0"),
        "{last}"
    );
}

#[tokio::test]
async fn how_the_api_counts_is_learnt() {
    let counted = |words: &str| {
        Answer::Events(vec![
            Event::Text(words.into()),
            Event::Usage(Usage {
                input_tokens: 6000,
                output_tokens: 10,
                ..Usage::default()
            }),
            Event::Finish(StopReason::EndTurn),
        ])
    };
    let provider = Scripted::new([counted("a"), Answer::text("SUMMARY"), counted("b")]);
    let session = session(&provider, settings(7000));
    // About 2,000 tokens by our estimate, which the API counts as 6,000.
    ask(&session, &"x".repeat(8000)).await;
    let (_, notices) = ask(&session, &"y".repeat(4000)).await;
    assert!(!notices.is_empty(), "it would not have fitted");
}

#[tokio::test]
async fn commands_compact_tell_the_cost_and_the_model() {
    let provider = Scripted::new([
        Answer::text("one"),
        Answer::text("two"),
        Answer::text("SUMMARY"),
        Answer::text("three"),
    ]);
    let session = session(&provider, settings(50_000));
    ask(&session, "first").await;
    ask(&session, "second").await;
    let outcome = within(session.command("/compact").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Command);
    assert!(outcome.text().contains("summed up"), "{}", outcome.text());
    ask(&session, "third").await;
    let last = format!("{:?}", provider.shown().last().unwrap().messages);
    assert!(
        last.contains("SUMMARY") && !last.contains("first"),
        "{last}"
    );
    let outcome = within(session.command("/cost").unwrap().outcome()).await;
    assert!(outcome.text().contains("tokens read"), "{}", outcome.text());
    let outcome = within(session.command("/model other").unwrap().outcome()).await;
    assert!(
        outcome.text().contains("one model only"),
        "{}",
        outcome.text()
    );
}

#[tokio::test]
async fn another_model_is_asked_from_the_next_turn_on() {
    for kind in ALL {
        let reply = Reply::stream(kind, wire::body(kind, &[Say::Text("hi")]));
        let server = Server::start(vec![reply]).await;
        let provider = server.provider(kind);
        let agent = Agent::new(provider, Registry::new(), Settings::default());
        let session = agent.session(SessionState::new("s"), None);
        ask(&session, "who are you?").await;
        let outcome = within(session.command("/model other-1").unwrap().outcome()).await;
        assert!(outcome.text().contains("other-1"), "{}", outcome.text());
        ask(&session, "and now?").await;
        let asked = server.asked();
        let model = |at: usize| match kind {
            ProviderKind::Gemini => asked[at].path.clone(),
            _ => asked[at].body["model"].to_string(),
        };
        assert!(model(0).contains("model-1"), "{kind:?}: {}", model(0));
        assert!(model(1).contains("other-1"), "{kind:?}: {}", model(1));
    }
}

#[tokio::test]
async fn a_budget_says_which_it_was_and_how_to_go_on() {
    let provider = Scripted::new([Answer::text("hi")]);
    let limits = Limits {
        tokens: Some(20),
        ..Limits::default()
    };
    let session = session(
        &provider,
        Settings {
            limits,
            ..settings(50_000)
        },
    );
    let (outcome, _) = ask(&session, &"x".repeat(200)).await;
    let EndReason::Budget(why) = outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert!(
        why.contains("limits.tokens") && why.contains("agent.yaml"),
        "{why}"
    );
}
