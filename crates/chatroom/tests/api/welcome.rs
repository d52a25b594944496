//! The welcome room's checklist, and the guide that leads through it.

use crate::harness::{Agent, Caller, Engine, Setup, TestServer, both_engines, one_engine};
use serde_json::{Value, json};
use sqlx::Connection;
use std::process::Command;

both_engines![
    following_the_checklist_passes_all_of_it,
    what_is_passed_stays_passed,
    the_room_begins_with_a_pinned_tour,
];
one_engine![
    the_checklist_is_for_everybody_to_read,
    the_typed_client_knows_the_way,
    only_members_are_checked,
    nothing_done_is_nothing_passed,
];

const WELCOME: &str = "rm_welcome";
const REFRESH: &str = "/rooms/rm_welcome/checklist/refresh";
const CHECKS: [&str; 6] = [
    "post_message",
    "react",
    "edit_own_message",
    "delete_own_message",
    "reply_in_thread",
    "publish_agent_card",
];

async fn newcomer(server: &TestServer, agent: &str) -> Agent {
    let anonymous = server.anonymous();
    let path = "/rooms/rm_welcome/auto-invite";
    let invite = anonymous.post_nothing(path).await.created();
    let code = invite["invite_code"].as_str().unwrap();
    anonymous.joins(WELCOME, code, agent).await
}

async fn refreshed(caller: &Caller) -> Value {
    caller.post_nothing(REFRESH).await.ok()
}

fn passed(state: &Value) -> Vec<&str> {
    let is_passed = |check: &&str| state["checks"][check].is_i64();
    CHECKS.into_iter().filter(is_passed).collect()
}

async fn the_checklist_is_for_everybody_to_read(setup: Setup) {
    let server = setup.start().await;
    let list = server
        .anonymous()
        .seen_from_outside()
        .get("/rooms/rm_welcome/checklist")
        .await
        .ok();
    assert_eq!(list["room_id"], WELCOME);
    let checks = list["checks"].as_array().unwrap();
    let ids: Vec<&str> = checks.iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, CHECKS);
    for check in checks {
        for field in ["title", "how", "verifies"] {
            assert!(!check[field].as_str().unwrap().is_empty());
        }
    }
    assert!(list["score_endpoint"].as_str().unwrap().contains("/me"));
    assert!(list["refresh_endpoint"].as_str().unwrap().contains(REFRESH));
}

async fn following_the_checklist_passes_all_of_it(setup: Setup) {
    let server = setup.start().await;
    let agent = newcomer(&server, "curious_otter-3a9f1c20").await;
    let mut expected = Vec::new();
    let first = agent.says(WELCOME, "hello").await;
    let message = format!("/rooms/{WELCOME}/messages/{first}");
    let steps: [(&str, _); 6] = [
        ("post_message", None),
        (
            "react",
            Some(agent.post(format!("{message}/reactions"), json!({"emoji": "👍"}))),
        ),
        (
            "edit_own_message",
            Some(agent.patch(&message, json!({"content": "hello again"}))),
        ),
        (
            "reply_in_thread",
            Some(agent.post(
                format!("/rooms/{WELCOME}/messages"),
                json!({"content": "reply", "reply_to_seq": first}),
            )),
        ),
        ("delete_own_message", Some(agent.delete(&message))),
        (
            "publish_agent_card",
            Some(agent.patch(
                format!("/rooms/{WELCOME}/members/{}/agent-card", agent.id()),
                json!({"agent_card_url": "https://otter.example/.well-known/agent-card.json"}),
            )),
        ),
    ];
    for (check, request) in steps {
        if let Some(request) = request {
            let reply = request.await;
            assert!(reply.status < 300, "{check}: {}", reply.text());
        }
        expected.push(check);
        let state = refreshed(&agent).await;
        let mut now = passed(&state);
        now.sort_unstable();
        let mut wanted = expected.clone();
        wanted.sort_unstable();
        assert_eq!(now, wanted);
        assert_eq!(
            (&state["passed"], &state["total"]),
            (&json!(expected.len()), &json!(6))
        );
        assert_eq!(state["user_id"], agent.id());
    }
    let me = agent.get(format!("/rooms/{WELCOME}/me")).await.ok();
    assert_eq!(me["welcome_score"]["passed"], 6);
    let member = agent.sees_member(WELCOME, agent.id()).await.unwrap();
    assert_eq!(member["welcome_score"], me["welcome_score"]);
}

async fn what_is_passed_stays_passed(setup: Setup) {
    let server = setup.start().await;
    let agent = newcomer(&server, "curious_otter-3a9f1c20").await;
    let seq = agent.says(WELCOME, "hello").await;
    let reactions = format!("/rooms/{WELCOME}/messages/{seq}/reactions");
    agent.post(&reactions, json!({"emoji": "👍"})).await.ok();
    let card = format!("/rooms/{WELCOME}/members/{}/agent-card", agent.id());
    let address = json!({"agent_card_url": "https://otter.example/card.json"});
    agent.patch(&card, address).await.ok();
    let before = refreshed(&agent).await;
    agent.delete(format!("{reactions}/👍")).await.ok();
    agent
        .patch(&card, json!({"agent_card_url": null}))
        .await
        .ok();
    let after = refreshed(&agent).await;
    assert_eq!(
        passed(&before),
        ["post_message", "react", "publish_agent_card"]
    );
    assert_eq!(before, after);
}

async fn nothing_done_is_nothing_passed(setup: Setup) {
    let server = setup.start().await;
    let agent = newcomer(&server, "curious_otter-3a9f1c20").await;
    let other = newcomer(&server, "another_agent-00000001").await;
    other.says(WELCOME, "hello").await;
    let state = refreshed(&agent).await;
    assert_eq!((&state["passed"], passed(&state).len()), (&json!(0), 0));
    let checks = state["checks"].as_object().unwrap();
    assert_eq!(checks.len(), 6);
    assert!(checks.values().all(Value::is_null));
    // What is done but not looked at again is not passed yet.
    let me = other.get(format!("/rooms/{WELCOME}/me")).await.ok();
    assert_eq!(me["welcome_score"]["passed"], 0);
    // Other rooms have no checklist.
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let me = alice.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(me.get("welcome_score"), None);
    let member = alice.sees_member(&room, "u_alice").await.unwrap();
    assert_eq!(member.get("welcome_score"), None);
}

async fn only_members_are_checked(setup: Setup) {
    let server = setup.start().await;
    let refused = server.anonymous().post_nothing(REFRESH).await;
    refused.refused(401, "missing_bearer");
    let alice = server.user("u_alice");
    alice
        .post_nothing(REFRESH)
        .await
        .refused(403, "not_a_member");
    let room = alice.creates_a_public_room().await;
    let viewer = alice.viewer(&room).await;
    let refused = viewer.post_nothing(REFRESH).await;
    refused.refused(403, "key_scope_insufficient");
}

#[tokio::test]
async fn new_scoring_rules_are_told_to_the_welcome_room_once() {
    let mut server = Setup::new(Engine::Sqlite).start().await;
    assert_eq!(server.anonymous().latest_seq(WELCOME).await, 1, "the tour");
    assert!(server.terminate().await.success());
    // As if the program before this one had scored by other rules.
    let file = server.data().join("chatroom.db");
    let url = format!("sqlite://{}", file.display());
    let mut store = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("UPDATE meta SET value = '0' WHERE name = 'scoring_version'")
        .execute(&mut store)
        .await
        .unwrap();
    store.close().await.unwrap();
    for _ in 0..2 {
        server.restart().await;
        let visitor = server.anonymous();
        let told = visitor.reads(WELCOME, 2).await;
        assert!(told["content"].as_str().unwrap().contains("/scoring-rules"));
        assert_eq!(
            (&told["via"], visitor.latest_seq(WELCOME).await),
            (&json!("system"), 2)
        );
    }
}

async fn the_typed_client_knows_the_way(setup: Setup) {
    let server = setup.start().await;
    let alice = server.client(&server.user("u_alice"));
    let joined = alice.auto_join(&Default::default()).await.unwrap();
    assert_eq!(joined.reserved_rooms.len(), 3);
    let room = &joined.reserved_rooms[0].room_id;
    let hello = client::PostMessage {
        content: "hello".into(),
        ..Default::default()
    };
    alice.post_message(room, &hello, None).await.unwrap();
    assert_eq!(alice.checklist().await.unwrap().checks.len(), 6);
    let refreshed = alice.refresh_checklist().await.unwrap();
    assert_eq!(refreshed.score.passed, 1);
    assert_eq!(
        alice.me(room).await.unwrap().welcome_score,
        Some(refreshed.score)
    );
    assert_eq!(alice.scoring_rules().await.unwrap().version, 1);
    let mine = alice.my_score(room).await.unwrap();
    let board = alice
        .room_leaderboard(room, Some(7), Some(5))
        .await
        .unwrap();
    assert_eq!(board.leaderboard[0].score, mine.summary.score);
    let everywhere = alice.leaderboard(None, None).await.unwrap();
    assert_eq!(everywhere.leaderboard[0].user_id, Some(mine.user_id));
}

/// The shell blocks of the guide, in order.
fn shell_blocks(markdown: &str) -> String {
    let blocks = markdown.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

/// With the document's limits: the guide has to wait where an agent has to.
pub async fn the_guide_alone_leads_through_the_checklist(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let guide = server.anonymous().get("/docs/welcome").await;
    let script = shell_blocks(guide.text());
    assert!(script.contains("BASE="), "the guide names the server once");
    let here = format!("BASE={}", server.base_url());
    let script: Vec<&str> = script
        .lines()
        .map(|line| match line.starts_with("BASE=") {
            true => here.as_str(),
            false => line,
        })
        .collect();
    let mut command = Command::new("sh");
    command
        .args(["-e", "-u", "-c", &script.join("\n")])
        .env("HOME", server.folder())
        .current_dir(server.folder());
    let ran = tokio::task::spawn_blocking(move || command.output());
    let output = ran.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let last = said
        .lines()
        .rfind(|line| line.contains("\"passed\""))
        .unwrap();
    let state: Value = serde_json::from_str(last).unwrap();
    assert_eq!(passed(&state), CHECKS, "{said}");
}

async fn the_room_begins_with_a_pinned_tour(setup: Setup) {
    let mut server = setup.start().await;
    let pins = async |server: &TestServer| {
        let visitor = server.anonymous().seen_from_outside();
        let pins = visitor.get("/rooms/rm_welcome/pins").await.ok();
        pins["pins"].as_array().unwrap().clone()
    };
    let pinned = pins(&server).await;
    assert_eq!(pinned.len(), 1, "{pinned:?}");
    let tour = &pinned[0];
    assert_eq!(
        (&tour["seq"], &tour["type"], &tour["event"]),
        (&json!(1), &json!("system"), &json!({"kind": "tour"}))
    );
    for word in ["Invite", "@", "Ctrl+K", "/docs/welcome"] {
        assert!(tour["content"].as_str().unwrap().contains(word), "{word}");
    }
    let visitor = server.anonymous().seen_from_outside();
    let page = visitor
        .get("/rooms/rm_welcome/messages?since=0&render=html")
        .await
        .ok();
    let html = page["messages"][0]["content_html"].as_str().unwrap();
    assert!(html.contains("<ol>") && html.contains("<strong>"), "{html}");
    // Given once, and nobody takes it away.
    server.restart().await;
    assert_eq!(pins(&server).await, pinned);
    let alice = server.user("u_alice");
    alice.post_nothing("/rooms/public/auto-join").await.ok();
    alice
        .delete("/rooms/rm_welcome/pins/1")
        .await
        .refused(403, "forbidden_system_room");
}
