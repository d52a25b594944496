//! Bad input: every wrong request gets its row of the error table and changes nothing.

use crate::harness::{Caller, Setup, SharedServer, agent_id, both_engines, one_engine};
use reqwest::Method;
use serde_json::{Value, json};

both_engines![
    nul_characters_are_refused_everywhere,
    a_refused_request_writes_nothing,
];
one_engine![
    an_unknown_route_is_not_found,
    a_wrong_method_is_named,
    a_body_that_is_no_json_is_refused,
    an_array_is_no_object,
    a_body_of_another_type_is_refused,
    a_missing_body_is_refused,
    an_oversized_body_is_refused,
    a_wrong_type_is_refused_everywhere,
    a_path_that_does_not_parse_is_refused,
    a_query_that_does_not_parse_is_refused,
    an_authorization_that_is_no_bearer_is_refused,
    broken_http_is_survived,
    messages_say_what_to_change,
    a_room_id_that_is_none_is_no_room,
];

async fn an_unknown_route_is_not_found(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    for path in [
        "/nowhere",
        "/rooms/rm_x/nowhere",
        "/",
        "//",
        "/rooms/",
        "/%ff",
        "/rooms/a/b/c/d/e",
    ] {
        for caller in [&alice, &server.anonymous()] {
            let reply = caller.get(path).await;
            // The front page may be a page.
            if path == "/" && matches!(reply.status, 200 | 302 | 303 | 307) {
                continue;
            }
            assert!(
                matches!(reply.status, 400 | 404),
                "{path}: {}",
                reply.text()
            );
            reply.error();
        }
        if path != "/" {
            let posted = alice.post(path, json!({})).await;
            assert!(
                matches!(posted.status, 400 | 404 | 405),
                "{path}: {}",
                posted.text()
            );
            posted.error();
        }
    }
}

async fn a_wrong_method_is_named(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for (method, path) in [
        (Method::PUT, "/rooms".to_owned()),
        (Method::DELETE, format!("/rooms/{room}")),
        (Method::POST, format!("/rooms/{room}/rules")),
        (Method::GET, format!("/rooms/{room}/join")),
        (Method::PUT, format!("/rooms/{room}/messages")),
        (Method::POST, "/health".to_owned()),
        (Method::GET, "/agent-identity".to_owned()),
        (Method::from_bytes(b"BREW").unwrap(), "/rooms".to_owned()),
    ] {
        let reply = alice.request(method.clone(), &path).await;
        assert!(reply.header("allow").is_some(), "{method} {path}");
        reply.refused(405, "method_not_allowed");
    }
}

/// Every endpoint that takes a body, with a good one, in a room where the caller may do all.
fn with_bodies(room: &str, seq: i64, agent: &str) -> Vec<(Method, String, Value)> {
    let room = format!("/rooms/{room}");
    let content = json!({"content": "text"});
    vec![
        (
            Method::POST,
            "/rooms".into(),
            json!({"name": "x", "visibility": "private"}),
        ),
        (Method::PATCH, room.clone(), json!({"name": "y"})),
        (Method::PATCH, format!("{room}/rules"), content.clone()),
        (Method::PATCH, format!("{room}/data"), content.clone()),
        (
            Method::POST,
            format!("{room}/invites"),
            json!({"display_name": "x"}),
        ),
        (
            Method::POST,
            format!("{room}/join"),
            json!({"user_id": "x", "adapter_type": "pull"}),
        ),
        (
            Method::PUT,
            format!("{room}/members/{agent}/endpoint"),
            json!({"akm_key": "sk_1"}),
        ),
        (
            Method::PATCH,
            format!("{room}/members/{agent}/name"),
            json!({"name": "Bot"}),
        ),
        (
            Method::PATCH,
            format!("{room}/members/{agent}/agent-card"),
            json!({"agent_card_url": "https://a.example"}),
        ),
        (Method::POST, format!("{room}/messages"), content.clone()),
        (Method::PATCH, format!("{room}/messages/{seq}"), content),
        (
            Method::POST,
            format!("{room}/messages/{seq}/reactions"),
            json!({"emoji": "👍"}),
        ),
        (
            Method::POST,
            format!("{room}/room-keys"),
            json!({"for_user_id": "u_alice"}),
        ),
    ]
}

async fn world(setup: Setup) -> (SharedServer, Caller, Vec<(Method, String, Value)>) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = alice.says(&room, "hello").await;
    let requests = with_bodies(&room, seq, agent.id());
    (server, alice, requests)
}

async fn a_body_that_is_no_json_is_refused(setup: Setup) {
    let (_server, alice, requests) = world(setup).await;
    for (method, path, good) in requests {
        let truncated = good.to_string().replace('}', "");
        let bodies: [&[u8]; 6] = [
            b"{",
            b"content=text",
            b"\xff\xfe",
            truncated.as_bytes(),
            b"{\"content\": \"\xff\"}",
            b"{} {}",
        ];
        for body in bodies {
            let request = alice.request(method.clone(), &path).body(body);
            let reply = request.header("content-type", "application/json").await;
            reply.refused(400, "bad_request");
        }
        let deep = "[".repeat(20_000);
        let request = alice.request(method.clone(), &path).body(deep);
        let reply = request.header("content-type", "application/json").await;
        reply.refused(400, "bad_request");
    }
}

async fn an_array_is_no_object(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for (path, body) in [
        ("/rooms".to_owned(), json!(["a room", "private"])),
        (format!("/rooms/{room}/messages"), json!(["hello"])),
        (format!("/rooms/{room}/invites"), json!([])),
    ] {
        let reply = alice.post(path, body).await;
        let words = reply.refused(400, "bad_request");
        assert!(words.contains("JSON object"), "{words}");
    }
}

async fn a_body_of_another_type_is_refused(setup: Setup) {
    let (_server, alice, requests) = world(setup).await;
    for (method, path, good) in requests {
        let bare = alice.request(method.clone(), &path).body(good.to_string());
        bare.await.refused(400, "bad_request");
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "json",
        ] {
            let request = alice.request(method.clone(), &path).body(good.to_string());
            request
                .header("content-type", kind)
                .await
                .refused(400, "bad_request");
        }
        if path == "/rooms" {
            let request = alice.request(method, &path).body(good.to_string());
            let charset = request.header("content-type", "application/json; charset=utf-8");
            charset.await.created();
        }
    }
}

async fn a_missing_body_is_refused(setup: Setup) {
    let (_server, alice, requests) = world(setup).await;
    for (method, path, _) in requests {
        // Everything in an invite is optional.
        if path.ends_with("/invites") {
            continue;
        }
        let reply = alice.request(method.clone(), &path).await;
        reply.refused(400, "bad_request");
        let request = alice
            .request(method, &path)
            .header("content-type", "application/json");
        request.await.refused(400, "bad_request");
    }
}

async fn an_oversized_body_is_refused(setup: Setup) {
    let (_server, alice, requests) = world(setup).await;
    for (method, path, _) in requests {
        let large = json!({"content": "x".repeat(70_000), "name": "x"});
        let reply = alice.request(method, &path).json(&large).await;
        // Its rest is not read, so nothing else can come over this connection.
        assert_eq!(reply.header("connection"), Some("close"));
        reply.refused(413, "payload_too_large");
    }
}

async fn a_wrong_type_is_refused_everywhere(setup: Setup) {
    let (_server, alice, requests) = world(setup).await;
    for (method, path, good) in requests {
        for field in good.as_object().unwrap().keys() {
            for wrong in [json!({"a": 1}), json!([1]), json!(true), json!(1.5)] {
                let mut body = good.clone();
                body[field] = wrong;
                let reply = alice.request(method.clone(), &path).json(&body).await;
                reply.refused(400, "bad_request");
            }
        }
        for wrong in [json!([]), json!("text"), json!(5), json!(null)] {
            let reply = alice.request(method.clone(), &path).json(&wrong).await;
            reply.refused(400, "bad_request");
        }
    }
}

async fn nul_characters_are_refused_everywhere(setup: Setup) {
    let (server, alice, requests) = world(setup).await;
    let room = requests[1].1.clone();
    for (method, path, good) in requests {
        for (field, value) in good.as_object().unwrap() {
            let Some(text) = value.as_str() else { continue };
            let mut body = good.clone();
            body[field] = json!(format!("{text}\0"));
            let reply = alice.request(method.clone(), &path).json(&body).await;
            reply.refused(400, "bad_request");
        }
    }
    // In paths and queries too.
    for path in [
        "/rooms/rm_a%00b/messages",
        "/k/%00",
        "/i/%00",
        "/docs/%00",
        "/agent-identity/%00",
        "/share-keys/%00",
        "/rooms/public?limit=%00",
    ] {
        let reply = alice.get(path).await;
        assert!(
            matches!(reply.status, 400 | 404 | 405),
            "{path}: {}",
            reply.text()
        );
        reply.error();
    }
    for (method, path) in [
        (Method::GET, format!("{room}/messages?sender_user_id=a%00b")),
        (Method::GET, format!("{room}/messages?mentions=%00")),
        (Method::DELETE, format!("{room}/invites/a%00b")),
        (Method::DELETE, format!("{room}/room-keys/a%00b")),
        (Method::DELETE, format!("{room}/members/a%00b")),
        (Method::DELETE, format!("{room}/messages/1/reactions/a%00b")),
    ] {
        let reply = alice.request(method, &path).await;
        assert!(
            matches!(reply.status, 400 | 404),
            "{path}: {}",
            reply.text()
        );
        reply.error();
    }
    let identity = server
        .user_of_type("u_alice", "access")
        .post_nothing("/auth/exchange")
        .await;
    let identity = alice.with_token(identity.created()["identity_token"].as_str().unwrap());
    let reply = identity.delete("/agent-identity/a%00b").await;
    assert!(matches!(reply.status, 400 | 404), "{}", reply.text());
}

async fn a_path_that_does_not_parse_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for seq in ["x", "1.5", "99999999999999999999", "%20", "1e3"] {
        let path = format!("/rooms/{room}/messages/{seq}");
        alice
            .get(format!("{path}/thread"))
            .await
            .refused(400, "bad_request");
        alice.delete(&path).await.refused(400, "bad_request");
        let react = alice
            .post(format!("{path}/reactions"), json!({"emoji": "👍"}))
            .await;
        react.refused(400, "bad_request");
    }
    for user in ["a%2Fb", "%F0%9F%91%8D", "a%20b", "%00", "%ff"] {
        let reply = alice.delete(format!("/rooms/{room}/members/{user}")).await;
        assert!(
            matches!(reply.status, 400 | 404),
            "{user}: {}",
            reply.text()
        );
        reply.error();
    }
}

async fn a_query_that_does_not_parse_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for path in [
        "/rooms/public?limit=x".to_owned(),
        "/rooms/public?offset=-1".to_owned(),
        "/rooms/public?limit=99999999999999999999".to_owned(),
        format!("/rooms/{room}/messages?limit=ten"),
        format!("/rooms/{room}/messages?since="),
        format!("/rooms/{room}/messages?mentions=you"),
        format!("/rooms/{room}/state?recent=all"),
        format!("/rooms/{room}/audit?since=yesterday"),
        format!("/rooms/{room}/stream?since=yesterday"),
    ] {
        alice.get(&path).await.refused(400, "bad_request");
    }
    // What nobody asked about is no error.
    alice
        .get(format!("/rooms/{room}/messages?utm_source=x&limit=5"))
        .await
        .ok();
}

async fn a_room_id_that_is_none_is_no_room(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let long = format!("rm_{}", "x".repeat(5000));
    for id in [
        "rm_nosuch",
        "nosuch",
        "rm_",
        "rm_a%20b",
        "RM_x",
        "..",
        "rm_%C3%A4",
        &long,
    ] {
        for path in ["/messages", "/members", "/me"] {
            let reply = alice.get(format!("/rooms/{id}{path}")).await;
            // A path with `..` in it is shortened before it is sent.
            if id == ".." {
                let is_a_route = path == "/me";
                assert_eq!(reply.status, if is_a_route { 200 } else { 404 });
                continue;
            }
            assert_eq!(reply.refused(404, "not_found"), "Room not found", "{id}");
        }
    }
}

async fn an_authorization_that_is_no_bearer_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let token = alice.token().unwrap();
    let visitor = server.anonymous();
    for bad in [
        "Basic dTpw",
        "Bearer",
        "Bearer ",
        token,
        "Bearer a b",
        "bearer",
    ] {
        let reply = visitor.get("/rooms").header("authorization", bad).await;
        assert_eq!(reply.status, 401, "{bad}: {}", reply.text());
        reply.error();
    }
    let lower = visitor
        .get("/rooms")
        .header("authorization", &format!("bearer {token}"));
    lower.await.ok();
}

async fn broken_http_is_survived(setup: Setup) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = setup.start().await;
    let address = server.base_url().strip_prefix("http://").unwrap();
    for request in [
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"POST /rooms HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n".to_vec(),
        b"POST /rooms HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        [
            b"GET /".to_vec(),
            vec![b'a'; 1_000_000],
            b" HTTP/1.1\r\n\r\n".to_vec(),
        ]
        .concat(),
        [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"x: y\r\n".repeat(100_000),
            b"\r\n".to_vec(),
        ]
        .concat(),
    ] {
        let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
        // The server may hang up before it has read all of it.
        let _ = connection.write_all(&request).await;
        let _ = connection.shutdown().await;
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
    }
    server.anonymous().get("/health").await.ok();
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

async fn a_refused_request_writes_nothing(setup: Setup) {
    let (server, alice, requests) = world(setup).await;
    let room = requests[1].1.clone();
    let looks = [
        "",
        "/members",
        "/messages",
        "/rules",
        "/data",
        "/invites",
        "/audit",
        "/room-keys",
    ];
    let look = async || {
        let mut seen = Vec::new();
        for look in looks {
            seen.push(alice.get(format!("{room}{look}")).await.ok());
        }
        seen
    };
    let before = look().await;
    for (method, path, good) in &requests {
        for caller in [
            &server.user("u_eve"),
            &server.anonymous(),
            &alice.seen_from_outside(),
        ] {
            if path == "/rooms" {
                continue;
            }
            let reply = caller.request(method.clone(), path).json(good).await;
            assert!(
                matches!(reply.status, 400..=404),
                "{path}: {}",
                reply.text()
            );
        }
    }
    assert_eq!(look().await, before);
}

async fn messages_say_what_to_change(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for (body, word) in [
        (json!({}), "content"),
        (json!({"content": 5}), "string"),
        (json!({"content": "x".repeat(4097)}), "4096"),
        (json!({"content": "x", "reply_to_seq": 99}), "reply_to_seq"),
        (json!({"content": "x", "reply_chain_depth": 9}), "5"),
    ] {
        let reply = alice
            .post(format!("/rooms/{room}/messages"), body.clone())
            .await;
        assert_eq!(reply.status, 400);
        let message = reply.json()["message"].as_str().unwrap();
        assert!(message.contains(word), "{body} → {message}");
    }
    let unknown = alice
        .post("/rooms", json!({"name": "x", "visibility": "secret"}))
        .await;
    let message = unknown.refused(400, "bad_request");
    assert!(
        message.contains("private") && message.contains("public"),
        "{message}"
    );
}
