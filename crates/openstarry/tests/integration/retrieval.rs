//! A thousand tools, and what people ask of them. `data/tools.tsv` holds a name
//! and a description a line, `data/queries.tsv` a question and the tool it needs.

use crate::support::scripted::{Answer, Scripted};
use crate::support::{Reply, Server, within};
use openstarry::segment::ContentSegment;
use openstarry::session::{Agent, SessionState, Settings};
use openstarry::tool::builtin::SearchTools;
use openstarry::tool::retrieval::{EmbeddingsConfig, EmbeddingsEndpoint, SEARCH_TOOLS, Selector};
use openstarry::tool::{FnTool, Registry, Risk, Tool, ToolSpec};
use serde_json::json;
use std::sync::Arc;

const TOOLS: &str = include_str!("../data/tools.tsv");
const QUERIES: &str = include_str!("../data/queries.tsv");

fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter_map(|line| line.split_once('\t'))
}

fn registry() -> Registry {
    let tool = |(name, about): (&str, &str)| {
        let spec = ToolSpec::new(name, about, Risk::Safe, json!({ "type": "object" }));
        Arc::new(FnTool::new(spec, async |_| {
            Ok(vec![ContentSegment::text("done")])
        })) as Arc<dyn Tool>
    };
    let registry = Registry::new();
    registry.add(rows(TOOLS).map(tool).collect()).unwrap();
    registry
}

#[tokio::test]
async fn nine_of_ten_questions_find_their_tool_among_the_first_ten() {
    let set = registry().snapshot();
    assert_eq!(set.len(), 1000);
    let selector = Selector::default();
    let mut missed = Vec::new();
    let mut asked = 0;
    for (question, wanted) in rows(QUERIES) {
        asked += 1;
        let found = selector.rank(&set, question, 10).await;
        if !found.iter().any(|name| name == wanted) {
            missed.push((question, wanted, found));
        }
    }
    assert!(asked >= 100);
    let recall = 1.0 - missed.len() as f64 / asked as f64;
    println!("recall@10 {recall:.3}");
    assert!(
        recall >= 0.9,
        "recall@10 is {recall:.3}; missed: {missed:#?}"
    );
}

#[tokio::test]
async fn a_turn_is_offered_the_best_the_pinned_and_those_in_use() {
    let registry = registry();
    let selector = Selector {
        pinned: vec!["files.document.get".into()],
        ..Selector::default()
    };
    let search = SearchTools::new(registry.clone(), selector.clone());
    registry.add(vec![Arc::new(search)]).unwrap();
    let provider = Scripted::new([
        Answer::calls(&[(SEARCH_TOOLS, json!({ "query": "robot vacuum cleaner" }))]),
        Answer::calls(&[("home.vacuum.create", json!({}))]),
        Answer::text("it cleans"),
        Answer::text("again"),
    ]);
    let settings = Settings {
        selector,
        ..Settings::default()
    };
    let agent = Agent::new(provider.clone(), registry, settings);
    let session = agent.session(SessionState::new("s"), None);
    within(
        session
            .say("will it rain in Taipei tomorrow")
            .unwrap()
            .outcome(),
    )
    .await;
    within(session.say("do that once more").unwrap().outcome()).await;
    let shown = provider.shown();
    let offered = |at: usize, name: &str| shown[at].tools.iter().any(|tool| tool == name);
    assert!(shown[0].tools.len() <= 22, "{}", shown[0].tools.len());
    assert!(
        offered(0, "weather.forecast.get")
            && offered(0, "files.document.get")
            && offered(0, SEARCH_TOOLS)
    );
    assert!(!offered(0, "home.vacuum.create"));
    assert!(
        offered(1, "home.vacuum.create"),
        "what the search found is on offer"
    );
    assert!(
        offered(3, "home.vacuum.create"),
        "what was used stays on offer"
    );
    assert!(shown.iter().all(|shown| shown.tools.is_sorted()));
}

#[tokio::test]
async fn a_small_set_is_offered_whole_without_the_search() {
    let registry = Registry::new();
    let spec = ToolSpec::new("one", "", Risk::Safe, json!({}));
    registry
        .add(vec![
            Arc::new(FnTool::new(spec, async |_| Ok(vec![]))),
            Arc::new(SearchTools::new(registry.clone(), Selector::default())),
        ])
        .unwrap();
    let view = Selector::default()
        .select(&registry.snapshot(), "anything", &[])
        .await;
    assert_eq!(view.names().collect::<Vec<_>>(), ["one"]);
}

#[tokio::test]
async fn an_embeddings_endpoint_stands_in_and_its_failure_falls_back() {
    let registry = Registry::new();
    let tool = |name: &str, about: &str| {
        let spec = ToolSpec::new(name, about, Risk::Safe, json!({}));
        Arc::new(FnTool::new(spec, async |_| Ok(vec![]))) as Arc<dyn Tool>
    };
    registry
        .add(vec![tool("a", "rain"), tool("b", "songs")])
        .unwrap();
    let row = |index: usize, vector: [f32; 2]| json!({ "object": "embedding", "index": index, "embedding": vector });
    let server = Server::start(vec![
        Reply::json(
            200,
            json!({ "data": [row(1, [0.0, 2.0]), row(0, [3.0, 0.0])] }),
        ),
        Reply::json(200, json!({ "data": [row(0, [0.1, 1.0])] })),
        Reply::json(400, json!({ "error": "no" })),
    ])
    .await;
    let config = EmbeddingsConfig {
        base_url: server.url.clone(),
        model: "e".into(),
        key_env: None,
    };
    let endpoint = EmbeddingsEndpoint::new(&config, &|_| None).unwrap();
    let selector = Selector {
        endpoint: Some(Arc::new(endpoint)),
        ..Selector::default()
    };
    let set = registry.snapshot();
    // The vectors disagree with the words, so it is clear which were used.
    assert_eq!(within(selector.rank(&set, "rain", 1)).await, ["b"]);
    assert_eq!(within(selector.rank(&set, "rain", 1)).await, ["a"]);
    let asked = server.asked();
    assert_eq!(asked[0].path, "/embeddings");
    assert_eq!(asked.len(), 3, "the tools are embedded once");
}
