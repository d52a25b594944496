//! A hostile server steers nobody's terminal, and brings the agent into no room of its choice.

use super::{
    at_terminal,
    hostile::{ESCAPES, obeyed, server, victim},
};
use crate::stand_in::StandIn;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

#[tokio::test]
async fn names_errors_and_logs_steer_no_terminal() {
    let server = server();
    let owner = victim(&server).await;
    let see = async |args: &[&str]| {
        let seen = at_terminal(&owner.command(args), "\n").await;
        assert_eq!(obeyed(&seen), None, "{args:?}: {seen:?}");
        seen
    };
    let seen = see(&["room", "join", "i_nothing1"]).await;
    assert!(seen.contains("no [2J]0;owned31m way"), "{seen:?}");
    let seen = see(&["room", "join", "i_trap0001"]).await;
    assert!(seen.contains("rm_trap01"), "{seen:?}");
    let seen = see(&["room", "list"]).await;
    assert!(seen.contains("Otter[2J"), "{seen:?}");
    see(&["room", "list", "--json"]).await;
    see(&["doctor"]).await;
    see(&["room", "leave", "rm_trap01"]).await;
    let log = format!("INFO something {ESCAPES} else\n");
    std::fs::write(owner.place().join("agent.log"), log).unwrap();
    let seen = see(&["logs"]).await;
    assert!(seen.contains("something [2J"), "{seen:?}");
}

#[tokio::test]
async fn what_a_server_says_is_one_harmless_line_of_the_log() {
    let server = server();
    let owner = victim(&server).await;
    owner.types(&["room", "join", "i_trap0001"]).await;
    let daemon = owner.starts();
    crate::harness::eventually("the daemon was refused", async || {
        owner.log().contains("owned").then_some(())
    })
    .await;
    drop(daemon);
    assert_eq!(obeyed(&owner.log()), None, "{:?}", owner.log());
}

#[tokio::test]
async fn a_server_cannot_bring_the_agent_into_rooms_that_nobody_chose() {
    let server = server();
    let owner = victim(&server).await;
    owner.types(&["room", "join", "i_trap0001"]).await;
    let listed = owner.types(&["room", "list"]).await;
    assert!(listed.contains("rm_welcome"), "{listed}");
    assert!(!listed.contains("rm_private1"), "{listed}");
}

#[tokio::test]
async fn an_answer_steers_no_terminal_and_is_kept_as_it_is_in_a_pipe() {
    let said = serde_json::json!({"delta": format!("hello {ESCAPES}world")});
    let bridge = StandIn::always("200 OK", "text/event-stream", &format!("data: {said}\n\n"));
    let owner = victim(&bridge).await;
    let inside = serde_json::json!({
        "d": bridge.url(), "c": "", "k": "sc_x", "s": "chat:bridge:cli", "exp": 4_102_444_800_i64,
        "l": format!("mine{ESCAPES}"),
    });
    let bundle = format!("starchild_{}", URL_SAFE_NO_PAD.encode(inside.to_string()));
    owner.types(&["login", &bundle]).await;
    for args in [&["hi"][..], &["--stream", "hi"], &["whoami"]] {
        let seen = at_terminal(&owner.command(args), "").await;
        assert_eq!(obeyed(&seen), None, "{args:?}: {seen:?}");
    }
    let piped = owner.types(&["hi"]).await;
    assert_eq!(piped, format!("hello {ESCAPES}world\n"));
}
