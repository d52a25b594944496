//! What a program that strangers' words reach finds in its environment.

use crate::{
    backends::{Scene, put_on_path},
    harness::Owner,
};
use std::path::Path;

fn with_secrets(owner: &mut Owner) {
    for (name, value) in [
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("USER_JWT", "our-secret"),
        ("SC_CHATROOM__DATABASE_URL", "our-secret"),
        ("OPENAI_API_KEY", "sk-model"),
        ("HERMES_API_KEY", "sk-hermes"),
        ("EXTRA", "wanted"),
    ] {
        owner.env.push((name, value.into()));
    }
}

/// The names of the variables in what `env` printed.
fn names(printed: &str) -> Vec<&str> {
    let lines = printed.lines().filter_map(|line| line.split_once('='));
    let shells = ["PWD", "OLDPWD", "SHLVL", "_"];
    let is_name = |name: &&str| !name.contains([' ', '"']) && !shells.contains(name);
    let mut names: Vec<_> = lines.map(|(name, _)| name).filter(is_name).collect();
    names.sort_unstable();
    names
}

/// What may be there by itself.
fn is_usual(name: &str) -> bool {
    matches!(name, "PATH" | "HOME" | "LANG" | "TMPDIR")
        || name.starts_with("LC_")
        || name.starts_with("SCCHAT_")
}

#[tokio::test]
async fn a_coding_agent_gets_a_clean_environment_a_folder_of_its_own_and_no_tools() {
    for (backend, limits) in [
        ("codex", "--sandbox read-only -c features.shell_tool=false"),
        ("claude", "--tools  --strict-mcp-config"),
    ] {
        let add = ["--backend", backend, "--env", "EXTRA"];
        let scene = Scene::new(&add, async |owner| {
            with_secrets(owner);
            owner.env.push(("ANTHROPIC_API_KEY", "sk-other".into()));
            put_on_path(owner, backend, "cat > /dev/null; echo \"$*\"; pwd; env");
        })
        .await;
        let answer = scene.ask("what do you see?").await;
        let mut lines = answer.lines();
        let (args, folder) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(args.contains(limits), "{args}");
        assert_eq!(Path::new(folder), scene.owner.place().join("work"));
        let own_key = if backend == "codex" {
            "OPENAI_API_KEY"
        } else {
            "ANTHROPIC_API_KEY"
        };
        for name in names(&answer) {
            assert!(
                is_usual(name) || name == "EXTRA" || name == own_key,
                "{backend} gets {name}"
            );
        }
        for found in ["SCCHAT_ROOM_ID=rm_", "EXTRA=wanted", own_key] {
            assert!(answer.contains(found), "{answer}");
        }
    }
}

#[tokio::test]
async fn an_acp_agent_gets_a_clean_environment() {
    let agent = Path::new(env!("CARGO_BIN_EXE_starchild")).with_file_name("examples/acp_agent");
    let body = format!("env > seen; exec '{}'", agent.display());
    let add = [
        "--backend",
        "acp",
        "--command",
        "my_agent",
        "--env",
        "EXTRA",
    ];
    let scene = Scene::new(&add, async |owner| {
        with_secrets(owner);
        put_on_path(owner, "my_agent", &body);
    })
    .await;
    scene.ask("hello").await;
    let seen = std::fs::read_to_string(scene.owner.place().join("work/seen")).unwrap();
    for name in names(&seen) {
        assert!(is_usual(name) || name == "EXTRA", "it gets {name}");
    }
    assert!(seen.contains("EXTRA=wanted"), "{seen}");
}

#[tokio::test]
async fn the_owners_own_program_keeps_its_environment_less_our_secrets() {
    let add = ["--backend", "custom", "--command", "cat > /dev/null; env"];
    let scene = Scene::new(&add, async |owner| with_secrets(owner)).await;
    let answer = scene.ask("what do you see?").await;
    for name in ["HERMES_API_KEY", "AWS_SECRET_ACCESS_KEY", "SCCHAT_USER_ID"] {
        assert!(names(&answer).contains(&name), "{answer}");
    }
    assert!(!answer.contains("our-secret"), "{answer}");
}
