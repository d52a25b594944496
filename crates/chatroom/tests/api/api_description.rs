//! The API's description, as others' programs read and use it. Tests run in the order of their names,
//! and the longest of all are here: they begin early.

use crate::harness::{Engine, Setup, TestServer, clients, one_engine};
use serde_json::Value;
use std::path::PathBuf;
use tokio::process::Command;

one_engine![every_part_of_a_request_has_bounds];

/// What the document says.
async fn document(server: &TestServer) -> Value {
    server.anonymous().get("/openapi.json").await.ok()
}

/// The document as a file.
async fn saved(server: &TestServer) -> PathBuf {
    let file = server.folder().join("openapi.json");
    let document = document(server).await;
    std::fs::write(&file, document.to_string()).unwrap();
    file
}

/// Runs a program to its end, which must be a good one; gives what it said.
async fn done(command: &mut Command) -> String {
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    said
}

/// Whether a schema says how much of it there may be.
fn is_bounded(schema: &Value) -> bool {
    let has = |name: &str| schema.get(name).is_some();
    let kind = |name: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    };
    let all = |name: &str| {
        schema[name]
            .as_array()
            .is_some_and(|all| all.iter().all(is_bounded))
    };
    has("$ref") // words, or an object whose fields are looked at themselves
        || has("enum")
        || kind("boolean")
        || (kind("string") && has("maxLength"))
        || (kind("integer") && has("minimum"))
        || (kind("array") && has("maxItems"))
        || kind("null")
        || kind("object")
        || all("oneOf")
}

async fn every_part_of_a_request_has_bounds(setup: Setup) {
    let server = setup.start().await;
    let document = document(&server).await;
    let mut without = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if !is_bounded(&parameter["schema"]) {
                    without.push(format!("{method} {path}: {}", parameter["name"]));
                }
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let Some(name) = body["$ref"].as_str().and_then(|r| r.rsplit('/').next()) else {
                continue;
            };
            let fields = &document["components"]["schemas"][name]["properties"];
            for (field, schema) in fields.as_object().into_iter().flatten() {
                if !is_bounded(schema) {
                    without.push(format!("{name}.{field}"));
                }
            }
        }
    }
    without.sort();
    without.dedup();
    assert!(
        without.is_empty(),
        "give these bounds in src/api/bounds.rs: {without:#?}"
    );
}

#[tokio::test]
async fn a_client_that_a_generator_made_works() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let file = saved(&server).await;
    let library = server.folder().join("sc_chatroom_client");
    let mut generate = Command::new(clients().join("bin/openapi-python-client"));
    // Its formatter is beside it.
    let path = std::env::var("PATH").unwrap();
    generate.env(
        "PATH",
        format!("{}:{path}", clients().join("bin").display()),
    );
    generate.args([
        "generate",
        "--meta",
        "none",
        "--fail-on-warning",
        "--config",
    ]);
    generate.args(["tests/clients/openapi-python-client.yaml", "--output-path"]);
    done(generate.arg(&library).arg("--path").arg(&file)).await;
    let alice = server.user("u_alice");
    let mut used = Command::new(clients().join("bin/python"));
    used.arg("tests/clients/generated_client.py");
    used.env("PYTHONPATH", server.folder())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let said = done(used.args([server.base_url(), alice.token().unwrap()])).await;
    assert_eq!(said.trim(), "used");
}

mod requests_made_from_the_description_are_answered_as_it_says {
    use super::are_answered_as_described;

    #[tokio::test]
    async fn get() {
        are_answered_as_described(&["--include-method", "GET"]).await;
    }

    #[tokio::test]
    async fn post() {
        are_answered_as_described(&["--include-method", "POST"]).await;
    }

    #[tokio::test]
    async fn others() {
        are_answered_as_described(&["--exclude-method", "GET", "--exclude-method", "POST"]).await;
    }
}

/// Lets a program that others made try the operations of these methods. Each try is a process, and no
/// process uses more than one core.
async fn are_answered_as_described(methods: &[&str]) {
    let server = Setup::new(Engine::Sqlite).start().await;
    let file = saved(&server).await;
    let bearer = format!(
        "Authorization: Bearer {}",
        server.user("u_fuzz").token().unwrap()
    );
    let mut run = Command::new(clients().join("bin/st"));
    run.args([
        "--config-file",
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/clients/schemathesis.toml"
        ),
        "run",
    ]);
    run.arg(&file)
        .args(["--url", server.base_url(), "--header", &bearer]);
    run.args([
        "--checks",
        "all",
        "--phases",
        "coverage,fuzzing",
        "--max-examples",
        "3",
    ]);
    run.args([
        "--seed",
        "1",
        "--no-shrink",
        "--continue-on-failure",
        "--warnings",
        "off",
    ]);
    run.args(["--request-timeout", "20", "--max-response-time", "20"]);
    run.args(methods);
    // What it remembers of one run would be tried again in the next.
    run.current_dir(server.folder());
    run.env("HYPOTHESIS_STORAGE_DIRECTORY", server.folder());
    let said = done(&mut run).await;
    assert!(said.contains("generated"), "{said}");
}
