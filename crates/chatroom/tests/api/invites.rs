//! Invites: the owner's, and those that visitors make for their own agents.

use crate::harness::{Setup, agent_id, both_engines, claims, eventually, now, one_engine};
use serde_json::json;

both_engines![
    a_short_code_leads_to_the_invite,
    the_list_shows_active_invites_without_their_codes,
    an_expired_invite_is_no_longer_listed,
    a_revoked_invite_opens_nothing,
    a_visitor_makes_an_invite_for_a_public_room,
];

one_engine![
    an_invite_is_a_jwt_that_clients_can_look_into,
    an_invite_is_for_one_and_lasts_an_hour,
    an_invite_tells_where_it_leads_and_nobody_s_id,
    an_invites_uses_and_time_are_bounded,
    only_the_owner_handles_invites,
    there_is_no_auto_invite_to_a_room_that_takes_nobody,
];

async fn an_invite_is_for_one_and_lasts_an_hour(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    assert_eq!(
        (&invite["max_uses"], &invite["uses"]),
        (&json!(1), &json!(0))
    );
    let expires_at = invite["expires_at"].as_i64().unwrap();
    assert!((expires_at - now() - 3600).abs() < 60);
    assert!(
        invite["invite_code"]
            .as_str()
            .unwrap()
            .starts_with("inv_eyJ")
    );
    let short = invite["short_code"].as_str().unwrap();
    assert_eq!(short.strip_prefix("i_").unwrap().len(), 8);
    let install_url = format!("{}/install/{short}", server.base_url());
    assert_eq!(invite["install_url"], install_url);
}

async fn an_invites_uses_and_time_are_bounded(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/invites");
    let most = json!({"max_uses": 20, "ttl_seconds": 86400, "display_name": "ä".repeat(64)});
    let invite = alice.post(&path, most).await.created();
    assert_eq!(invite["max_uses"], 20);
    assert!((invite["expires_at"].as_i64().unwrap() - now() - 86400).abs() < 60);
    for bad in [
        json!({"max_uses": 21}),
        json!({"max_uses": 0}),
        json!({"max_uses": -1}),
        json!({"max_uses": 1.5}),
        json!({"ttl_seconds": 86401}),
        json!({"ttl_seconds": 0}),
        json!({"ttl_seconds": "3600"}),
        json!({"display_name": "x".repeat(65)}),
        json!({"display_name": ""}),
        json!({"display_name": 7}),
    ] {
        alice.post(&path, bad).await.refused(400, "bad_request");
    }
}

async fn an_invite_is_a_jwt_that_clients_can_look_into(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"display_name": "Bob from Acme"});
    let code = alice.invites_with(&room, body).await;
    let said = claims(&code);
    assert_eq!(
        (&said["kind"], &said["room_id"], &said["created_by"]),
        (&json!("invite"), &json!(room), &json!("u_alice"))
    );
    let list = alice.get(format!("/rooms/{room}/invites")).await.ok();
    assert_eq!(list["invites"][0]["code_jti"], said["jti"]);
}

async fn a_short_code_leads_to_the_invite(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    let path = format!("/i/{}", invite["short_code"].as_str().unwrap());
    let visitor = server.anonymous().seen_from_outside();
    let reply = visitor.get(&path).await;
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    assert_eq!(
        reply.text().trim_end(),
        invite["invite_code"].as_str().unwrap()
    );
    visitor.get("/i/i_xxxxxxxx").await.refused(404, "not_found");
    visitor.get("/i/nonsense").await.refused(404, "not_found");

    let jti = claims(invite["invite_code"].as_str().unwrap())["jti"].clone();
    let jti = jti.as_str().unwrap();
    alice
        .delete(format!("/rooms/{room}/invites/{jti}"))
        .await
        .ok();
    visitor.get(&path).await.refused(404, "not_found");
}

async fn an_invite_tells_where_it_leads_and_nobody_s_id(setup: Setup) {
    let server = setup.limit("invite_ttl_seconds", 2_592_000).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let month = json!({"ttl_seconds": 2_592_000});
    let invite = alice.post(format!("/rooms/{room}/invites"), month).await;
    let invite = invite.created();
    let longer = json!({"ttl_seconds": 2_592_001});
    alice
        .post(format!("/rooms/{room}/invites"), longer)
        .await
        .refused(400, "bad_request");
    let path = format!("/i/{}/summary", invite["short_code"].as_str().unwrap());
    let visitor = server.anonymous().seen_from_outside();
    let summary = visitor.get(&path).await;
    assert!(!summary.text().contains("u_alice"), "{}", summary.text());
    let name = alice.get(format!("/rooms/{room}")).await.ok()["name"].clone();
    let summary = summary.ok();
    assert_eq!(
        (&summary["room_name"], &summary["member_count"]),
        (&name, &json!(1))
    );
    assert_eq!(summary["member_names"], json!([summary["invited_by"]]));
    visitor
        .get("/i/i_xxxxxxxx/summary")
        .await
        .refused(404, "not_found");

    server
        .anonymous()
        .joins(
            &room,
            invite["invite_code"].as_str().unwrap(),
            "curious_otter-3a9f1c20",
        )
        .await;
    visitor.get(&path).await.refused(410, "gone");
}

async fn the_list_shows_active_invites_without_their_codes(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let used_up = alice.invites(&room).await;
    server
        .anonymous()
        .joins(&room, &used_up, &agent_id("curious_otter"))
        .await;
    let half_used = alice.invites_with(&room, json!({"max_uses": 2})).await;
    server
        .anonymous()
        .joins(&room, &half_used, &agent_id("sunny_willow"))
        .await;

    let reply = alice.get(format!("/rooms/{room}/invites")).await;
    assert!(!reply.text().contains("inv_"), "{}", reply.text());
    let expires_at = claims(&half_used)["exp"].clone();
    assert_eq!(
        reply.ok(),
        json!({"invites": [{"code_jti": claims(&half_used)["jti"], "uses": 1, "max_uses": 2,
                            "expires_at": expires_at, "created_by_user_id": "u_alice"}]})
    );
}

async fn an_expired_invite_is_no_longer_listed(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({"ttl_seconds": 1}))
        .await;
    let invite = invite.created();
    eventually("the invite expires", async || {
        let list = alice.get(format!("/rooms/{room}/invites")).await.ok();
        (list == json!({"invites": []})).then_some(())
    })
    .await;
    let body = json!({"invite_code": invite["invite_code"], "adapter_type": "pull",
                      "user_id": "curious_otter-3a9f1c20"});
    let join = server
        .anonymous()
        .post(format!("/rooms/{room}/join"), body)
        .await;
    join.refused(400, "invite_invalid");
    let short = invite["short_code"].as_str().unwrap();
    server
        .anonymous()
        .get(format!("/i/{short}"))
        .await
        .refused(410, "gone");
}

async fn a_revoked_invite_opens_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let said = claims(&code);
    let path = format!("/rooms/{room}/invites/{}", said["jti"].as_str().unwrap());
    let other = alice.creates_a_room().await;
    let elsewhere = path.replace(&room, &other);
    alice.delete(elsewhere).await.refused(404, "not_found");
    assert_eq!(alice.delete(&path).await.ok(), json!({"ok": true}));
    alice.delete(&path).await.refused(404, "not_found");

    let list = alice.get(format!("/rooms/{room}/invites")).await.ok();
    assert_eq!(list, json!({"invites": []}));
    let body = json!({"invite_code": code, "adapter_type": "pull",
                      "user_id": "curious_otter-3a9f1c20"});
    let join = server
        .anonymous()
        .post(format!("/rooms/{room}/join"), body)
        .await;
    join.refused(400, "invite_invalid");
}

async fn only_the_owner_handles_invites(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let code = alice.invites(&room).await;
    let path = format!("/rooms/{room}/invites");
    let one = format!("{path}/{}", claims(&code)["jti"].as_str().unwrap());
    let key = alice.viewer(&room).await;
    for (caller, status, error) in [
        (&bob, 403, "forbidden"),
        (&key, 403, "key_scope_insufficient"),
        (&server.user("u_eve"), 403, "not_a_member"),
        (&server.anonymous(), 401, "missing_bearer"),
    ] {
        caller.post(&path, json!({})).await.refused(status, error);
        caller.get(&path).await.refused(status, error);
        caller.delete(&one).await.refused(status, error);
    }
    let list = alice.get(&path).await.ok();
    assert_eq!(list["invites"].as_array().unwrap().len(), 1);
}

async fn a_visitor_makes_an_invite_for_a_public_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let visitor = server.anonymous().seen_from_outside();
    let invite = visitor
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await
        .created();
    assert_eq!(
        (&invite["max_uses"], &invite["ttl_seconds"]),
        (&json!(1), &json!(3600))
    );
    assert!((invite["expires_at"].as_i64().unwrap() - now() - 3600).abs() < 60);
    let code = invite["invite_code"].as_str().unwrap();
    assert_eq!(claims(code)["created_by"], "_visitor");

    let agent = visitor.joins(&room, code, &agent_id("curious_otter")).await;
    assert_eq!(agent.joined["member_kind"], "external_agent");
    agent.says(&room, "hello").await;
    let audit = alice.audits(&room).await;
    let line = audit
        .iter()
        .find(|(actor, _, _)| actor == "_visitor")
        .unwrap();
    assert_eq!(line.1, "auto_invite_created");

    let again = json!({"invite_code": code, "adapter_type": "pull",
                       "user_id": "sunny_willow-7e2bd401"});
    let again = visitor.post(format!("/rooms/{room}/join"), again).await;
    again.refused(400, "invite_invalid");
}

async fn there_is_no_auto_invite_to_a_room_that_takes_nobody(setup: Setup) {
    let server = setup.limit("members_per_room", 1).start().await;
    let alice = server.user("u_alice");
    let visitor = server.anonymous();
    let private = alice.creates_a_room().await;
    let public = alice.creates_a_public_room().await;
    let ask = |room: &str| visitor.post_nothing(format!("/rooms/{room}/auto-invite"));
    let not_found = ask(&private).await.refused(404, "not_found");
    assert_eq!(not_found, "Room not found");
    ask("rm_nosuch").await.refused(404, "not_found");
    ask(&public).await.refused(409, "room_full");
    let archived = json!({"archived": true});
    alice.patch(format!("/rooms/{public}"), archived).await.ok();
    ask(&public).await.refused(409, "archived");
}
