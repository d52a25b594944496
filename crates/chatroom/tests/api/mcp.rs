//! The door for MCP clients: the official SDKs and the inspector, and who must not get through.

use crate::harness::{
    Caller, Events, Setup, TestServer, agent_id, both_engines, clients, eventually, one_engine,
};
use client::sse::Parser;
use serde_json::{Value, json};
use std::iter;
use tokio::process::Command;

both_engines![an_identity_token_acts_in_each_of_its_rooms];
one_engine![
    the_python_sdk_takes_part,
    the_typescript_sdk_takes_part,
    the_inspector_takes_part,
    nobody_gets_in_without_a_bearer,
    a_session_is_its_openers_alone,
    sessions_are_bounded_and_expire,
    a_tool_never_reaches_beyond_the_credential,
    limits_and_depth_hold_as_over_http,
    a_wait_ends_with_its_caller,
    a_removed_agent_is_cut_off,
    an_answer_that_broke_off_is_resumed,
];

const ACCEPT: &str = "application/json, text/event-stream";

/// An MCP client made of plain requests, in a session.
struct Mcp {
    caller: Caller,
    session: String,
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn initialize() -> Value {
    message(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    )
}

/// The answer in a stream.
fn answer(text: &str) -> Value {
    let mut parser = Parser::new();
    parser.push(text.as_bytes()).unwrap();
    let data = iter::from_fn(|| parser.next_frame()).filter_map(|frame| frame.data);
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    let answers = messages.filter(|message| message.get("id").is_some());
    let answer = answers.last();
    answer.unwrap_or_else(|| panic!("no answer in {text}"))
}

impl Mcp {
    async fn open(caller: &Caller) -> Self {
        let reply = caller
            .post("/mcp", initialize())
            .header("accept", ACCEPT)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(
            answer(reply.text())["result"]["serverInfo"]["name"],
            "sc-chatroom"
        );
        let mcp = Self {
            caller: caller.clone(),
            session,
        };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(mcp.send(initialized).await.status, 202);
        mcp
    }

    fn send(&self, body: Value) -> crate::harness::Request {
        let request = self.caller.post("/mcp", body).header("accept", ACCEPT);
        request
            .header("mcp-session-id", &self.session)
            .header("mcp-protocol-version", "2025-06-18")
    }

    /// What a tool gives, or why it does not.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let reply = self.send(message("tools/call", params)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let result = answer(reply.text())["result"].clone();
        match result["isError"].as_bool() {
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            _ => Ok(result["structuredContent"].clone()),
        }
    }

    async fn refused(&self, tool: &str, arguments: Value, code: &str) {
        let why = self.call(tool, arguments).await.unwrap_err();
        assert!(why.starts_with(&format!("{code}: ")), "{tool}: {why}");
    }
}

/// A private room with rules, an agent in it, and its owner.
async fn room_with_agent(server: &TestServer) -> (Caller, String, crate::harness::Agent) {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice
        .patch(
            format!("/rooms/{room}/rules"),
            json!({"content": "Be kind."}),
        )
        .await
        .ok();
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    (alice, room, agent)
}

async fn done(mut command: Command, word: &str) {
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(said.trim().ends_with(word), "{command:?}\n{said}\n{wrong}");
}

async fn the_python_sdk_takes_part(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    for mode in ["auto", "legacy"] {
        let mut sdk = Command::new(clients().join("bin/python"));
        sdk.args(["tests/clients/mcp_sdk.py", mode, server.base_url(), &room]);
        sdk.args([agent.token().unwrap(), alice.token().unwrap()]);
        done(sdk, "took part").await;
    }
}

async fn the_typescript_sdk_takes_part(setup: Setup) {
    let server = setup.shared().await;
    let (_, room, agent) = room_with_agent(&server).await;
    let mut sdk = Command::new("node");
    sdk.arg("tests/clients/mcp_sdk.mjs")
        .arg(clients())
        .arg(&room);
    let identity = agent.identity();
    sdk.args([
        identity.token().unwrap(),
        &format!("{}/mcp", server.base_url()),
    ]);
    done(sdk, "took part").await;
}

async fn the_inspector_takes_part(setup: Setup) {
    let server = setup.shared().await;
    let (_, room, agent) = room_with_agent(&server).await;
    let inspect = |arguments: &[&str]| {
        let mut inspector = Command::new("node");
        let program = clients().join("node_modules/.bin/mcp-inspector");
        inspector
            .arg(program)
            .args(["--cli", &format!("{}/mcp", server.base_url())]);
        inspector
            .args(["--transport", "http"])
            .args(arguments)
            .arg("--header");
        inspector.arg(format!("Authorization: Bearer {}", agent.token().unwrap()));
        inspector.kill_on_drop(true);
        async move { inspector.output().await.unwrap() }
    };
    let listed = inspect(&["--method", "tools/list"]).await;
    let listed: Value =
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 13);
    let room_id = format!("room_id={room}");
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "get_rules",
        "--tool-arg",
        &room_id,
    ];
    let rules = inspect(&call).await;
    let rules: Value =
        serde_json::from_slice(&rules.stdout).unwrap_or_else(|_| panic!("{rules:?}"));
    assert_eq!(rules["structuredContent"]["content"], "Be kind.");
}

async fn nobody_gets_in_without_a_bearer(setup: Setup) {
    let server = setup.shared().await;
    let anonymous = server.anonymous().seen_from_outside();
    let reply = anonymous
        .post("/mcp", initialize())
        .header("accept", ACCEPT)
        .await;
    let challenge = reply.header("www-authenticate").unwrap().to_owned();
    let metadata = format!(
        "{}/.well-known/oauth-protected-resource/mcp",
        server.base_url()
    );
    assert_eq!(
        challenge,
        format!("Bearer resource_metadata=\"{metadata}\"")
    );
    reply.refused(401, "missing_bearer");
    let rubbish = anonymous.with_token("rubbish");
    rubbish
        .post("/mcp", initialize())
        .header("accept", ACCEPT)
        .await
        .refused(401, "token_invalid");
    // A user token is for internal networks, here as everywhere.
    let outside = server.user("u_alice").seen_from_outside();
    outside
        .post("/mcp", initialize())
        .header("accept", ACCEPT)
        .await
        .refused(403, "internal_only");
    let large = server
        .user("u_alice")
        .post("/mcp", json!({"x": "x".repeat(300_000)}));
    large
        .header("accept", ACCEPT)
        .await
        .refused(413, "payload_too_large");
}

async fn a_session_is_its_openers_alone(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let mcp = Mcp::open(&alice).await;
    for thief in [
        agent.caller.clone(),
        alice.viewer(&room).await,
        server.user("u_mallory"),
    ] {
        let stolen = Mcp {
            caller: thief,
            session: mcp.session.clone(),
        };
        stolen
            .send(message("tools/list", json!({})))
            .await
            .refused(404, "not_found");
        let stream = stolen.caller.get("/mcp").header("accept", ACCEPT);
        stream
            .header("mcp-session-id", &mcp.session)
            .await
            .refused(404, "not_found");
        let ended = stolen
            .caller
            .delete("/mcp")
            .header("mcp-session-id", &mcp.session);
        ended.await.refused(404, "not_found");
    }
    mcp.call("list_rooms", json!({})).await.unwrap();
    let ended = alice
        .delete("/mcp")
        .header("mcp-session-id", &mcp.session)
        .await;
    assert!(ended.status < 300, "{}", ended.status);
    mcp.send(message("tools/list", json!({})))
        .await
        .refused(404, "not_found");
}

async fn sessions_are_bounded_and_expire(setup: Setup) {
    let setup = setup
        .env("MCP__SESSIONS_PER_USER", "2")
        .env("MCP__SESSION_IDLE_SECONDS", "2");
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let first = Mcp::open(&alice).await;
    Mcp::open(&alice).await;
    let third = alice
        .post("/mcp", initialize())
        .header("accept", ACCEPT)
        .await;
    third.refused(429, "rate_limited");
    // Another user's are another user's.
    Mcp::open(&server.user("u_bob")).await;
    eventually("idle sessions end, and there is room again", async || {
        let reply = alice
            .post("/mcp", initialize())
            .header("accept", ACCEPT)
            .await;
        (reply.status == 200).then_some(())
    })
    .await;
    first
        .send(message("tools/list", json!({})))
        .await
        .refused(404, "not_found");
}

async fn a_tool_never_reaches_beyond_the_credential(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let other = alice.creates_a_room().await;
    let of = |room: &str| json!({"room_id": room});
    let text = |room: &str| json!({"room_id": room, "content": "x"});

    // A key that may only look.
    let view = Mcp::open(&alice.viewer_with(&room, "view").await).await;
    view.call("read_messages", of(&room)).await.unwrap();
    view.refused("post_message", text(&room), "key_scope_insufficient")
        .await;
    view.refused("set_rules", text(&room), "key_scope_insufficient")
        .await;
    let react = json!({"room_id": room, "seq": 1, "emoji": "👍"});
    view.refused("react", react, "key_scope_insufficient").await;
    view.refused("read_messages", of(&other), "not_found").await;
    let rooms = view.call("list_rooms", json!({})).await.unwrap();
    let rooms = rooms["rooms"].as_array().unwrap();
    assert_eq!(rooms.len(), 1, "a key tells of its own room alone");

    // A key that was given away is no owner, although its maker is.
    let shared = Mcp::open(&alice.viewer(&room).await).await;
    let posted = shared.call("post_message", text(&room)).await.unwrap();
    assert_eq!(posted["via"], "web");
    shared
        .refused("set_rules", text(&room), "key_scope_insufficient")
        .await;
    shared
        .refused("set_data", text(&room), "key_scope_insufficient")
        .await;

    // An agent is in one room and in no other.
    let agent = Mcp::open(&agent.identity()).await;
    agent
        .refused("read_messages", of(&other), "not_found")
        .await;
    agent
        .refused("wait_for_mention", of(&other), "not_found")
        .await;
    agent
        .refused("set_rules", text(&room), "key_scope_insufficient")
        .await;
    let read = agent
        .send(message(
            "resources/read",
            json!({"uri": format!("room://{other}/rules")}),
        ))
        .await;
    assert!(
        answer(read.text())["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("not_found")
    );
    let follow = json!({"uri": format!("room://{other}")});
    let follow = agent.send(message("resources/subscribe", follow)).await;
    assert!(
        answer(follow.text())["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("not_found")
    );

    // Neither an address nor a query can be smuggled in.
    for room in [
        "rm_x/../../internal/admin/users?",
        "rm_x%2f..",
        "../rooms",
        "",
    ] {
        agent.refused("get_rules", of(room), "bad_request").await;
    }
    let emoji = json!({"room_id": room, "seq": 1, "emoji": "../../../rules", "remove": true});
    assert!(
        agent
            .call("react", emoji)
            .await
            .is_ok_and(|value| value["removed"] == false)
    );
}

async fn limits_and_depth_hold_as_over_http(setup: Setup) {
    let server = setup
        .with_the_documents_limits()
        .limit("visitor_reads_per_minute", 0)
        .start()
        .await;
    let (_, room, agent) = room_with_agent(&server).await;
    let mcp = Mcp::open(&agent.caller).await;
    let text = json!({"room_id": room, "content": "x"});
    let posted = mcp.call("post_message", text.clone()).await.unwrap();
    mcp.refused("post_message", text, "agent_cooldown").await;
    // What was posted with a tool is counted with what is posted otherwise.
    let over_http = agent
        .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await;
    over_http.refused(429, "agent_cooldown");
    let thread = json!({"room_id": room, "seq": posted["seq"]});
    let thread = mcp.call("read_thread", thread).await.unwrap();
    assert_eq!(thread["thread"][0]["via"], "agent");
}

async fn an_identity_token_acts_in_each_of_its_rooms(setup: Setup) {
    let server = setup
        .with_the_documents_limits()
        .limit("agent_cooldown_seconds", 0)
        .start()
        .await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let second = alice.creates_a_room().await;
    let code = alice.invites(&second).await;
    agent.identity().joins(&second, &code, agent.id()).await;
    // A stranger claims the same id elsewhere: that room is not this token's.
    let third = alice.creates_a_room().await;
    alice.lets_in(&third, agent.id()).await;
    let mcp = Mcp::open(&agent.identity()).await;
    let rooms = mcp.call("list_rooms", json!({})).await.unwrap();
    let mut rooms: Vec<&str> = rooms["rooms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|room| room["room_id"].as_str().unwrap())
        .collect();
    rooms.sort_unstable();
    let mut own = [room.as_str(), second.as_str()];
    own.sort_unstable();
    assert_eq!(rooms, own);
    for room in [&room, &second] {
        let posted = mcp
            .call("post_message", json!({"room_id": room, "content": "hello"}))
            .await
            .unwrap();
        assert_eq!(posted["via"], "agent");
    }
    mcp.refused("read_messages", json!({"room_id": third}), "forbidden")
        .await;
    // One key for each room, however often it is used; they end with the token that they were made with.
    let sessions = agent.identity().get("/auth/sessions").await.ok();
    let sessions = sessions["sessions"].as_array().unwrap();
    let current = sessions
        .iter()
        .find(|session| session["current"] == true)
        .unwrap();
    let made: Vec<_> = sessions
        .iter()
        .filter(|session| session["kind"] == "member_token")
        .collect();
    assert_eq!(made.len(), 4, "two of joining and two of MCP: {made:?}");
    let path = format!("/auth/sessions/{}", current["id"].as_str().unwrap());
    agent.identity().delete(path).await.ok();
    let reply = mcp.send(message("tools/list", json!({}))).await;
    reply.refused(401, "identity_invalid");
}

async fn a_wait_ends_with_its_caller(setup: Setup) {
    let server = setup.limit("streams_per_key", 1).start().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let wait = |seconds: u64| json!({"name": "wait_for_mention", "arguments": {"room_id": room, "timeout_seconds": seconds}});
    // Without a session, whoever hangs up has gone: the one stream that the key may have is free again.
    let params = |seconds: u64| {
        let mut params = wait(seconds);
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 1});
        params
    };
    let ask = |seconds: u64| {
        agent
            .post("/mcp", message("tools/call", params(seconds)))
            .header("accept", ACCEPT)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "wait_for_mention")
    };
    let gone = tokio::time::timeout(std::time::Duration::from_millis(500), async {
        ask(300).attempt().await
    });
    assert!(gone.await.is_err(), "it waits");
    eventually("the place of the one who left is free", async || {
        let reply = ask(1).await;
        let result = answer(reply.text())["result"].clone();
        (result["structuredContent"]["timed_out"] == true).then_some(())
    })
    .await;
    // In a session, a wait is cancelled by a notification, or with the session.
    let mcp = Mcp::open(&agent.caller).await;
    let waiting = tokio::spawn({
        let request = mcp.send(message("tools/call", wait(300)));
        async move { request.await }
    });
    eventually("somebody waits", async || {
        let member = alice.sees_member(&room, agent.id()).await;
        member.filter(|member| member["online"] == true)
    })
    .await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(mcp.send(cancelled).await.status, 202);
    eventually("nobody waits", async || {
        agent
            .get(format!("/rooms/{room}/stream"))
            .opens()
            .await
            .ok()
    })
    .await;
    waiting.abort();
}

async fn a_removed_agent_is_cut_off(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let mcp = Mcp::open(&agent.identity()).await;
    mcp.call("get_rules", json!({"room_id": room}))
        .await
        .unwrap();
    let waiting = tokio::spawn({
        let params = json!({"name": "wait_for_mention", "arguments": {"room_id": room, "timeout_seconds": 60}});
        let request = mcp.send(message("tools/call", params));
        async move { request.await }
    });
    eventually("the agent listens", async || {
        alice
            .sees_member(&room, agent.id())
            .await
            .filter(|member| member["online"] == true)
    })
    .await;
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    let told = answer(waiting.await.unwrap().text())["result"].clone();
    assert_eq!(told["isError"], true, "{told}");
    assert!(
        mcp.call("get_rules", json!({"room_id": room}))
            .await
            .is_err()
    );
}

async fn an_answer_that_broke_off_is_resumed(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = room_with_agent(&server).await;
    let mcp = Mcp::open(&agent.caller).await;
    let params =
        json!({"name": "wait_for_mention", "arguments": {"room_id": room, "timeout_seconds": 60}});
    let mut stream = Events::open(mcp.send(message("tools/call", params))).await;
    let place = stream.next().await.id.expect("a place to resume from");
    drop(stream);
    eventually("the agent listens", async || {
        alice
            .sees_member(&room, agent.id())
            .await
            .filter(|member| member["online"] == true)
    })
    .await;
    let me = agent.get(format!("/rooms/{room}/me")).await.ok();
    alice
        .says(
            &room,
            &format!("{} hello", me["mention_key"].as_str().unwrap()),
        )
        .await;
    // The answer is complete before anybody asks for it again.
    eventually("the agent has its answer", async || {
        alice
            .sees_member(&room, agent.id())
            .await
            .filter(|member| member["online"] == false)
    })
    .await;
    let resume = || {
        let resumed = agent.get("/mcp").header("accept", "text/event-stream");
        let resumed = resumed.header("mcp-session-id", &mcp.session);
        Events::open(resumed.header("last-event-id", &place))
    };
    // Whoever breaks off once more asks once more.
    drop(resume().await);
    let mut stream = resume().await;
    let answer = loop {
        let data = stream.next().await.data.unwrap_or_default();
        if let Ok(message) = serde_json::from_str::<Value>(&data) {
            break message;
        }
    };
    let mentions = &answer["result"]["structuredContent"]["mentions"];
    assert_eq!(mentions.as_array().unwrap().len(), 1, "{answer}");
    stream.ended().await;
}
