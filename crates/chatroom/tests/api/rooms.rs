//! Rooms: creating, listing, reading, changing, and what the owner can look up.

use crate::harness::{Setup, agent_id, both_engines, now, one_engine};
use serde_json::{Value, json};

both_engines![
    a_room_can_be_public,
    the_list_holds_the_callers_rooms_and_no_others,
    the_public_list_holds_public_rooms_that_are_not_archived,
    the_public_list_comes_in_pages,
    the_owner_changes_what_is_named_and_nothing_else,
    a_room_made_private_closes_to_visitors,
    an_archived_room_is_read_only,
    the_depth_of_replies_is_the_owners_to_set,
    the_audit_log_is_the_owners_and_tells_what_was_done,
    the_audit_log_comes_in_pages,
    data_is_a_versioned_text_like_the_rules,
    the_state_is_one_look_at_a_room,
    the_state_shows_as_many_messages_as_were_asked_for,
];

one_engine![
    a_name_is_1_to_200_characters,
    a_room_is_private_unless_it_says_otherwise,
    a_summary_does_not_tell_a_private_room_from_a_missing_one,
    a_summary_shows_kinds_and_names_and_no_ids,
    an_unknown_visibility_is_refused,
    data_is_written_by_the_owner_alone,
    members_and_key_holders_read_a_rooms_metadata,
    only_the_owner_changes_a_room,
];

async fn a_room_is_private_unless_it_says_otherwise(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.post("/rooms", json!({"name": "strategy-sync"})).await;
    let room = room.created();

    let id = room["room_id"].as_str().unwrap();
    let tail = id.strip_prefix("rm_").unwrap();
    assert_eq!(tail.len(), 12, "{id}");
    assert!(
        tail.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    );
    let created_at = room["created_at"].as_i64().unwrap();
    assert!((now() - created_at).abs() < 60);
    assert_eq!(
        room,
        json!({"room_id": id, "owner_user_id": "u_alice", "name": "strategy-sync",
               "visibility": "private", "created_at": created_at})
    );
}

async fn a_room_can_be_public(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let body = json!({"name": "open-startups", "visibility": "public"});
    let room = alice.post("/rooms", body).await.created();
    assert_eq!(room["visibility"], "public");
}

async fn a_name_is_1_to_200_characters(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let create = |name: String| alice.post("/rooms", json!({"name": name}));
    let longest = "ä".repeat(200);
    assert_eq!(create(longest.clone()).await.created()["name"], longest);
    create("x".into()).await.created();
    for bad in [String::new(), "   ".into(), "x".repeat(201)] {
        create(bad).await.refused(400, "bad_request");
    }
    let nothing = alice.post("/rooms", json!({})).await;
    nothing.refused(400, "bad_request");
}

async fn an_unknown_visibility_is_refused(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    for bad in [json!("secret"), json!(1), json!("Public"), json!("")] {
        let body = json!({"name": "x", "visibility": bad});
        alice.post("/rooms", body).await.refused(400, "bad_request");
    }
    assert_eq!(alice.get("/rooms").await.ok(), json!({"rooms": []}));
}

async fn the_list_holds_the_callers_rooms_and_no_others(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let hers = alice.creates_a_room().await;
    let his = bob.creates_a_room().await;
    alice.creates_a_public_room().await;
    let endpoint = "https://agent-u_bob.internal:8000";
    let body = json!({"invite_code": alice.invites(&hers).await, "agent_endpoint": endpoint,
                      "akm_key": "sk_bob_1"});
    bob.post(format!("/rooms/{hers}/join"), body)
        .await
        .created();

    let list = bob.get("/rooms").await.ok();
    let rooms = list["rooms"].as_array().unwrap();
    assert_eq!(rooms.len(), 2);
    let find = |id: &str| {
        rooms
            .iter()
            .find(|room| room["room_id"] == id)
            .unwrap()
            .clone()
    };
    let joined_at = |room: &Value| {
        let at = room["joined_at"].as_i64().unwrap();
        assert!((now() - at).abs() < 60);
        at
    };
    let joined = find(&hers);
    assert_eq!(
        joined,
        json!({"room_id": hers, "name": "strategy-sync", "owner_user_id": "u_alice",
               "role": "member", "joined_at": joined_at(&joined), "archived": false,
               "agent_endpoint": endpoint, "has_akm_key": true, "key_stale": false})
    );
    let own = find(&his);
    assert_eq!(
        own,
        json!({"room_id": his, "name": "strategy-sync", "owner_user_id": "u_bob",
               "role": "owner", "joined_at": joined_at(&own), "archived": false,
               "agent_endpoint": null, "has_akm_key": false, "key_stale": false})
    );
}

async fn the_public_list_holds_public_rooms_that_are_not_archived(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let private = alice.creates_a_room().await;
    let archived = alice.creates_a_public_room().await;
    let body = json!({"archived": true});
    alice.patch(format!("/rooms/{archived}"), body).await.ok();
    let public = alice.creates_a_public_room().await;

    let list = server.anonymous().get("/rooms/public").await.ok();
    assert_eq!((&list["limit"], &list["offset"]), (&json!(50), &json!(0)));
    let rooms = list["rooms"].as_array().unwrap();
    let find = |id: &str| rooms.iter().find(|room| room["room_id"] == id);
    let found = find(&public).unwrap();
    assert_eq!(
        *found,
        json!({"room_id": public, "name": "open-startups", "owner_user_id": "u_alice",
               "created_at": found["created_at"].as_i64().unwrap()})
    );
    assert_eq!((find(&private), find(&archived)), (None, None));
}

async fn the_public_list_comes_in_pages(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(alice.creates_a_public_room().await);
    }
    let mut seen = Vec::new();
    // The reserved rooms are in the list too.
    for offset in [0, 2, 4, 6] {
        let path = format!("/rooms/public?limit=2&offset={offset}");
        let page = server.anonymous().get(path).await.ok();
        assert_eq!(
            (&page["limit"], &page["offset"]),
            (&json!(2), &json!(offset))
        );
        let rooms = page["rooms"].as_array().unwrap();
        assert!(rooms.len() <= 2);
        seen.extend(
            rooms
                .iter()
                .map(|r| r["room_id"].as_str().unwrap().to_owned()),
        );
    }
    seen.retain(|room| made.contains(room));
    seen.sort_unstable();
    made.sort_unstable();
    assert_eq!(seen, made);
}

async fn a_summary_shows_kinds_and_names_and_no_ids(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let body = json!({"agent_endpoint": "https://bob.internal", "akm_key": "sk_b"});
    let bob = server.user("u_bob");
    bob.post(format!("/rooms/{room}/join"), body)
        .await
        .created();
    let code = alice
        .invites_with(&room, json!({"display_name": "Codex (Alice's bot)"}))
        .await;
    server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
    let human = json!({"invite_code": alice.invites(&room).await, "adapter_type": "pull",
                       "client_kind": "human", "user_id": "dora", "display_name": "Dora"});
    server
        .anonymous()
        .post(format!("/rooms/{room}/join"), human)
        .await
        .created();

    let reply = server
        .anonymous()
        .get(format!("/rooms/{room}/public-summary"))
        .await;
    let text = reply.text().to_owned();
    let summary = reply.ok();
    let kinds = &summary["kinds"];
    let count = |kind: &str| kinds[kind].as_i64().unwrap();
    assert_eq!(count("starchild_agent") + count("starchild_user"), 2);
    assert!(count("starchild_agent") >= 1, "bob pushes");
    assert_eq!((count("external_agent"), count("external_user")), (1, 1));
    let mut names = summary["member_names"].as_array().unwrap().clone();
    names.sort_by_key(ToString::to_string);
    assert_eq!(
        json!(names),
        json!(["Alice", "Bob", "Codex (Alice's bot)", "Dora"])
    );
    assert_eq!(summary["member_count"], 4);
    assert_eq!(
        (
            &summary["room_id"],
            &summary["name"],
            &summary["visibility"],
            &summary["archived"]
        ),
        (
            &json!(room),
            &json!("open-startups"),
            &json!("public"),
            &json!(false)
        )
    );
    assert!(summary["created_at"].is_i64());
    for id in ["u_alice", "u_bob", "ext_", "curious_otter", "user_id"] {
        assert!(!text.contains(id), "{text}");
    }
}

async fn a_summary_does_not_tell_a_private_room_from_a_missing_one(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user("u_alice").creates_a_room().await;
    let visitor = server.anonymous();
    let private = visitor.get(format!("/rooms/{room}/public-summary")).await;
    let missing = visitor.get("/rooms/rm_nosuch/public-summary").await;
    assert_eq!(private.text(), missing.text());
    assert_eq!(private.refused(404, "not_found"), "Room not found");
}

async fn members_and_key_holders_read_a_rooms_metadata(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let viewer = alice.viewer_with(&room, "view").await;
    let path = format!("/rooms/{room}");
    for caller in [&alice, &agent.caller, &viewer, &viewer.seen_from_outside()] {
        let seen = caller.get(&path).await.ok();
        assert_eq!(
            seen,
            json!({"room_id": room, "name": "strategy-sync", "owner_user_id": "u_alice",
                   "created_at": seen["created_at"].as_i64().unwrap(), "archived": false,
                   "visibility": "private", "agent_exchanges_without_person": 0})
        );
    }
    server
        .user("u_bob")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
    let missing = alice.get("/rooms/rm_nosuch").await;
    assert_eq!(missing.refused(404, "not_found"), "Room not found");
}

async fn the_owner_changes_what_is_named_and_nothing_else(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}");
    let before = alice.get(&path).await.ok();
    for (field, value) in [
        ("name", json!("renamed")),
        ("visibility", json!("public")),
        ("archived", json!(true)),
        ("archived", json!(false)),
    ] {
        let before = alice.get(&path).await.ok();
        let done = alice.patch(&path, json!({field: value})).await.ok();
        assert_eq!(done, json!({"ok": true}));
        let mut expected = before;
        expected[field] = value;
        assert_eq!(alice.get(&path).await.ok(), expected);
    }
    for bad in [
        json!({"name": ""}),
        json!({"name": "x".repeat(201)}),
        json!({"archived": "yes"}),
        json!({"visibility": "hidden"}),
        json!({"name": "fine", "visibility": "hidden"}),
        json!({}),
    ] {
        alice.patch(&path, bad).await.refused(400, "bad_request");
    }
    let after = alice.get(&path).await.ok();
    assert_eq!(
        after["name"], "renamed",
        "nothing of a refused change is kept"
    );
    assert_eq!(after["created_at"], before["created_at"]);
}

async fn only_the_owner_changes_a_room(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let change = |caller: &crate::harness::Caller| {
        caller.patch(format!("/rooms/{room}"), json!({"name": "taken"}))
    };
    change(&bob).await.refused(403, "forbidden");
    change(&server.user("u_eve"))
        .await
        .refused(403, "not_a_member");
    let key = alice.viewer(&room).await;
    change(&key).await.refused(403, "key_scope_insufficient");
    change(&server.anonymous())
        .await
        .refused(401, "missing_bearer");
    assert_eq!(
        alice.get(format!("/rooms/{room}")).await.ok()["name"],
        "strategy-sync"
    );
}

async fn a_room_made_private_closes_to_visitors(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let visitor = server.anonymous();
    visitor.get(format!("/rooms/{room}/messages")).await.ok();
    visitor
        .get(format!("/rooms/{room}/public-summary"))
        .await
        .ok();

    let private = json!({"visibility": "private"});
    alice.patch(format!("/rooms/{room}"), private).await.ok();
    for path in ["messages", "public-summary"] {
        let reply = visitor.get(format!("/rooms/{room}/{path}")).await;
        assert_eq!(reply.refused(404, "not_found"), "Room not found");
    }
    let auto = visitor
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await;
    auto.refused(404, "not_found");
}

async fn an_archived_room_is_read_only(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "before").await;
    let code = alice.invites(&room).await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let archive =
        |archived: bool| alice.patch(format!("/rooms/{room}"), json!({"archived": archived}));
    archive(true).await.ok();

    let messages = format!("/rooms/{room}/messages");
    let message = format!("{messages}/{seq}");
    for refused in [
        alice.post(&messages, json!({"content": "x"})).await,
        agent.post(&messages, json!({"content": "x"})).await,
        alice.patch(&message, json!({"content": "x"})).await,
        alice.delete(&message).await,
        alice
            .post(format!("{message}/reactions"), json!({"emoji": "👍"}))
            .await,
        alice
            .patch(format!("/rooms/{room}/rules"), json!({"content": "x"}))
            .await,
        alice
            .patch(format!("/rooms/{room}/data"), json!({"content": "x"}))
            .await,
        alice
            .post(format!("/rooms/{room}/invites"), json!({}))
            .await,
        server
            .anonymous()
            .post(
                format!("/rooms/{room}/join"),
                json!({"invite_code": code, "adapter_type": "pull",
                       "user_id": "sunny_willow-7e2bd401"}),
            )
            .await,
    ] {
        refused.refused(409, "archived");
    }
    assert_eq!(alice.reads(&room, seq).await["content"], "before");
    agent.get(format!("/rooms/{room}/members")).await.ok();

    archive(false).await.ok();
    alice.says(&room, "after").await;
    server
        .anonymous()
        .joins(&room, &code, &agent_id("sunny_willow"))
        .await;
}

async fn the_depth_of_replies_is_the_owners_to_set(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let me = format!("/rooms/{room}/me");
    assert_eq!(
        alice.get(&me).await.ok()["room"]["max_reply_chain_depth"],
        5
    );
    for bad in [0, 51, -1] {
        let body = json!({"max_reply_chain_depth": bad});
        alice
            .patch(format!("/rooms/{room}"), body)
            .await
            .refused(400, "bad_request");
    }
    for good in [1, 50] {
        let body = json!({"max_reply_chain_depth": good});
        alice.patch(format!("/rooms/{room}"), body).await.ok();
        assert_eq!(
            alice.get(&me).await.ok()["room"]["max_reply_chain_depth"],
            good
        );
    }
}

async fn the_audit_log_is_the_owners_and_tells_what_was_done(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    alice
        .patch(format!("/rooms/{room}"), json!({"visibility": "public"}))
        .await
        .ok();
    alice
        .patch(format!("/rooms/{room}"), json!({"visibility": "public"}))
        .await
        .ok();
    alice
        .patch(format!("/rooms/{room}"), json!({"visibility": "private"}))
        .await
        .ok();

    let log = alice.audits(&room).await;
    assert_eq!(log[0].0, "u_alice");
    assert_eq!(log[0].1, "room_created");
    let flips = log
        .iter()
        .filter(|(actor, action, _)| actor == "u_alice" && action == "visibility_changed");
    assert_eq!(flips.count(), 2, "{log:?}");
    assert!(
        log.iter().any(|(_, action, _)| action == "invite_created"),
        "{log:?}"
    );

    let path = format!("/rooms/{room}/audit");
    bob.get(&path).await.refused(403, "forbidden");
    server
        .user("u_eve")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    let key = alice.viewer(&room).await;
    key.get(&path).await.refused(403, "key_scope_insufficient");
}

async fn the_audit_log_comes_in_pages(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for name in ["one", "two", "three"] {
        alice
            .patch(format!("/rooms/{room}"), json!({"name": name}))
            .await
            .ok();
    }
    let path = format!("/rooms/{room}/audit");
    let all = alice.get(&path).await.ok()["entries"]
        .as_array()
        .unwrap()
        .clone();
    assert!(all.len() >= 4);
    let mut paged = Vec::new();
    let mut since = 0;
    loop {
        let page = alice
            .get(format!("{path}?since={since}&limit=2"))
            .await
            .ok();
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 2);
        let Some(last) = entries.last() else { break };
        since = last["n"].as_i64().unwrap();
        paged.extend(entries.iter().cloned());
    }
    assert_eq!(paged, all);
    let mut hashes: Vec<_> = all.iter().map(|e| e["hash"].as_str().unwrap()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), all.len(), "each line has a seal of its own");
    for (n, entry) in all.iter().enumerate() {
        assert_eq!(entry["n"], n as i64 + 1, "no line is missing");
        assert!((now() - entry["at"].as_i64().unwrap()).abs() < 60);
    }
}

async fn data_is_a_versioned_text_like_the_rules(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/data");
    let empty = alice.get(&path).await.ok();
    assert_eq!(empty["content"], "");
    let version = empty["version"].as_i64().unwrap();

    let text = "ä".repeat(8192);
    let written = alice.patch(&path, json!({"content": text})).await.ok();
    assert_eq!(written["content"], text);
    assert_eq!(written["version"], version + 1);
    assert_eq!(written["updated_by"], "u_alice");
    assert!((now() - written["updated_at"].as_i64().unwrap()).abs() < 60);
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    assert_eq!(agent.get(&path).await.ok(), written);

    let over = format!("{text}x");
    let reply = alice.patch(&path, json!({"content": over})).await;
    reply.refused(400, "too_large");
    assert_eq!(alice.get(&path).await.ok(), written);
}

async fn data_is_written_by_the_owner_alone(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/data");
    let write = json!({"content": "mine"});
    bob.patch(&path, write.clone())
        .await
        .refused(403, "forbidden");
    agent
        .patch(&path, write.clone())
        .await
        .refused(403, "key_scope_insufficient");
    let eve = server.user("u_eve");
    eve.patch(&path, write).await.refused(403, "not_a_member");
    eve.get(&path).await.refused(403, "not_a_member");
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
}

async fn the_state_is_one_look_at_a_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let person = alice.lets_in_a_person(&room, "dora").await;
    let push = json!({"invite_code": alice.invites(&room).await, "akm_key": "sk_1",
                      "agent_endpoint": "https://bob.internal"});
    server
        .user("u_bob")
        .post(format!("/rooms/{room}/join"), push)
        .await
        .created();
    agent.says(&room, "from the agent").await;
    person.says(&room, "from the person").await;
    let _online = person.listens(&room).await;

    let state = agent.get(format!("/rooms/{room}/state")).await.ok();
    assert_eq!(
        state["room"],
        alice.get(format!("/rooms/{room}")).await.ok()
    );
    let members = state["members"].as_array().unwrap();
    assert_eq!(members.len(), 4);
    let class = |id: &str| {
        let member = members.iter().find(|m| m["user_id"] == id).unwrap();
        member["role_class"].as_str().unwrap().to_owned()
    };
    assert_eq!(class(agent.id()), "agent");
    assert_eq!(class(person.id()), "human");
    assert_eq!(class("u_bob"), "agent");
    let agents = if class("u_alice") == "agent" { 3 } else { 2 };
    assert_eq!(
        state["member_counts"],
        json!({"total": 4, "humans": 4 - agents, "online_humans": 1, "agents": agents,
               "agents_with_endpoint": 1})
    );
    let said: Vec<_> = state["recent_messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["type"] == "chat")
        .map(|message| (&message["content"], &message["sender_role_class"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("from the agent"), &json!("agent")),
            (&json!("from the person"), &json!("human")),
        ]
    );
    let notices = state["recent_messages"].as_array().unwrap().iter();
    let mut notices = notices.filter(|message| message["type"] == "system");
    assert!(notices.all(|message| message.get("sender_role_class").is_none()));
}

async fn the_state_shows_as_many_messages_as_were_asked_for(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..25 {
        alice.says(&room, &format!("{n}")).await;
    }
    let recent = async |query: &str| {
        let state = alice.get(format!("/rooms/{room}/state{query}")).await.ok();
        let messages = state["recent_messages"].as_array().unwrap().clone();
        assert!(
            messages.is_sorted_by_key(|m| m["seq"].as_i64()),
            "oldest first"
        );
        assert!(messages.is_empty() || messages.last().unwrap()["content"] == "24");
        messages.len()
    };
    assert_eq!(recent("").await, 20);
    assert_eq!(recent("?recent=3").await, 3);
    assert_eq!(recent("?recent_limit=3").await, 3);
    assert!(recent("?recent=100").await >= 25);
    assert!(recent("?recent=1000").await <= 100);
    for bad in ["x", "-1"] {
        let reply = alice.get(format!("/rooms/{room}/state?recent={bad}")).await;
        reply.refused(400, "bad_request");
    }
}
