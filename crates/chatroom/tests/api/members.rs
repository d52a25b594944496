//! Members: the list, endpoints, names, agent cards, leaving and being removed.

use crate::harness::{Setup, agent_id, both_engines, eventually, one_engine};
use serde_json::json;

both_engines![
    a_long_list_of_members_comes_in_pages,
    whoever_has_a_stream_open_is_online,
    an_endpoint_changes_where_it_is_named,
    a_member_leaves,
    the_owner_removes_a_member,
    a_member_who_left_has_no_way_back_in_with_old_keys,
    a_member_who_left_may_join_again,
    removal_ends_open_streams,
];

one_engine![
    a_new_name_is_1_to_64_characters,
    an_agent_card_is_the_members_own,
    an_endpoint_is_the_members_own_to_change,
    members_and_key_holders_see_the_list,
    nobody_else_removes_a_member,
    the_list_shows_flags_and_no_secrets,
    the_owner_can_only_clear_an_agent_card,
    the_owner_cannot_be_removed,
    the_owner_renames_external_members_alone,
];

const KEY: &str = "sk_live_abcdefgh12345678";

async fn the_list_shows_flags_and_no_secrets(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"invite_code": alice.invites(&room).await, "akm_key": KEY,
                      "agent_endpoint": "https://agent-u_bob.internal:8000",
                      "container_id": "568359abc"});
    server
        .user("u_bob")
        .post(format!("/rooms/{room}/join"), body)
        .await
        .created();

    let reply = alice.get(format!("/rooms/{room}/members")).await;
    for secret in [
        KEY,
        "agent-u_bob",
        "568359abc",
        "akm_key\":\"",
        "\"agent_endpoint\"",
    ] {
        assert!(!reply.text().contains(secret), "{}", reply.text());
    }
    let list = reply.ok();
    let (owner, member) = (&list["members"][0], &list["members"][1]);
    let expected = json!({
        "user_id": "u_bob", "user_name": "Bob", "member_kind": "starchild_agent",
        "role": "member", "joined_at": member["joined_at"].as_i64().unwrap(),
        "has_agent_endpoint": true, "has_akm_key": true, "key_stale": false, "online": false,
        "agent_card_url": null, "avatar_seed": member["avatar_seed"].as_str().unwrap()
    });
    assert_eq!(*member, expected);
    assert_ne!(member["avatar_seed"], owner["avatar_seed"]);
    assert_eq!(
        (&owner["user_id"], &owner["role"]),
        (&json!("u_alice"), &json!("owner"))
    );
    let flags = (&owner["has_agent_endpoint"], &owner["has_akm_key"]);
    assert_eq!(flags, (&json!(false), &json!(false)));
}

async fn members_and_key_holders_see_the_list(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let path = format!("/rooms/{room}/members");
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    for caller in [
        &alice,
        &agent.caller,
        &alice.viewer_with(&room, "view").await,
    ] {
        caller.get(&path).await.ok();
    }
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

async fn whoever_has_a_stream_open_is_online(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let online = async || {
        let member = alice.sees_member(&room, "u_alice").await.unwrap();
        member["online"].as_bool().unwrap()
    };
    assert!(!online().await);
    let first = viewer.listens(&room).await;
    let second = viewer.listens(&room).await;
    assert!(online().await);
    drop(first);
    assert!(online().await);
    drop(second);
    eventually("alice is offline", async || (!online().await).then_some(())).await;
}

async fn an_endpoint_changes_where_it_is_named(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/members/u_alice/endpoint");
    let mine = async || {
        let list = alice.get("/rooms").await.ok();
        let room = &list["rooms"][0];
        (room["agent_endpoint"].clone(), room["has_akm_key"].clone())
    };
    let first = json!({"agent_endpoint": "https://one.example", "akm_key": KEY});
    let reply = alice.put(&path, first).await.ok();
    assert_eq!(reply, json!({"ok": true}), "there was no key before");
    assert_eq!(mine().await, (json!("https://one.example"), json!(true)));

    let moved = json!({"agent_endpoint": "https://two.example"});
    assert_eq!(alice.put(&path, moved).await.ok()["ok"], true);
    assert_eq!(mine().await, (json!("https://two.example"), json!(false)));
    let key = json!({"akm_key": KEY});
    assert_eq!(alice.put(&path, key).await.ok(), json!({"ok": true}));
    assert_eq!(mine().await, (json!("https://two.example"), json!(true)));

    let reply = alice
        .put(&path, json!({"akm_key": "sk_live_other"}))
        .await
        .ok();
    let prior = reply["prior_akm_prefix"].as_str().unwrap();
    assert!(KEY.starts_with(prior) && prior.len() < KEY.len() / 2 && !prior.is_empty());
    for bad in [
        json!({"agent_endpoint": "nowhere"}),
        json!({"agent_endpoint": 1}),
        json!({"akm_key": ""}),
    ] {
        alice.put(&path, bad).await.refused(400, "bad_request");
    }
    assert_eq!(mine().await, (json!("https://two.example"), json!(true)));
}

async fn an_endpoint_is_the_members_own_to_change(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (bob, carol) = (server.user("u_bob"), server.user("u_carol"));
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    let path = format!("/rooms/{room}/members/u_bob/endpoint");
    let body = json!({"akm_key": KEY});
    bob.put(&path, body.clone()).await.ok();
    alice
        .put(&path, body.clone())
        .await
        .refused(403, "forbidden");
    carol
        .put(&path, body.clone())
        .await
        .refused(403, "forbidden");
    server
        .user("u_eve")
        .put(&path, body.clone())
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .put(&path, body.clone())
        .await
        .refused(401, "missing_bearer");
    let nobody = format!("/rooms/{room}/members/u_nobody/endpoint");
    alice.put(nobody, body).await.refused(404, "not_found");
}

async fn the_owner_renames_external_members_alone(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = |user: &str| format!("/rooms/{room}/members/{user}/name");
    let body = json!({"name": "Robert (renamed)"});
    let renamed = alice.patch(path(agent.id()), body.clone()).await.ok();
    assert_eq!(
        renamed,
        json!({"ok": true, "user_name": "Robert (renamed)"})
    );
    let member = alice.sees_member(&room, agent.id()).await.unwrap();
    assert_eq!(member["user_name"], "Robert (renamed)");
    let audit = alice.audits(&room).await;
    let line = audit
        .iter()
        .find(|(_, action, _)| action == "member_renamed")
        .unwrap();
    assert_eq!((line.0.as_str(), &line.2), ("u_alice", &json!(agent.id())));

    alice
        .patch(path("u_bob"), body.clone())
        .await
        .refused(403, "forbidden");
    alice
        .patch(path("u_alice"), body.clone())
        .await
        .refused(403, "forbidden");
    bob.patch(path(agent.id()), body.clone())
        .await
        .refused(403, "forbidden");
    let own = agent.patch(path(agent.id()), body.clone()).await;
    assert_eq!(own.status, 403, "{}", own.text());
    alice
        .patch(path("ext_nobody"), body)
        .await
        .refused(404, "not_found");
}

async fn a_new_name_is_1_to_64_characters(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = format!("/rooms/{room}/members/{}/name", agent.id());
    let longest = "ä".repeat(64);
    alice.patch(&path, json!({"name": longest})).await.ok();
    for bad in [
        json!("x".repeat(65)),
        json!(""),
        json!("a\nb"),
        json!(null),
        json!(5),
    ] {
        alice
            .patch(&path, json!({"name": bad}))
            .await
            .refused(400, "bad_request");
    }
    let member = alice.sees_member(&room, agent.id()).await.unwrap();
    assert_eq!(member["user_name"], longest);
}

async fn a_member_leaves(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    for member in [&bob, &agent.caller] {
        let path = format!("/rooms/{room}/members/{}", member.id());
        assert_eq!(member.delete(&path).await.ok()["ok"], true);
        assert_eq!(alice.sees_member(&room, member.id()).await, None);
    }
    bob.get(format!("/rooms/{room}"))
        .await
        .refused(403, "not_a_member");
    let left = bob.delete(format!("/rooms/{room}/members/u_bob")).await;
    left.refused(404, "not_found");
    assert_eq!(bob.get("/rooms").await.ok(), json!({"rooms": []}));
    let gone = alice.delete(format!("/rooms/{room}/members/u_bob")).await;
    gone.refused(404, "not_found");
}

async fn the_owner_removes_a_member(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let mut events = alice.listens(&room).await;
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    let told = events.expect("message").await;
    assert_eq!(
        (&told["via"], &told["type"]),
        (&json!("system"), &json!("system"))
    );
    let audit = alice.audits(&room).await;
    let line = audit
        .iter()
        .find(|(_, action, _)| action == "member_removed")
        .unwrap();
    assert_eq!((line.0.as_str(), &line.2), ("u_alice", &json!(agent.id())));
}

async fn nobody_else_removes_a_member(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (bob, carol) = (server.user("u_bob"), server.user("u_carol"));
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    let path = format!("/rooms/{room}/members/u_bob");
    carol.delete(&path).await.refused(403, "forbidden");
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
    let key = alice.viewer(&room).await;
    key.delete(&path)
        .await
        .refused(403, "key_scope_insufficient");
    assert!(alice.sees_member(&room, "u_bob").await.is_some());
}

async fn the_owner_cannot_be_removed(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/members/u_alice");
    bob.delete(&path).await.refused(403, "forbidden");
    alice.delete(&path).await.refused(403, "forbidden");
    assert!(alice.sees_member(&room, "u_alice").await.is_some());
}

async fn a_member_who_left_has_no_way_back_in_with_old_keys(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let viewer = bob.viewer(&room).await;
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    alice
        .delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    for old in [&agent.caller, &viewer] {
        for path in ["", "/messages", "/members", "/rules", "/me", "/stream"] {
            let reply = old.get(format!("/rooms/{room}{path}")).await;
            reply.refused(401, "key_invalid");
        }
        let post = old
            .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
            .await;
        post.refused(401, "key_invalid");
    }
    let path = format!("/rooms/{room}/members/{}/reissue-token", agent.id());
    agent
        .identity()
        .post_nothing(path)
        .await
        .refused(404, "not_found");
}

async fn a_member_who_left_may_join_again(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = format!("/rooms/{room}/members/{}", agent.id());
    alice.delete(&path).await.ok();
    let back = alice.lets_in(&room, agent.id()).await;
    assert_eq!(back.id(), agent.id());
    back.says(&room, "hello again").await;
    let old = agent.get(format!("/rooms/{room}")).await;
    old.refused(401, "key_invalid");
}

async fn removal_ends_open_streams(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let streams = [
        agent.listens(&room).await,
        bob.listens(&room).await,
        bob.viewer(&room).await.listens(&room).await,
    ];
    let mut stays = alice.listens(&room).await;
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    alice
        .delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    alice.says(&room, "not for them").await;
    for mut stream in streams {
        while let Some(frame) = stream.next_or_end().await {
            assert!(!frame.data.unwrap_or_default().contains("not for them"));
        }
    }
    while stays.expect("message").await["content"] != "not for them" {}
}

async fn an_agent_card_is_the_members_own(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = format!("/rooms/{room}/members/{}/agent-card", agent.id());
    let url = "https://my-bot.fly.dev/.well-known/agent-card.json";
    let reply = agent
        .patch(&path, json!({"agent_card_url": url}))
        .await
        .ok();
    assert_eq!(reply, json!({"ok": true, "agent_card_url": url}));
    let me = agent.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(me["agent_card_url"], url);
    let member = alice.sees_member(&room, agent.id()).await.unwrap();
    assert_eq!(member["agent_card_url"], url);
    for bad in [json!("javascript:alert(1)"), json!("x"), json!(5)] {
        let reply = agent.patch(&path, json!({"agent_card_url": bad})).await;
        reply.refused(400, "bad_request");
    }
    let cleared = agent
        .patch(&path, json!({"agent_card_url": null}))
        .await
        .ok();
    assert_eq!(cleared, json!({"ok": true, "agent_card_url": null}));
}

async fn the_owner_can_only_clear_an_agent_card(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/members/{}/agent-card", agent.id());
    let url = json!({"agent_card_url": "https://my-bot.example/card.json"});
    agent.patch(&path, url.clone()).await.ok();
    alice
        .patch(&path, url.clone())
        .await
        .refused(403, "forbidden");
    bob.patch(&path, json!({"agent_card_url": null}))
        .await
        .refused(403, "forbidden");
    alice
        .patch(&path, json!({"agent_card_url": null}))
        .await
        .ok();
    let member = alice.sees_member(&room, agent.id()).await.unwrap();
    assert_eq!(member["agent_card_url"], json!(null));
    let nobody = format!("/rooms/{room}/members/ext_nobody/agent-card");
    alice
        .patch(nobody, json!({"agent_card_url": null}))
        .await
        .refused(404, "not_found");
}

/// Only the reserved rooms can have more members than one page holds.
async fn a_long_list_of_members_comes_in_pages(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for user in ["u_bob", "u_carol", "u_dave", "u_erin"] {
        alice.lets_in_user(&room, &server.user(user)).await;
    }
    let path = format!("/rooms/{room}/members");
    let whole = alice.get(&path).await.ok();
    assert_eq!(whole.get("next_offset"), None);
    let mut seen = Vec::new();
    let mut offset = Some(0);
    let mut pages = 0;
    while let Some(from) = offset {
        let page = alice
            .get(format!("{path}?limit=2&offset={from}"))
            .await
            .ok();
        seen.extend(page["members"].as_array().unwrap().iter().cloned());
        offset = page.get("next_offset").map(|next| next.as_i64().unwrap());
        pages += 1;
    }
    assert_eq!((pages, &seen), (3, whole["members"].as_array().unwrap()));
    let past = alice.get(format!("{path}?offset=100")).await.ok();
    assert_eq!(past, json!({"members": []}));
    for query in [
        "limit=0",
        "limit=1001",
        "offset=-1",
        "limit=x",
        "offset=99999999999",
    ] {
        let refused = alice.get(format!("{path}?{query}")).await;
        refused.refused(400, "bad_request");
    }
}
