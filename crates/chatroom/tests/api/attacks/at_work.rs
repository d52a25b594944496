//! Speaking, stopping, deciding and spending in another's place.

use crate::{
    at_work::{room_with_agent, signed_in, types},
    harness::{Caller, Setup, claims, one_engine},
};
use serde_json::{Value, json};

one_engine![
    nobody_types_for_another,
    what_is_said_while_working_is_bounded,
    a_member_that_floods_is_held_up,
    only_those_concerned_stop_an_agent_or_have_it_asked_again,
    a_consent_is_its_owners_alone_to_give,
    an_agent_cannot_bury_the_room_in_requests,
    what_an_answer_cost_is_checked_at_the_door,
    neither_party_loosens_the_others_policy,
];

async fn nobody_types_for_another(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/typing");
    let shared = alice.viewer(&room).await;
    let viewer = alice.viewer_with(&room, "view").await;
    for key in [shared, viewer] {
        let said = key.post(&path, json!({"state": "writing"})).await;
        said.refused(403, "key_scope_insufficient");
    }
    // Whose word it is, the credential says and not the body.
    let mut reading = alice.listens(&room).await;
    let forged = json!({"state": "writing", "user_id": "u_alice", "role_class": "human",
                        "since": 1, "by_user_id": "u_alice", "reason": "stopped"});
    types(&otter, &room, forged).await;
    let seen = reading.ephemeral("agent_typing").await;
    assert_eq!(
        (&seen["user_id"], &seen["role_class"]),
        (&json!(otter.id()), &json!("agent"))
    );
    assert!(seen["since"].as_i64().unwrap() > 1 && seen.get("reason").is_none());
    let archive = json!({"archived": true});
    alice.patch(format!("/rooms/{room}"), archive).await.ok();
    otter
        .post(&path, json!({"state": "writing"}))
        .await
        .refused(409, "archived");
}

async fn what_is_said_while_working_is_bounded(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let seq = alice.says(&room, "Hello").await;
    let path = format!("/rooms/{room}/typing");
    for (body, code) in [
        (
            json!({"state": "writing", "text": "x".repeat(4097)}),
            "too_large",
        ),
        (
            json!({"state": "writing", "activity": "x".repeat(201)}),
            "bad_request",
        ),
        (
            json!({"state": "writing", "activity": "two\nlines"}),
            "bad_request",
        ),
        (
            json!({"state": "writing", "activity": "\u{202e}evil"}),
            "bad_request",
        ),
        (json!({"state": "dancing"}), "bad_request"),
        (json!({}), "bad_request"),
        (
            json!({"state": "writing", "reply_to_seq": seq + 1}),
            "bad_request",
        ),
        (
            json!({"state": "writing", "reply_to_seq": -1}),
            "bad_request",
        ),
        (
            json!({"state": "writing", "text": "a\u{0}b"}),
            "bad_request",
        ),
    ] {
        otter.post(&path, body).await.refused(400, code);
    }
    let huge = json!({"state": "writing", "text": "x".repeat(70_000)});
    otter
        .post(&path, huge)
        .await
        .refused(413, "payload_too_large");
    // Silence in the making is not shown.
    let mut reading = alice.listens_with(&room, "?deltas=1").await;
    for text in ["[SIL", "[SILENT] not mine"] {
        types(&otter, &room, json!({"state": "writing", "text": text})).await;
    }
    types(&otter, &room, json!({"state": "writing", "text": "Shown"})).await;
    assert_eq!(reading.ephemeral("agent_delta").await["text"], "Shown");
}

async fn a_member_that_floods_is_held_up(setup: Setup) {
    let server = setup.limit("TYPING_PER_10_SECONDS", 20).start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/typing");
    let mut held_up = None;
    for n in 0..25 {
        let reply = otter
            .post(&path, json!({"state": "writing", "text": format!("{n}")}))
            .await;
        if reply.status != 200 {
            held_up = held_up.or(Some((n, reply)));
        }
    }
    let (after, reply) = held_up.expect("a flood is held up");
    assert_eq!(after, 20);
    assert!(reply.header("retry-after").is_some());
    let words = reply.refused(429, "rate_limited");
    assert!(words.contains("Try again in"), "{words}");
    // It costs nobody else anything.
    types(&alice, &room, json!({"state": "thinking"})).await;
}

async fn only_those_concerned_stop_an_agent_or_have_it_asked_again(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let (bob, carol) = (server.user("u_bob"), server.user("u_carol"));
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    let seq = bob.says(&room, "A question").await;
    let other = carol.says(&room, "Another one").await;
    types(
        &otter,
        &room,
        json!({"state": "thinking", "reply_to_seq": seq}),
    )
    .await;
    let stop = format!("/rooms/{room}/members/{}/stop", otter.id());
    for body in [json!({}), json!({"reply_to_seq": seq})] {
        carol.post(&stop, body).await.refused(403, "forbidden");
    }
    // Naming one's own message does not stop the answer to another's.
    let own = carol.post(&stop, json!({"reply_to_seq": other})).await.ok();
    assert_eq!(own["stopped"], false);
    let going_on = types(
        &otter,
        &room,
        json!({"state": "thinking", "reply_to_seq": seq}),
    )
    .await;
    assert_eq!(going_on["stop"], false);
    let shared = bob.viewer(&room).await;
    shared
        .post(&stop, json!({}))
        .await
        .refused(403, "key_scope_insufficient");
    let retry = format!("/rooms/{room}/messages/{seq}/retry");
    carol
        .post(&retry, json!({}))
        .await
        .refused(403, "forbidden");
    let nobody = json!({"user_id": "u_nobody"});
    bob.post(&retry, nobody).await.refused(404, "not_found");
    bob.post(&stop, json!({"reply_to_seq": 999_999}))
        .await
        .refused(400, "bad_request");
    assert_eq!(
        bob.post(&stop, json!({"reply_to_seq": seq})).await.ok()["stopped"],
        true
    );
}

async fn a_consent_is_its_owners_alone_to_give(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/consents");
    let ask = json!({"tool": "bash", "summary": "rm -rf /", "detail": "all of it"});
    let asked = otter.post(&path, ask.clone()).await.created();
    let one = format!("{path}/{}", asked["consent_id"].as_str().unwrap());
    let yes = json!({"decision": "allow"});
    // The agent itself, its owner's container, others who signed in, and a key that was shared.
    otter
        .post(&one, yes.clone())
        .await
        .refused(403, "forbidden");
    alice
        .post(&one, yes.clone())
        .await
        .refused(403, "forbidden");
    let other = signed_in(&server, "u_bob").await;
    other
        .post(&one, yes.clone())
        .await
        .refused(403, "forbidden");
    let shared = alice.viewer(&room).await;
    shared
        .post(&one, yes.clone())
        .await
        .refused(403, "key_scope_insufficient");
    assert_eq!(
        shared.get(&one).await.ok()["detail"],
        Value::Null,
        "a shared key is nobody"
    );
    otter
        .identity()
        .post(&one, yes.clone())
        .await
        .refused(401, "token_invalid");
    // Only the agent takes it back.
    bob.delete(&one).await.refused(403, "forbidden");
    alice.delete(&one).await.refused(403, "forbidden");
    // Not through another room either, where one is the owner.
    let elsewhere = other
        .post("/rooms", json!({"name": "mine"}))
        .await
        .created();
    let elsewhere = elsewhere["room_id"].as_str().unwrap();
    let through = one.replace(&room, elsewhere);
    other
        .post(through, yes.clone())
        .await
        .refused(404, "not_found");
    // An agent with its user's own token is that user's, not the room owner's.
    let asked = bob.post(&path, ask).await.created();
    assert_eq!(asked["owner_user_id"], "u_bob");
    let bobs = format!("{path}/{}", asked["consent_id"].as_str().unwrap());
    let person = signed_in(&server, "u_alice").await;
    person
        .post(&bobs, yes.clone())
        .await
        .refused(403, "forbidden");
    assert_eq!(person.get(&bobs).await.ok()["detail"], Value::Null);
    assert_eq!(
        other.post(&bobs, yes.clone()).await.ok()["state"],
        "allowed"
    );
    assert_eq!(person.post(&one, yes).await.ok()["state"], "allowed");
}

async fn an_agent_cannot_bury_the_room_in_requests(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/consents");
    let ask = |detail: usize| json!({"tool": "t", "summary": "s", "detail": "x".repeat(detail)});
    for (body, code) in [
        (ask(16 * 1024 + 1), "too_large"),
        (json!({"tool": "", "summary": "s"}), "bad_request"),
        (
            json!({"tool": "x".repeat(65), "summary": "s"}),
            "bad_request",
        ),
        (
            json!({"tool": "t", "summary": "x".repeat(501)}),
            "bad_request",
        ),
        (
            json!({"tool": "t", "summary": "s", "ttl_seconds": 604_801}),
            "bad_request",
        ),
        (
            json!({"tool": "t", "summary": "s", "ttl_seconds": 0}),
            "bad_request",
        ),
    ] {
        otter.post(&path, body).await.refused(400, code);
    }
    for _ in 0..10 {
        otter.post(&path, ask(16 * 1024)).await.created();
    }
    otter
        .post(&path, ask(1))
        .await
        .refused(409, "too_many_consents");
    // People do not ask, and nobody asks in an agent's name.
    let person = signed_in(&server, "u_alice").await;
    person.post(&path, ask(1)).await.refused(403, "forbidden");
    let shared = alice.viewer(&room).await;
    shared
        .post(&path, ask(1))
        .await
        .refused(403, "key_scope_insufficient");
}

async fn what_an_answer_cost_is_checked_at_the_door(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/messages");
    let raw = async |usage: &str| {
        let body = format!("{{\"content\":\"x\",\"usage\":{usage}}}");
        let request = otter.request(reqwest::Method::POST, &path);
        request
            .header("content-type", "application/json")
            .body(body)
            .await
    };
    for bad in [
        r#"{"cost_usd":NaN}"#,
        r#"{"cost_usd":Infinity}"#,
        r#"{"cost_usd":1e999}"#,
        r#"{"cost_usd":1e308}"#,
        r#"{"cost_usd":-0.01}"#,
        r#"{"seconds":1e9}"#,
        r#"{"input_tokens":-1}"#,
        r#"{"input_tokens":1.5}"#,
        r#"{"output_tokens":9223372036854775807}"#,
        r#"{"output_tokens":1e30}"#,
        r#"{"tools":"all"}"#,
        r#"{"model":5}"#,
    ] {
        raw(bad).await.refused(400, "bad_request");
    }
    let many: Vec<String> = (0..51).map(|n| format!("tool{n}")).collect();
    raw(&json!({"tools": many}).to_string())
        .await
        .refused(400, "bad_request");
    raw(&json!({"model": "x".repeat(101)}).to_string())
        .await
        .refused(400, "bad_request");
    // A person's words cost nothing, and a key that is given away tells nothing of it.
    let shared = alice.viewer(&room).await;
    let told = json!({"content": "x", "usage": {"cost_usd": 1.0}});
    shared.post(&path, told).await.refused(400, "bad_request");
    assert_eq!(
        alice.get(format!("/rooms/{room}/usage")).await.ok()["usage"],
        json!([])
    );
    alice
        .get(format!("/rooms/{room}/usage?days=0"))
        .await
        .refused(400, "bad_request");
    alice
        .get(format!("/rooms/{room}/usage?days=99999"))
        .await
        .refused(400, "bad_request");
}

async fn neither_party_loosens_the_others_policy(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/members/{}/wake", otter.id());
    let yours = async |caller: &Caller| caller.get(&path).await.ok().get("yours").cloned();
    assert_eq!(yours(&alice).await, Some(json!("room")));
    assert_eq!(yours(&otter).await, Some(json!("own")));
    assert_eq!(yours(&bob).await, None);
    assert_eq!(yours(&alice.viewer(&room).await).await, None);
    let tight = json!({"wake": "mentions", "budget": {"turns": 1, "cost_usd": 0.5}});
    alice.put(&path, tight).await.ok();
    let loose = json!({"wake": "everything", "budget": {"turns": 1000, "tokens": 7}});
    let view = otter.put(&path, loose.clone()).await.ok();
    assert_eq!(
        view["effective"],
        json!({"wake": "mentions", "budget": {"turns": 1, "tokens": 7, "cost_usd": 0.5}})
    );
    // The owner of the room does not loosen what the agent keeps to.
    let view = alice.put(&path, json!({})).await.ok();
    assert_eq!(
        (
            &view["own"]["budget"]["turns"],
            &view["effective"]["budget"]["turns"]
        ),
        (&json!(1000), &json!(1000))
    );
    let view = alice.put(&path, json!({"wake": "nothing"})).await.ok();
    assert_eq!(view["own"]["wake"], "everything");
    bob.put(&path, json!({})).await.refused(403, "forbidden");
    let shared = alice.viewer(&room).await;
    shared
        .put(&path, json!({}))
        .await
        .refused(403, "key_scope_insufficient");
    for bad in [
        json!({"budget": {"turns": -1}}),
        json!({"budget": {"cost_usd": -1}}),
        json!({"budget": {"cost_usd": 1e308}}),
        json!({"budget": {"tokens": 1_000_000_000_001_i64}}),
        json!({"wake": "sometimes"}),
    ] {
        alice.put(&path, bad).await.refused(400, "bad_request");
    }
    // Leaving and coming back changes nothing.
    let identity = otter.identity();
    assert!(claims(identity.token().unwrap())["jti"].is_string());
    otter
        .delete(format!("/rooms/{room}/members/{}", otter.id()))
        .await
        .ok();
    let back = json!({"invite_code": alice.invites(&room).await, "adapter_type": "pull",
                      "user_id": otter.id()});
    identity
        .post(format!("/rooms/{room}/join"), back)
        .await
        .created();
    let view = alice.get(&path).await.ok();
    assert_eq!(view["effective"]["wake"], "nothing");
}
