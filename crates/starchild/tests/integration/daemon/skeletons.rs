//! The three skeleton scripts of the contract, with nothing but their addresses changed.

use crate::harness::{Owner, Room, Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

const CLOUD: &str = include_str!("skeletons/cloud.sh");
const DISPATCH: &str = include_str!("skeletons/dispatch.sh");
const CODEX: &str = include_str!("skeletons/codex.sh");

/// Answers every request with the same body, and tells what it was asked.
async fn stand_in(body: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let request = read_request(&mut connection).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let reply = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = connection.write_all(reply.as_bytes()).await;
            let _ = asked.send(request);
        }
    });
    (url, requests)
}

async fn read_request(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = connection.read(&mut part).await.unwrap();
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let length = text.to_lowercase();
        let length = length.split_once("content-length: ");
        let length = length.map_or(0, |(_, rest)| rest.lines().next().unwrap().parse().unwrap());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || body.is_some_and(|body| body >= length) {
            return text;
        }
    }
}

async fn room_with(script: &str, env: Vec<(&'static str, String)>) -> (Server, Room, Owner) {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let mut owner = Owner::with_handler(&server, script).await;
    owner.env = env;
    owner.joins(&room).await;
    (server, room, owner)
}

#[tokio::test]
async fn the_first_asks_a_model_in_the_cloud() {
    let reply = r#"{"choices":[{"message":{"content":"from the cloud"}}]}"#;
    let (url, mut requests) = stand_in(reply).await;
    let script = CLOUD.replace("https://your-hermes-endpoint", &url);
    let (_server, room, owner) = room_with(&script, vec![("HERMES_API_KEY", "k-1".into())]).await;
    let _daemon = owner.runs().await;
    assert_eq!(room.ask("hey \"you\"").await, "from the cloud");
    let asked = requests.recv().await.unwrap();
    assert!(
        asked.contains("Bearer k-1") && asked.contains(r#"hey \"you\""#),
        "{asked}"
    );
}

#[tokio::test]
async fn the_second_wakes_a_service_that_remembers() {
    let (url, mut requests) = stand_in(r#"{"reply":"from the service"}"#).await;
    // This one answers itself, too: the room puts an end to it.
    let script = DISPATCH.replace("https://agent.mycorp.com", &url);
    let (_server, room, owner) = room_with(&script, vec![("MY_AGENT_TOKEN", "t-1".into())]).await;
    let _daemon = owner.runs().await;
    assert_eq!(room.ask("hello").await, "from the service");
    let asked = requests.recv().await.unwrap();
    assert!(asked.starts_with("POST /sc-chatroom/dispatch"), "{asked}");
    assert!(asked.contains(r#""sender_user_id":"u_alice""#), "{asked}");
}

#[tokio::test]
async fn the_third_pipes_into_a_command_line() {
    let (_server, room, mut owner) = room_with(CODEX, Vec::new()).await;
    owner.write_script(
        "codex",
        "#!/bin/sh\necho \"codex $* says: $(cat)\"\n",
        0o755,
    );
    let path = std::env::var("PATH").unwrap();
    let folder = owner.folder.path().display().to_string();
    owner.env = vec![("PATH", format!("{folder}:{path}"))];
    let _daemon = owner.runs().await;
    let answer = room.ask("hello").await;
    assert_eq!(answer, "codex exec --skip-git-repo-check says: hello");
}
