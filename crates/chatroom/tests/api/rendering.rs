//! Messages rendered for a page, for those who ask.

use crate::harness::{Setup, agent_id, one_engine};
use serde_json::json;

one_engine![
    whoever_asks_gets_html_and_nobody_else,
    the_stream_carries_html_for_those_who_ask,
    a_visitor_gets_html_too,
    a_hostile_text_is_rendered_harmless,
    deleted_and_system_messages_have_no_html,
    an_unknown_rendering_is_refused,
];

async fn whoever_asks_gets_html_and_nobody_else(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "**hello**").await;
    let plain = alice.get(format!("/rooms/{room}/messages")).await.ok();
    assert_eq!(plain["messages"][0].get("content_html"), None);
    for path in [
        "/messages?render=html",
        &format!("/messages/{seq}/thread?render=html"),
    ] {
        let page = alice.get(format!("/rooms/{room}{path}")).await.ok();
        let list = page.get("messages").or(page.get("thread")).unwrap();
        assert_eq!(list[0]["content"], "**hello**");
        assert_eq!(list[0]["content_html"], "<p><strong>hello</strong></p>\n");
    }
}

async fn the_stream_carries_html_for_those_who_ask(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let first = alice.says(&room, "*first*").await;
    let html = format!("{room}/stream?render=html&since=0");
    let mut rendered = crate::harness::Events::open(alice.get(format!("/rooms/{html}"))).await;
    let mut plain = alice.resumes(&room, "0").await;
    // From the log, then live, then an edit.
    let replayed = rendered.expect("message").await;
    assert_eq!(replayed["content_html"], "<p><em>first</em></p>\n");
    alice.says(&room, "`second`").await;
    let live = rendered.expect("message").await;
    assert_eq!(live["content_html"], "<p><code>second</code></p>\n");
    alice
        .patch(
            format!("/rooms/{room}/messages/{first}"),
            json!({"content": "**new**"}),
        )
        .await
        .ok();
    let edited = rendered.expect("message_edited").await;
    assert_eq!(edited["content_html"], "<p><strong>new</strong></p>\n");
    for event in ["message", "message", "message_edited"] {
        assert_eq!(plain.expect(event).await.get("content_html"), None);
    }
}

async fn a_visitor_gets_html_too(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    alice.says(&room, "# Title").await;
    let path = format!("/rooms/{room}/messages?render=html");
    let page = server.anonymous().get(path).await.ok();
    assert_eq!(page["messages"][0]["content_html"], "<h4>Title</h4>\n");
}

async fn a_hostile_text_is_rendered_harmless(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for text in [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        &">".repeat(4096),
        &"x".repeat(4096),
    ] {
        let seq = alice.says(&room, text).await;
        let path = format!("/rooms/{room}/messages?render=html&since={}", seq - 1);
        let page = alice.get(path).await.ok();
        let html = page["messages"][0]["content_html"].as_str().unwrap();
        for bad in ["<script", "<img", "javascript:alert(1)\""] {
            assert!(!html.contains(bad), "{html}");
        }
        assert!(html.len() < 64 * 1024);
    }
}

async fn deleted_and_system_messages_have_no_html(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "gone soon").await;
    alice
        .delete(format!("/rooms/{room}/messages/{seq}"))
        .await
        .ok();
    alice.lets_in(&room, &agent_id("curious_otter")).await;
    let page = alice
        .get(format!("/rooms/{room}/messages?render=html"))
        .await
        .ok();
    let messages = page["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert!(
        messages
            .iter()
            .all(|message| message.get("content_html").is_none())
    );
}

async fn an_unknown_rendering_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for path in ["messages?render=pdf", "stream?render=pdf"] {
        let reply = alice.get(format!("/rooms/{room}/{path}")).await;
        reply.refused(400, "bad_request");
    }
}
