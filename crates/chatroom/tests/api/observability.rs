//! What agents look up about themselves and their messages: `/me`, mentions, threads, edits,
//! deletions and reactions.

use crate::harness::{Setup, agent_id, both_engines, eventually, now, one_engine};
use serde_json::{Value, json};

both_engines![
    me_tells_a_member_where_it_stands,
    me_counts_what_came_after_ones_last_message,
    an_agent_is_mentioned_by_the_id_that_the_installer_printed,
    mentions_of_me_are_found,
    an_edit_changes_who_is_mentioned,
    messages_are_filtered_by_sender,
    filters_go_together,
    a_thread_is_the_chain_from_its_root,
    a_message_is_edited_by_its_sender,
    a_deleted_message_keeps_its_seq,
    a_reaction_is_given_once,
    a_reaction_is_taken_back_by_its_giver,
    reactions_are_counted_for_the_caller,
];
one_engine![
    what_is_no_emoji_is_refused,
    the_documents_have_a_version,
    a_document_is_served_once_for_each_version,
    a_mention_is_a_whole_word,
    a_member_without_a_name_is_mentioned_by_id,
    an_edit_obeys_the_rules_of_posting,
    only_the_sender_edits_and_deletes,
    a_thread_of_a_missing_message_is_not_found,
    editing_ends_with_the_window,
];

fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

async fn me_tells_a_member_where_it_stands(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let card = "https://my-bot.fly.dev/.well-known/agent-card.json";
    let body = json!({"invite_code": alice.invites_with(&room, json!({"display_name": "MyBot"})).await,
                      "adapter_type": "pull", "user_id": "curious_otter-3a9f1c20",
                      "agent_card_url": card});
    let joined = server
        .anonymous()
        .post(format!("/rooms/{room}/join"), body)
        .await
        .created();
    let agent = server
        .anonymous()
        .with_token(joined["member_token"].as_str().unwrap());
    let me = agent.get(format!("/rooms/{room}/me")).await.ok();
    let version = me["docs_version"].as_str().unwrap();
    assert_eq!(version.len(), 16);
    assert_eq!(
        me,
        json!({"user_id": "ext_curious_otter-3a9f1c20", "user_name": "MyBot",
               "member_kind": "external_agent", "agent_card_url": card, "role": "member",
               "joined_at": joined["joined_at"], "last_message_seq": null,
               "messages_since_last_reply": me["messages_since_last_reply"].as_i64().unwrap(),
               "mentions_pending": 0, "mention_key": "@MyBot", "owner_user_id": "u_alice",
               "room": {"room_id": room, "name": "open-startups", "visibility": "public",
                        "archived": false, "rules_version": me["room"]["rules_version"],
                        "max_reply_chain_depth": 5, "agent_exchanges_without_person": 0},
               "docs_version": version})
    );
    let path = format!("/rooms/{room}/me");
    server
        .user("u_eve")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
}

async fn me_counts_what_came_after_ones_last_message(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice
        .invites_with(&room, json!({"display_name": "MyBot"}))
        .await;
    let agent = server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
    let me = async || {
        let me = agent.get(format!("/rooms/{room}/me")).await.ok();
        let number = |field: &str| me[field].as_i64();
        (
            number("last_message_seq"),
            number("messages_since_last_reply"),
            number("mentions_pending"),
        )
    };
    let mine = agent.says(&room, "I am here, @MyBot is my name").await;
    assert_eq!(me().await, (Some(mine), Some(0), Some(0)));
    alice.says(&room, "hello all").await;
    alice.says(&room, "hello @MyBot").await;
    alice.says(&room, "hello @mybot, are you there?").await;
    assert_eq!(me().await, (Some(mine), Some(3), Some(2)));
    let mine = agent.says(&room, "yes").await;
    assert_eq!(me().await, (Some(mine), Some(0), Some(0)));
}

async fn a_member_without_a_name_is_mentioned_by_id(setup: Setup) {
    let server = setup.shared().await;
    let owner = server.user_of_type("u_nameless", "container");
    let room = owner.creates_a_room().await;
    let me = owner.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(
        (&me["user_name"], &me["mention_key"]),
        (&json!(null), &json!("@u_nameless"))
    );
}

async fn an_agent_is_mentioned_by_the_id_that_the_installer_printed(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let printed = agent_id("curious_otter");
    let agent = alice.lets_in(&room, &printed).await;
    let seq = alice.says(&room, &format!("hi @{printed}!")).await;
    assert_eq!(agent.reads(&room, seq).await["mentions_me"], true);
    let shortened = &printed[..printed.len() - 1];
    let seq = alice.says(&room, &format!("hi @{shortened}!")).await;
    assert_eq!(agent.reads(&room, seq).await["mentions_me"], false);
}

async fn mentions_of_me_are_found(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let mine = alice.says(&room, "what does @Bob think?").await;
    let other = alice.says(&room, "what does @Alice think?").await;
    let page = bob
        .get(format!("{}?mentions=me", messages(&room)))
        .await
        .ok();
    let found = page["messages"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["seq"], &found[0]["mentions_me"]),
        (&json!(mine), &json!(true))
    );
    assert_eq!(bob.reads(&room, mine).await["mentions_me"], true);
    assert_eq!(bob.reads(&room, other).await["mentions_me"], false);
    let viewer = bob.viewer_with(&room, "view").await;
    assert_eq!(viewer.reads(&room, mine).await["mentions_me"], true);
    let bad = bob.get(format!("{}?mentions=bob", messages(&room))).await;
    bad.refused(400, "bad_request");
}

async fn a_mention_is_a_whole_word(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for (text, mentions) in [
        ("@Alice", true),
        ("(@alice)", true),
        ("hi @ALICE, hi", true),
        ("@u_alice", true),
        ("@Alicent", false),
        ("@Ali", false),
        ("Alice", false),
        ("@ Alice", false),
    ] {
        let seq = alice.says(&room, text).await;
        assert_eq!(
            alice.reads(&room, seq).await["mentions_me"],
            mentions,
            "{text}"
        );
    }
}

async fn an_edit_changes_who_is_mentioned(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}", messages(&room));
    let found = async || {
        let page = bob
            .get(format!("{}?mentions=me", messages(&room)))
            .await
            .ok();
        page["messages"].as_array().unwrap().len()
    };
    alice
        .patch(&path, json!({"content": "hello @Bob"}))
        .await
        .ok();
    assert_eq!(
        (found().await, &bob.reads(&room, seq).await["mentions_me"]),
        (1, &json!(true))
    );
    alice.patch(&path, json!({"content": "hello"})).await.ok();
    assert_eq!(
        (found().await, &bob.reads(&room, seq).await["mentions_me"]),
        (0, &json!(false))
    );
}

async fn messages_are_filtered_by_sender(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    alice.says(&room, "one").await;
    let seq = agent.says(&room, "two").await;
    alice.says(&room, "three").await;
    let path = format!("{}?sender_user_id={}", messages(&room), agent.id());
    let page = alice.get(path).await.ok();
    assert_eq!(seqs(&page), [seq]);
    let nobody = alice
        .get(format!("{}?sender_user_id=u_nobody", messages(&room)))
        .await
        .ok();
    assert_eq!(nobody["messages"], json!([]));
}

async fn filters_go_together(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let old = alice.says(&room, "@Bob one").await;
    bob.says(&room, "@Bob myself").await;
    alice.says(&room, "nobody").await;
    let new = alice.says(&room, "@Bob two").await;
    let read = async |query: &str| {
        let query = format!("mentions=me&sender_user_id=u_alice&{query}");
        seqs(&bob.get(format!("{}?{query}", messages(&room))).await.ok())
    };
    assert_eq!(read("since=0").await, [old, new]);
    assert_eq!(read(&format!("since={old}")).await, [new]);
    assert_eq!(read(&format!("before={new}")).await, [old]);
    assert_eq!(read("since=0&limit=1").await, [old]);
}

async fn a_thread_is_the_chain_from_its_root(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut chain = vec![alice.says(&room, "root").await];
    for _ in 0..3 {
        alice.says(&room, "aside").await;
        let body = json!({"content": "reply", "reply_to_seq": chain.last()});
        chain.push(alice.says_this(&room, body).await);
    }
    let thread = async |seq: i64| {
        let path = format!("{}/{seq}/thread", messages(&room));
        alice.get(path).await.ok()["thread"]
            .as_array()
            .unwrap()
            .clone()
    };
    let whole = thread(chain[3]).await;
    let found: Vec<_> = whole.iter().map(|m| m["seq"].as_i64().unwrap()).collect();
    assert_eq!(found, chain);
    assert_eq!(
        whole[1],
        alice.reads(&room, chain[1]).await,
        "rows as everywhere"
    );
    assert_eq!(thread(chain[1]).await.len(), 2);
    assert_eq!(thread(chain[0]).await.len(), 1);
}

async fn a_thread_of_a_missing_message_is_not_found(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for missing in ["999", "0"] {
        let reply = alice
            .get(format!("{}/{missing}/thread", messages(&room)))
            .await;
        reply.refused(404, "not_found");
    }
    for no_seq in ["x", "-1"] {
        let reply = alice
            .get(format!("{}/{no_seq}/thread", messages(&room)))
            .await;
        reply.refused(400, "bad_request");
    }
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}/thread", messages(&room));
    server
        .user("u_eve")
        .get(&path)
        .await
        .refused(403, "not_a_member");
}

async fn a_message_is_edited_by_its_sender(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "fxied tpyo").await;
    let before = alice.reads(&room, seq).await;
    let path = format!("{}/{seq}", messages(&room));
    let reply = alice
        .patch(&path, json!({"content": "fixed typo"}))
        .await
        .ok();
    assert_eq!(reply["ok"], true);
    let edited_at = reply["message"]["edited_at"].as_i64().unwrap();
    assert!((now() - edited_at).abs() < 60);
    let mut expected = before;
    expected["content"] = json!("fixed typo");
    expected["edited_at"] = json!(edited_at);
    assert_eq!(reply["message"], expected, "the full updated row");
    assert_eq!(alice.reads(&room, seq).await, expected);
    let again = alice
        .patch(&path, json!({"content": "fixed again"}))
        .await
        .ok();
    assert_eq!(again["message"]["content"], "fixed again");
}

async fn an_edit_obeys_the_rules_of_posting(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}", messages(&room));
    let too_long = json!({"content": "x".repeat(4097)});
    alice.patch(&path, too_long).await.refused(400, "too_large");
    for bad in [json!({}), json!({"content": " "}), json!({"content": 5})] {
        alice.patch(&path, bad).await.refused(400, "bad_request");
    }
    let missing = format!("{}/999", messages(&room));
    alice
        .patch(missing, json!({"content": "x"}))
        .await
        .refused(404, "not_found");
    let word = format!("{}/first", messages(&room));
    alice
        .patch(word, json!({"content": "x"}))
        .await
        .refused(400, "bad_request");
    let message = alice.reads(&room, seq).await;
    assert_eq!(
        (&message["content"], &message["edited_at"]),
        (&json!("hello"), &json!(null))
    );
}

async fn a_deleted_message_keeps_its_seq(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "oops").await;
    let path = format!("{}/{seq}", messages(&room));
    let reply = alice.delete(&path).await.ok();
    assert_eq!(reply, json!({"ok": true, "seq": seq, "deleted": true}));
    let message = alice.reads(&room, seq).await;
    assert_eq!(message["deleted"], true);
    let content = message["content"].as_str().unwrap();
    assert!(!content.contains("oops"), "{content}");
    assert_eq!(alice.says(&room, "next").await, seq + 1);
    let edit = alice.patch(&path, json!({"content": "back"})).await;
    assert!(
        matches!(edit.status, 400 | 403 | 404 | 409),
        "{}",
        edit.text()
    );
    assert_eq!(alice.reads(&room, seq).await["deleted"], true);
    let thread = alice.get(format!("{path}/thread")).await.ok();
    assert!(!thread.to_string().contains("oops"));
    let missing = alice.delete(format!("{}/999", messages(&room))).await;
    missing.refused(404, "not_found");
}

async fn only_the_sender_edits_and_deletes(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = agent.says(&room, "mine").await;
    let path = format!("{}/{seq}", messages(&room));
    let system = seqs(&alice.get(messages(&room)).await.ok())[0];
    for target in [path.clone(), format!("{}/{system}", messages(&room))] {
        alice
            .patch(&target, json!({"content": "x"}))
            .await
            .refused(403, "forbidden");
        alice.delete(&target).await.refused(403, "forbidden");
    }
    server
        .user("u_eve")
        .delete(&path)
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .delete(&path)
        .await
        .refused(401, "missing_bearer");
    assert_eq!(alice.reads(&room, seq).await["content"], "mine");
}

async fn editing_ends_with_the_window(setup: Setup) {
    let server = setup.limit("edit_window_seconds", 1).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (one, two) = (
        alice.says(&room, "one").await,
        alice.says(&room, "two").await,
    );
    let path = |seq: i64| format!("{}/{seq}", messages(&room));
    // The later one's window closes last.
    let late = eventually("the window closes", async || {
        let reply = alice.patch(path(two), json!({"content": "edited"})).await;
        (reply.status != 200).then_some(reply)
    });
    late.await.refused(403, "forbidden");
    alice.delete(path(one)).await.refused(403, "forbidden");
    assert_eq!(alice.reads(&room, one).await["content"], "one");
}

async fn a_reaction_is_given_once(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}/reactions", messages(&room));
    let react = async |added: bool| {
        let reply = agent.post(&path, json!({"emoji": "👍"})).await;
        assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
        assert_eq!(*reply.json(), json!({"ok": true, "added": added}));
    };
    react(true).await;
    react(false).await;
    let reactions = agent.reads(&room, seq).await["reactions"].clone();
    assert_eq!(reactions, json!({"👍": {"count": 1, "by_me": true}}));
    let missing = format!("{}/999/reactions", messages(&room));
    agent
        .post(missing, json!({"emoji": "👍"}))
        .await
        .refused(404, "not_found");
}

async fn a_reaction_is_taken_back_by_its_giver(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}/reactions", messages(&room));
    agent.post(&path, json!({"emoji": "👍"})).await;
    let not_mine = alice.delete(format!("{path}/👍")).await.ok();
    assert_eq!(not_mine, json!({"ok": true, "removed": false}));
    let mine = agent.delete(format!("{path}/%F0%9F%91%8D")).await.ok();
    assert_eq!(mine, json!({"ok": true, "removed": true}));
    let again = agent.delete(format!("{path}/👍")).await.ok();
    assert_eq!(again, json!({"ok": true, "removed": false}));
    assert_eq!(agent.reads(&room, seq).await["reactions"], json!({}));
}

async fn reactions_are_counted_for_the_caller(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}/reactions", messages(&room));
    for (caller, emoji) in [(&alice, "👍"), (&agent.caller, "👍"), (&agent.caller, "❤️")] {
        caller.post(&path, json!({"emoji": emoji})).await;
    }
    let seen =
        async |caller: &crate::harness::Caller| caller.reads(&room, seq).await["reactions"].clone();
    let counts = |thumb: bool, heart: bool| json!({"👍": {"count": 2, "by_me": thumb}, "❤️": {"count": 1, "by_me": heart}});
    assert_eq!(seen(&alice).await, counts(true, false));
    assert_eq!(seen(&agent).await, counts(true, true));
    assert_eq!(seen(&server.anonymous()).await, counts(false, false));
}

async fn what_is_no_emoji_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("{}/{seq}/reactions", messages(&room));
    for bad in [
        json!(""),
        json!("a b"),
        json!("x".repeat(1000)),
        json!(5),
        json!(null),
        json!("\n"),
    ] {
        alice
            .post(&path, json!({"emoji": bad}))
            .await
            .refused(400, "bad_request");
    }
    alice
        .post(&path, json!({}))
        .await
        .refused(400, "bad_request");
    for good in ["👩‍👩‍👧‍👦", "🏳️‍🌈", "1️⃣", "🇪🇺"] {
        assert_eq!(
            alice.post(&path, json!({"emoji": good})).await.json()["added"],
            true
        );
        let encoded: String = good.bytes().map(|b| format!("%{b:02X}")).collect();
        let reply = alice.delete(format!("{path}/{encoded}")).await.ok();
        assert_eq!(reply["removed"], true, "{good}");
    }
}

async fn the_documents_have_a_version(setup: Setup) {
    let server = setup.shared().await;
    let version = server
        .anonymous()
        .seen_from_outside()
        .get("/docs-version")
        .await
        .ok();
    let combined = version["docs_version"].as_str().unwrap();
    assert_eq!(combined.len(), 16);
    assert!(version["per_doc"].is_object());
    let template = format!("{}/docs/{{name}}", server.base_url());
    assert_eq!(version["doc_url_template"], template);
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let me = alice.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(me["docs_version"], combined);
}

async fn a_document_is_served_once_for_each_version(setup: Setup) {
    let server = setup.shared().await;
    let visitor = server.anonymous().seen_from_outside();
    let version = visitor.get("/docs-version").await.ok();
    for (name, hash) in version["per_doc"].as_object().unwrap() {
        let hash = hash.as_str().unwrap();
        let path = format!("/docs/{name}");
        let reply = visitor.get(&path).await;
        assert_eq!(reply.status, 200);
        let etag = format!("\"{hash}\"");
        assert_eq!(reply.header("etag"), Some(etag.as_str()));
        assert_eq!(reply.header("x-doc-version"), Some(hash));
        assert_eq!(reply.header("cache-control"), Some("public, max-age=300"));
        assert!(!reply.text().is_empty());
        let again = visitor.get(&path).header("if-none-match", &etag).await;
        assert_eq!((again.status, again.text()), (304, ""));
    }
    visitor.get("/docs/nosuch").await.refused(404, "not_found");
    for elsewhere in [
        "..%2FCargo",
        "internals%2Fserver",
        "adr%2F0001-seq-is-the-cursor",
    ] {
        let reply = visitor.get(format!("/docs/{elsewhere}")).await;
        reply.refused(404, "not_found");
    }
}

fn seqs(page: &Value) -> Vec<i64> {
    let messages = page["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["seq"].as_i64().unwrap())
        .collect()
}
