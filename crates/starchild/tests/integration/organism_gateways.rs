//! Organisms as programs outside meet them: HTTP, webhooks, the clock, MCP.

use crate::support::within;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const ORGANISM: &str = "\
organism: echoes
payloads:
  - {name: Ask, description: A question., fields: [{name: text}, {name: count, type: uint8, default: 1}]}
  - {name: Told, fields: [{name: text}]}
listeners:
  - {name: echo, description: Says it again., accepts: [Ask], kind: {rust: echo}}
  - name: writer
    accepts: [Told]
    kind: {process: {command: [sh, -c, 'cat >> written']}}
gateways:
";

fn folder(gateway: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("organism.yaml"),
        format!("{ORGANISM}{gateway}"),
    )
    .unwrap();
    folder
}

const TOKEN: &str = "a-token-of-some-length";
const SECRET: &str = "whsec_c2VjcmV0LW9mLXNvbWUtbGVuZ3Ro";

/// A running organism and the address that it tells.
struct Running {
    child: Child,
    base: String,
    client: Client,
}

async fn start(folder: &TempDir) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "run"])
        .current_dir(folder.path())
        .env("TOKEN", TOKEN)
        .env("SECRET", SECRET)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    let (_, rest) = line
        .split_once("http://")
        .unwrap_or_else(|| panic!("{line}"));
    let base = format!("http://{}", rest.split('/').next().unwrap());
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Running {
        child,
        base,
        client: Client::new(),
    }
}

impl Running {
    async fn post(&self, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> Response {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request
            .header("content-type", kind)
            .header("correlation-id", "one");
        within(request.body(body).send()).await.unwrap()
    }
}

async fn told(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    (status, within(response.json()).await.unwrap())
}

#[tokio::test]
async fn a_payload_is_posted_as_json_or_xml_and_its_answers_come_back() {
    let folder = folder("  - {name: web, peers: [echo], kind: {http: {listen: '127.0.0.1:0'}}}\n");
    let organism = start(&folder).await;
    let json = json!({ "text": "<hello>" }).to_string();
    let answer = organism
        .post("/payloads/Ask?wait=20", "application/json", json)
        .await;
    let (status, answer) = told(answer).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["correlation_id"], "one");
    assert_eq!(answer["done"], true);
    let first = answer["answers"][0]["number"].as_u64().unwrap();
    assert_eq!(
        answer["answers"],
        json!([{
            "number": first,
            "from": "echo",
            "payload": { "Ask": { "text": "<hello>", "count": 1 } },
            "xml": "<Ask><text>&lt;hello&gt;</text></Ask>",
        }])
    );
    // The same conversation goes on, and its events are read from where one likes.
    let xml = "<Ask><text>again</text><count>2</count></Ask>";
    let (status, answer) = told(organism.post("/payloads/Ask", "application/xml", xml).await).await;
    assert_eq!(
        (status, &answer["done"]),
        (StatusCode::ACCEPTED, &json!(false))
    );
    let url = format!("{}/conversations/one/events", organism.base);
    let request = organism.client.get(&url).header("last-event-id", first);
    let mut events = within(request.send()).await.unwrap();
    let mut read = String::new();
    while !(read.contains("event: rest") && read.contains("again")) {
        let chunk = within(events.chunk()).await.unwrap().unwrap();
        read.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(!read.contains(&format!("id: {first}\n")), "{read}");
    let closed = within(
        organism
            .client
            .delete(url.trim_end_matches("/events"))
            .send(),
    )
    .await
    .unwrap();
    assert_eq!(closed.status(), 204);
    let gone = within(organism.client.get(&url).send()).await.unwrap();
    assert_eq!(gone.status(), 404);
}

#[tokio::test]
async fn each_message_has_its_own_answer_though_it_had_to_wait_for_room() {
    let folder = folder(
        "  - {name: web, peers: [waits], kind: {http: {listen: '127.0.0.1:0'}}}\n\
         limits: {in_flight: 1}\n",
    );
    let file = folder.path().join("organism.yaml");
    let waits = "listeners:\n  - {name: waits, accepts: [Ask], \
                 kind: {process: {command: [sh, -c, 'while [ ! -e ../../../go ]; do sleep 0.05; done; cat']}}}\n";
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("listeners:\n", waits)).unwrap();
    let organism = start(&folder).await;
    let ask = |n: u8| format!("<Ask><text>{n}</text></Ask>");
    let first = organism.post("/payloads/Ask", "text/xml", ask(1)).await;
    assert_eq!(first.status(), StatusCode::ACCEPTED);
    let second = organism.post("/payloads/Ask?wait=20", "text/xml", ask(2));
    let go = async {
        // Time for the second to come and wait; one that comes later finds no fault.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
    };
    let (second, ()) = tokio::join!(second, go);
    let (status, told) = told(second).await;
    let answers = told["answers"].as_array().unwrap().iter();
    let xml: Vec<_> = answers.map(|answer| answer["xml"].clone()).collect();
    assert_eq!(
        (status, xml),
        (StatusCode::OK, vec![json!(ask(1)), json!(ask(2))])
    );
}

#[tokio::test]
async fn what_was_not_sent_leaves_no_conversation_behind() {
    let folder = folder(
        "  - {name: web, peers: [echo], kind: {http: {listen: '127.0.0.1:0'}}}\n\
         limits: {conversations: 1}\n",
    );
    let organism = start(&folder).await;
    let post = |correlation: Option<&'static str>, body: &'static str| {
        let url = format!("{}/payloads/Ask?wait=20", organism.base);
        let request = organism.client.post(url).body(body);
        let request = request.header("content-type", "application/json");
        match correlation {
            Some(correlation) => request.header("correlation-id", correlation),
            None => request,
        }
    };
    let wrong = "{\"text\":\"x\",\"count\":300}";
    // There is room again each time, when the one before has ended.
    let until = async |status: u16, correlation, body| {
        within(async {
            loop {
                let found = post(correlation, body).send().await.unwrap().status();
                if found == status {
                    return;
                }
                assert_eq!(found, 503);
            }
        })
        .await;
    };
    for _ in 0..3 {
        until(422, None, wrong).await;
    }
    until(200, Some("one"), "{\"text\":\"x\"}").await;
    let busy = within(post(Some("two"), "{\"text\":\"x\"}").send()).await;
    assert_eq!(busy.unwrap().status(), 503);
    let url = format!("{}/conversations/two/events", organism.base);
    let unknown = within(organism.client.get(url).send()).await.unwrap();
    assert_eq!(unknown.status(), 404);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_in_words() {
    let folder = folder("  - {name: web, peers: [echo], kind: {http: {listen: '127.0.0.1:0'}}}\n");
    let organism = start(&folder).await;
    let (json, xml) = ("application/json", "application/xml");
    for (path, kind, body, status, words) in [
        (
            "/payloads/Told",
            json,
            "{}".to_owned(),
            404,
            "there are: Ask",
        ),
        (
            "/payloads/Ask",
            "text/plain",
            "x".to_owned(),
            415,
            "application/json",
        ),
        ("/payloads/Ask", json, "{".to_owned(), 400, "EOF"),
        (
            "/payloads/Ask",
            json,
            "{\"words\":1}".to_owned(),
            400,
            "no field words",
        ),
        (
            "/payloads/Ask",
            json,
            "{\"text\":\"x\",\"count\":300}".to_owned(),
            422,
            "from 0 to 255",
        ),
        (
            "/payloads/Ask",
            xml,
            "<Told><text/></Told>".to_owned(),
            400,
            "expected <Ask>",
        ),
        (
            "/payloads/Ask",
            xml,
            "<!DOCTYPE a><Ask/>".to_owned(),
            400,
            "DOCTYPE",
        ),
        (
            "/payloads/Ask",
            xml,
            " ".repeat(2 << 20),
            413,
            "over 1048576 bytes",
        ),
        (
            "/payloads/Ask",
            xml,
            "<x:Ask xmlns:x='urn:x'><text/></x:Ask>".to_owned(),
            400,
            "found <Ask> in the namespace \"urn:x\"",
        ),
        (
            "/payloads/Ask?wait=-1",
            json,
            "{\"text\":\"x\"}".to_owned(),
            400,
            "wait",
        ),
        ("/nothing", json, "{}".to_owned(), 404, "/openapi.json"),
        (
            "/openapi.json",
            json,
            "{}".to_owned(),
            405,
            "another method",
        ),
        (
            "/payloads/Ask?to=writer",
            json,
            "{\"text\":\"x\"}".to_owned(),
            422,
            "routing",
        ),
    ] {
        let (found, told) = told(organism.post(path, kind, body).await).await;
        assert_eq!(found, status, "{path} {told}");
        assert!(told["message"].as_str().unwrap().contains(words), "{told}");
    }
    // A page in a browser that found the port calls it by its own name.
    let request = organism
        .client
        .get(format!("{}/openapi.json", organism.base));
    let answer = within(request.header("host", "evil.example").send())
        .await
        .unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn a_token_is_asked_for_and_the_document_describes_every_payload() {
    let folder = folder(
        "  - {name: web, peers: [echo, writer], kind: {http: {listen: '0.0.0.0:0', token_env: TOKEN}}}\n",
    );
    let mut organism = start(&folder).await;
    organism.base = organism.base.replace("0.0.0.0", "127.0.0.1");
    let url = format!("{}/openapi.json", organism.base);
    for token in [None, Some("wrong")] {
        let request = organism.client.get(&url);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        assert_eq!(within(request.send()).await.unwrap().status(), 401);
    }
    let request = organism.client.get(&url).bearer_auth(TOKEN);
    let (status, document) = told(within(request.send()).await.unwrap()).await;
    assert_eq!(status, 200);
    assert_eq!(document["openapi"], "3.1.0");
    let schema = &document["components"]["schemas"]["Ask"];
    assert_eq!(schema["properties"]["count"]["maximum"], 255);
    assert_eq!(schema["required"], json!(["text"]));
    assert!(document["paths"]["/payloads/Told"]["post"].is_object());
    assert_eq!(document["security"], json!([{ "token": [] }]));

    std::fs::write(
        folder.path().join("organism.yaml"),
        format!(
            "{ORGANISM}  - {{name: web, peers: [echo], kind: {{http: {{listen: '0.0.0.0:0'}}}}}}\n"
        ),
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "run"])
        .current_dir(folder.path())
        .output();
    let output = within(output).await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("token_env"));
}

fn signature(id: &str, time: u64, body: &str) -> String {
    let secret = STANDARD
        .decode(SECRET.trim_start_matches("whsec_"))
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
    mac.update(format!("{id}.{time}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

async fn until_written(folder: &TempDir, times: usize) -> String {
    let path = folder.path().join(".organism/work/writer/written");
    within(async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.matches("</Told>").count() >= times {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_webhook_counts_once_and_only_with_its_signature_and_in_time() {
    let folder = folder(
        "  - name: hooks\n    peers: [writer]\n    kind: {webhook: {listen: '127.0.0.1:0', \
         secret_env: SECRET, payload: Told, field: text}}\n",
    );
    let organism = start(&folder).await;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let body = "{\"pushed\": 3}";
    let call = |id: &'static str, time: u64, signature: String, body: &'static str| {
        let request = organism.client.post(format!("{}/", organism.base));
        let request = request
            .header("webhook-id", id)
            .header("webhook-timestamp", time.to_string());
        let request = request.header("webhook-signature", signature);
        async move { told(within(request.body(body).send()).await.unwrap()).await }
    };
    for (id, time, signed, sent) in [
        ("a", now, signature("a", now, "{}"), body),
        ("a", now, signature("b", now, body), body),
        ("a", now, signature("a", now + 1, body), body),
        ("a", now - 400, signature("a", now - 400, body), body),
        ("a", now + 400, signature("a", now + 400, body), body),
        ("a", now, "v1,".to_owned(), body),
        ("a", now, String::new(), body),
    ] {
        assert_eq!(call(id, time, signed, sent).await.0, 401);
    }
    // Several signatures while a secret is changed: one is enough.
    let signed = format!("v1,AAAA {}", signature("a", now, body));
    let (status, first) = call("a", now, signed.clone(), body).await;
    assert_eq!(
        (status, &first["duplicate"]),
        (StatusCode::ACCEPTED, &json!(false))
    );
    let (status, second) = call("a", now, signed, body).await;
    assert_eq!(
        (status, &second["duplicate"]),
        (StatusCode::ACCEPTED, &json!(true))
    );
    assert_eq!(call("b", now, signature("b", now, body), body).await.0, 202);
    let written = until_written(&folder, 2).await;
    assert_eq!(
        written,
        "<Told><text>{\"pushed\": 3}</text></Told>".repeat(2)
    );
}

#[tokio::test]
async fn a_webhook_that_comes_again_after_a_kill_counts_once() {
    let folder = folder(
        "  - name: hooks\n    peers: [writer]\n    kind: {webhook: {listen: '127.0.0.1:0', \
         secret_env: SECRET, payload: Told, field: text}}\ndurable: state\n",
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_secs();
    let call = async |organism: &Running, id: &str| {
        let request = organism.client.post(format!("{}/", organism.base));
        let request = request
            .header("webhook-id", id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", signature(id, now, "x"));
        let (status, told) = told(within(request.body("x").send()).await.unwrap()).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        told["duplicate"].clone()
    };
    let mut organism = start(&folder).await;
    assert_eq!(call(&organism, "a").await, false);
    until_written(&folder, 1).await;
    organism.child.start_kill().unwrap();
    within(organism.child.wait()).await.unwrap();
    let organism = start(&folder).await;
    assert_eq!(call(&organism, "a").await, true);
    assert_eq!(call(&organism, "b").await, false);
    until_written(&folder, 2).await;
}

#[tokio::test]
async fn the_clock_sends_what_the_file_says() {
    let folder = folder(
        "  - name: clock\n    peers: [writer]\n    kind: {schedule: {cron: '* * * * * *', \
         timezone: Europe/Vienna, send: {Told: {text: tick}}}}\n  \
         - {name: web, peers: [echo], kind: {http: {listen: '127.0.0.1:0'}}}\n",
    );
    let _organism = start(&folder).await;
    let written = until_written(&folder, 2).await;
    assert!(
        written.starts_with("<Told><text>tick</text></Told>"),
        "{written}"
    );
    let wrong = ORGANISM.to_owned()
        + "  - {name: clock, peers: [writer], kind: {schedule: {cron: '61 * * * *', send: {Told: {text: x}}}}}\n";
    std::fs::write(folder.path().join("organism.yaml"), wrong).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "run"])
        .current_dir(folder.path())
        .output();
    let output = within(output).await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("61 * * * *"));
}

fn mcp_folder() -> PathBuf {
    let folder = std::env::var("STARCHILD_TEST_MCP").unwrap_or_else(|_| {
        panic!(
            "run crates/openstarry/tests/install-mcp.sh FOLDER and set STARCHILD_TEST_MCP=FOLDER"
        )
    });
    PathBuf::from(folder)
}

/// The official client, as people write it.
const CLIENT: &str = "\
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
const transport = new StdioClientTransport({
  command: process.argv[2], args: ['organism', 'mcp'], cwd: process.argv[3],
});
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);
const { tools } = await client.listTools();
const said = await client.callTool({ name: 'Ask', arguments: { text: 'hello', count: 2 } });
const wrong = await client.callTool({ name: 'Ask', arguments: { text: 'hello', count: 300 } });
await client.close();
console.log(JSON.stringify({ tools, said, wrong }));
";

#[tokio::test]
async fn an_organism_is_a_set_of_tools_for_the_official_mcp_client() {
    let folder = folder("  - {name: console, peers: [echo]}\n");
    let modules = mcp_folder().join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    std::fs::write(folder.path().join("client.mjs"), CLIENT).unwrap();
    let output = Command::new("node")
        .arg("client.mjs")
        .args([
            env!("CARGO_BIN_EXE_starchild").as_ref(),
            folder.path().as_os_str(),
        ])
        .current_dir(folder.path())
        .output();
    let output = within(output).await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let seen: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(seen["tools"][0]["name"], "Ask");
    assert_eq!(
        seen["tools"][0]["description"],
        "A question. Says it again."
    );
    assert_eq!(
        seen["tools"][0]["inputSchema"]["properties"]["count"]["maximum"],
        255
    );
    let text = seen["said"]["content"][0]["text"].as_str().unwrap();
    let fields: Value = serde_json::from_str(text).unwrap();
    assert_eq!(fields, json!({ "Ask": { "text": "hello", "count": 2 } }));
    assert_eq!(seen["wrong"]["isError"], true);
    let words = seen["wrong"]["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("<count> holds \"300\"") && !words.contains("huh"),
        "{words}"
    );
}

/// What an organism says to this input, whose one listener calls a tool of a real server.
async fn said_by_tool(tool: &str, payload: &str, input: &str) -> (bool, Vec<String>) {
    let program = mcp_folder().join("node_modules/.bin/mcp-server-everything");
    let folder = tempfile::tempdir().unwrap();
    let file = format!(
        "\
payloads:
  - {payload}
  - {{name: Told, fields: [{{name: text}}]}}
listeners:
  - name: tool
    accepts: [Asked]
    kind: {{mcp: {{server: {{command: '{}', args: [stdio]}}, tool: {tool}, answer: Told}}}}
gateways:
  - {{name: console, peers: [tool]}}
",
        program.display()
    );
    std::fs::write(folder.path().join("organism.yaml"), file).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "run"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes())
        .await
        .unwrap();
    drop(stdin);
    let output = within(child.wait_with_output()).await.unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let lines = told.lines().map(str::to_owned).collect();
    (output.status.success(), lines)
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_a_listener() {
    let payload = "{name: Asked, fields: [{name: a, type: integer}, {name: b, type: integer}]}";
    let input = "<Asked><a>40</a><b>2</b></Asked>\n".repeat(2);
    let (is_well, lines) = said_by_tool("get-sum", payload, &input).await;
    assert!(is_well, "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("42")), "{lines:?}");
}

#[tokio::test]
async fn why_a_tool_could_not_do_it_is_told_to_whoever_asked() {
    let payload =
        "{name: Asked, fields: [{name: resourceType}, {name: resourceId, type: integer}]}";
    let asked = |kind: &str, id: i64| {
        format!("<Asked><resourceType>{kind}</resourceType><resourceId>{id}</resourceId></Asked>\n")
    };
    let input = [asked("Text", -5), asked("Nope", 1), asked("Text", 1)].concat();
    let (is_well, lines) = said_by_tool("get-resource-reference", payload, &input).await;
    assert!(!is_well);
    assert!(lines[0].contains("Invalid resourceId: -5"), "{lines:?}");
    assert!(lines[1].contains("/resourceType"), "{lines:?}");
    assert!(lines[2].starts_with("<Told>"), "{lines:?}");
}

#[tokio::test]
async fn a_validator_that_others_made_finds_no_fault_with_the_openapi_document() {
    let python = std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    });
    for token in ["", ", token_env: TOKEN"] {
        let listen = format!("kind: {{http: {{listen: '127.0.0.1:0'{token}}}}}");
        let folder = folder(&format!(
            "  - {{name: web, peers: [echo, writer], {listen}}}\n"
        ));
        let organism = start(&folder).await;
        let url = format!("{}/openapi.json", organism.base);
        let request = organism.client.get(url).bearer_auth(TOKEN);
        let document = within(request.send()).await.unwrap();
        let document = within(document.bytes()).await.unwrap();
        let file = folder.path().join("openapi.json");
        std::fs::write(&file, &document).unwrap();
        let mut validator = Command::new(&python);
        validator.args(["-m", "openapi_spec_validator"]).arg(&file);
        let checked = within(validator.output()).await.unwrap();
        let said = String::from_utf8_lossy(&checked.stdout);
        let wrong = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{said}{wrong}");
        let document: Value = serde_json::from_slice(&document).unwrap();
        for path in [
            "/payloads/Ask",
            "/payloads/Ask/xsd",
            "/openapi.json",
            "/metrics",
        ] {
            assert!(document["paths"].get(path).is_some(), "{path}: {document}");
        }
    }
}
