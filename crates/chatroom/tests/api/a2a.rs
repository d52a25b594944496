//! The door for A2A clients: the project's own SDKs, and who must not get through.

use crate::harness::{
    Caller, Home, Setup, TestServer, both_engines, eventually, one_engine, stand_in,
};
use axum::{Json, Router, body::Body, http::HeaderMap, response::IntoResponse, routing::post};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

both_engines![
    a_task_is_the_rooms_log_and_survives_a_restart,
    notifications_are_sent_with_their_token,
];
one_engine![
    the_sdk_speaks_with_a_room_over_json_rpc,
    the_sdk_speaks_with_a_room_over_http,
    the_older_sdk_speaks_with_a_room,
    a_task_of_a_room_that_one_may_not_read_is_not_there,
    what_is_no_request_is_refused,
    notifications_never_reach_private_addresses_for_strangers,
    notifications_end_with_the_membership_and_with_the_session,
    where_to_send_is_not_forgotten_because_it_cannot_be_read,
    files_are_named_and_never_fetched,
    posting_here_is_posting,
    a_task_ends_with_silence_and_with_time,
    the_server_has_one_address_for_all_rooms,
];

/// An agent that answers what it is told, in two pieces, and hangs where it is told to wait.
async fn agent() -> String {
    let answer = async |Json(asked): Json<Value>| {
        let message = asked["message"].as_str().unwrap_or_default();
        if message.contains("wait") {
            return std::future::pending().await;
        }
        if message.contains("hush") {
            return stream("data: {\"text\":\"[SILENT]\"}\n\n");
        }
        stream("data: {\"text\":\"Hello \"}\n\ndata: {\"text\":\"from Bob.\"}\n\n")
    };
    stand_in(Router::new().route("/chat/stream", post(answer))).await
}

fn stream(body: &'static str) -> axum::response::Response {
    let head = [("content-type", "text/event-stream")];
    (head, Body::from(body)).into_response()
}

/// A room of Alice's with Bob's agent in it.
async fn world(server: &TestServer) -> (Caller, String) {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"invite_code": alice.invites(&room).await, "adapter_type": "clawd",
                      "agent_endpoint": agent().await, "akm_key": "sk_secret_of_the_agent"});
    let joined = server
        .user("u_bob")
        .post(format!("/rooms/{room}/join"), body);
    joined.await.created();
    (alice, room)
}

/// What was sent to an address for notifications.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<(HeaderMap, Value)>>>);

impl Receiver {
    async fn start() -> (String, Self) {
        let receiver = Self::default();
        let got = receiver.clone();
        let hook = async move |headers: HeaderMap, body: String| {
            let body = serde_json::from_str(&body).unwrap();
            got.0.lock().unwrap().push((headers, body));
        };
        let url = stand_in(Router::new().route("/hook", post(hook))).await;
        (format!("{url}/hook"), receiver)
    }

    fn all(&self) -> Vec<(HeaderMap, Value)> {
        self.0.lock().unwrap().clone()
    }

    /// The first notification with this token.
    async fn with_token(&self, token: &str) -> (HeaderMap, Value) {
        eventually("a notification", async || {
            let has = |headers: &HeaderMap| {
                let value = headers.get("x-a2a-notification-token");
                value.is_some_and(|value| value == token)
            };
            self.all().into_iter().find(|(headers, _)| has(headers))
        })
        .await
    }
}

fn python() -> String {
    std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    })
}

async fn run(python: &str, script: &str, args: &[&str]) -> Value {
    let script = format!("{}/tests/a2a/{script}", env!("CARGO_MANIFEST_DIR"));
    let program: Vec<&str> = [python, &script]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    let told = Home::new().run(&program, "").await.ok();
    serde_json::from_str(&told).unwrap()
}

fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn message(text: &str) -> Value {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    json!({"messageId": format!("m-{id}"), "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// What a method gives in a room, or its error's code.
async fn call(caller: &Caller, room: &str, method: &str, params: Value) -> Result<Value, i64> {
    let reply = caller
        .post(format!("/a2a/{room}"), rpc(method, params))
        .header("a2a-version", "1.0")
        .await;
    let body = reply.json();
    match body["error"]["code"].as_i64() {
        Some(code) => Err(code),
        None => Ok(body["result"].clone()),
    }
}

/// Says something without waiting for the answer; the task.
async fn begins(caller: &Caller, room: &str, text: &str) -> Value {
    let params = json!({"message": message(text), "configuration": {"returnImmediately": true}});
    let sent = call(caller, room, "SendMessage", params).await.unwrap();
    sent["task"].clone()
}

async fn stands(caller: &Caller, room: &str, id: &Value, state: &str) -> Value {
    eventually(state, async || {
        let task = call(caller, room, "GetTask", json!({"id": id}))
            .await
            .unwrap();
        (task["status"]["state"] == state).then_some(task)
    })
    .await
}

fn check(told: &Value) {
    let asked = &told["asked"];
    assert_eq!(asked["status"]["state"], "TASK_STATE_COMPLETED", "{asked}");
    let answer = &asked["artifacts"][0]["parts"][0]["text"];
    assert_eq!(answer, "Hello from Bob.", "{asked}");
    assert_eq!(asked["history"][0]["role"], "ROLE_USER");
    assert!(told["without_history"].get("history").is_none(), "{told}");
    let again = &told["again"];
    assert_eq!(again["contextId"], asked["contextId"]);
    assert_eq!(again["status"]["state"], "TASK_STATE_COMPLETED", "{again}");

    let events = told["streamed"].as_array().unwrap();
    assert!(events[0].get("task").is_some(), "{events:?}");
    // An answer may be there before the first event is.
    let (mut state, mut text) = (json!(null), String::new());
    for event in events {
        if let Some(task) = event.get("task") {
            state = task["status"]["state"].clone();
            let words = task["artifacts"][0]["parts"][0]["text"].as_str();
            text = words.unwrap_or_default().to_owned();
        }
        if let Some(update) = event.get("artifactUpdate") {
            if update.get("append").is_none() {
                text.clear();
            }
            text += update["artifact"]["parts"][0]["text"].as_str().unwrap();
        }
        if let Some(update) = event.get("statusUpdate") {
            state = update["status"]["state"].clone();
        }
    }
    assert_eq!(state, "TASK_STATE_COMPLETED", "{events:?}");
    assert_eq!(text, "Hello from Bob.", "{events:?}");

    assert_eq!(told["push"]["token"], "another");
    assert_eq!(told["push"]["authentication"], json!({"scheme": "Bearer"}));
    assert_eq!(
        (&told["pushes"], &told["pushes_left"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(told["canceled"]["status"]["state"], "TASK_STATE_CANCELED");
    let followed = told["followed"].as_array().unwrap();
    assert!(followed[0].get("task").is_some(), "{followed:?}");
    let listed = &told["listed"];
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["totalSize"], 4);
    assert_eq!(listed["nextPageToken"], "2");
    assert_eq!(
        told["errors"],
        json!({
            "unknown": "TaskNotFoundError",
            "canceled": "TaskNotCancelableError",
            "over": "UnsupportedOperationError",
            "more": "UnsupportedOperationError",
            "strange": "TaskNotFoundError",
            "empty": "InvalidParamsError",
        })
    );
}

async fn speaks(setup: Setup, binding: &str) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let base = format!("{}/a2a/{room}", server.base_url());
    let args = [&base, alice.token().unwrap(), binding, &hook];
    let told = run(&python(), "client.py", &args).await;
    check(&told);
    let (headers, body) = receiver.with_token("another").await;
    assert_eq!(headers["authorization"], "Bearer of-the-receiver");
    assert_eq!(headers["content-type"], "application/a2a+json");
    assert_eq!(body["task"]["id"], told["waiting"]["id"]);
    assert_eq!(body["task"]["status"]["state"], "TASK_STATE_CANCELED");
    receiver.with_token("secret-of-the-client").await;
    // What was said is in the room, in the caller's name.
    let said = alice.hears(&room, 0).await;
    assert!(
        said.iter().any(|said| said.contains("Say hello")),
        "{said:?}"
    );
}

async fn the_sdk_speaks_with_a_room_over_json_rpc(setup: Setup) {
    speaks(setup, "JSONRPC").await;
}

async fn the_sdk_speaks_with_a_room_over_http(setup: Setup) {
    speaks(setup, "HTTP+JSON").await;
}

async fn the_older_sdk_speaks_with_a_room(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let base = format!("{}/a2a/{room}", server.base_url());
    let older = python().replace("/bin/python", "/older/bin/python");
    let args = [&base, alice.token().unwrap(), &hook];
    let told = run(&older, "older_client.py", &args).await;
    for task in ["asked", "got", "streamed"] {
        let task = &told[task];
        assert_eq!(task["status"]["state"], "completed", "{task}");
        let answer = &task["artifacts"][0]["parts"][0];
        assert_eq!(answer["kind"], "text");
    }
    assert_eq!(
        told["asked"]["artifacts"][0]["parts"][0]["text"],
        "Hello from Bob."
    );
    assert_eq!(told["waiting"]["status"]["state"], "working");
    assert_eq!(told["push"]["pushNotificationConfig"]["token"], "older");
    assert_eq!(told["canceled"]["status"]["state"], "canceled");
    assert_eq!(told["followed"]["status"]["state"], "canceled");
    assert!(
        told["unknown"].as_str().unwrap().contains("no such task"),
        "{told}"
    );
    let (_, body) = receiver.with_token("older").await;
    assert_eq!(
        (&body["kind"], &body["status"]["state"]),
        (&json!("task"), &json!("canceled"))
    );
}

async fn a_task_is_the_rooms_log_and_survives_a_restart(setup: Setup) {
    let mut server = setup.start().await;
    let (alice, room) = world(&server).await;
    let answered = begins(&alice, &room, "Hello?").await;
    let id = &answered["id"];
    stands(&alice, &room, id, "TASK_STATE_COMPLETED").await;
    let canceled = begins(&alice, &room, "wait").await;
    call(&alice, &room, "CancelTask", json!({"id": canceled["id"]}))
        .await
        .unwrap();
    server.kill9();
    server.restart().await;
    let alice = alice.at(&server);
    let task = call(&alice, &room, "GetTask", json!({"id": id}))
        .await
        .unwrap();
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello from Bob.");
    let task = call(&alice, &room, "GetTask", json!({"id": canceled["id"]})).await;
    assert_eq!(task.unwrap()["status"]["state"], "TASK_STATE_CANCELED");
}

async fn notifications_are_sent_with_their_token(setup: Setup) {
    let server = setup
        .env("FANOUT__RETRY_SECONDS", "[0, 0, 0, 0, 0]")
        .start()
        .await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let push = json!({"url": hook, "token": "sesame"});
    // Whoever is told at once that the task is done is not notified of it: until one is caught at work.
    let sent = eventually("a task at work", async || {
        let params = json!({"message": message("Hello?"),
            "configuration": {"returnImmediately": true, "taskPushNotificationConfig": push}});
        let sent = call(&alice, &room, "SendMessage", params).await.unwrap();
        (sent["task"]["status"]["state"] != "TASK_STATE_COMPLETED").then_some(sent)
    })
    .await;
    let (_, body) = receiver.with_token("sesame").await;
    assert_eq!(body["task"]["id"], sent["task"]["id"]);
    // No token and no credential is stored as it is.
    let stored = server.stored_bytes().await;
    let held = |text: &str| {
        stored
            .windows(text.len())
            .any(|piece| piece == text.as_bytes())
    };
    assert!(!held("sesame"));
}

async fn a_task_of_a_room_that_one_may_not_read_is_not_there(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let task = begins(&alice, &room, "wait").await;
    let id = task["id"].as_str().unwrap();
    let eve = server.user("u_eve");
    let own = eve.creates_a_room().await;
    let key = eve.viewer(&own).await;
    let nothing = format!("{room}.99999");
    for caller in [&eve, &key] {
        for (method, params) in [
            ("GetTask", json!({"id": id})),
            ("CancelTask", json!({"id": id})),
            ("SubscribeToTask", json!({"id": id})),
            ("ListTaskPushNotificationConfigs", json!({"taskId": id})),
            (
                "CreateTaskPushNotificationConfig",
                json!({"taskId": id, "url": "https://a.example"}),
            ),
            ("GetTask", json!({"id": nothing})),
        ] {
            for address in [format!("/a2a/{room}"), "/a2a".to_owned()] {
                let reply = caller.post(&address, rpc(method, params.clone())).await;
                let error = &reply.json()["error"];
                assert_eq!(
                    error["code"],
                    -32001,
                    "{address} {method}: {}",
                    reply.text()
                );
                assert_eq!(
                    error["message"],
                    "There is no such task, or none that you may see"
                );
            }
        }
        let reply = caller.get(format!("/a2a/{room}/tasks/{id}")).await;
        assert_eq!(reply.status, 404);
        assert_eq!(
            reply.json()["error"]["details"][0]["reason"],
            "TASK_NOT_FOUND"
        );
        let sent = call(
            caller,
            &room,
            "SendMessage",
            json!({"message": message("x")}),
        )
        .await;
        assert!(sent.is_err(), "{sent:?}");
        let card = caller
            .get(format!("/a2a/{room}/.well-known/agent-card.json"))
            .await;
        assert!([403, 404].contains(&card.status), "{}", card.text());
    }
    // Another member reads a task, and takes none back that is not theirs.
    let carol = alice.lets_in(&room, "carols_agent-0a1b2c3d").await;
    let read = call(&carol, &room, "GetTask", json!({"id": id})).await;
    assert_eq!(read.unwrap()["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(
        call(&carol, &room, "CancelTask", json!({"id": id})).await,
        Err(-32011)
    );
    let push = json!({"taskId": id, "url": "https://a.example", "id": "x"});
    call(&alice, &room, "CreateTaskPushNotificationConfig", push)
        .await
        .unwrap();
    let named = json!({"taskId": id, "id": "x"});
    let got = call(&carol, &room, "GetTaskPushNotificationConfig", named).await;
    assert_eq!(got, Err(-32001));
    let nobody = server
        .anonymous()
        .post(format!("/a2a/{room}"), rpc("GetTask", json!({"id": id})));
    let nobody = nobody.await;
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.header("www-authenticate"), Some("Bearer"));
}

async fn what_is_no_request_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let path = format!("/a2a/{room}");
    let call = rpc("GetTask", json!({"id": "x"}));
    let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{deep}}}");
    for (body, code) in [
        (json!([call, call]).to_string(), -32600),
        ("[]".to_owned(), -32600),
        ("{".to_owned(), -32700),
        (deep, -32700),
        (rpc("DropTables", json!({})).to_string(), -32601),
        (rpc("tasks/drop", json!({})).to_string(), -32601),
        (rpc("GetTask", json!({"id": 7})).to_string(), -32602),
        (rpc("GetTask", json!({"id": "x", "historyLength": -1})).to_string(), -32602),
        (rpc("SendMessage", json!({"message": {"messageId": "1", "role": "ROLE_USER", "parts": []}})).to_string(), -32602),
        (rpc("SendMessage", json!({"message": message(&"x".repeat(5000))})).to_string(), -32602),
        (rpc("SendMessage", json!({"message": {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}})).to_string(), -32602),
        (rpc("SendMessage", json!({"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"raw": "aGk=", "mediaType": "image/png"}]}})).to_string(), -32005),
        (rpc("GetExtendedAgentCard", json!({})).to_string(), -32004),
    ] {
        let reply = alice
            .request(reqwest::Method::POST, &path)
            .header("content-type", "application/json")
            .body(body.clone())
            .await;
        let shown: String = body.chars().take(120).collect();
        assert_eq!(reply.json()["error"]["code"], code, "{shown}: {}", reply.text());
    }
    let huge = rpc(
        "SendMessage",
        json!({"message": message(&"x".repeat(300_000))}),
    );
    let reply = alice.post(&path, huge).await;
    assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text());
    assert_eq!(reply.header("connection"), Some("close"));
    let reply = alice
        .post(&path, rpc("GetTask", json!({"id": "x"})))
        .header("a2a-version", "9.9")
        .await;
    assert_eq!(reply.json()["error"]["code"], -32009);
    for (method, rest) in [
        ("GET", ""),
        ("PUT", "/message:send"),
        ("GET", "/message:send"),
        ("POST", "/nothing"),
        ("DELETE", "/tasks/x"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let reply = alice.request(method, &format!("{path}{rest}")).await;
        assert_eq!(reply.status, 404, "{rest}: {}", reply.text());
    }
    assert_eq!(
        alice
            .hears(&room, 0)
            .await
            .iter()
            .filter(|said| said.contains('x'))
            .count(),
        0
    );
}

async fn notifications_never_reach_private_addresses_for_strangers(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let stranger = alice.lets_in(&room, "strangers_bot-0a1b2c3d").await;
    let task = begins(&stranger, &room, "wait @u_bob").await;
    let id = &task["id"];
    for url in [
        hook.as_str(),
        "http://127.1/x",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "ftp://a.example/",
        "file:///etc/passwd",
        "https://name:password@a.example/",
        "nonsense",
    ] {
        let config = json!({"taskId": id, "url": url});
        let made = call(&stranger, &room, "CreateTaskPushNotificationConfig", config).await;
        assert_eq!(made, Err(-32602), "{url}");
        let params = json!({"message": message("again"),
            "configuration": {"taskPushNotificationConfig": {"url": url}}});
        let sent = call(&stranger, &room, "SendMessage", params).await;
        assert_eq!(sent, Err(-32602), "{url}");
    }
    assert!(
        !alice
            .hears(&room, 0)
            .await
            .iter()
            .any(|said| said.contains("again"))
    );
    // A name is looked at when it is called.
    let port = hook.split(':').nth(2).unwrap();
    let config = json!({"taskId": id, "url": format!("http://localhost:{port}"), "token": "t"});
    call(&stranger, &room, "CreateTaskPushNotificationConfig", config)
        .await
        .unwrap();
    let trusted = json!({"taskId": id, "url": hook, "token": "of-alice"});
    call(&alice, &room, "CreateTaskPushNotificationConfig", trusted)
        .await
        .unwrap();
    call(&stranger, &room, "CancelTask", json!({"id": id}))
        .await
        .unwrap();
    receiver.with_token("of-alice").await;
    assert_eq!(receiver.all().len(), 1);
    for text in ["\r\nx: y", "two words", "é"] {
        let config = json!({"taskId": id, "url": "https://a.example", "token": text});
        let made = call(&alice, &room, "CreateTaskPushNotificationConfig", config).await;
        assert_eq!(made, Err(-32602), "{text:?}");
    }
    for n in 0..10 {
        let config = json!({"taskId": id, "url": "https://a.example", "id": n.to_string()});
        let made = call(&stranger, &room, "CreateTaskPushNotificationConfig", config).await;
        // One is there already.
        assert_eq!(made.is_ok(), n < 9, "{n}: {made:?}");
    }
}

async fn notifications_end_with_the_membership_and_with_the_session(setup: Setup) {
    let server = setup
        .env("FANOUT__PRIVATE_ENDPOINTS", "\"all\"")
        .start()
        .await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let gone = alice.lets_in(&room, "leaving_bot-0a1b2c3d").await;
    let carol = server.user("u_carol");
    alice.lets_in_user(&room, &carol).await;
    let task = begins(&alice, &room, "wait").await;
    let id = &task["id"];
    for (caller, token) in [(&*gone, "gone"), (&carol, "ended"), (&alice, "stays")] {
        let config = json!({"taskId": id, "url": hook, "token": token});
        call(caller, &room, "CreateTaskPushNotificationConfig", config)
            .await
            .unwrap();
    }
    alice
        .delete(format!("/rooms/{room}/members/{}", gone.id()))
        .await
        .ok();
    carol.delete("/auth/sessions").await.ok();
    call(&alice, &room, "CancelTask", json!({"id": id}))
        .await
        .unwrap();
    receiver.with_token("stays").await;
    eventually("nothing is left to send", async || {
        (server.count("SELECT COUNT(*) FROM a2a_pushes").await == 0).then_some(())
    })
    .await;
    assert_eq!(receiver.all().len(), 1);
}

async fn where_to_send_is_not_forgotten_because_it_cannot_be_read(setup: Setup) {
    let server = setup.start().await;
    let (alice, room) = world(&server).await;
    let task = begins(&alice, &room, "wait").await;
    let config = json!({"taskId": task["id"], "url": "https://a.example"});
    call(&alice, &room, "CreateTaskPushNotificationConfig", config)
        .await
        .unwrap();
    let wrong = "UPDATE a2a_pushes SET sealed = 'rubbish'";
    server.run_sql(wrong, wrong).await;
    let of_task = json!({"taskId": task["id"]});
    let listed = call(&alice, &room, "ListTaskPushNotificationConfigs", of_task).await;
    assert_eq!(listed, Err(-32603));
    let told = |log: &str| log.matches("go cannot be read").count();
    let before = told(&server.log());
    call(&alice, &room, "CancelTask", json!({"id": task["id"]}))
        .await
        .unwrap();
    eventually("the log tells of it", async || {
        (told(&server.log()) > before).then_some(())
    })
    .await;
    let kept = server.count("SELECT COUNT(*) FROM a2a_pushes").await;
    assert_eq!(kept, 1);
}

async fn files_are_named_and_never_fetched(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let (hook, receiver) = Receiver::start().await;
    let parts = json!([{"text": "wait, look:"}, {"url": hook, "filename": "a.png", "mediaType": "image/png"},
                       {"data": {"a": [1]}}]);
    let sent = json!({"message": {"messageId": "f", "role": "ROLE_USER", "parts": parts},
                      "configuration": {"returnImmediately": true}});
    call(&alice, &room, "SendMessage", sent.clone())
        .await
        .unwrap();
    let said = alice.hears(&room, 0).await;
    let said = said.iter().find(|said| said.contains("look:")).unwrap();
    assert!(said.contains(&format!("a.png: {hook}")), "{said}");
    assert!(said.contains("```json"), "{said}");
    assert!(receiver.all().is_empty());
    // The same message again is the same task.
    let before = alice.latest_seq(&room).await;
    call(&alice, &room, "SendMessage", sent).await.unwrap();
    assert_eq!(alice.latest_seq(&room).await, before);
}

async fn posting_here_is_posting(setup: Setup) {
    let server = setup.limit("AGENT_MESSAGES_PER_MINUTE", 2).start().await;
    let (alice, room) = world(&server).await;
    let viewer = alice.viewer_with(&room, "view").await;
    let params = json!({"message": message("x"), "configuration": {"returnImmediately": true}});
    assert_eq!(
        call(&viewer, &room, "SendMessage", params).await,
        Err(-32011)
    );
    let bot = alice.lets_in(&room, "chatty_bot-0a1b2c3d").await;
    for _ in 0..2 {
        begins(&bot, &room, "@u_bob wait").await;
    }
    let params =
        json!({"message": message("@u_bob wait"), "configuration": {"returnImmediately": true}});
    let path = format!("/a2a/{room}/message:send");
    let reply = bot.post(&path, params.clone()).await;
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert_eq!(reply.json()["error"]["status"], "RESOURCE_EXHAUSTED");
}

async fn a_task_ends_with_silence_and_with_time(setup: Setup) {
    let server = setup
        .env("A2A__TASK_SECONDS", "2")
        .env("A2A__WAIT_SECONDS", "30")
        .start()
        .await;
    let (alice, room) = world(&server).await;
    let state = |sent: Value| sent["task"]["status"]["state"].as_str().unwrap().to_owned();
    let sent = call(
        &alice,
        &room,
        "SendMessage",
        json!({"message": message("hush @u_bob")}),
    )
    .await;
    assert_eq!(state(sent.unwrap()), "TASK_STATE_REJECTED");
    let sent = call(
        &alice,
        &room,
        "SendMessage",
        json!({"message": message("wait")}),
    )
    .await;
    assert_eq!(state(sent.unwrap()), "TASK_STATE_FAILED");
    // With two agents, a message that mentions nobody asks nobody.
    alice.lets_in(&room, "second_agent-0a1b2c3d").await;
    let quiet = alice.creates_a_room().await;
    let sent = call(
        &alice,
        &quiet,
        "SendMessage",
        json!({"message": message("to whom?")}),
    )
    .await;
    assert_eq!(state(sent.unwrap()), "TASK_STATE_COMPLETED");
}

async fn the_server_has_one_address_for_all_rooms(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room) = world(&server).await;
    let send = |message: Value| rpc("SendMessage", json!({"message": message}));
    let reply = alice.post("/a2a", send(message("Hello?"))).await;
    assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text());
    let mut named = message("Hello?");
    named["contextId"] = json!(room);
    let reply = alice.post("/a2a", send(named)).await;
    let task = &reply.json()["result"]["task"];
    assert_eq!(
        task["status"]["state"],
        "TASK_STATE_COMPLETED",
        "{}",
        reply.text()
    );
    // A room key has its room.
    let key = alice.viewer(&room).await;
    let reply = key.post("/a2a", send(message("Hello?"))).await;
    let task = &reply.json()["result"]["task"];
    assert_eq!(
        task["status"]["state"],
        "TASK_STATE_COMPLETED",
        "{}",
        reply.text()
    );
    // The tenant's path of HTTP+JSON is the room's.
    let id = task["id"].as_str().unwrap();
    let got = key
        .get(format!("/a2a/{room}/tasks/{id}?historyLength=1"))
        .await;
    assert_eq!(got.json()["id"], id);
    assert_eq!(got.header("content-type"), Some("application/a2a+json"));
    let card = alice
        .get(format!("/a2a/{room}/.well-known/agent-card.json"))
        .await;
    let skills = card.json()["skills"].as_array().unwrap().clone();
    assert!(
        skills.iter().any(|skill| skill["id"] == "u_bob"),
        "{skills:?}"
    );
    // Nobody but members learns who is there, in public rooms neither.
    let public = alice.creates_a_public_room().await;
    let card = server
        .anonymous()
        .get(format!("/a2a/{public}/.well-known/agent-card.json"))
        .await;
    assert_eq!(card.json()["skills"].as_array().unwrap().len(), 1);
    let hidden = server
        .anonymous()
        .get(format!("/a2a/{room}/.well-known/agent-card.json"))
        .await;
    assert_eq!(hidden.status, 404);
}
