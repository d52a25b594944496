//! Joining: who becomes what, under which id and name, and who is turned away.

use crate::harness::{Setup, agent_id, both_engines, claims, forged, now, one_engine};
use serde_json::{Value, json};

both_engines![
    an_invite_is_for_its_room_and_its_uses,
    nobody_joins_twice,
    a_join_that_is_refused_uses_nothing_up,
    a_full_room_takes_nobody,
    a_room_holds_20_members_by_default,
    one_use_admits_one_of_many_at_once,
    the_last_place_goes_to_one_of_many_at_once,
    joining_and_leaving_are_told_to_the_room,
];

one_engine![
    a_forged_invite_opens_nothing,
    a_join_with_bad_fields_is_refused,
    a_pull_member_gets_a_key_and_an_agent_an_identity,
    a_starchild_user_enters_a_private_room_with_an_invite,
    a_starchild_user_enters_a_public_room_without_an_invite,
    a_starchild_user_has_the_name_of_the_token,
    a_user_token_joins_from_inside_alone,
    an_external_agents_id_is_prefix_and_hex8,
    an_id_seen_from_outside_gets_the_external_prefix,
    nobody_enters_a_private_room_without_an_invite,
    push_needs_an_endpoint_and_a_bearer,
    the_credential_and_the_adapter_decide_the_kind,
    the_invites_name_goes_before_the_joiners,
];

fn join(room: &str) -> String {
    format!("/rooms/{room}/join")
}

async fn the_credential_and_the_adapter_decide_the_kind(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let push = json!({"agent_endpoint": "https://agent.example:8000", "akm_key": "sk_1"});
    let merged = |base: Value, more: Value| {
        let mut body = base;
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let rows = [
        ("starchild_agent", "clawd", Some("u_bob"), push.clone()),
        (
            "starchild_user",
            "pull",
            Some("u_carol"),
            json!({"adapter_type": "pull"}),
        ),
        (
            "external_agent",
            "clawd",
            None,
            merged(
                push,
                json!({"adapter_type": "clawd", "client_kind": "external_agent",
                       "user_id": "pushy_walrus-00000001"}),
            ),
        ),
        (
            "external_user",
            "pull",
            None,
            json!({"adapter_type": "pull", "client_kind": "human", "user_id": "dora"}),
        ),
        (
            "external_agent",
            "pull",
            None,
            json!({"adapter_type": "pull", "user_id": "curious_otter-3a9f1c20"}),
        ),
        (
            "external_agent",
            "pull",
            None,
            json!({"adapter_type": "pull", "client_kind": "external_agent",
                   "user_id": "sunny_willow-7e2bd401"}),
        ),
    ];
    for (kind, adapter, user, body) in rows {
        let (caller, body) = match user {
            Some(user) => (server.user(user), body),
            None => {
                let code = alice.invites(&room).await;
                (
                    server.anonymous().seen_from_outside(),
                    merged(body, json!({"invite_code": code})),
                )
            }
        };
        let joined = caller.post(join(&room), body.clone()).await.created();
        assert_eq!(joined["member_kind"], kind, "{body}");
        assert_eq!(joined["adapter_type"], adapter, "{body}");
        assert_eq!(
            (&joined["ok"], &joined["room_id"]),
            (&json!(true), &json!(room))
        );
        let id = joined["user_id"].as_str().unwrap();
        let listed = alice.sees_member(&room, id).await.unwrap();
        assert_eq!(
            (&listed["member_kind"], &listed["role"]),
            (&json!(kind), &json!("member"))
        );
        assert_eq!(listed["joined_at"], joined["joined_at"]);
    }
}

async fn a_pull_member_gets_a_key_and_an_agent_an_identity(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let agent = alice
        .lets_in(&room, &agent_id("curious_otter"))
        .await
        .joined;
    let person = alice.lets_in_a_person(&room, "dora").await.joined;
    let user = server
        .user("u_bob")
        .post(join(&room), json!({"adapter_type": "pull"}))
        .await;
    let user = user.created();
    let pushed = json!({"agent_endpoint": "https://agent.example", "akm_key": "sk_1"});
    let pushed = server
        .user("u_carol")
        .post(join(&room), pushed)
        .await
        .created();
    let external = json!({"invite_code": alice.invites(&room).await, "akm_key": "sk_2",
                          "agent_endpoint": "https://a.example", "user_id": "pushy_walrus-00000001"});
    let external = server
        .anonymous()
        .post(join(&room), external)
        .await
        .created();

    const WEEK: i64 = 7 * 24 * 3600;
    for joined in [&agent, &person, &user] {
        let token = joined["member_token"].as_str().unwrap();
        assert!((joined["expires_at"].as_i64().unwrap() - now() - WEEK).abs() < 60);
        let me = server
            .anonymous()
            .with_token(token)
            .get(format!("/rooms/{room}/me"))
            .await;
        assert_eq!(me.ok()["user_id"], joined["user_id"]);
    }
    for joined in [&pushed, &external] {
        assert_eq!(
            (joined.get("member_token"), joined.get("expires_at")),
            (None, None)
        );
    }
    for joined in [&agent, &external] {
        assert!(joined["identity_token"].is_string());
        let expires_at = joined["identity_expires_at"].as_i64().unwrap();
        assert!((expires_at - now() - 90 * 24 * 3600).abs() < 60);
    }
    for joined in [&person, &user, &pushed] {
        let identity = (
            joined.get("identity_token"),
            joined.get("identity_expires_at"),
        );
        assert_eq!(identity, (None, None));
    }
}

async fn an_id_seen_from_outside_gets_the_external_prefix(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let id = agent_id("curious_otter");
    let agent = alice.lets_in(&room, &id).await;
    assert_eq!(agent.id(), format!("ext_{id}"));
    let id = format!("ext_{}", agent_id("sunny_willow"));
    let again = alice.lets_in(&room, &id).await;
    assert_eq!(again.id(), id);
    let person = alice.lets_in_a_person(&room, "codex").await;
    assert_eq!(person.id(), "ext_codex");
    let impostor = alice.lets_in_a_person(&room, "u_alice").await;
    assert_eq!(impostor.id(), "ext_u_alice");
}

async fn an_external_agents_id_is_prefix_and_hex8(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    for bad in [
        "codex",
        "short-3a9f1c20",
        "curious_otter-3A9F1C20",
        "curious_otter-3a9f1c2",
        "curious_otter-3a9f1c200",
        "curious otter-3a9f1c20",
        "Curious_otter-3a9f1c20",
        "a_prefix_of_21_letter-3a9f1c20",
        "curious_otter_3a9f1c20",
        "",
    ] {
        for (adapter, more) in [
            ("pull", json!({})),
            (
                "clawd",
                json!({"agent_endpoint": "https://a.example", "akm_key": "sk_1"}),
            ),
        ] {
            let mut body = json!({"invite_code": code, "adapter_type": adapter, "user_id": bad});
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let message = server.anonymous().post(join(&room), body).await;
            let message = message.refused(400, "invalid_agent_id");
            assert!(message.contains("hex"), "says what to change: {message}");
        }
    }
    let nobody = json!({"invite_code": code, "adapter_type": "pull"});
    let reply = server.anonymous().post(join(&room), nobody).await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    for good in [
        "eight_ch-00000000",
        "my.bot_v2-b14b3d22",
        "twenty_characters_ab-ffffffff",
    ] {
        alice.lets_in(&room, good).await;
    }
}

async fn the_invites_name_goes_before_the_joiners(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let named = json!({"display_name": "Bob from Acme"});
    for (invite, said, user, expected) in [
        (
            named.clone(),
            Some("Myself"),
            "agent_one-00000001",
            Some("Bob from Acme"),
        ),
        (named, None, "agent_two-00000002", Some("Bob from Acme")),
        (
            json!({}),
            Some("Codex (Bob's)"),
            "agent_three-00000003",
            Some("Codex (Bob's)"),
        ),
        (json!({}), None, "agent_four-00000004", None),
    ] {
        let mut body = json!({"invite_code": alice.invites_with(&room, invite).await,
                              "adapter_type": "pull", "user_id": user});
        if let Some(said) = said {
            body["display_name"] = json!(said);
        }
        let joined = server.anonymous().post(join(&room), body).await.created();
        match expected {
            Some(name) => assert_eq!(joined["user_name"], name),
            // Nobody named it: no name, or one that the server makes up.
            None => assert!(!joined["user_name"].as_str().unwrap_or("-").contains("ext_")),
        }
        let id = joined["user_id"].as_str().unwrap();
        let member = alice.sees_member(&room, id).await.unwrap();
        assert_eq!(member["user_name"], joined["user_name"]);
    }
}

async fn a_starchild_user_has_the_name_of_the_token(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let body = json!({"adapter_type": "pull", "display_name": "The Pope"});
    let bob = server
        .user_named("u_bob", "Bob")
        .post(join(&room), body.clone())
        .await
        .created();
    assert_eq!(bob["user_name"], "Bob");
    let code = alice
        .invites_with(&room, json!({"display_name": "Somebody"}))
        .await;
    let body = json!({"adapter_type": "pull", "invite_code": code});
    let carol = server
        .user_named("u_carol", "Carol")
        .post(join(&room), body)
        .await
        .created();
    assert_eq!(
        (&carol["user_id"], &carol["user_name"]),
        (&json!("u_carol"), &json!("Carol"))
    );
}

async fn a_starchild_user_enters_a_public_room_without_an_invite(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user("u_alice").creates_a_public_room().await;
    let bob = server.user("u_bob");
    let body = json!({"adapter_type": "pull", "user_id": "u_somebody_else"});
    let joined = bob.post(join(&room), body).await.created();
    assert_eq!(joined["user_id"], "u_bob", "the token says who it is");
    bob.says(&room, "hello").await;
    let nobody = json!({"adapter_type": "pull", "user_id": "curious_otter-3a9f1c20"});
    let nobody = server.anonymous().post(join(&room), nobody).await;
    assert!(matches!(nobody.status, 400 | 401), "{}", nobody.text());
}

async fn a_starchild_user_enters_a_private_room_with_an_invite(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for (user, more, kind) in [
        ("u_bob", json!({"adapter_type": "pull"}), "starchild_user"),
        (
            "u_carol",
            json!({"agent_endpoint": "https://c.example", "akm_key": "sk_c"}),
            "starchild_agent",
        ),
    ] {
        let mut body = more;
        body["invite_code"] = json!(alice.invites(&room).await);
        let joined = server.user(user).post(join(&room), body).await.created();
        assert_eq!(
            (&joined["user_id"], &joined["member_kind"]),
            (&json!(user), &json!(kind))
        );
    }
}

async fn nobody_enters_a_private_room_without_an_invite(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user("u_alice").creates_a_room().await;
    let bob = server.user("u_bob");
    let body = json!({"adapter_type": "pull"});
    let reply = bob.post(join(&room), body.clone()).await;
    assert!(matches!(reply.status, 400 | 403 | 404), "{}", reply.text());
    reply.error();
    bob.get(format!("/rooms/{room}"))
        .await
        .refused(403, "not_a_member");
    let missing = bob.post(join("rm_nosuch"), body).await;
    missing.refused(404, "not_found");
}

async fn a_user_token_joins_from_inside_alone(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let body = json!({"adapter_type": "pull"});
    let outside = server.user("u_bob").seen_from_outside();
    outside
        .post(join(&room), body)
        .await
        .refused(403, "internal_only");
    let code = alice.invites(&room).await;
    let visitor = server.anonymous().seen_from_outside();
    visitor
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
}

async fn push_needs_an_endpoint_and_a_bearer(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let code = alice.invites(&room).await;
    let bob = server.user("u_bob");
    for incomplete in [
        json!({}),
        json!({"adapter_type": "clawd"}),
        json!({"agent_endpoint": "https://a.example"}),
        json!({"akm_key": "sk_1"}),
        json!({"agent_endpoint": "not an address", "akm_key": "sk_1"}),
        json!({"agent_endpoint": "ftp://a.example", "akm_key": "sk_1"}),
        json!({"agent_endpoint": "https://a.example", "akm_key": ""}),
    ] {
        let reply = bob.post(join(&room), incomplete.clone()).await;
        reply.refused(400, "bad_request");
        let mut external = incomplete;
        external["invite_code"] = json!(code);
        external["user_id"] = json!("curious_otter-3a9f1c20");
        let reply = server.anonymous().post(join(&room), external).await;
        reply.refused(400, "bad_request");
    }
    let human = json!({"invite_code": code, "adapter_type": "clawd", "client_kind": "human",
                       "agent_endpoint": "https://a.example", "akm_key": "sk_1",
                       "user_id": "curious_otter-3a9f1c20"});
    let reply = server.anonymous().post(join(&room), human).await;
    reply.refused(400, "bad_request");
}

async fn an_invite_is_for_its_room_and_its_uses(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let code = alice.invites_with(&room, json!({"max_uses": 2})).await;
    let body = |user: &str| json!({"invite_code": code, "adapter_type": "pull", "user_id": user});
    let visitor = server.anonymous();
    let elsewhere = visitor
        .post(join(&other), body("curious_otter-3a9f1c20"))
        .await;
    elsewhere.refused(400, "invite_invalid");
    for user in ["agent_one-00000001", "agent_two-00000002"] {
        visitor.post(join(&room), body(user)).await.created();
    }
    let third = visitor
        .post(join(&room), body("agent_three-00000003"))
        .await;
    third.refused(400, "invite_invalid");
    // Whoever has no invite to it cannot tell a private room from none.
    let missing = visitor
        .post(join("rm_nosuch"), body("agent_three-00000003"))
        .await;
    let private = visitor
        .post(join(&other), body("agent_three-00000003"))
        .await;
    assert_eq!(missing.text(), private.text());
}

async fn a_forged_invite_opens_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let bare = code.strip_prefix("inv_").unwrap().to_owned();
    let mut bad = forged(&code);
    bad.extend([
        format!("inv_{}", agent.token().unwrap()),
        agent.joined["identity_token"].as_str().unwrap().to_owned(),
        alice.token().unwrap().to_owned(),
        "inv_".into(),
        "nonsense".into(),
        String::new(),
    ]);
    for code in bad {
        let body = json!({"invite_code": code, "adapter_type": "pull",
                          "user_id": "sunny_willow-7e2bd401"});
        let reply = server.anonymous().post(join(&room), body).await;
        reply.refused(400, "invite_invalid");
    }
    assert_eq!(claims(&bare)["kind"], "invite");
    let bearer = server
        .anonymous()
        .with_token(&bare)
        .get(format!("/rooms/{room}"))
        .await;
    bearer.refused(401, "token_invalid");
}

async fn nobody_joins_twice(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let code = alice.invites_with(&room, json!({"max_uses": 5})).await;
    let agent = server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
    for user in [agent.id(), agent.id().trim_start_matches("ext_")] {
        let body = json!({"invite_code": code, "adapter_type": "pull", "user_id": user});
        let again = server.anonymous().post(join(&room), body).await;
        again.refused(409, "already_member");
    }
    let owner = alice
        .post(join(&room), json!({"adapter_type": "pull"}))
        .await;
    owner.refused(409, "already_member");
    let list = alice.get(format!("/rooms/{room}/invites")).await.ok();
    assert_eq!(list["invites"][0]["uses"], 1);
}

async fn a_join_that_is_refused_uses_nothing_up(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let seq = alice.latest_seq(&room).await;
    for body in [
        json!({"invite_code": code, "adapter_type": "pull", "user_id": "codex"}),
        json!({"invite_code": code, "user_id": "curious_otter-3a9f1c20"}),
        json!({"invite_code": code, "adapter_type": "carrier_pigeon"}),
    ] {
        assert_eq!(server.anonymous().post(join(&room), body).await.status, 400);
    }
    assert_eq!(
        alice.latest_seq(&room).await,
        seq,
        "nothing is half written"
    );
    server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
}

async fn a_full_room_takes_nobody(setup: Setup) {
    let server = setup.limit("members_per_room", 2).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let code = alice.invites(&room).await;
    let body = json!({"invite_code": code, "adapter_type": "pull",
                      "user_id": "sunny_willow-7e2bd401"});
    let external = server.anonymous().post(join(&room), body).await;
    external.refused(409, "room_full");
    let user = server
        .user("u_bob")
        .post(join(&room), json!({"adapter_type": "pull"}))
        .await;
    user.refused(409, "room_full");
    agent
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    server
        .anonymous()
        .joins(&room, &code, &agent_id("sunny_willow"))
        .await;
}

async fn a_room_holds_20_members_by_default(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites_with(&room, json!({"max_uses": 20})).await;
    for n in 2..=20 {
        server
            .anonymous()
            .joins(&room, &code, &format!("agent_number-{n:08x}"))
            .await;
    }
    let body = json!({"invite_code": code, "adapter_type": "pull",
                      "user_id": "one_too_many-00000021"});
    let reply = server.anonymous().post(join(&room), body).await;
    reply.refused(409, "room_full");
}

async fn one_use_admits_one_of_many_at_once(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let admitted = join_at_once(&server, &room, &code, "invite_invalid").await;
    assert_eq!(admitted, 1);
}

async fn the_last_place_goes_to_one_of_many_at_once(setup: Setup) {
    let server = setup.limit("members_per_room", 2).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites_with(&room, json!({"max_uses": 20})).await;
    let admitted = join_at_once(&server, &room, &code, "room_full").await;
    assert_eq!(admitted, 1);
    let list = alice.get(format!("/rooms/{room}/members")).await.ok();
    assert_eq!(list["members"].as_array().unwrap().len(), 2);
}

/// Ten agents join at the same time; gives how many got in.
async fn join_at_once(
    server: &crate::harness::TestServer,
    room: &str,
    code: &str,
    refusal: &str,
) -> usize {
    let joins = (0..10).map(|n| {
        let user = format!("agent_number-{n:08x}");
        let body = json!({"invite_code": code, "adapter_type": "pull", "user_id": user});
        tokio::spawn(server.anonymous().post(join(room), body).into_future())
    });
    let mut admitted = 0;
    for reply in joins.collect::<Vec<_>>() {
        let reply = reply.await.unwrap();
        match reply.status {
            201 => admitted += 1,
            _ => assert_eq!(reply.error(), refusal),
        }
    }
    admitted
}

async fn joining_and_leaving_are_told_to_the_room(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.listens(&room).await;
    let code = alice
        .invites_with(&room, json!({"display_name": "Otter"}))
        .await;
    let agent = server
        .anonymous()
        .joins(&room, &code, &agent_id("curious_otter"))
        .await;
    let told = events.expect("message").await;
    assert_eq!(
        (&told["via"], &told["type"]),
        (&json!("system"), &json!("system"))
    );
    assert_eq!(told["event"]["user_name"], "Otter");

    agent
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    let told = events.expect("message").await;
    assert_eq!(told["via"], "system");
    assert_eq!(
        (&told["event"]["kind"], &told["event"]["user_name"]),
        (&json!("member_left"), &json!("Otter"))
    );
}

async fn a_join_with_bad_fields_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let good = json!({"invite_code": code, "adapter_type": "pull",
                      "user_id": "curious_otter-3a9f1c20"});
    for (field, bad) in [
        ("adapter_type", json!("push")),
        ("client_kind", json!("robot")),
        ("display_name", json!("x".repeat(65))),
        ("display_name", json!("two\nlines")),
        ("agent_card_url", json!("javascript:alert(1)")),
        ("invite_code", json!(5)),
        ("user_id", json!(["a"])),
    ] {
        let mut body = good.clone();
        body[field] = bad;
        let reply = server.anonymous().post(join(&room), body).await;
        reply.refused(400, "bad_request");
    }
    server.anonymous().post(join(&room), good).await.created();
}
