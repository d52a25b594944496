//! Our requests against the types of the official SDKs, which we did not write.
//! `cargo xtask test` installs them; under plain Cargo run
//! `tests/sdk/install.sh FOLDER` and set `SC_TEST_SDK_PYTHON=FOLDER/bin/python`.

use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server, within};
use openstarry::provider::ProviderKind;
use openstarry::segment::{ContentSegment, Media};
use openstarry::session::{Agent, SessionState, Settings};
use openstarry::tool::{FnTool, Registry, Risk, ToolError, ToolSpec};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[tokio::test]
async fn requests_fit_the_types_of_the_official_sdks() {
    let Some(python) = std::env::var_os("SC_TEST_SDK_PYTHON") else {
        eprintln!("not run: SC_TEST_SDK_PYTHON is not set");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = tempfile::tempdir().unwrap();
    for kind in [
        ProviderKind::OpenAi,
        ProviderKind::Responses,
        ProviderKind::Anthropic,
        ProviderKind::Gemini,
    ] {
        let mut files = requests(kind, folder.path()).await;
        files.push(here.join(format!("golden/{}.json", kind.word())));
        let out = Command::new(&python)
            .arg(here.join("sdk/validate.py"))
            .arg(kind.word())
            .args(&files)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        let failed = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{kind:?}: {said}{failed}");
    }
}

/// The requests of a session with thoughts, calls, pictures and failures in it.
async fn requests(kind: ProviderKind, folder: &Path) -> Vec<PathBuf> {
    // OpenAI's own chat completions show no thoughts.
    let shown = |say: &&Say| kind != ProviderKind::OpenAi || !matches!(say, Say::Think(_));
    let reply = |says: &[Say]| {
        let says: Vec<Say> = says.iter().filter(shown).cloned().collect();
        Reply::stream(kind, wire::body(kind, &says))
    };
    let server = Server::start(vec![
        reply(&[
            Say::Think("hm"),
            Say::Text("Let me see."),
            call("a", "look", "{}"),
            call("b", "fail", "{}"),
        ]),
        reply(&[Say::Think("so"), call("c", "fail", "{}")]),
        reply(&[call("d", "fail", "{}")]),
        reply(&[Say::Text("It is a cat.")]),
    ])
    .await;
    let spec = |name: &str| {
        let schema = json!({ "type": "object", "properties": {} });
        ToolSpec::new(name, "A tool.", Risk::Safe, schema)
    };
    let look = FnTool::new(spec("look"), async |_| {
        let picture = Media::base64("image/png", "iVBORw0KGgo=");
        Ok(vec![ContentSegment::Image(picture)])
    });
    let fail = FnTool::new(spec("fail"), async |_| Err(ToolError::new("no luck")));
    let registry = Registry::new();
    registry.add(vec![Arc::new(look), Arc::new(fail)]).unwrap();
    let settings = Settings {
        system: "You help.".into(),
        ..Settings::default()
    };
    let agent = Agent::new(server.provider(kind), registry, settings);
    let session = agent.session(SessionState::new("s"), None);
    for question in ["What is it?", "Really?"] {
        within(session.say(question).unwrap().outcome()).await;
    }
    let asked = server.asked();
    let files = asked.iter().enumerate().map(|(at, asked)| {
        let path = folder.join(format!("{}-{at}.json", kind.word()));
        std::fs::write(&path, asked.body.to_string()).unwrap();
        path
    });
    files.collect()
}
