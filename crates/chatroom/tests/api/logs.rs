//! No token, key or code ever appears in the log, at any level.

use crate::harness::{Events, Setup, both_engines, forged, one_engine};
use serde_json::json;

both_engines![no_secret_is_ever_logged];
one_engine![the_log_is_on_standard_error_and_structured];

async fn no_secret_is_ever_logged(setup: Setup) {
    const PUSH_BEARER: &str = "sk_live_thisisaverysecretpushbearer";
    let mut server = setup.env("LOG__LEVEL", "trace").start().await;
    let alice = server.user("u_alice");
    let access = server.user_of_type("u_alice", "access");
    let room = alice.creates_a_public_room().await;
    let endpoint = json!({"akm_key": PUSH_BEARER, "agent_endpoint": "https://a.example"});
    alice
        .put(
            format!("/rooms/{room}/members/u_alice/endpoint"),
            endpoint.clone(),
        )
        .await
        .ok();
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    let auto = server
        .anonymous()
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await
        .created();
    let agent = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let key = json!({"for_user_id": "u_alice"});
    let key = alice
        .post(format!("/rooms/{room}/room-keys"), key)
        .await
        .created();
    let exchanged = access.post_nothing("/auth/exchange").await.created();
    let path = format!("/rooms/{room}/members/{}/reissue-token", agent.id());
    let reissued = agent.identity().post_nothing(path).await.ok();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut secrets = vec![
        PUSH_BEARER.to_owned(),
        text(&invite["invite_code"]),
        text(&invite["short_code"]),
        text(&auto["invite_code"]),
        text(&auto["short_code"]),
        text(&key["token"]),
        text(&key["code"]),
        text(&exchanged["identity_token"]),
        text(&reissued["member_token"]),
        text(&agent.joined["identity_token"]),
        agent.token().unwrap().to_owned(),
        alice.token().unwrap().to_owned(),
        access.token().unwrap().to_owned(),
        "wrong_but_secret_all_the_same".to_owned(),
    ];
    for token in secrets.clone() {
        secrets.extend(
            token
                .contains('.')
                .then(|| forged(&token))
                .into_iter()
                .flatten(),
        );
    }

    // Every secret in every place a caller might put it, right or wrong.
    let visitor = server.anonymous();
    for secret in &secrets {
        for path in [
            format!("/rooms/{room}/stream?token={secret}"),
            format!("/rooms/{room}/messages?token={secret}"),
            format!("/rooms/{room}/stream?since={secret}"),
            format!("/view?room={room}&token={secret}"),
            format!("/k/{secret}"),
            format!("/i/{secret}"),
            format!("/install/{secret}"),
            format!("/nowhere/{secret}"),
            format!("/rooms/{secret}"),
        ] {
            drop(visitor.get(path).opens().await);
        }
        let bearer = visitor.with_token(secret);
        drop(bearer.get(format!("/rooms/{room}/stream")).opens().await);
        bearer.get(format!("/rooms/{room}/messages")).await;
        bearer
            .post(format!("/rooms/{room}/messages"), json!({"content": ""}))
            .await;
        bearer.post_nothing("/agent-identity/refresh").await;
        bearer.delete(format!("/share-keys/{secret}")).await;
        bearer.delete(format!("/agent-identity/{secret}")).await;
        let join = json!({"invite_code": secret, "adapter_type": "pull", "akm_key": secret,
                          "user_id": "sunny_willow-7e2bd401"});
        visitor.post(format!("/rooms/{room}/join"), join).await;
        let broken = visitor.post_nothing(format!("/rooms/{room}/join"));
        let broken = broken.body(format!("{{\"invite_code\": \"{secret}\", "));
        broken.header("content-type", "application/json").await;
    }
    let stream = format!("/rooms/{room}/stream?token={}", text(&key["token"]));
    let mut live = Events::open(visitor.get(stream)).await;
    live.next().await;
    server.restart().await;

    let log = server.log();
    assert!(
        log.contains("/rooms/{id}/stream"),
        "the log tells of requests:\n{log}"
    );
    for secret in secrets {
        // The signature is what makes a token one; the rest might be in a log for good reasons.
        let part = secret
            .rsplit_once('.')
            .map_or(secret.as_str(), |(_, signature)| signature);
        let part = if part.is_empty() { &secret } else { part };
        assert!(!log.contains(part), "{secret} is in the log");
    }
}

async fn the_log_is_on_standard_error_and_structured(setup: Setup) {
    let setup = setup.env("LOG__LEVEL", "debug").env("LOG__FORMAT", "json");
    let mut server = setup.start().await;
    server.anonymous().get("/health").await.ok();
    server.restart().await;
    let log = server.log();
    assert!(!log.is_empty());
    for line in log.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["level"].is_string(), "{line}");
        assert!(event["timestamp"].is_string(), "{line}");
    }
}
