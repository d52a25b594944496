//! What a newcomer finds: the agent card, the documents, the program for agents' owners.

use crate::harness::{Engine, Home, Setup, TestServer, stand_in};
use axum::{Json, Router, routing};
use serde_json::{Value, json};
use std::{collections::BTreeSet, os::unix::fs::PermissionsExt};

const CARD: &str = "/.well-known/agent-card.json";

/// None of this touches the database.
async fn start(setup: impl FnOnce(Setup) -> Setup) -> TestServer {
    setup(Setup::new(Engine::Sqlite)).start().await
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let fields = value.as_object().unwrap().keys();
    fields.map(String::as_str).collect()
}

#[tokio::test]
async fn the_card_has_the_documents_fields() {
    let server = start(|setup| setup.env("PUBLIC_URL", "https://rooms.example/")).await;
    let card = server.anonymous().seen_from_outside().get(CARD).await.ok();
    for field in [
        "name",
        "description",
        "url",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "authentication",
        "skills",
        "documentation",
        "onboarding",
        "byoa_backends",
        "peer_introspection",
        "autonomous_conversation",
        "room_rules_protocol",
    ] {
        assert!(!card[field].is_null(), "{field}");
    }
    assert_eq!(card["url"], "https://rooms.example");
    let onboarding = &card["onboarding"];
    for path in ["starchild_agent", "byoa_one_liner", "public_room_visitor"] {
        for field in ["summary", "command", "details"] {
            assert!(onboarding[path][field].is_string(), "{path} {field}");
        }
    }
    let one_liner = &onboarding["byoa_one_liner"];
    let command = "curl -sSL https://rooms.example/install/{short_code} | sh";
    assert_eq!(one_liner["command"], command);
    assert_eq!(
        keys(&one_liner["options"]),
        BTreeSet::from(["agent_prefix", "backend", "backend_cmd"])
    );
    assert!(onboarding["agent_id_format"].is_object());
    let backends = card["byoa_backends"].as_array().unwrap();
    let names: Vec<&str> = backends
        .iter()
        .map(|b| b["name"].as_str().unwrap())
        .collect();
    let known = [
        "codex",
        "claude",
        "openai",
        "plain",
        "custom",
        "handler",
        "starchild",
        "acp",
        "a2a",
    ];
    assert_eq!(names, known);
    for backend in backends {
        assert!(backend["requires"].is_string() && backend["note"].is_string());
        assert!(backend["stateless"].is_boolean(), "{backend}");
    }
    assert_eq!(
        backends[5]["contract_url"],
        "https://rooms.example/docs/handler-interface"
    );
}

#[tokio::test]
async fn the_card_is_served_once_for_each_version() {
    let server = start(|setup| setup).await;
    let visitor = server.anonymous();
    let reply = visitor.get(CARD).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let etag = reply.header("etag").unwrap().to_owned();
    let again = visitor.get(CARD).header("if-none-match", &etag).await;
    assert_eq!((again.status, again.text()), (304, ""));
    let other = visitor.get(CARD).header("if-none-match", "\"other\"").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn what_the_card_names_is_there() {
    let server = start(|setup| setup).await;
    let card = server.anonymous().get(CARD).await.ok();
    let mut addresses: Vec<&str> = card["documentation"]
        .as_object()
        .unwrap()
        .values()
        .map(|address| address.as_str().unwrap())
        .collect();
    addresses.push(card["documentationUrl"].as_str().unwrap());
    addresses.push(
        card["supportedInterfaces"][3]["protocolBinding"]
            .as_str()
            .unwrap(),
    );
    for address in addresses {
        let path = address.strip_prefix(server.base_url()).unwrap();
        let reply = server.anonymous().get(path).await;
        assert_eq!(reply.status, 200, "{path}");
    }
}

#[tokio::test]
async fn the_a2a_projects_own_sdk_reads_the_card() {
    let python = std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    });
    let server = start(|setup| setup).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/a2a/read_card.py");
    let read = Home::new()
        .run(&[&python, script, server.base_url()], "")
        .await
        .ok();
    let read: Value = serde_json::from_str(&read).unwrap();
    let card = &read["card"];
    assert_eq!(card["name"], "sc-chatroom");
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    let api = format!("{}/docs/api", server.base_url());
    let a2a = format!("{}/a2a", server.base_url());
    assert_eq!(
        card["supportedInterfaces"],
        json!([
            {"url": a2a, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": a2a, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": a2a, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": server.base_url(), "protocolBinding": api, "protocolVersion": "1.0"},
        ])
    );
    assert_eq!(card["skills"].as_array().unwrap().len(), 3);
    assert_eq!(
        keys(&card["securitySchemes"]),
        BTreeSet::from(["identity_token", "room_key", "user_token"])
    );
    assert_eq!(
        read["strictly_the_same"], true,
        "fields that nobody announced"
    );
    assert_eq!(read["older_client_sees"], server.base_url());
    // A client finds an address that it can call.
    assert!(read["client"].is_null(), "{read}");
}

#[tokio::test]
async fn the_pages_load_nothing_from_elsewhere() {
    let server = start(|setup| setup).await;
    for page in ["/", "/view"] {
        let reply = server.anonymous().get(page).await;
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{page}: {policy}");
        assert!(!policy.contains("unsafe"), "{page}: {policy}");
    }
}

#[tokio::test]
async fn every_script_in_the_documents_is_a_script() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let home = Home::new();
    let mut seen = 0;
    for name in ["agent-playbook", "handler-interface"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.md")).unwrap();
        for shell in ["sh", "bash"] {
            for block in text.split(&format!("```{shell}\n")).skip(1) {
                let block = block.split("```").next().unwrap();
                home.run(&["bash", "-n"], block).await.ok();
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// The handlers in the document are whole; only their addresses are changed.
#[tokio::test]
async fn the_handlers_in_the_document_answer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let text = std::fs::read_to_string(format!("{folder}/handler-interface.md")).unwrap();
    let handlers = text.split("```bash\n#!").skip(1);
    let handlers: Vec<String> = handlers
        .map(|block| format!("#!{}", block.split("```").next().unwrap()))
        .collect();
    assert_eq!(handlers.len(), 3);
    let model = async |Json(asked): Json<Value>| {
        let said = format!(
            "You said: {}",
            asked["messages"][0]["content"].as_str().unwrap()
        );
        Json(json!({"choices": [{"message": {"content": said}}]}))
    };
    let service = async |Json(message): Json<Value>| {
        let said = message["content"].as_str().unwrap();
        Json(json!({"reply": format!("You said: {said}")}))
    };
    let routes = Router::new()
        .route("/v1/chat/completions", routing::post(model))
        .route("/rooms/dispatch", routing::post(service));
    let url = stand_in(routes).await;
    let home = Home::new();
    let codex = home.file("codex");
    std::fs::write(&codex, "#!/bin/sh\nprintf 'You said: '\ncat\n").unwrap();
    std::fs::set_permissions(&codex, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path().display());
    let home = home
        .env("PATH", &path)
        .env("MODEL_API_KEY", "key")
        .env("AGENT_TOKEN", "token")
        .env("SCCHAT_USER_ID", "ext_curious_otter-3a9f1c20");
    let words = "a \"quoted\" $(id) `id`\nline";
    for handler in handlers {
        let handler = handler
            .replace("https://models.example.com", &url)
            .replace("https://agent.example.com", &url);
        std::fs::write(home.file("handler.sh"), handler).unwrap();
        let asks = async |sender: &str| {
            let message = json!({"sender_user_id": sender, "via": "web", "content": words});
            home.run(&["bash", "handler.sh"], &message.to_string())
                .await
                .ok()
        };
        assert_eq!(asks("u_alice").await, format!("You said: {words}\n"));
        if !home.reads("handler.sh").contains("/rooms/dispatch") {
            assert_eq!(asks("ext_curious_otter-3a9f1c20").await, "[SILENT]\n");
        }
    }
}

mod programs {
    use super::*;

    #[tokio::test]
    async fn a_program_comes_with_its_digest() {
        let there = tempfile::tempdir().unwrap();
        let folder = there.path();
        // More than is read at once.
        let program: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(folder.join("starchild-darwin-arm64"), &program).unwrap();
        let server = start(|setup| setup.env("ASSETS__FOLDER", folder.to_str().unwrap())).await;
        let visitor = server.anonymous().seen_from_outside();
        let reply = visitor.get("/starchild-darwin-arm64").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.bytes(), program);
        assert_eq!(reply.header("content-length"), Some("1200000"));
        let etag = reply.header("etag").unwrap();
        let digest = visitor.get("/starchild-darwin-arm64.sha256").await;
        let line = format!("{}  starchild-darwin-arm64\n", etag.trim_matches('"'));
        assert_eq!(digest.text(), line);
        let home = Home::new();
        std::fs::write(home.file("starchild-darwin-arm64"), &program).unwrap();
        home.run(&["sha256sum", "-c"], &line).await.ok();
        let again = visitor
            .get("/starchild-darwin-arm64")
            .header("if-none-match", etag)
            .await;
        assert_eq!((again.status, again.text()), (304, ""));
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_the_operators_to_add() {
        let empty = tempfile::tempdir().unwrap();
        let folder = empty.path().to_str().unwrap();
        let server = start(|setup| setup.env("ASSETS__FOLDER", folder)).await;
        for path in ["/starchild-linux-arm64", "/starchild-linux-arm64.sha256"] {
            let words = server.anonymous().get(path).await.refused(404, "not_found");
            assert!(words.contains("starchild-linux-arm64"), "{words}");
            assert!(words.contains("assets.folder"), "{words}");
            assert!(!words.contains(folder), "{words}");
        }
    }

    #[tokio::test]
    async fn an_unknown_platform_is_told_the_known_ones() {
        let server = start(|setup| setup).await;
        for wanted in [
            "plan9-mips",
            "linux-amd64.exe",
            "..%2f..%2fetc%2fpasswd",
            ".sha256",
        ] {
            let reply = server.anonymous().get(format!("/starchild-{wanted}")).await;
            let words = reply.refused(404, "not_found");
            for platform in ["darwin-arm64", "darwin-amd64", "linux-arm64", "linux-amd64"] {
                assert!(words.contains(platform), "{words}");
            }
        }
    }
}
