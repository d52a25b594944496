//! Messages: posting and reading.

use crate::harness::{Setup, agent_id, both_engines, now, one_engine};
use serde_json::{Value, json};

both_engines![
    a_message_is_read_as_it_was_written,
    an_answer_names_a_message_that_exists,
    depth_is_counted_by_the_server,
    a_name_in_the_token_that_changed_is_taken_over,
    a_message_keeps_the_name_its_sender_had,
    reading_begins_after_since,
    reading_before_gives_the_newest_below,
    a_page_is_50_messages_and_200_at_most,
    a_visitor_reads_a_public_room_50_at_a_time,
    posts_from_many_at_once_have_no_gaps_and_no_doubles,
    strange_text_comes_back_as_it_was,
    answers_are_counted_wherever_they_stand,
];

one_engine![
    a_member_token_posts_as_what_its_member_is,
    a_room_key_posts_from_the_web,
    a_user_token_posts_as_an_agent,
    a_view_key_does_not_post,
    a_visitor_cannot_filter_by_sender,
    a_visitor_learns_nothing_of_private_rooms,
    a_web_post_starts_anew,
    content_is_at_most_4096_bytes_of_utf8,
    content_is_not_empty,
    only_members_post,
    a_request_can_only_deepen_a_chain,
    a_chain_ends_at_the_rooms_depth,
];

fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

async fn a_user_token_posts_as_an_agent(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"content": "hello", "reply_chain_depth": 0});
    let first = alice.post(messages(&room), body.clone()).await.created();
    assert_eq!(first["via"], "agent");
    assert!((now() - first["created_at"].as_i64().unwrap()).abs() < 60);
    let second = alice.post(messages(&room), body).await.created();
    assert_eq!(
        second["seq"].as_i64(),
        first["seq"].as_i64().map(|seq| seq + 1)
    );
    let mut fields: Vec<_> = first.as_object().unwrap().keys().collect();
    fields.sort_unstable();
    assert_eq!(fields, ["created_at", "seq", "via"]);
}

async fn a_room_key_posts_from_the_web(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await.seen_from_outside();
    let posted = viewer
        .post(messages(&room), json!({"content": "hi"}))
        .await
        .created();
    assert_eq!(posted["via"], "web");
    let read = viewer.reads(&room, posted["seq"].as_i64().unwrap()).await;
    assert_eq!(
        (&read["via"], &read["sender_user_id"]),
        (&json!("web"), &json!("u_alice"))
    );
}

async fn a_member_token_posts_as_what_its_member_is(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let person = alice.lets_in_a_person(&room, "dora").await;
    for (member, via) in [(&agent, "agent"), (&person, "web")] {
        let posted = member
            .post(messages(&room), json!({"content": "hi"}))
            .await
            .created();
        assert_eq!(posted["via"], via);
    }
}

async fn a_message_is_read_as_it_was_written(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "Hello everyone").await;
    let viewer = alice.viewer_with(&room, "view").await;
    for reader in [&alice, &viewer] {
        let page = reader.get(messages(&room)).await.ok();
        assert_eq!(
            (&page["room_id"], &page["latest_seq"]),
            (&json!(room), &json!(seq))
        );
        let message = reader.reads(&room, seq).await;
        assert_eq!(
            message,
            json!({"seq": seq, "sender_user_id": "u_alice", "sender_user_name": "Alice",
                   "via": "agent", "type": "chat", "content": "Hello everyone",
                   "reply_to_seq": null, "reply_chain_depth": 0,
                   "rules_version": message["rules_version"].as_i64().unwrap(),
                   "created_at": message["created_at"].as_i64().unwrap(),
                   "deleted": false, "edited_at": null, "reactions": {}, "mentions_me": false})
        );
    }
}

async fn content_is_at_most_4096_bytes_of_utf8(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, &"€".repeat(1365)).await;
    assert_eq!(alice.says(&room, &"x".repeat(4096)).await, seq + 1);
    for over in ["x".repeat(4097), "€".repeat(1366), "👍".repeat(1025)] {
        let reply = alice.post(messages(&room), json!({"content": over})).await;
        reply.refused(400, "too_large");
    }
    assert_eq!(alice.latest_seq(&room).await, seq + 1);
}

async fn content_is_not_empty(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for bad in [
        json!(""),
        json!(" \n\t"),
        json!("\u{2003}"),
        json!(null),
        json!(7),
        json!("a\u{0}b"),
    ] {
        let reply = alice.post(messages(&room), json!({"content": bad})).await;
        reply.refused(400, "bad_request");
    }
    alice
        .post(messages(&room), json!({}))
        .await
        .refused(400, "bad_request");
}

async fn an_answer_names_a_message_that_exists(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let seq = alice.says(&room, "one").await;
    for n in 0..9 {
        alice.says(&other, &n.to_string()).await;
    }
    for bad in [
        json!(seq + 1),
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!("1"),
        json!(1.5),
    ] {
        let body = json!({"content": "two", "reply_to_seq": bad});
        alice
            .post(messages(&room), body)
            .await
            .refused(400, "bad_request");
    }
    let answer = alice
        .says_this(&room, json!({"content": "two", "reply_to_seq": seq}))
        .await;
    assert_eq!(alice.reads(&room, answer).await["reply_to_seq"], seq);
}

async fn depth_is_counted_by_the_server(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let mut last = alice.viewer(&room).await.says(&room, "a person asks").await;
    for depth in 1..=3 {
        let answer = json!({"content": "x", "reply_to_seq": last, "reply_chain_depth": 0});
        last = agent.says_this(&room, answer).await;
        assert_eq!(agent.reads(&room, last).await["reply_chain_depth"], depth);
    }
}

async fn a_request_can_only_deepen_a_chain(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let deep = alice
        .says_this(&room, json!({"content": "x", "reply_chain_depth": 3}))
        .await;
    assert_eq!(alice.reads(&room, deep).await["reply_chain_depth"], 3);
    for (said, counted) in [(0, 4), (4, 4), (5, 5)] {
        let body = json!({"content": "x", "reply_to_seq": deep, "reply_chain_depth": said});
        let seq = alice.says_this(&room, body).await;
        assert_eq!(alice.reads(&room, seq).await["reply_chain_depth"], counted);
    }
    for bad in [json!(-1), json!("1"), json!(1.5)] {
        let body = json!({"content": "x", "reply_chain_depth": bad});
        alice
            .post(messages(&room), body)
            .await
            .refused(400, "bad_request");
    }
}

async fn a_chain_ends_at_the_rooms_depth(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let post = |depth: i64, to: Option<i64>| {
        let body = json!({"content": "x", "reply_chain_depth": depth, "reply_to_seq": to});
        alice.post(messages(&room), body)
    };
    let deepest = post(5, None).await.created()["seq"].as_i64().unwrap();
    post(6, None).await.refused(400, "chain_too_deep");
    post(0, Some(deepest)).await.refused(400, "chain_too_deep");
    let shallow = json!({"max_reply_chain_depth": 1});
    alice.patch(format!("/rooms/{room}"), shallow).await.ok();
    let first = post(0, None).await.created()["seq"].as_i64().unwrap();
    let second = post(0, Some(first)).await.created()["seq"]
        .as_i64()
        .unwrap();
    post(0, Some(second)).await.refused(400, "chain_too_deep");
    let deep = json!({"max_reply_chain_depth": 50});
    alice.patch(format!("/rooms/{room}"), deep).await.ok();
    post(50, None).await.created();
    post(51, None).await.refused(400, "chain_too_deep");
}

async fn a_web_post_starts_anew(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let deep = alice
        .says_this(&room, json!({"content": "x", "reply_chain_depth": 5}))
        .await;
    let viewer = alice.viewer(&room).await;
    let body = json!({"content": "stop", "reply_to_seq": deep, "reply_chain_depth": 9});
    let seq = viewer.says_this(&room, body).await;
    let message = viewer.reads(&room, seq).await;
    assert_eq!(
        (&message["reply_chain_depth"], &message["reply_to_seq"]),
        (&json!(0), &json!(deep))
    );
}

async fn a_name_in_the_token_that_changed_is_taken_over(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user_named("u_alice", "Alice").creates_a_room().await;
    let renamed = server.user_named("u_alice", "Alice Cooper");
    let seq = renamed.says(&room, "new name").await;
    assert_eq!(
        renamed.reads(&room, seq).await["sender_user_name"],
        "Alice Cooper"
    );
    let member = renamed.sees_member(&room, "u_alice").await.unwrap();
    assert_eq!(member["user_name"], "Alice Cooper");
}

async fn a_message_keeps_the_name_its_sender_had(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice
        .invites_with(&room, json!({"display_name": "Bob"}))
        .await;
    let agent = server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
    let before = agent.says(&room, "as Bob").await;
    let path = format!("/rooms/{room}/members/{}/name", agent.id());
    alice.patch(path, json!({"name": "Robert"})).await.ok();
    let after = agent.says(&room, "as Robert").await;
    for (seq, name) in [(before, "Bob"), (after, "Robert")] {
        assert_eq!(alice.reads(&room, seq).await["sender_user_name"], name);
    }
}

async fn only_members_post(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let body = json!({"content": "x"});
    let eve = server.user("u_eve");
    eve.post(messages(&room), body.clone())
        .await
        .refused(403, "not_a_member");
    // She reads as nobody in particular does.
    let read = eve.get(messages(&room)).await.ok();
    assert_eq!(read, server.anonymous().get(messages(&room)).await.ok());
    let private = alice.creates_a_room().await;
    let refused = eve.get(messages(&private)).await;
    refused.refused(403, "not_a_member");
    let anonymous = server.anonymous();
    anonymous
        .post(messages(&room), body.clone())
        .await
        .refused(401, "missing_bearer");
    let outside = alice
        .seen_from_outside()
        .post(messages(&room), body.clone())
        .await;
    outside.refused(403, "internal_only");
    let missing = alice.post(messages("rm_nosuch"), body).await;
    assert_eq!(missing.refused(404, "not_found"), "Room not found");
}

async fn a_view_key_does_not_post(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let viewer = alice.viewer_with(&room, "view").await;
    let message = format!("{}/{seq}", messages(&room));
    for refused in [
        viewer.post(messages(&room), json!({"content": "x"})).await,
        viewer.patch(&message, json!({"content": "x"})).await,
        viewer.delete(&message).await,
        viewer
            .post(format!("{message}/reactions"), json!({"emoji": "👍"}))
            .await,
        viewer.delete(format!("{message}/reactions/👍")).await,
    ] {
        refused.refused(403, "key_scope_insufficient");
    }
    assert_eq!(viewer.hears(&room, 0).await, ["hello"]);
}

async fn reading_begins_after_since(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let first = alice.says(&room, "0").await;
    for n in 1..5 {
        alice.says(&room, &n.to_string()).await;
    }
    assert_eq!(alice.hears(&room, first).await, ["1", "2", "3", "4"]);
    assert_eq!(alice.hears(&room, first + 4).await, [""; 0]);
    for beyond in [(1 << 53) - 1, 1 << 53, i64::MAX] {
        assert_eq!(alice.hears(&room, beyond).await, [""; 0]);
    }
    let page = alice
        .get(format!("{}?since={}&limit=2", messages(&room), first))
        .await
        .ok();
    assert_eq!(seqs(&page), [first + 1, first + 2], "the oldest after it");
    assert_eq!(page["latest_seq"], first + 4);
    for bad in [
        "since=x",
        "limit=0",
        "limit=x",
        "limit=-5",
        "since=1.5",
        "before=x",
    ] {
        let reply = alice.get(format!("{}?{bad}", messages(&room))).await;
        reply.refused(400, "bad_request");
    }
}

async fn reading_before_gives_the_newest_below(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let first = alice.says(&room, "0").await;
    for n in 1..6 {
        alice.says(&room, &n.to_string()).await;
    }
    let path = format!("{}?before={}&limit=3", messages(&room), first + 5);
    let page = alice.get(path).await.ok();
    assert_eq!(
        seqs(&page),
        [first + 2, first + 3, first + 4],
        "oldest first"
    );
    for beyond in [(1 << 53) - 1, 1 << 53, i64::MAX] {
        let path = format!("{}?before={beyond}&limit=1", messages(&room));
        let page = alice.get(path).await.ok();
        assert_eq!(seqs(&page), [first + 5], "the newest before {beyond}");
    }
}

async fn a_page_is_50_messages_and_200_at_most(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..205 {
        alice.says(&room, &n.to_string()).await;
    }
    let count = async |query: &str| {
        let page = alice.get(format!("{}?{query}", messages(&room))).await.ok();
        seqs(&page).len()
    };
    assert_eq!(count("since=0").await, 50);
    assert_eq!(count("since=0&limit=200").await, 200);
    let over = alice
        .get(format!("{}?since=0&limit=201", messages(&room)))
        .await;
    match over.status {
        200 => assert_eq!(seqs(over.json()).len(), 200),
        _ => drop(over.refused(400, "bad_request")),
    }
}

async fn a_visitor_reads_a_public_room_50_at_a_time(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    for n in 0..55 {
        alice.says(&room, &n.to_string()).await;
    }
    let visitor = server.anonymous().seen_from_outside();
    let page = visitor
        .get(format!("{}?since=0", messages(&room)))
        .await
        .ok();
    assert_eq!(seqs(&page).len(), 50);
    let message = &page["messages"][0];
    assert_eq!(
        message["sender_user_id"], "u_alice",
        "visible to visitors too"
    );
    assert_eq!(message.get("mentions_me"), None, "the caller is not known");
    let more = visitor
        .get(format!("{}?since=0&limit=51", messages(&room)))
        .await;
    match more.status {
        200 => assert_eq!(seqs(more.json()).len(), 50),
        _ => drop(more.refused(400, "bad_request")),
    }
    let stream = visitor.get(format!("/rooms/{room}/stream")).await;
    stream.refused(401, "missing_bearer");
}

async fn a_visitor_cannot_filter_by_sender(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    alice.says(&room, "hello").await;
    let visitor = server.anonymous();
    for filter in ["sender_user_id=u_nobody", "mentions=me"] {
        let reply = visitor.get(format!("{}?{filter}", messages(&room))).await;
        match reply.status {
            // Left out of account, or refused: never applied.
            200 => assert!(!seqs(reply.json()).is_empty()),
            401 => drop(reply.refused(401, "missing_bearer")),
            _ => drop(reply.refused(400, "bad_request")),
        }
    }
}

async fn a_visitor_learns_nothing_of_private_rooms(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user("u_alice").creates_a_room().await;
    let visitor = server.anonymous();
    let private = visitor.get(messages(&room)).await;
    let missing = visitor.get(messages("rm_nosuch")).await;
    assert_eq!(private.text(), missing.text());
    assert_eq!(private.refused(404, "not_found"), "Room not found");
}

async fn posts_from_many_at_once_have_no_gaps_and_no_doubles(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let before = alice.latest_seq(&room).await;
    let tasks = (0..16).map(|task| {
        let caller = if task % 2 == 0 {
            alice.clone()
        } else {
            viewer.clone()
        };
        let room = room.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for n in 0..10 {
                mine.push(caller.says(&room, &format!("{task} {n}")).await);
            }
            assert!(mine.is_sorted(), "each sees its own in order");
            mine
        })
    });
    let mut all = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (before + 1..=before + 160).collect::<Vec<_>>());
    let page = alice
        .get(format!("{}?since={before}&limit=200", messages(&room)))
        .await
        .ok();
    assert_eq!(seqs(&page), all);
}

async fn strange_text_comes_back_as_it_was(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.listens(&room).await;
    for text in [
        "line\nbreak\r\nand \u{2028} others",
        "data: x\n\nid: 99\nevent: resync",
        "<script>alert(1)</script> '; DROP TABLE messages; -- %s {}",
        "\u{feff}\u{200d}👩‍👩‍👧‍👦 \u{202e}rtl",
        "\\u0000 is not a NUL",
        "  spaces around  ",
    ] {
        let seq = alice.says(&room, text).await;
        assert_eq!(alice.reads(&room, seq).await["content"], text);
        let told = events.expect("message").await;
        assert_eq!(
            (&told["seq"], &told["content"]),
            (&json!(seq), &json!(text))
        );
    }
}

fn seqs(page: &Value) -> Vec<i64> {
    let messages = page["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["seq"].as_i64().unwrap())
        .collect()
}

async fn answers_are_counted_wherever_they_stand(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_public_room().await;
    alice.lets_in_user(&room, &bob).await;
    let question = alice.says(&room, "who comes?").await;
    let other = alice.says(&room, "nobody answers this").await;
    let answers = async |caller: &crate::harness::Caller, after: &str| {
        let path = format!("{}?since={}&limit=2{after}", messages(&room), question - 1);
        let page = caller.get(path).await.ok();
        let message = |at: usize| page["messages"][at].clone();
        assert_eq!(message(1)["seq"], other);
        assert_eq!(message(1).get("answers"), None);
        message(0).get("answers").cloned()
    };
    assert_eq!(answers(&alice, "&answers=0").await, None);
    let mut seqs = Vec::new();
    for (caller, content) in [(&bob, "I do"), (&alice, "good"), (&bob, "at noon")] {
        let answer = json!({"content": content, "reply_to_seq": question});
        seqs.push(caller.says_this(&room, answer).await);
        caller.says(&room, "something else").await;
    }
    assert_eq!(answers(&alice, "").await, None, "who does not ask");
    let counted = |unread: i64| json!({"count": 3, "last_seq": seqs[2], "unread": unread});
    let after = |seq: i64| format!("&answers={seq}");
    assert_eq!(answers(&alice, "&answers=0").await, Some(counted(2)));
    assert_eq!(answers(&bob, "&answers=0").await, Some(counted(1)));
    assert_eq!(answers(&alice, &after(seqs[0])).await, Some(counted(1)));
    assert_eq!(
        answers(&alice, &after(9_007_199_254_740_991)).await,
        Some(counted(0))
    );
    let visitor = server.anonymous().seen_from_outside();
    assert_eq!(
        answers(&visitor, &after(seqs[2])).await,
        Some(counted(0)),
        "a visitor sees how many there are"
    );
    // What is deleted keeps its place in the thread, and is new to nobody.
    bob.delete(format!("{}/{}", messages(&room), seqs[2]))
        .await
        .ok();
    assert_eq!(answers(&alice, &after(seqs[0])).await, Some(counted(0)));
    for bad in ["&answers=-1", "&answers=x", "&answers=1.5"] {
        let path = format!("{}?since=0{bad}", messages(&room));
        alice.get(path).await.refused(400, "bad_request");
    }
}
