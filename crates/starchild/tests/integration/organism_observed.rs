//! A running organism as its operator sees it: metrics, spans, the page. What others
//! made reads what ours says.

use crate::support::wire::{self, Say};
use crate::support::{ALL, Reply, Server, within};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

const ORGANISM: &str = "\
organism: observed
payloads:
  - {name: Ask, fields: [{name: text}]}
  - {name: Other, fields: [{name: text}]}
listeners:
  - {name: echo, description: Says it again., accepts: [Ask], kind: {rust: echo}}
  - {name: front, agent: true, description: Asks echo., peers: [echo], accepts: [Ask], kind: {process: {command: [sh, relay.sh]}}}
  - {name: broken, accepts: [Other], kind: {process: {command: ['false']}}}
gateways:
  - {name: console, peers: [echo, front, broken]}
";

/// Forwards what comes from outside, and answers with what comes back.
const RELAY: &str = "\
body=$(cat)
case $ORGANISM_FROM in
  console) to=echo;;
  *) to=caller;;
esac
echo \"<message><meta><to>$to</to></meta>$body</message>\"
";

fn folder(more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("organism.yaml", &format!("{ORGANISM}{more}"));
    write("relay.sh", RELAY);
    folder
}

/// A running organism, whose standard input is open.
struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

fn start(folder: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "run"])
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("RUST_LOG")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    Running {
        out: BufReader::new(child.stdout.take().unwrap()).lines(),
        err: BufReader::new(child.stderr.take().unwrap()).lines(),
        child,
    }
}

impl Running {
    /// The address on the first line that holds one.
    async fn address(&mut self) -> String {
        loop {
            let line = within(self.err.next_line()).await.unwrap().unwrap();
            if let Some(begin) = line.find("http://") {
                return line[begin..].to_owned();
            }
        }
    }

    /// Sends to a listener, and gives its answer.
    async fn ask(&mut self, to: &str, payload: &str) -> String {
        let message = format!("<message><meta><to>{to}</to></meta>{payload}</message>\n");
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(message.as_bytes()).await.unwrap();
        within(self.out.next_line()).await.unwrap().unwrap()
    }

    /// Ends the input, and waits for the end.
    async fn end(mut self) {
        drop(self.child.stdin.take());
        within(self.child.wait()).await.unwrap();
    }
}

const ASK: &str = "<Ask><text>hello</text></Ask>";

/// What a Python script of ours, with others' packages, prints.
async fn read_by_others(script: &str, arguments: &[&Path], input: &str) -> Value {
    let python = std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observed");
    let mut command = Command::new(python);
    command.arg(folder.join(script)).args(arguments);
    printed(command, input).await
}

async fn printed(mut command: Command, input: &str) -> Value {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = within(child.wait_with_output()).await.unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn prometheus_own_parser_reads_what_was_counted() {
    let web = "  - {name: web, peers: [echo], kind: {http: {listen: '127.0.0.1:0'}}}\n";
    let folder = folder(web);
    let mut organism = start(&folder, &[], &[]);
    let address = organism.address().await;
    for _ in 0..3 {
        assert_eq!(organism.ask("front", ASK).await, ASK);
    }
    let told = organism
        .ask("broken", "<Other><text>x</text></Other>")
        .await;
    assert!(told.contains("<code>handler</code>"), "{told}");
    let address = address.replace("/openapi.json", "/metrics");
    let response = within(Client::new().get(address).send()).await.unwrap();
    let text = within(response.text()).await.unwrap();
    let samples = read_by_others("read_metrics.py", &[], &text).await;
    let sample = |name: &str, label: &str| {
        let samples = samples.as_array().unwrap().iter();
        let found = samples.filter(|sample| {
            let labels = sample["labels"].as_object().unwrap();
            sample["name"] == name && labels.values().all(|value| value == label)
        });
        let values: Vec<_> = found
            .map(|sample| sample["value"].as_f64().unwrap())
            .collect();
        assert_eq!(values.len(), 1, "{name} {label}: {text}");
        values[0]
    };
    // From outside, from front to echo, and back; and the one that failed.
    assert_eq!(sample("organism_hops_total", "call"), 3.0 + 3.0 + 1.0);
    assert_eq!(sample("organism_errors_total", "handler"), 1.0);
    assert_eq!(sample("organism_handled_total", "front"), 6.0);
    assert_eq!(sample("organism_running", "front"), 0.0);
    assert_eq!(sample("organism_waiting", "echo"), 0.0);
    assert_eq!(sample("organism_model_tokens_total", "echo"), 0.0);
    assert_eq!(sample("organism_model_money_total", "echo"), 0.0);
    assert!(sample("organism_handling_seconds_total", "front") > 0.0);
}

/// A collector that keeps what it is sent.
pub async fn collector() -> (String, Arc<Mutex<Vec<Bytes>>>) {
    async fn keep(State(kept): State<Arc<Mutex<Vec<Bytes>>>>, body: Bytes) {
        kept.lock().unwrap().push(body);
    }
    let kept = Arc::new(Mutex::new(Vec::new()));
    let router = Router::new().route("/v1/traces", post(keep));
    let router = router.with_state(kept.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    (address, kept)
}

/// The spans of all requests, by name, as OpenTelemetry's own messages tell them.
pub async fn spans(kept: &Mutex<Vec<Bytes>>) -> BTreeMap<String, Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let bodies = kept.lock().unwrap().clone();
    let files: Vec<_> = (0..bodies.len())
        .map(|number| folder.path().join(number.to_string()))
        .collect();
    for (file, body) in files.iter().zip(&bodies) {
        std::fs::write(file, body).unwrap();
    }
    let files: Vec<_> = files.iter().map(|file| file.as_path()).collect();
    let mut by_name = BTreeMap::<_, Vec<_>>::new();
    let Value::Array(spans) = read_by_others("read_spans.py", &files, "").await else {
        panic!("no list");
    };
    for span in spans {
        let name = span["name"].as_str().unwrap().to_owned();
        by_name.entry(name).or_default().push(span);
    }
    by_name
}

#[tokio::test]
async fn hops_and_model_calls_reach_a_collector_as_spans_of_one_trace() {
    let kind = ALL[0];
    let says = [Say::Text("a poem")];
    let model = Server::start(vec![Reply::stream(kind, wire::body(kind, &says))]).await;
    let (endpoint, kept) = collector().await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "organism: poets\npayloads: [{{name: Ask, fields: [{{name: text}}]}}, {{name: Told, fields: [{{name: text}}]}}]\n\
         listeners:\n  - {{name: poet, agent: true, accepts: [Ask], kind: {{llm: {{answer: Told}}}}}}\n  \
         - {{name: broken, accepts: [Told], kind: {{process: {{command: ['false']}}}}}}\n\
         gateways: [{{name: console, peers: [poet, broken]}}]\n\
         models: {{backends: [{}]}}\n",
        format_args!(
            "{{kind: {}, base_url: '{}', model: m, key_env: KEY}}",
            kind.word(),
            model.url
        )
    );
    std::fs::write(folder.path().join("organism.yaml"), text).unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("KEY", "sk-any"),
    ];
    let mut organism = start(&folder, &[], &variables);
    let told = organism.ask("poet", ASK).await;
    assert!(told.contains("a poem"), "{told}");
    organism.ask("broken", "<Told><text>x</text></Told>").await;
    organism.end().await;
    let spans = spans(&kept).await;
    let one = |name: &str| match spans.get(name).map(Vec::as_slice) {
        Some([span]) => span,
        _ => panic!("{name}: {spans:#?}"),
    };
    let (hop, failed) = (one("handle Ask"), one("handle Told"));
    assert_eq!(hop["service"], "starchild");
    assert_eq!(hop["parent"], "");
    assert_eq!(hop["trace"], failed["trace"]);
    assert_eq!(
        (&hop["is_error"], &failed["is_error"]),
        (&false.into(), &true.into())
    );
    assert!(hop["seconds"].as_f64().unwrap() > 0.0);
    let attributes = &hop["attributes"];
    assert_eq!(attributes["organism.listener"], "poet");
    assert_eq!(attributes["organism.from"], "console");
    assert_eq!(attributes["organism.model_calls"], 1);
    assert!(attributes["organism.tokens"].as_i64().unwrap() > 0, "{hop}");
    let chat = spans.iter().find(|(name, _)| name.starts_with("chat "));
    let chat = &chat.unwrap_or_else(|| panic!("{spans:#?}")).1[0];
    assert_eq!(chat["trace"], hop["trace"]);
    assert_eq!(chat["parent"], hop["id"]);
    assert_eq!(chat["attributes"]["gen_ai.operation.name"], "chat");
    let payloads = format!("{spans:?}");
    assert!(!payloads.contains("hello"), "what was said stays here");
}

/// What a stream has said when it holds all of these.
async fn told(request: RequestBuilder, parts: &[&str]) -> String {
    let mut events = within(request.send()).await.unwrap();
    assert_eq!(events.status(), StatusCode::OK);
    let mut read = String::new();
    while !parts.iter().all(|part| read.contains(part)) {
        let chunk = within(events.chunk()).await.unwrap().unwrap();
        read.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    read
}

#[tokio::test]
async fn the_page_tells_nothing_to_others_and_everything_to_its_reader() {
    let folder = folder("");
    let mut organism = start(&folder, &["--ui"], &[]);
    let address = organism.address().await;
    let (base, token) = address.split_once("/#").unwrap();
    assert!(token.len() >= 32, "{address}");
    let client = Client::new();
    let get = |path: &str| client.get(format!("{base}{path}"));
    let bearer = format!("Bearer {token}");
    let port = base.rsplit(':').next().unwrap();
    let rebound = format!("evil.example:{port}");
    for (what, request) in [
        ("no token", get("/events")),
        ("no token", get("/metrics")),
        (
            "a wrong token",
            get("/events").header("authorization", "Bearer x"),
        ),
        (
            "the token in the address",
            get(&format!("/events?token={token}")),
        ),
        (
            "another origin",
            get("/events")
                .header("authorization", &bearer)
                .header("origin", "http://evil.example"),
        ),
        (
            "an origin without a name",
            get("/events")
                .header("authorization", &bearer)
                .header("origin", "null"),
        ),
        (
            "a name that was made to point here",
            get("/events")
                .header("authorization", &bearer)
                .header("host", &rebound),
        ),
        ("the page by such a name", get("/").header("host", &rebound)),
    ] {
        let refused = within(request.send()).await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{what}");
    }
    let page = within(get("/").send()).await.unwrap();
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!within(page.text()).await.unwrap().contains(token));

    assert_eq!(organism.ask("front", ASK).await, ASK);
    let mine = || get("/events").header("authorization", &bearer);
    let parts = [
        "event: graph",
        "event: stats",
        "\"handled\"",
        "<svg",
        "hello",
    ];
    let read = told(mine().header("origin", base), &parts).await;
    assert!(!read.contains("<style"), "the page has a style of its own");
    // Without a journal there is nothing to replay, and that is said.
    let none = get("/replay").header("authorization", &bearer);
    let none = within(none.send()).await.unwrap();
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
    assert!(
        within(none.text())
            .await
            .unwrap()
            .contains("--state FOLDER")
    );
}

#[tokio::test]
async fn a_page_is_never_for_other_machines() {
    let folder = folder("");
    let mut organism = start(&folder, &["--ui=0.0.0.0:0"], &[]);
    drop(organism.child.stdin.take());
    let ended = within(organism.child.wait()).await.unwrap();
    assert!(!ended.success());
    let line = within(organism.err.next_line()).await.unwrap().unwrap();
    assert!(line.contains("the page is for this machine"), "{line}");
}

#[tokio::test]
async fn a_real_browser_shows_the_graph_the_conversation_and_its_replay() {
    let modules = std::env::var("SC_TEST_WEB")
        .unwrap_or_else(|_| panic!("run web/tests/install.sh FOLDER and set SC_TEST_WEB=FOLDER"));
    let folder = folder("");
    let mut organism = start(&folder, &["--ui", "--state", "kept"], &[]);
    let address = organism.address().await;
    let hostile =
        "<Ask><text>&lt;img src=x onerror='forged=1'>&lt;script>forged=1&lt;/script></text></Ask>";
    organism.ask("front", hostile).await;
    let mut browser = Command::new("node");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/observed/page.mjs");
    browser.args([script, &address]).env("SC_TEST_WEB", modules);
    if let Ok(folder) = std::env::var("SC_TEST_SCREENSHOTS") {
        browser.arg(format!("{folder}/organism"));
    }
    let shown = printed(browser, "").await;
    assert_eq!(shown["wrong"], serde_json::json!([]));
    assert_eq!(shown["name"], "observed");
    let edges = shown["edges"].as_array().unwrap();
    assert!(edges.contains(&"front echo".into()), "{shown}");
    assert_eq!(
        shown["listeners"],
        serde_json::json!(["broken", "echo", "front"])
    );
    assert_eq!(shown["lifelines"], 3);
    assert_eq!(
        shown["hops"],
        serde_json::json!(["Ask", "Ask", "Ask", "Ask"])
    );
    assert_eq!(shown["step"]["at"], "hop 2 of 4");
    let detail = shown["step"]["detail"].as_array().unwrap();
    assert!(detail[0].as_str().unwrap().contains("onerror"), "{shown}");
    assert!(
        detail[1].as_str().unwrap().contains("\"running\""),
        "{shown}"
    );
    assert_eq!(shown["step"]["active"], 1);
    assert_eq!(shown["forged"], 0);
    assert_eq!(
        shown["hostile"],
        serde_json::json!(["blocked", "blocked", "blocked"])
    );
}
