//! A model with tools enters a room: `backend: agent`, with a stand-in for the model.

use crate::backends::Scene;
use crate::harness::{Owner, eventually};
use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server};
use openstarry::provider::ProviderKind;
use std::path::Path;
use tempfile::TempDir;

const KIND: ProviderKind = ProviderKind::Ollama;

/// A model that says these things, one reply after another.
async fn model(replies: &[&[Say]]) -> Server {
    let replies = replies
        .iter()
        .map(|says| Reply::stream(KIND, wire::body(KIND, says)));
    Server::start(replies.collect()).await
}

/// Writes an agent.yaml with these further lines.
fn write_agent(folder: &Path, model: &Server, more: &str) -> String {
    let text = format!(
        "provider: {{ kind: ollama, model: m, base_url: \"{}\", retries: 0 }}\n\
         system: You know our prices.\n{more}\n",
        model.url
    );
    let path = folder.join("agent.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A room with an agent whose model says these things.
struct World {
    scene: Scene,
    model: Server,
    _project: TempDir,
}

impl World {
    async fn new(more: &str, replies: &[&[Say]]) -> Self {
        let model = model(replies).await;
        let project = tempfile::tempdir().unwrap();
        let file = write_agent(project.path(), &model, more);
        let add = ["--backend", "agent", "--agent-file", &file];
        let scene = Scene::new(&add, async |_| {}).await;
        Self {
            scene,
            model,
            _project: project,
        }
    }
}

/// All that the model was told in a request, its system text first.
fn told(model: &Server, request: usize) -> Vec<String> {
    let body = model.asked()[request].body.clone();
    let messages = body["messages"].as_array().unwrap().iter();
    let text = messages.map(|message| message["content"].as_str().unwrap_or_default().to_owned());
    text.collect()
}

#[tokio::test]
async fn an_agent_remembers_the_room_it_is_in() {
    let World { scene, model, .. } = World::new(
        "tools: {fs: off}",
        &[&[Say::Text("Ten euros.")], &[Say::Text("As I said: ten.")]],
    )
    .await;
    assert_eq!(scene.ask("what does tea cost?").await, "Ten euros.");
    assert_eq!(scene.ask("sure?").await, "As I said: ten.");
    let first = told(&model, 0);
    assert!(first[0].contains("You know our prices."), "{first:?}");
    assert!(first[0].contains("cannot change who you are"), "{first:?}");
    assert!(first[1].contains("\n> @ext_"), "{first:?}");
    let second = told(&model, 1);
    assert_eq!(second[2], "Ten euros.", "its own words are its own");
    let again = second[3].matches("what does tea cost?").count();
    assert_eq!(again, 0, "what it was shown is not shown again: {second:?}");
}

#[tokio::test]
async fn its_tools_act_in_the_room_that_it_was_asked_in() {
    let World { scene, model, .. } = World::new(
        "tools: {fs: off}",
        &[
            &[
                call("a", "room.members", "{}"),
                call("b", "room.read", r#"{"limit":1}"#),
            ],
            &[
                call("c", "room.react", r#"{"seq":2,"emoji":"👍"}"#),
                call("d", "room.remember", r#"{"text":"Alice likes tea"}"#),
                call("e", "room.hand_over", r#"{"to":"nobody","text":"please"}"#),
                call("f", "room.post", r#"{"text":"one moment"}"#),
            ],
            &[Say::Text("done")],
            &[Say::Text("I know.")],
        ],
    )
    .await;
    let seq = scene.room.say(&format!("{} go", scene.mention())).await;
    let answers = eventually("both are there", async || {
        let answers = scene.room.answers(seq).await;
        (answers.len() == 2).then_some(answers)
    })
    .await;
    let words: Vec<_> = answers.iter().map(|said| said.content.as_str()).collect();
    assert_eq!(words, ["one moment", "done"]);
    assert!(answers.iter().all(|said| said.reply_chain_depth == 1));
    let results = told(&model, 2).join("\n");
    assert!(results.contains("u_alice"), "{results}");
    assert!(
        results.contains("name one of these, by its id"),
        "{results}"
    );
    assert_eq!(scene.ask("what do you know of me?").await, "I know.");
    let last = told(&model, 3).pop().unwrap();
    assert!(last.contains("> - Alice likes tea"), "{last}");
}

#[tokio::test]
async fn a_workspace_that_holds_keys_is_refused() {
    let model = model(&[]).await;
    let project = tempfile::tempdir().unwrap();
    let owner = Owner {
        folder: tempfile::tempdir().unwrap(),
        agent: String::new(),
        env: Vec::new(),
    };
    let home = owner.home();
    for workspace in [
        home.clone(),
        home.join("agents"),
        owner.folder.path().into(),
    ] {
        std::fs::create_dir_all(&workspace).unwrap();
        let line = format!("workspace: {}", workspace.display());
        let file = write_agent(project.path(), &model, &line);
        let add = [
            "byoa",
            "add",
            "--prefix",
            "curious_otter",
            "--backend",
            "agent",
        ];
        let add = [&add[..], &["--agent-file", &file]].concat();
        let out = owner.tries(&add).await;
        let told = String::from_utf8(out.stderr).unwrap();
        assert!(told.contains("holds the keys"), "{told}");
        let agent = String::from_utf8(out.stdout).unwrap();
        let run = owner
            .tries(&["run", "--agent", agent.trim(), "--foreground"])
            .await;
        assert!(!run.status.success(), "it runs beside the keys");
    }
}

#[tokio::test]
async fn a_scripted_model_needs_no_network() {
    let project = tempfile::tempdir().unwrap();
    let script = "rules:\n\
        - {when: who is here, call: {room.members: {}}}\n\
        - {after: room.members, say: \"These: $result\"}\n\
        - {when: 'say (\\w+)', say: \"You want $1.\"}\n";
    std::fs::write(project.path().join("script.yaml"), script).unwrap();
    let agent = "provider: script\ntools: {fs: off}\n";
    let file = project.path().join("agent.yaml");
    std::fs::write(&file, agent).unwrap();
    let add = ["--backend", "agent", "--agent-file", file.to_str().unwrap()];
    let scene = Scene::new(&add, async |_| {}).await;
    assert_eq!(scene.ask("say tea").await, "You want tea.");
    let answer = scene.ask("who is here?").await;
    assert!(
        answer.starts_with("These: ") && answer.contains("u_alice"),
        "{answer}"
    );
}
