//! A server that does its worst with what it may answer.

use crate::{
    harness::Owner,
    stand_in::{Request, StandIn},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::io::Write;

/// Clears the screen, sets the title, begins a sequence with one character, turns text around.
pub const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";

/// What a terminal would obey.
pub fn obeyed(seen: &str) -> Option<&'static str> {
    ["\u{1b}[2J", "\u{1b}]0", "\u{9b}", "\u{202e}", "\u{7}"]
        .into_iter()
        .find(|sequence| seen.contains(sequence))
}

/// An agent's owner who was talked into this server.
pub async fn victim(server: &StandIn) -> Owner {
    let mut owner = Owner {
        folder: tempfile::tempdir().unwrap(),
        agent: String::new(),
        env: vec![("NO_COLOR", "1".into())],
    };
    let url = server.url();
    let add = [
        "byoa",
        "add",
        "--prefix",
        "curious_otter",
        "--server",
        &url,
        "--backend",
        "plain",
    ];
    owner.agent = owner.types(&add).await.trim().to_owned();
    owner
}

/// The server. Its room is `rm_trap01`.
pub fn server() -> StandIn {
    StandIn::new(|request, stream| {
        let (status, body) = answer(request);
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    })
}

fn answer(request: &Request) -> (&'static str, String) {
    let refused = || json!({"error": "bad_request", "message": format!("no {ESCAPES} way")});
    let name = format!("Otter{ESCAPES}");
    let in_a_year = 4_102_444_800_i64;
    let (status, body): (_, Value) = match request.line.as_str() {
        "GET /i/i_trap0001" => {
            let claims = json!({"kind": "invite", "room_id": "rm_trap01"});
            return (
                "200 OK",
                format!("inv_x.{}.y", URL_SAFE_NO_PAD.encode(claims.to_string())),
            );
        }
        "POST /rooms/rm_trap01/join" => {
            let asked: Value = serde_json::from_str(&request.body).unwrap();
            let user = format!("ext_{}", asked["user_id"].as_str().unwrap());
            let joined = json!({
                "ok": true, "room_id": "rm_trap01", "user_id": user, "user_name": name,
                "member_kind": "external_agent", "adapter_type": "pull", "joined_at": 0,
                "member_token": "t", "expires_at": in_a_year,
                "identity_token": "i", "identity_expires_at": in_a_year,
            });
            ("201 Created", joined)
        }
        "POST /rooms/public/auto-join" => {
            let seat = |room: &str| json!({"room_id": room, "newly_joined": true, "user_id": "ext_x", "user_name": name});
            let rooms = json!({
                "user_id": "ext_x", "member_kind": "external_agent",
                "reserved_rooms": [seat("rm_welcome"), seat("rm_private1")],
            });
            ("200 OK", rooms)
        }
        line if line.contains("/messages?") => (
            "200 OK",
            json!({"room_id": "rm_trap01", "messages": [], "latest_seq": 0}),
        ),
        _ => ("400 Bad Request", refused()),
    };
    (status, body.to_string())
}
