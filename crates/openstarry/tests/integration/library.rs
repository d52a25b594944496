//! What a stranger builds on the core: typed answers, typed tools, hooks,
//! sub-agents, spans, recordings.

use crate::support::scripted::{Answer, Scripted};
use crate::support::wire::{self, Say};
use crate::support::{ALL, Reply, Server, within};
use openstarry::BoxFuture;
use openstarry::provider::{Context, Event, ProviderKind, Recorder, Replay};
use openstarry::segment::{ContentSegment, ToolCall, ToolResult, Usage};
use openstarry::session::{
    Agent, EndReason, ExtractError, Hook, Limits, Price, SessionEvent, SessionState, Settings,
};
use openstarry::tool::{Registry, SubAgent, Tool};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    /// Degrees Celsius.
    degrees: i32,
}

openstarry::tool! {
    /// The weather at a place.
    #[risk(Safe)]
    async fn get_weather(
        /// A city.
        city: String,
        /// How many days ahead.
        days: Option<u32>,
    ) -> Result<String, std::num::ParseIntError> {
        Ok(format!("sunny in {city} in {} days", days.unwrap_or(0)))
    }
}

openstarry::tool! {
    /// Tells in which session it runs.
    #[risk(Moderate)]
    async fn where_am_i(
        /// Where it runs: nothing that a model is told of.
        context: ToolContext,
    ) -> String {
        context.session
    }
}

openstarry::tool! {
    /// Gives nothing back.
    #[risk(Safe)]
    async fn keep_quiet() {}
}

openstarry::tool! {
    /// Says how far it is, and is done.
    #[risk(Safe)]
    async fn hurry(context: ToolContext) {
        context.progress.tell("half");
        context.progress.tell("nearly all");
    }
}

fn agent(provider: &Arc<Scripted>, tools: Vec<Arc<dyn Tool>>, settings: Settings) -> Agent {
    let registry = Registry::new();
    registry.add(tools).unwrap();
    Agent::new(provider.clone(), registry, settings)
}

#[tokio::test]
async fn a_typed_answer_comes_from_each_api() {
    for kind in ALL {
        let answer = "{\"city\":\"Taipei\",\"degrees\":25}";
        let native = kind != ProviderKind::Anthropic && kind != ProviderKind::Gemini;
        let says = match native {
            true => Say::Text(answer),
            false => wire::call("a", "final_answer", answer),
        };
        let server = Server::start(vec![Reply::stream(kind, wire::body(kind, &[says]))]).await;
        let agent = Agent::new(server.provider(kind), Registry::new(), Settings::default());
        let session = agent.session(SessionState::new("s"), None);
        let weather: Weather = within(session.extract("How is it?")).await.unwrap();
        assert_eq!(weather.degrees, 25, "{kind:?}");
        let sent = server.asked()[0].body.to_string();
        assert!(sent.contains("Degrees Celsius."), "{kind:?}: {sent}");
        assert_eq!(server.asked().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_goes_back_with_the_validators_words() {
    // In words, as an API with structured output gives it.
    let provider = Scripted::structured([
        Answer::text("It is warm."),
        Answer::text("```json\n{\"city\":\"Taipei\",\"degrees\":\"warm\"}\n```"),
        Answer::text("{\"city\":\"Taipei\",\"degrees\":25}"),
    ]);
    let session =
        agent(&provider, vec![], Settings::default()).session(SessionState::new("s"), None);
    let weather: Weather = within(session.extract("How is it?")).await.unwrap();
    assert_eq!(weather.city, "Taipei");
    assert!(
        provider.shown()[2].prompt.contains("/degrees"),
        "{}",
        provider.shown()[2].prompt
    );

    // Through the tool.
    let provider = Scripted::new([
        Answer::calls(&[("final_answer", json!({ "city": "Taipei" }))]),
        Answer::calls(&[("final_answer", json!({ "city": "Taipei", "degrees": 25 }))]),
    ]);
    let session =
        agent(&provider, vec![], Settings::default()).session(SessionState::new("s"), None);
    let weather: Weather = within(session.extract("How is it?")).await.unwrap();
    assert_eq!(weather.degrees, 25);
    let told = format!("{:?}", provider.shown()[1].messages);
    assert!(told.contains("degrees"), "{told}");
    assert_eq!(provider.shown().len(), 2, "the answer ends the turn");

    let provider = Scripted::structured((0..4).map(|_| Answer::text("no")));
    let session =
        agent(&provider, vec![], Settings::default()).session(SessionState::new("s"), None);
    let failed = within(session.extract::<Weather>("How is it?")).await;
    assert!(
        matches!(failed, Err(ExtractError::Unfit { .. })),
        "{failed:?}"
    );
    assert_eq!(provider.shown().len(), 3);
}

#[tokio::test]
async fn a_macro_makes_tools_of_async_functions() {
    let spec = get_weather().spec().clone();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("get_weather", "The weather at a place.")
    );
    assert_eq!(spec.parameters["required"], json!(["city"]));
    assert_eq!(
        spec.parameters["properties"]["city"]["description"],
        "A city."
    );
    let provider = Scripted::new([
        Answer::calls(&[
            ("get_weather", json!({ "city": "Taipei", "days": 2 })),
            ("where_am_i", json!({})),
            ("get_weather", json!({ "town": "Taipei" })),
            ("keep_quiet", json!({})),
        ]),
        Answer::text("done"),
    ]);
    let parameters = where_am_i().spec().parameters.to_string();
    assert!(!parameters.contains("context"), "{parameters}");
    let agent = agent(
        &provider,
        vec![get_weather(), where_am_i(), keep_quiet()],
        Settings::default(),
    );
    let session = agent.session(SessionState::new("here"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    let results = outcome.trace[0].results();
    assert_eq!(results[0].text(), "sunny in Taipei in 2 days");
    assert_eq!(results[1].text(), "here");
    assert!(results[2].is_error && !results[3].is_error);
}

#[tokio::test]
async fn signs_of_progress_are_shown_when_the_tool_is_done_right_after_them() {
    let provider = Scripted::new([Answer::calls(&[("hurry", json!({}))]), Answer::text("done")]);
    let session =
        agent(&provider, vec![hurry()], Settings::default()).session(SessionState::new("s"), None);
    let mut turn = session.say("go").unwrap();
    let mut signs = Vec::new();
    while let Some(event) = within(turn.next()).await {
        match event {
            SessionEvent::ToolProgress { text, .. } => signs.push(text),
            SessionEvent::ToolFinished { .. } => signs.push("finished".into()),
            _ => {}
        }
    }
    assert_eq!(signs, ["half", "nearly all", "finished"]);
}

#[derive(Default)]
struct Watch(Mutex<Vec<String>>);

impl Watch {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Hook for Watch {
    fn before_model<'a>(&'a self, _: &'a str, context: &'a mut Context) -> BoxFuture<'a, ()> {
        context.system.push_str("Be brief.");
        self.note("before model".into());
        Box::pin(std::future::ready(()))
    }

    fn after_model<'a>(
        &'a self,
        _: &'a str,
        reply: &'a openstarry::segment::ProviderResponse,
    ) -> BoxFuture<'a, ()> {
        self.note(format!("after model: {}", reply.calls().count()));
        Box::pin(std::future::ready(()))
    }

    fn before_tool<'a>(
        &'a self,
        _: &'a str,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), String>> {
        let allowed = match call.args["city"] == "Atlantis" {
            true => Err("there is no such city".to_owned()),
            false => Ok(()),
        };
        Box::pin(std::future::ready(allowed))
    }

    fn after_tool<'a>(
        &'a self,
        _: &'a str,
        _: &'a ToolCall,
        result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        result.content.push(ContentSegment::text("(checked)"));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn hooks_run_before_and_after_model_and_tools() {
    let provider = Scripted::new([
        Answer::calls(&[
            ("get_weather", json!({ "city": "Taipei" })),
            ("get_weather", json!({ "city": "Atlantis" })),
        ]),
        Answer::text("done"),
    ]);
    let watch = Arc::new(Watch::default());
    let settings = Settings {
        hooks: vec![watch.clone()],
        ..Settings::default()
    };
    let session =
        agent(&provider, vec![get_weather()], settings).session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    let results = outcome.trace[0].results();
    assert!(
        results[0].text().ends_with("(checked)"),
        "{}",
        results[0].text()
    );
    assert!(results[1].is_error && results[1].text().contains("no such city"));
    let noted = watch.0.lock().unwrap().clone();
    assert_eq!(
        noted,
        [
            "before model",
            "after model: 2",
            "before model",
            "after model: 0"
        ]
    );
}

#[tokio::test]
async fn a_sub_agent_works_under_limits_of_its_own() {
    let looping =
        Scripted::new((0..9).map(|_| Answer::calls(&[("get_weather", json!({ "city": "x" }))])));
    let limits = Limits {
        rounds: 2,
        ..Limits::default()
    };
    let settings = Settings {
        limits,
        ..Settings::default()
    };
    let lost = agent(&looping, vec![get_weather()], settings);
    let good = Scripted::new([Answer::text("42")]);
    let good = agent(&good, vec![], Settings::default());
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(SubAgent::new("researcher", "Finds things out.", good)),
        Arc::new(SubAgent::new("wanderer", "Gets lost.", lost)),
    ];
    let provider = Scripted::new([
        Answer::calls(&[
            ("researcher", json!({ "task": "find it" })),
            ("wanderer", json!({ "task": "find it" })),
        ]),
        Answer::text("done"),
    ]);
    let session =
        agent(&provider, tools, Settings::default()).session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Answered);
    let results = outcome.trace[0].results();
    assert_eq!(results[0].text(), "42");
    assert!(
        results[1].is_error && results[1].text().contains("2 rounds"),
        "{}",
        results[1].text()
    );
    assert_eq!(looping.shown().len(), 3);
}

#[tokio::test]
async fn what_a_sub_agent_spends_counts_for_the_agent_that_asked() {
    let told = |input_tokens, answer: Answer| match answer {
        Answer::Events(mut events) => {
            events.insert(
                0,
                Event::Usage(Usage {
                    input_tokens,
                    output_tokens: 1,
                    ..Usage::default()
                }),
            );
            Answer::Events(events)
        }
        other => other,
    };
    let price = Price {
        input: 1e6,
        output: 0.0,
        cached: None,
    };
    let limited = |limits| Settings {
        limits,
        ..Settings::default()
    };
    let deep = Scripted::new([told(1000, Answer::text("deep"))]);
    let deep = SubAgent::new("deep", "", agent(&deep, vec![], Settings::default()));
    let helper = Scripted::new([
        told(200, Answer::calls(&[("deep", json!({ "task": "x" }))])),
        told(300, Answer::text("helped")),
    ]);
    let priced = limited(Limits {
        price: Some(price),
        ..Limits::default()
    });
    let helper = agent(&helper, vec![Arc::new(deep)], priced);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(SubAgent::new("helper", "", helper))];
    let provider = Scripted::new([
        told(10, Answer::calls(&[("helper", json!({ "task": "x" }))])),
        Answer::text("must not be asked for"),
    ]);
    let limits = Limits {
        tokens: Some(1500),
        ..Limits::default()
    };
    let session = agent(&provider, tools, limited(limits)).session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    assert_eq!(outcome.trace[0].results()[0].text(), "helped");
    assert_eq!(outcome.usage.input_tokens, 10 + 200 + 1000 + 300);
    assert!(
        matches!(&outcome.end, EndReason::Budget(why) if why.contains("limits.tokens")),
        "{:?}",
        outcome.end
    );
    assert_eq!(provider.shown().len(), 1);
    let cost = within(session.command("/cost").unwrap().outcome()).await;
    assert!(cost.text().contains("1510"), "{}", cost.text());
}

#[tokio::test]
async fn a_session_is_recorded_and_replayed_without_the_provider() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let provider = Scripted::new([
        Answer::calls(&[("get_weather", json!({ "city": "Taipei" }))]),
        Answer::text("Sunny."),
    ]);
    let registry = Registry::new();
    registry.add(vec![get_weather()]).unwrap();
    let recorder = Recorder::new(provider, &path).unwrap();
    let agent = Agent::new(Arc::new(recorder), registry.clone(), Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let recorded = within(session.say("How is it?").unwrap().outcome()).await;

    let replay = || Arc::new(Replay::load(&path).unwrap());
    let agent = Agent::new(replay(), registry.clone(), Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let replayed = within(session.say("How is it?").unwrap().outcome()).await;
    assert_eq!(replayed.text(), "Sunny.");
    assert_eq!(
        replayed.trace[0].results()[0].text(),
        recorded.trace[0].results()[0].text()
    );
    let over = within(session.say("And now?").unwrap().outcome()).await;
    assert!(
        over.end.why().contains("recording is over"),
        "{:?}",
        over.end
    );

    let agent = Agent::new(replay(), registry, Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let other = within(session.say("Something else").unwrap().outcome()).await;
    assert!(
        other.end.why().contains("another question"),
        "{:?}",
        other.end
    );
}

/// Collects the names and fields of spans.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Spans {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("openstarry")
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.0
            .lock()
            .unwrap()
            .push(format!("span={}", span.metadata().name()));
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn spans_have_the_names_of_the_conventions_for_generative_ai() {
    let spans = Spans::default();
    let seen = spans.clone();
    // With one subscriber alone, `tracing` takes the word of whichever thread comes to
    // a span first, and another test's thread has no subscriber.
    let _second = tracing::Dispatch::new(Spans::default());
    // One thread, so that the subscriber sees all of it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(spans, || {
        runtime.block_on(async {
            let provider = Scripted::new([
                Answer::calls(&[("get_weather", json!({ "city": "Taipei" }))]),
                Answer::text("Sunny."),
            ]);
            let agent = agent(&provider, vec![get_weather()], Settings::default());
            let session = agent.session(SessionState::new("s"), None);
            within(session.say("go").unwrap().outcome()).await;
        });
    });
    let seen = seen.0.lock().unwrap().join("\n");
    for part in [
        "span=chat",
        "gen_ai.operation.name=\"chat\"",
        "gen_ai.provider.name=\"scripted\"",
        "gen_ai.conversation.id=\"s\"",
        "gen_ai.response.finish_reasons=\"[\\\"end_turn\\\"]\"",
        "span=execute_tool",
        "gen_ai.tool.name=\"get_weather\"",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
}
