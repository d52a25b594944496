//! Tools, and what people ask of them: files of tools hold a name and a
//! description a line, files of queries a question and the tool it needs.
//!
//! The held-out sets are only measured with: nothing is ever tuned to them. Each was
//! written before a change of the model or the index, and measured after it. The
//! first has been seen since, and the weights of an earlier index were looked at with it;
//! the others were measured with each method that came after them. The model learns
//! from questions of its own, without tools and questions that are near to one in a set
//! (`crates/sentences/model/learn.py`). Weights are tuned with `dev_*` and `dev2_*`, which
//! have other tools.

use crate::support::scripted::{Answer, Scripted};
use crate::support::{Asked, Reply, Server, within};
use openstarry::segment::ContentSegment;
use openstarry::session::{Agent, SessionState, Settings};
use openstarry::tool::builtin::SearchTools;
use openstarry::tool::retrieval::{EmbeddingsConfig, EmbeddingsEndpoint, SEARCH_TOOLS, Selector};
use openstarry::tool::{FnTool, Registry, Risk, Tool, ToolSpec};
use serde_json::json;
use std::sync::Arc;

const TOOLS: &str = include_str!("../data/tools.tsv");
const QUERIES: &str = include_str!("../data/queries.tsv");
const DEV_TOOLS: &str = include_str!("../data/dev_tools.tsv");
const DEV_QUERIES: &str = include_str!("../data/dev_queries.tsv");
/// The second development set is over its own tools and those of the first.
const DEV2_TOOLS: &str = concat!(
    include_str!("../data/dev2_tools.tsv"),
    include_str!("../data/dev_tools.tsv")
);
const DEV2_QUERIES: &str = include_str!("../data/dev2_queries.tsv");
const HELDOUT_TOOLS: &str = include_str!("../data/heldout_tools.tsv");
const HELDOUT_QUERIES: &str = include_str!("../data/heldout_queries.tsv");
const HELDOUT2_QUERIES: &str = include_str!("../data/heldout2_queries.tsv");
/// The third set is over the tools of the others and ninety more.
const HELDOUT3_TOOLS: &str = concat!(
    include_str!("../data/heldout_tools.tsv"),
    include_str!("../data/heldout3_tools.tsv")
);
const HELDOUT3_QUERIES: &str = include_str!("../data/heldout3_queries.tsv");
/// The fourth is over all of these and 96 more.
const HELDOUT4_TOOLS: &str = concat!(
    include_str!("../data/heldout_tools.tsv"),
    include_str!("../data/heldout3_tools.tsv"),
    include_str!("../data/heldout4_tools.tsv")
);
const HELDOUT4_QUERIES: &str = include_str!("../data/heldout4_queries.tsv");
/// The fifth is over all of these and a hundred more.
const HELDOUT5_TOOLS: &str = concat!(
    include_str!("../data/heldout_tools.tsv"),
    include_str!("../data/heldout3_tools.tsv"),
    include_str!("../data/heldout4_tools.tsv"),
    include_str!("../data/heldout5_tools.tsv")
);
const HELDOUT5_QUERIES: &str = include_str!("../data/heldout5_queries.tsv");

/// How many questions find their tool. Nothing here is left to chance, so these
/// are what is reached: of 62, 83, 106, 108, 120, 120, 274 and 136.
const HELDOUT: usize = 61;
const HELDOUT2: usize = 78;
const HELDOUT3: usize = 103;
const HELDOUT4: usize = 99;
const HELDOUT5: usize = 120;
const DEV: usize = 117;
const DEV2: usize = 251;
const TUNED: usize = 134;

fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter_map(|line| line.split_once('\t'))
}

fn registry() -> Registry {
    registry_of(TOOLS)
}

fn registry_of(tools: &'static str) -> Registry {
    let tool = |(name, about): (&str, &str)| {
        let spec = ToolSpec::new(name, about, Risk::Safe, json!({ "type": "object" }));
        Arc::new(FnTool::new(spec, async |_| {
            Ok(vec![ContentSegment::text("done")])
        })) as Arc<dyn Tool>
    };
    let registry = Registry::new();
    registry.add(rows(tools).map(tool).collect()).unwrap();
    registry
}

/// How many questions have their tool among the first ten, and among as many as a
/// turn is offered.
async fn found(tools: &'static str, queries: &'static str) -> [usize; 2] {
    let set = registry_of(tools).snapshot();
    set.index().ready().await;
    let selector = Selector::default();
    let mut found = [0; 2];
    for (question, wanted) in rows(queries) {
        assert!(set.get(wanted).is_some(), "{wanted}");
        let ranked = selector.rank(&set, question, selector.top).await;
        let at = ranked.iter().position(|name| name == wanted);
        found[0] += usize::from(at.is_some_and(|at| at < 10));
        found[1] += usize::from(at.is_some());
    }
    found
}

#[tokio::test]
async fn questions_nobody_tuned_for_find_their_tool_among_the_first_ten() {
    let mut reached = Vec::new();
    for (tools, queries, of, want) in [
        (HELDOUT_TOOLS, HELDOUT_QUERIES, 62, HELDOUT),
        (HELDOUT_TOOLS, HELDOUT2_QUERIES, 83, HELDOUT2),
        (HELDOUT3_TOOLS, HELDOUT3_QUERIES, 106, HELDOUT3),
        (HELDOUT4_TOOLS, HELDOUT4_QUERIES, 108, HELDOUT4),
        (HELDOUT5_TOOLS, HELDOUT5_QUERIES, 120, HELDOUT5),
    ] {
        assert_eq!(rows(queries).count(), of);
        let [ten, offered] = found(tools, queries).await;
        println!("of {of}: {ten} among the first ten, {offered} among those on offer");
        reached.push((ten, want));
    }
    assert!(reached.iter().all(|(ten, want)| ten >= want), "{reached:?}");
}

#[tokio::test]
async fn so_do_those_it_was_tuned_with() {
    assert_eq!(rows(TOOLS).count(), 1000);
    assert_eq!(rows(QUERIES).count(), 136);
    assert_eq!(rows(DEV_QUERIES).count(), 120);
    assert_eq!(rows(DEV2_QUERIES).count(), 274);
    let [old, _] = found(TOOLS, QUERIES).await;
    let [dev, _] = found(DEV_TOOLS, DEV_QUERIES).await;
    let [dev2, _] = found(DEV2_TOOLS, DEV2_QUERIES).await;
    println!("of 136: {old}, of 120: {dev}, of 274: {dev2}");
    assert!(
        old >= TUNED && dev >= DEV && dev2 >= DEV2,
        "{old} of 136, {dev} of 120, {dev2} of 274"
    );
}

#[tokio::test]
async fn a_query_of_any_length_and_script_is_taken() {
    let set = registry().snapshot();
    let selector = Selector::default();
    for query in [
        String::new(),
        "\0 \u{feff} ...".into(),
        "天氣預報".into(),
        "wörter ".repeat(5000),
        "xqzjk".repeat(2000),
        (0..3000).map(|n| format!("word{n} ")).collect(),
        "🦀 rain ".repeat(150_000),
    ] {
        assert!(selector.rank(&set, &query, 10).await.len() <= 10);
    }
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
    registry.snapshot().index().ready().await;
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

/// An embeddings server that takes what OpenAI's takes and answers 400 to the
/// rest. Its vectors know that words of three languages mean the same.
fn multilingual(asked: &Asked) -> Reply {
    let refuse = |why: &str| Reply::json(400, json!({ "error": { "message": why } }));
    let body = match asked.body.as_object() {
        Some(body) if asked.path == "/embeddings" => body,
        _ => return refuse("POST /embeddings takes a JSON object"),
    };
    if !asked
        .head
        .to_lowercase()
        .contains("authorization: bearer key-1")
    {
        return refuse("no API key");
    }
    let known = ["model", "input", "encoding_format", "dimensions", "user"];
    if let Some(other) = body.keys().find(|key| !known.contains(&key.as_str())) {
        return refuse(&format!("unknown parameter {other}"));
    }
    let inputs = body.get("input").and_then(|input| input.as_array());
    let texts = inputs.into_iter().flatten().map(|text| text.as_str());
    let texts: Option<Vec<&str>> = texts.collect();
    let texts = texts.unwrap_or_default();
    let fits = |text: &&str| !text.is_empty() && text.len() <= 32_000;
    if !body.get("model").is_some_and(|model| model.is_string())
        || texts.is_empty()
        || texts.len() > 2048
        || !texts.iter().all(fits)
    {
        return refuse("input must be an array of texts");
    }
    let topics = [["weather", "天氣", "wetter"], ["song", "歌", "lied"]];
    let vector = |text: &str| {
        let text = text.to_lowercase();
        topics.map(|words| f32::from(u8::from(words.iter().any(|word| text.contains(word)))) + 0.01)
    };
    let row = |(index, text): (usize, &&str)| json!({ "object": "embedding", "index": index, "embedding": vector(text) });
    let data: Vec<_> = texts.iter().enumerate().map(row).collect();
    Reply::json(
        200,
        json!({ "object": "list", "data": data, "model": "e", "usage": { "prompt_tokens": 1 } }),
    )
}

#[tokio::test]
async fn other_languages_find_their_tool_through_an_embeddings_endpoint() {
    let registry = registry_of(
        "forecast\tTells the weather of the coming days.\nplay\tPlays a song.\nmail\tSends a letter.",
    );
    let server = Server::answering(multilingual).await;
    let config = EmbeddingsConfig {
        base_url: server.url.clone(),
        model: "e".into(),
        key_env: Some("KEY".into()),
    };
    let env = |name: &str| (name == "KEY").then(|| "key-1".to_owned());
    let selector = Selector {
        endpoint: Some(Arc::new(EmbeddingsEndpoint::new(&config, &env).unwrap())),
        ..Selector::default()
    };
    let set = registry.snapshot();
    for (question, wanted) in [
        ("明天的天氣怎麼樣？", "forecast"),
        ("Wie wird das Wetter am Sonntag?", "forecast"),
        ("放一首歌", "play"),
        ("Spiel ein Lied für mich", "play"),
    ] {
        let first = within(selector.rank(&set, question, 1)).await;
        assert_eq!(first, [wanted], "{question}");
    }
    // A model that was not shown the tool finds it in its user's language.
    let search = SearchTools::new(registry.clone(), selector);
    let said = Scripted::new([
        Answer::calls(&[(SEARCH_TOOLS, json!({ "query": "天氣" }))]),
        Answer::text("ok"),
    ]);
    registry.add(vec![Arc::new(search)]).unwrap();
    let agent = Agent::new(said, registry, Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("天氣？").unwrap().outcome()).await;
    let first = outcome.trace[0].results()[0].text();
    assert!(first.starts_with("forecast:"), "{first}");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.path == "/embeddings")
    );
}
