//! The way from a machine to its owner's hosted agent, through the bridge of a real server.

use crate::harness::{DEADLINE, Owner, Room, Server, eventually};
use crate::stand_in::{Request, StandIn, reply};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Stdio,
    sync::Mutex,
    sync::mpsc::{Sender, channel},
};

/// What only the server and the host know.
const BEARER: &str = "sk_of_the_host";

/// An agent host. Asked to count, it says "one", and "two" when it is told to go on.
fn host() -> (StandIn, Sender<()>) {
    let (go_on, told) = channel();
    let told = Mutex::new(told);
    let host = StandIn::new(move |request, stream| {
        if request.line != "POST /chat/stream"
            || request.header("authorization") != Some(&format!("Bearer {BEARER}"))
        {
            return stream.write_all(reply("401 Unauthorized", "text/plain", "no").as_bytes());
        }
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )?;
        let message = sent(request)["message"].as_str().unwrap().to_owned();
        if message == "count" {
            say(stream, "one ")?;
            let _ = told.lock().unwrap().recv_timeout(DEADLINE);
            return say(stream, "two");
        }
        say(stream, "You said: ")?;
        say(stream, message.lines().last().unwrap())?;
        stream.write_all(b"data: {\"type\":\"usage\",\"text\":\"12\"}\n\ndata: [DONE]\n\n")
    });
    (host, go_on)
}

fn say(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(
        stream,
        ": a comment\n\ndata: {}\n\n",
        json!({ "text": text })
    )
}

fn sent(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

/// Calls the server as Alice.
async fn call(server: &Server, method: Method, path: &str, body: Value) -> Value {
    let response = reqwest::Client::new()
        .request(method, format!("{}{path}", server.url()))
        .bearer_auth(server.alice_token())
        .json(&body)
        .send()
        .await
        .unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

/// The short code for a host.
async fn short_code(server: &Server, host: &StandIn) -> (String, String) {
    let key = json!({
        "akm_key": BEARER, "container_id": "box-1", "label": "my laptop",
        "agent_endpoint": host.url(),
    });
    let made = call(server, Method::POST, "/cli-keys", key).await;
    let code = made["code"].as_str().unwrap().to_owned();
    let inside = json!({
        "d": server.url(), "c": "", "k": code, "s": "chat:bridge:cli",
        "exp": made["expires_at"], "l": made["label"],
    });
    let bundle = format!("starchild_{}", URL_SAFE_NO_PAD.encode(inside.to_string()));
    (code, bundle)
}

fn nobody() -> Owner {
    Owner {
        folder: tempfile::tempdir().unwrap(),
        agent: String::new(),
        env: Vec::new(),
    }
}

#[tokio::test]
async fn a_question_reaches_the_hosted_agent_until_the_code_is_revoked() {
    let server = Server::start().await;
    let (host, _go_on) = host();
    let (code, bundle) = short_code(&server, &host).await;
    let owner = nobody();
    owner.types(&["login", &bundle]).await;
    let who = owner.types(&["whoami"]).await;
    assert!(who.starts_with("my laptop at "), "{who}");
    assert!(!who.contains(&code), "{who}");

    assert_eq!(
        owner.types(&["good morning"]).await,
        "You said: good morning\n"
    );
    let request = host.requests().pop().unwrap();
    assert_eq!(request.header("fly-force-instance-id"), Some("box-1"));
    assert_eq!(sent(&request)["channel"], "starchild-cli");

    let path = format!("/cli-keys/{code}");
    call(&server, Method::DELETE, &path, Value::Null).await;
    let refused = owner.tries(&["good night"]).await;
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(refused.stdout.is_empty());
    assert!(words.contains("revoked"), "{words}");
    assert!(words.contains("starchild login BUNDLE"), "{words}");
    assert!(!words.contains(&code), "{words}");
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_is_streamed_while_the_agent_still_speaks() {
    let server = Server::start().await;
    let (host, go_on) = host();
    let (_, bundle) = short_code(&server, &host).await;
    let owner = nobody();
    owner.types(&["login", &bundle]).await;
    let mut command = owner.command(&["--stream", "count"]);
    let mut asking = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = asking.stdout.take().unwrap();
    let heard = tokio::task::spawn_blocking(move || {
        let mut first = [0; 4];
        stdout.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"one ");
        go_on.send(()).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "two\n");
        asking.wait().unwrap()
    });
    assert!(heard.await.unwrap().success());
}

#[tokio::test]
async fn the_hosted_agent_answers_in_a_room_through_the_bridge() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let (host, _go_on) = host();
    let (code, bundle) = short_code(&server, &host).await;
    let mut owner = nobody();
    owner.types(&["login", &bundle]).await;
    let url = server.url();
    let add = [
        "byoa",
        "add",
        "--prefix",
        "curious_otter",
        "--backend",
        "starchild",
    ];
    let add = [&add[..], &["--server", &url]].concat();
    owner.agent = owner.types(&add).await.trim().to_owned();
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    let mention = format!("@ext_{}", owner.agent);
    let answer = room.ask(&format!("{mention} what is up?")).await;
    assert_eq!(answer, format!("You said: > {mention} what is up?"));
    let asked = sent(&host.requests().pop().unwrap());
    assert_eq!(asked["thread_id"], format!("chatroom-{}", room.id));

    let path = format!("/cli-keys/{code}");
    call(&server, Method::DELETE, &path, Value::Null).await;
    let refused = room.say(&format!("{mention} and now?")).await;
    eventually("the log says why", async || {
        let log = owner.log();
        (log.contains("revoked") && log.contains("starchild login")).then_some(())
    })
    .await;
    assert!(room.answers(refused).await.is_empty());
    // A new login counts at once, without a restart.
    let (_, bundle) = short_code(&server, &host).await;
    owner.types(&["login", &bundle]).await;
    let answer = room.ask(&format!("{mention} and again?")).await;
    assert!(answer.contains("and again?"), "{answer}");
    assert!(!owner.log().contains(&code));
}
