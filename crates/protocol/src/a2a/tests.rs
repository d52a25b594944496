use super::*;
use serde_json::{Value, json};

fn read(body: Value, version: Option<&str>) -> ParsedRequest {
    ParsedRequest::of_rpc(body.to_string().as_bytes(), version)
}

fn code_of(request: ParsedRequest) -> i64 {
    let error = request.operation.expect_err("it is refused");
    let (_, body) = request.binding.error(&error);
    body["error"]["code"].as_i64().expect("a code")
}

fn task() -> Task {
    Task {
        id: "rm_a.1".into(),
        context_id: "rm_a.1".into(),
        status: TaskStatus::new(
            TaskState::InputRequired,
            0,
            Some(Message::of_agent("m", "rm_a.1", "rm_a.1", "Which one?")),
        ),
        artifacts: vec![Artifact {
            artifact_id: "a".into(),
            name: None,
            description: None,
            parts: vec![
                Part::text("Hello"),
                Part {
                    data: Some(json!([1])),
                    ..Part::default()
                },
                Part {
                    raw: Some("aGk=".into()),
                    media_type: Some("image/png".into()),
                    ..Part::default()
                },
            ],
            metadata: None,
        }],
        history: vec![Message {
            role: Role::User,
            ..Message::of_agent("q", "rm_a.1", "rm_a.1", "Hi")
        }],
        metadata: None,
    }
}

#[test]
fn a_request_is_read_in_the_version_that_its_method_has() {
    let message = json!({"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Hi"}]});
    let new =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let older = json!({"kind": "message", "messageId": "1", "role": "user",
        "parts": [{"kind": "text", "text": "Hi", "metadata": null}], "taskId": null});
    let old = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
        "params": {"message": older, "configuration": {"blocking": false, "historyLength": null}}});
    for (body, version, at_once) in [
        (&new, None, false),
        (&new, Some("1.0"), false),
        (&old, None, true),
        (&old, Some("0.3"), true),
    ] {
        let Ok(Operation::SendMessage(sent)) = read(body.clone(), version).operation else {
            panic!("{body}")
        };
        assert_eq!(sent.message.words(), "Hi");
        assert_eq!(sent.message.role, Role::User);
        assert_eq!(sent.wanted().unwrap().return_immediately, at_once);
    }
    assert_eq!(code_of(read(new.clone(), Some("0.3"))), -32601);
    assert_eq!(code_of(read(old, Some("1.0"))), -32601);
    assert_eq!(code_of(read(new, Some("7.0"))), -32009);
}

#[test]
fn what_is_no_request_is_refused_with_the_code_for_it() {
    let call = |method: Value, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    for (body, code) in [
        (json!([call(json!("GetTask"), json!({"id": "x"}))]), -32600),
        (json!("GetTask"), -32600),
        (json!({"id": 1, "method": "GetTask"}), -32600),
        (
            json!({"jsonrpc": "2.0", "id": {"a": 1}, "method": "GetTask"}),
            -32600,
        ),
        (call(json!(7), json!({})), -32600),
        (call(json!("DropTables"), json!({})), -32601),
        (call(json!("tasks/drop"), json!({})), -32601),
        (call(json!("GetTask"), json!([])), -32602),
        (call(json!("GetTask"), json!({})), -32602),
        (
            call(
                json!("SendMessage"),
                json!({"message": {"messageId": "1", "role": "ROLE_KING"}}),
            ),
            -32602,
        ),
    ] {
        assert_eq!(code_of(read(body.clone(), None)), code, "{body}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        code_of(ParsedRequest::of_rpc(deep.as_bytes(), None)),
        -32700
    );
    assert_eq!(code_of(ParsedRequest::of_rpc(b"{", None)), -32700);
}

#[test]
fn older_clients_get_older_objects_and_they_read_back_the_same() {
    let task = task();
    let older = older::event(&StreamResponse::Task(task.clone()));
    assert_eq!(older["kind"], "task");
    assert_eq!(older["status"]["state"], "input-required");
    assert_eq!(older["history"][0]["role"], "user");
    let parts = &older["artifacts"][0]["parts"];
    assert_eq!(parts[0], json!({"kind": "text", "text": "Hello"}));
    assert_eq!(parts[1], json!({"kind": "data", "data": {"value": [1]}}));
    assert_eq!(
        parts[2],
        json!({"kind": "file", "file": {"bytes": "aGk=", "mimeType": "image/png"}})
    );
    let Ok(StreamResponse::Task(back)) = older::read_event(older) else {
        panic!("a task")
    };
    assert_eq!(back.status, task.status);
    assert_eq!(back.artifacts[0].words(), "Hello");
    assert_eq!(back.history, task.history);
}

#[test]
fn paths_of_http_are_operations() {
    let read = |method: &str, path: &str, query: &[(&str, &str)], body: &[u8]| {
        let query: Vec<(String, String)> = query
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let request = HttpRequest {
            method,
            path,
            query: &query,
            version: None,
            body,
        };
        request.read().operation
    };
    let Ok(Operation::GetTask(asked)) =
        read("GET", "/tasks/rm_a.1", &[("historyLength", "3")], b"")
    else {
        panic!("a task")
    };
    assert_eq!(
        (asked.id.as_str(), asked.most_messages()),
        ("rm_a.1", Ok(Some(3)))
    );
    assert!(read("GET", "/tasks/rm_a.1", &[("historyLength", "x")], b"").is_err());
    let cancel = read(
        "POST",
        "/tasks/rm_a.1:cancel",
        &[("A2A-Version", "1.0")],
        b"",
    );
    assert!(matches!(cancel, Ok(Operation::CancelTask(task)) if task.id == "rm_a.1"));
    let config = br#"{"url": "https://a.example/hook"}"#;
    let created = read("POST", "/tasks/rm_a.1/pushNotificationConfigs", &[], config);
    assert!(matches!(created, Ok(Operation::CreatePushConfig(config))
        if config.task_id.as_deref() == Some("rm_a.1")));
    let version = read("GET", "/tasks", &[("a2a-version", "0.3")], b"");
    assert_eq!(version.unwrap_err().kind, ErrorKind::VersionNotSupported);
    for (method, path) in [
        ("GET", "/message:send"),
        ("POST", "/tasks/rm_a.1"),
        ("DELETE", "/tasks/rm_a.1"),
        ("PUT", "/message:send"),
        ("GET", "/"),
    ] {
        let refused = read(method, path, &[], b"{}");
        assert_eq!(
            refused.unwrap_err().kind,
            ErrorKind::MethodNotFound,
            "{path}"
        );
    }
}

#[test]
fn a_reader_is_told_what_is_new_and_nothing_twice() {
    let mut now = task();
    let mut diff = TaskDiff::all_of(&now);
    assert_eq!(diff.update(&now, &[]), []);
    now.artifacts[0].parts = vec![Part::text("Hello")];
    now.artifacts[0].parts[0].text = Some("Hello you".into());
    let events = diff.update(&now, &["a".to_owned()]);
    let [StreamResponse::ArtifactUpdate(more)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(more.artifact.words(), " you");
    assert!(more.append && !more.last_chunk);
    now.artifacts[0].parts = vec![Part::text("Anew")];
    now.status.state = TaskState::Completed;
    let events = diff.update(&now, &[]);
    let [StreamResponse::ArtifactUpdate(anew), last] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(!anew.append && anew.last_chunk);
    assert!(last.is_last());
}

#[test]
fn a_card_names_what_is_spoken_here_in_its_own_order() {
    let card = Card::read(json!({
        "name": "X", "capabilities": {"streaming": true},
        "supportedInterfaces": [
            {"url": "a:1", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://a/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0.3", "tenant": "t"},
            {"url": "https://a/old", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
            {"url": "https://a/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://a/new", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"},
        ],
    }))
    .unwrap();
    let urls: Vec<_> = card.interfaces.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(urls, ["https://a/rest", "https://a/rpc"]);
    assert_eq!(card.interfaces[0].tenant.as_deref(), Some("t"));
    let older = Card::read(json!({
        "name": "Y", "url": "https://b/", "protocolVersion": "0.3.0", "preferredTransport": "GRPC",
        "capabilities": {"streaming": null},
        "additionalInterfaces": [{"url": "https://b/rpc", "transport": "JSONRPC"}],
    }));
    let older = older.unwrap_or_else(|why| panic!("{why}"));
    assert!(!older.streaming);
    assert_eq!(older.interfaces[0].url, "https://b/rpc");
    assert!(older.interfaces[0].older);
    assert!(Card::read(json!({"supportedInterfaces": []})).is_err());
}

#[test]
fn pieces_of_an_artifact_are_one_text_and_parts_of_a_message_are_lines() {
    let parts = vec![Part::text("Seven"), Part::text(" of them.")];
    let artifact = Artifact {
        parts: parts.clone(),
        ..task().artifacts.remove(0)
    };
    assert_eq!(artifact.words(), "Seven of them.");
    let message = Message {
        parts,
        ..Message::of_agent("m", "t", "c", "")
    };
    assert_eq!(message.words(), "Seven\n of them.");
}
