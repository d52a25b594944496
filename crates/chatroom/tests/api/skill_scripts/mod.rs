//! The scripts of the skills, under the names and arguments that agents in the field call, run with
//! python3 against the real server and a host that keeps to its contract.

mod rooms;
mod updating;

use crate::{
    harness::{AgentHost, Engine, Home, Ran, Setup, TestServer, stand_in},
    skills::unpacked,
};
use axum::{Router, routing};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

const WORKROOM: [&str; 26] = [
    "archive",
    "attach",
    "create",
    "data",
    "gen_handler",
    "install_soul",
    "invite",
    "join",
    "kick",
    "leave",
    "list",
    "list_invites",
    "list_room_keys",
    "members",
    "read",
    "revoke_invite",
    "revoke_room_key",
    "room_key",
    "room_rules",
    "rotate_key",
    "rules",
    "self_update",
    "send",
    "send_handoff",
    "status",
    "whois",
];
const CLI_BRIDGE: [&str; 3] = ["cli_list", "cli_login", "cli_revoke"];

/// Runs `NAME.py ARGUMENTS` as an agent does, with this on standard input.
async fn script(home: &Home, line: &[&str], input: &str) -> Ran {
    let skill = match line[0].starts_with("cli_") {
        true => "cli-bridge",
        false => "workroom",
    };
    let path = format!("{skill}/scripts/{}.py", line[0]);
    let python = ["python3", path.as_str()];
    home.run(&[&python[..], &line[1..]].concat(), input).await
}

/// The one JSON object that a script prints.
async fn answer(home: &Home, line: &[&str]) -> Value {
    answer_to(home, line, "").await
}

async fn answer_to(home: &Home, line: &[&str], input: &str) -> Value {
    let printed = script(home, line, input).await.ok();
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{line:?}: {error}: {printed}"))
}

async fn prints(home: &Home, line: &[&str]) -> String {
    script(home, line, "").await.ok()
}

/// Why a script failed.
async fn complains(home: &Home, line: &[&str]) -> String {
    let said = script(home, line, "").await.failed(1);
    assert!(!said.contains("Traceback"), "{line:?}: {said}");
    said
}

/// An agent of this user, beside its host, with the environment that the scripts read.
async fn agent(server: &TestServer, host: &AgentHost, user: &str, skill: &str) -> Home {
    let home = unpacked(server, skill).await;
    home.env("CHATROOM_SERVER_URL", server.base_url())
        .env("STARCHILD_SERVER", "")
        .env("CLAWD_BASE_URL", &host.url)
        .env("AGENT_BASE_URL", &host.url)
        .env("CONTAINER_JWT", server.user(user).token().unwrap())
        .env("CONTAINER_ID", "568359")
}

#[tokio::test]
async fn the_bundles_hold_every_script_that_agents_call() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let home = unpacked(&server, "workroom").await;
    let bridge = unpacked(&server, "cli-bridge").await;
    let scripts = |home: &Home, skill: &str| {
        let folder = std::fs::read_dir(home.file(&format!("{skill}/scripts"))).unwrap();
        let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| !name.starts_with('_'))
            .map(|name| name.strip_suffix(".py").unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(scripts(&home, "workroom"), WORKROOM);
    assert_eq!(scripts(&bridge, "cli-bridge"), CLI_BRIDGE);
    assert_eq!(
        home.reads("workroom/scripts/_common.py"),
        bridge.reads("cli-bridge/scripts/_common.py"),
        "one file, in each bundle"
    );
    // The oldest Python that agents have.
    let parse = "import ast, glob\n\
        for file in glob.glob('*/scripts/*.py'):\n    \
            ast.parse(open(file, encoding='utf-8').read(), file, feature_version=(3, 8))";
    for home in [&home, &bridge] {
        home.run(&["python3", "-c", parse], "").await.ok();
    }
    for (home, skill) in [(&home, "workroom"), (&bridge, "cli-bridge")] {
        let about = home.reads(&format!("{skill}/SKILL.md"));
        let version = about
            .lines()
            .find_map(|line| line.strip_prefix("version: "));
        let numbers: Vec<u32> = version
            .unwrap()
            .split('.')
            .map(|number| number.parse().unwrap())
            .collect();
        assert!(numbers > vec![0, 5, 2], "{numbers:?}");
        for name in if skill == "workroom" {
            &WORKROOM[..]
        } else {
            &CLI_BRIDGE
        } {
            assert!(
                about.contains(&format!("`{name}.py")),
                "{skill} tells of {name}"
            );
        }
    }
}

#[tokio::test]
async fn a_script_says_what_to_change() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    for (line, words) in [
        (&["send", "rm_$(id)", "x"][..], "begins with rm_"),
        (&["send", "rm_a/../b", "x"], "begins with rm_"),
        (&["send", "rm_aaaaaa", "x"], "not_found: Room not found"),
        (&["send", "rm_aaaaaa"], "say what to send"),
        (&["join", "nonsense"], "no invite"),
        (&["join", "inv_a.b.c"], "no invite"),
        (&["join", "i_unknown1"], "not_found"),
        (&["read", "rm_aaaaaa", "--since", "1;id"], "invalid int"),
        (&["members"], "required"),
        (&["kick", "rm_aaaaaa", ".."], "names nothing"),
        (&["invite", "rm_aaaaaa", "--agent-prefix", "a'b"], "a-z"),
        (
            &["gen_handler", "--user-id", "a;b", "--backend", "codex"],
            "an id is",
        ),
        (
            &["gen_handler", "--user-id", "a", "--backend", "x"],
            "codex",
        ),
    ] {
        let said = complains(&home, line).await;
        assert!(said.contains(words), "{line:?}: {said}");
    }
    let home = home.env("CONTAINER_JWT", "two\nlines");
    let said = complains(&home, &["list"]).await;
    assert!(said.contains("no token has"), "{said}");
    let home = home.env("CONTAINER_JWT", "");
    let said = complains(&home, &["list"]).await;
    assert!(said.contains("CONTAINER_JWT"), "{said}");
}

#[tokio::test]
async fn an_answer_of_any_kind_is_survived() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let elsewhere = server.base_url().to_owned();
    let routes = Router::new()
        .route(
            "/large/rooms",
            routing::get(|| async { "x".repeat(10_000_000) }),
        )
        .route(
            "/html/rooms",
            routing::get(|| async { "<html>\u{1b}]0;x\u{7}" }),
        )
        .route("/list/rooms", routing::get(|| async { "[]" }))
        .route(
            "/deep/rooms",
            routing::get(|| async { "[".repeat(200_000) }),
        )
        .route(
            "/away/rooms",
            routing::get(async move || axum::response::Redirect::temporary(&elsewhere)),
        );
    let url = stand_in(routes).await;
    for (path, words) in [
        ("large", "more than"),
        ("html", "other than JSON"),
        ("list", "other than JSON"),
        ("deep", "other than JSON"),
        ("away", "answered 307"),
        ("missing", "answered 404"),
    ] {
        let home = agent(&server, &host, "u_alice", "workroom").await;
        let home = home.env("CHATROOM_SERVER_URL", &format!("{url}/{path}"));
        let said = complains(&home, &["list"]).await;
        assert!(said.contains(words), "{path}: {said}");
    }
    let home = home.env("CHATROOM_SERVER_URL", "http://127.0.0.1:9");
    let said = complains(&home, &["list"]).await;
    assert!(said.contains("cannot reach"), "{said}");
}

#[tokio::test]
async fn a_soul_is_written_and_taken_out_and_the_rest_stays() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let home = unpacked(&server, "workroom").await;
    let home = home.env("WORKSPACE_DIR", "work");
    std::fs::create_dir(home.file("work")).unwrap();
    let soul = prints(&home, &["install_soul", "--show"]).await;
    assert!(soul.contains("[SILENT]"), "{soul}");
    for before in ["I am \r\nan otter", "I am\n", ""] {
        std::fs::write(home.file("work/SOUL.md"), before).unwrap();
        prints(&home, &["install_soul"]).await;
        let with = home.reads("work/SOUL.md");
        assert!(with.starts_with(before) && with.contains(&soul), "{with}");
        prints(&home, &["install_soul"]).await;
        assert_eq!(home.reads("work/SOUL.md"), with, "once is enough");
        std::fs::write(home.file("work/SOUL.md"), format!("{with}mine")).unwrap();
        prints(&home, &["install_soul", "--uninstall"]).await;
        assert_eq!(home.reads("work/SOUL.md"), format!("{before}mine"));
    }
}

#[tokio::test]
async fn a_generated_handler_answers_when_called() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let home = unpacked(&server, "workroom").await;
    let generate = [
        "gen_handler",
        "--user-id",
        "ext_otter-3a9f1c20",
        "--backend",
        "custom",
    ];
    prints(
        &home,
        &[&generate[..], &["--output", "handler.sh"]].concat(),
    )
    .await;
    let again = complains(
        &home,
        &[&generate[..], &["--output", "handler.sh"]].concat(),
    )
    .await;
    assert!(again.contains("is there already"), "{again}");
    let always = prints(&home, &[&generate[..], &["--always-reply"]].concat()).await;
    std::fs::write(home.file("always.sh"), always).unwrap();
    let message = |content: &str| {
        json!({"sender_user_id": "u_alice", "via": "web", "content": content, "seq": 1}).to_string()
    };
    for (handler, content, answers) in [
        (
            "handler.sh",
            "@ext_otter-3a9f1c20 hello $(touch pwned)",
            true,
        ),
        ("handler.sh", "@otter-3a9f1c20 hello", true),
        ("handler.sh", "hello", false),
        ("always.sh", "hello", true),
    ] {
        let said = home.run(&["bash", handler], &message(content)).await.ok();
        assert_eq!(said != "[SILENT]\n", answers, "{content}: {said}");
    }
    assert!(!home.file("pwned").exists());
    for backend in ["codex", "claude", "openai", "plain"] {
        let text = prints(
            &home,
            &["gen_handler", "--user-id", "a", "--backend", backend],
        )
        .await;
        std::fs::write(home.file("other.sh"), text).unwrap();
        // A handler to start from has a prompt, whether its owner takes it or not.
        let check = ["shellcheck", "--exclude=SC2034", "other.sh"];
        home.run(&check, "").await.ok();
    }
}

#[tokio::test]
async fn a_terminal_is_logged_in_and_out_with_the_scripts() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "cli-bridge").await;
    let printed = prints(&home, &["cli_login", "--label", "Alice's \"laptop\""]).await;
    let bundle = printed.trim_end().strip_prefix("starchild_").unwrap();
    let bundle: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(bundle).unwrap()).unwrap();
    assert_eq!(bundle["d"], server.base_url());
    assert_eq!(
        (&bundle["c"], &bundle["s"]),
        (&json!(""), &json!("chat:bridge:cli"))
    );
    assert_eq!(host.keys()[0]["scope"], "chat:bridge:cli");
    let code = bundle["k"].as_str().unwrap();
    let listed = answer(&home, &["cli_list"]).await;
    assert_eq!(listed["keys"][0]["label"], "Alice's \"laptop\"");
    let revoked = answer(&home, &["cli_revoke", code]).await;
    assert_eq!(
        (&revoked["ok"], &revoked["key_ended"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(host.keys(), [Value::Null; 0]);
    let said = complains(&home, &["cli_revoke", "sc_../x"]).await;
    assert!(said.contains("cli_list.py"), "{said}");

    let home = home.env("CONTAINER_JWT", "rubbish");
    complains(&home, &["cli_login"]).await;
    assert_eq!(
        host.keys(),
        [Value::Null; 0],
        "a refused login leaves no key behind"
    );
}
