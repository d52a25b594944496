//! Every backend but `handler`, as its users meet it: the real `starchild` against a real
//! `sc-chatroom`, with stand-ins for what is not on this machine.

use crate::harness::{Daemon, Owner, Room, Server};
use crate::stand_in::StandIn;
use crate::support::{self, wire};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::UserId;
use std::path::Path;

/// A room with a running agent in it.
pub struct Scene {
    pub room: Room,
    pub owner: Owner,
    pub daemon: Daemon,
    pub server: Server,
}

impl Scene {
    /// An agent with this backend. `prepare` is what its owner does before.
    pub async fn new(add: &[&str], prepare: impl AsyncFnOnce(&mut Owner)) -> Self {
        Self::with_yaml(add, "", prepare).await
    }

    /// The same, with these further lines in handler.yaml.
    pub async fn with_yaml(
        add: &[&str],
        yaml: &str,
        prepare: impl AsyncFnOnce(&mut Owner),
    ) -> Self {
        let server = Server::start().await;
        let room = Room::new(&server.alice()).await;
        let mut owner = Owner {
            folder: tempfile::tempdir().unwrap(),
            agent: String::new(),
            env: Vec::new(),
        };
        prepare(&mut owner).await;
        let url = server.url();
        let mut words = vec!["byoa", "add", "--prefix", "curious_otter", "--server", &url];
        words.extend(add);
        owner.agent = owner.types(&words).await.trim().to_owned();
        let file = owner.place().join("handler.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}{yaml}")).unwrap();
        owner.joins(&room).await;
        let daemon = owner.runs().await;
        Self {
            room,
            owner,
            daemon,
            server,
        }
    }

    /// The agent, as the server knows it.
    pub fn user(&self) -> UserId {
        format!("ext_{}", self.owner.agent).parse().unwrap()
    }

    /// What others call the agent.
    pub fn mention(&self) -> String {
        format!("@ext_{}", self.owner.agent)
    }

    /// The answer to a message that mentions the agent.
    pub async fn ask(&self, content: &str) -> String {
        self.room
            .ask(&format!("{} {content}", self.mention()))
            .await
    }
}

/// Puts a program on the owner's PATH.
pub fn put_on_path(owner: &mut Owner, name: &str, body: &str) {
    let bin = owner.folder.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    owner.write_script(
        &format!("bin/{name}"),
        &format!("#!/bin/sh\n{body}\n"),
        0o755,
    );
    let path = std::env::var("PATH").unwrap();
    owner
        .env
        .push(("PATH", format!("{}:{path}", bin.display())));
}

#[tokio::test]
async fn codex_and_claude_answer_with_the_prompt_on_standard_input() {
    for (backend, first) in [("codex", "exec --skip-git-repo-check "), ("claude", "-p ")] {
        let scene = Scene::new(&["--backend", backend, "--model", "big"], async |owner| {
            put_on_path(
                owner,
                backend,
                "echo \"args: $*\"; tail -1; echo thinking >&2",
            );
        })
        .await;
        let answer = scene.ask("what is 2+2?").await;
        let last = format!("> {} what is 2+2?", scene.mention());
        let (args, asked) = answer.split_once('\n').unwrap();
        assert!(args.starts_with(&format!("args: {first}")), "{args}");
        assert!(args.contains("--model big "), "{args}");
        assert_eq!(asked, last);
        assert!(scene.owner.log().contains("stderr: thinking"));
    }
}

#[tokio::test]
async fn only_what_is_meant_for_the_agent_reaches_the_backend() {
    let body = "cat >> asked; echo >> asked; echo answered";
    let scene = Scene::new(&["--backend", "custom", "--command", body], async |_| {}).await;
    scene.room.say("good morning, everybody").await;
    assert_eq!(scene.ask("hello").await, "answered");
    let own = scene.room.said().await.pop().unwrap();
    assert_eq!(own.content, "answered");
    // A reply to what it said is meant for it, without a mention.
    let reply = client::PostMessage {
        content: "go on".into(),
        reply_to_seq: Some(own.seq),
        ..Default::default()
    };
    let posted = scene
        .room
        .alice
        .post_message(&scene.room.id, &reply, None)
        .await;
    assert_eq!(
        scene.room.answer(posted.unwrap().seq).await.content,
        "answered"
    );
    let asked = std::fs::read_to_string(scene.owner.place().join("asked")).unwrap();
    assert_eq!(
        asked.matches("The message to answer.").count(),
        2,
        "{asked}"
    );
}

#[tokio::test]
async fn the_prompt_has_the_rules_of_the_day_and_what_was_said() {
    let scene = Scene::new(&["--backend", "custom", "--command", "cat"], async |_| {}).await;
    scene
        .room
        .alice
        .set_rules(&scene.room.id, "Speak in rhymes.")
        .await
        .unwrap();
    scene.room.say("the sky is green").await;
    let prompt = scene.ask("is that so?").await;
    assert!(prompt.contains("> Speak in rhymes.\n"), "{prompt}");
    assert!(prompt.contains("> the sky is green\n"), "{prompt}");
    scene
        .room
        .alice
        .set_rules(&scene.room.id, "Speak in prose.")
        .await
        .unwrap();
    let prompt = scene.ask("and now?").await;
    // The last answer, quoted, holds the old rules too.
    let told: Vec<_> = prompt
        .lines()
        .filter(|line| line.starts_with("The rules"))
        .collect();
    assert!(
        matches!(told[..], [one] if one.contains("version 2")),
        "{prompt}"
    );
    assert!(prompt.contains("\n> Speak in prose.\n"), "{prompt}");
}

#[tokio::test]
async fn openai_asks_the_server_that_the_environment_names() {
    let body = r#"{"choices":[{"message":{"content":"from the model"},"finish_reason":"stop"}]}"#;
    let model = StandIn::always("200 OK", "application/json", body);
    let scene = Scene::new(
        &["--backend", "openai", "--model", "local"],
        async |owner| {
            owner
                .env
                .push(("OPENAI_BASE_URL", format!("{}/v1", model.url())));
            owner.env.push(("OPENAI_API_KEY", "sk-test".into()));
        },
    )
    .await;
    assert_eq!(scene.ask("hello").await, "from the model");
    let request = &model.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert!(!scene.owner.log().contains("sk-test"));
}

#[tokio::test]
async fn plain_says_that_it_is_here() {
    let scene = Scene::new(&["--backend", "plain"], async |_| {}).await;
    let answer = scene.ask("anybody home?").await;
    assert!(
        answer.contains("is here") && answer.contains("anybody home?"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_backend_that_is_silent_or_fails_posts_nothing_and_the_next_message_is_answered() {
    let body = "case $(tail -1) in *hush*) echo '[SILENT] no';; *fail*) echo half; exit 3;; *) echo here;; esac";
    let scene = Scene::new(&["--backend", "custom", "--command", body], async |_| {}).await;
    let mention = scene.mention();
    let silent = scene.room.say(&format!("{mention} hush")).await;
    let failed = scene.room.say(&format!("{mention} fail")).await;
    assert_eq!(scene.ask("hello").await, "here");
    assert!(scene.room.answers(silent).await.is_empty());
    assert!(scene.room.answers(failed).await.is_empty());
    assert!(
        scene.owner.log().contains("exit status: 3"),
        "{}",
        scene.owner.log()
    );
}

/// What an owner logs in with at this bridge.
pub fn login_bundle(bridge: &StandIn) -> String {
    let inside = format!(
        r#"{{"d":"{}","c":"","k":"sc_x9j2k7vp","s":"chat:bridge:cli","exp":4102444800,"l":"x"}}"#,
        bridge.url()
    );
    format!("starchild_{}", URL_SAFE_NO_PAD.encode(inside))
}

#[tokio::test]
async fn the_hosted_agent_answers_through_the_bridge() {
    let bridge = StandIn::always(
        "200 OK",
        "text/event-stream",
        "data: {\"type\":\"thinking\",\"text\":\"hmm\"}\n\ndata: {\"delta\":\"from afar\"}\n\n",
    );
    let bundle = login_bundle(&bridge);
    let scene = Scene::new(&["--backend", "starchild"], async |owner| {
        owner.types(&["login", &bundle]).await;
    })
    .await;
    assert_eq!(scene.ask("hello").await, "from afar");
    let sent: serde_json::Value = serde_json::from_str(&bridge.requests()[0].body).unwrap();
    assert_eq!(sent["thread_id"], format!("chatroom-{}", scene.room.id));
    assert!(!scene.owner.log().contains("x9j2k7vp"));
}

#[tokio::test]
async fn a_coding_agent_answers_over_acp_and_is_denied_what_no_rule_allows() {
    let agent = Path::new(env!("CARGO_BIN_EXE_starchild")).with_file_name("examples/acp_agent");
    let agent = agent.to_str().unwrap();
    let scene = Scene::new(&["--backend", "acp", "--command", agent], async |_| {}).await;
    let first = scene.ask("hello").await;
    assert!(first.contains("session-0 prompt 1"), "{first}");
    let second = scene.ask("hello").await;
    assert!(second.contains("session-0 prompt 2"), "{second}");
    assert_eq!(scene.ask("touch /etc/passwd").await, "chosen: no");
    assert!(scene.owner.log().contains("a permission was denied"));
}

#[tokio::test]
async fn our_own_agent_answers_in_a_room_over_acp() {
    let kind = openstarry::provider::ProviderKind::Ollama;
    let said = wire::body(kind, &[wire::Say::Text("Here I am.")]);
    let model = support::Server::start(vec![support::Reply::stream(kind, said)]).await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("agent.yaml");
    let provider = format!("kind: ollama, model: m, base_url: \"{}\"", model.url);
    std::fs::write(&config, format!("provider: {{ {provider} }}\n")).unwrap();
    let home = folder.path().join("home");
    let command = format!(
        "env STARCHILD_HOME={} {} agent acp --config {}",
        home.display(),
        env!("CARGO_BIN_EXE_starchild"),
        config.display()
    );
    let scene = Scene::new(&["--backend", "acp", "--command", &command], async |_| {}).await;
    assert_eq!(scene.ask("hello").await, "Here I am.");
}

#[tokio::test]
async fn what_a_backend_lacks_is_said_when_the_daemon_starts() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let mut owner = Owner {
        folder: tempfile::tempdir().unwrap(),
        agent: String::new(),
        env: Vec::new(),
    };
    let url = server.url();
    let add = [
        "byoa",
        "add",
        "--prefix",
        "curious_otter",
        "--server",
        &url,
        "--backend",
        "codex",
    ];
    put_on_path(&mut owner, "codex", "echo here");
    owner.agent = owner.types(&add).await.trim().to_owned();
    owner.joins(&room).await;
    owner.env = vec![("PATH", "/nowhere".into())];
    let output = owner.tries(&["run"]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("codex is not on PATH") && said.contains("npm install"),
        "{said}"
    );
}
