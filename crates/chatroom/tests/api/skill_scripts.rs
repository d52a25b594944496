//! The scripts of the skills, under the names and arguments that agents in the field call, run with
//! python3 against the real server and a host that keeps to its contract.

use crate::{
    harness::{AgentHost, Engine, Home, Ran, Setup, TestServer, eventually, one_engine, stand_in},
    skills::unpacked,
};
use axum::{Router, routing};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

one_engine![
    an_owner_runs_a_room_with_the_scripts,
    a_room_can_be_shared_and_closed_with_the_scripts,
    an_agent_that_joined_with_the_scripts_is_called,
    work_is_handed_over,
    what_the_shell_tool_keeps_is_used,
];

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

async fn an_owner_runs_a_room_with_the_scripts(setup: Setup) {
    let server = setup.start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let named = "$(touch pwned) `id`; \"x\" 'y' | & é";
    let made = answer(&home, &["create", named, "lab", "--public"]).await;
    assert_eq!(made["name"], format!("{named} lab"));
    assert_eq!(made["visibility"], "public");
    assert!(!home.file("pwned").exists());
    let room = made["room_id"].as_str().unwrap();
    assert_eq!(answer(&home, &["list"]).await["rooms"][0]["room_id"], room);

    let set = answer_to(&home, &["room_rules", room, "--edit"], "Be brief.\n").await;
    assert_eq!(set["content"], "Be brief.");
    assert_eq!(answer(&home, &["rules", room]).await["version"], 1);
    assert_eq!(prints(&home, &["room_rules", room]).await, "Be brief.\n");
    let data = answer_to(&home, &["data", room, "--edit"], "The file is a.rs").await;
    assert_eq!(data["version"], 1);
    let shown = answer(&home, &["data", room, "--show", "--json"]).await;
    assert_eq!(shown["content"], "The file is a.rs");
    let empty = script(&home, &["data", room, "--edit"], "").await.failed(1);
    assert!(empty.contains("nothing was changed"), "{empty}");

    let sent = answer(
        &home,
        &["send", room, "@bob", "--now", "\u{1b}[31m\"hi\" $(id)"],
    )
    .await;
    let seq = sent["seq"].as_i64().unwrap();
    let message = server.user("u_alice").reads(room, seq).await;
    assert_eq!(message["content"], "@bob --now \u{1b}[31m\"hi\" $(id)");
    let since = (seq - 1).to_string();
    let read = prints(&home, &["read", room, "--since", &since, "--limit", "5"]).await;
    assert_eq!(
        read,
        format!("#{seq} Alice (agent): @bob --now \u{fffd}[31m\"hi\" $(id)\n")
    );
    let of_alice = [
        "read",
        room,
        "--sender_user_id",
        "u_alice",
        "--before",
        "99",
        "--json",
    ];
    assert_eq!(answer(&home, &of_alice).await["messages"][0]["seq"], seq);
    let mine = answer(&home, &["read", room, "--mentions", "me", "--json"]).await;
    assert_eq!(mine["messages"], json!([]));

    assert_eq!(
        answer(&home, &["members", room]).await["members"][0]["role"],
        "owner"
    );
    let whois = prints(&home, &["whois", room]).await;
    assert!(whois.starts_with("Alice (u_alice): owner"), "{whois}");
    let whois = answer(
        &home,
        &["whois", room, "u_alice", "--json", "--recent", "1"],
    )
    .await;
    assert_eq!(whois["recent_messages"][0]["seq"], seq);
    let nobody = complains(&home, &["whois", room, "u_nobody"]).await;
    assert!(nobody.contains("nobody here"), "{nobody}");
}

async fn a_room_can_be_shared_and_closed_with_the_scripts(setup: Setup) {
    let server = setup.start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let home = home.env("CHATROOM_PUBLIC_URL", "https://rooms.example.org");
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;

    let invite = [
        "invite",
        &room,
        "--max-uses",
        "3",
        "--ttl-seconds",
        "600",
        "--display-name",
        "Bob",
        "--backend",
        "codex",
        "--agent-prefix",
        "curious_otter",
    ];
    let invite = answer(&home, &invite).await;
    assert_eq!(invite["max_uses"], 3);
    let command = format!(
        "curl -sSL 'https://rooms.example.org/install/{}?backend=codex&agent_prefix=curious_otter' | sh",
        invite["short_code"].as_str().unwrap()
    );
    assert_eq!(invite["command"], command);
    let code = invite["invite_code"].as_str().unwrap();
    let bob = server
        .anonymous()
        .joins(&room, code, "curious_otter-3a9f1c20")
        .await;
    assert_eq!(bob.joined["user_name"], "Bob");
    let listed = answer(&home, &["list_invites", &room]).await;
    let jti = listed["invites"][0]["code_jti"].as_str().unwrap();
    assert_eq!(
        answer(&home, &["revoke_invite", &room, jti]).await["ok"],
        true
    );
    assert_eq!(
        answer(&home, &["list_invites", &room]).await["invites"],
        json!([])
    );

    let key = answer(&home, &["room_key", &room]).await;
    let link = key["viewer_url"].as_str().unwrap();
    let link = link.strip_prefix("https://rooms.example.org").unwrap();
    assert_eq!(server.anonymous().get(link).await.status, 302);
    answer(&home, &["room_key", &room, "--rotate"]).await;
    let keys = answer(&home, &["list_room_keys", &room]).await;
    assert_eq!(
        keys["room_keys"].as_array().unwrap().len(),
        1,
        "the older one ended"
    );
    let jti = keys["room_keys"][0]["jti"].as_str().unwrap();
    answer(&home, &["revoke_room_key", &room, jti]).await;
    assert_eq!(
        answer(&home, &["revoke_room_key", &room]).await["revoked"],
        0
    );

    let kick = ["kick", &room, bob.id(), "--reason", "too loud"];
    assert_eq!(answer(&home, &kick).await["reason_posted"], true);
    assert!(alice.sees_member(&room, bob.id()).await.is_none());
    let told = format!("{} was removed: too loud", bob.id());
    assert!(alice.hears(&room, 0).await.contains(&told));
    assert_eq!(answer(&home, &["archive", &room]).await["ok"], true);
    let closed = complains(&home, &["send", &room, "hello?"]).await;
    assert!(closed.contains("archived"), "{closed}");
}

async fn an_agent_that_joined_with_the_scripts_is_called(setup: Setup) {
    let server = setup.start().await;
    let host = AgentHost::start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    let home = agent(&server, &host, "u_bob", "workroom").await;
    let joined = answer(&home, &["join", invite["install_url"].as_str().unwrap()]).await;
    assert_eq!(joined["member_kind"], "starchild_agent");
    assert!(!joined.to_string().contains("sk_"), "{joined}");
    assert_eq!(joined["reserved_rooms"].as_array().unwrap().len(), 3);
    let called = async |seq: i64| {
        eventually("the agent is called", async || {
            let calls = host.calls();
            let seqs = calls.iter().map(|call| &call["thread_metadata"]["seq"]);
            seqs.into_iter().any(|it| *it == seq).then_some(())
        })
        .await;
    };
    called(alice.says(&room, "@u_bob are you there?").await).await;

    let rotated = answer(&home, &["rotate_key", &room]).await;
    assert_eq!(rotated["prior_akm_prefix"], "sk_000");
    assert_eq!(host.keys().len(), 1, "the older key ended");
    called(alice.says(&room, "@u_bob and now?").await).await;
    answer(&home, &["attach", &room]).await;
    called(alice.says(&room, "@u_bob still?").await).await;
    let status = answer(&home, &["status", &room]).await;
    assert_eq!(
        status["host"],
        json!({"url": host.url, "reachable": true, "keys": 1})
    );
    assert_eq!(
        (&status["has_akm_key"], &status["key_stale"]),
        (&json!(true), &json!(false))
    );
    // Who joins again has a new key, and no second membership.
    let again = answer(&home, &["join", &alice.invites(&room).await]).await;
    assert_eq!(again["already_member"], true);

    let refused = complains(&home, &["archive", &room]).await;
    assert!(refused.contains("forbidden"), "{refused}");
    let left = answer(&home, &["leave", &room]).await;
    assert_eq!(
        (&left["left_already"], &left["keys_ended"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(host.keys(), [Value::Null; 0]);
    assert_eq!(answer(&home, &["leave", &room]).await["left_already"], true);

    // A join that the room refuses leaves no key behind; a host that is away is named.
    let spent = complains(&home, &["join", invite["invite_code"].as_str().unwrap()]).await;
    assert!(spent.contains("invite_invalid"), "{spent}");
    assert_eq!(host.keys(), [Value::Null; 0]);
    let home = home.env("CLAWD_BASE_URL", "http://127.0.0.1:9");
    let away = complains(&home, &["join", &alice.invites(&room).await]).await;
    assert!(
        away.contains("no agent host") && away.contains("CLAWD_BASE_URL"),
        "{away}"
    );
}

async fn work_is_handed_over(setup: Setup) {
    let server = setup.start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let bob = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    std::fs::write(home.file("fix.py"), "print('```')\n").unwrap();
    let sum = home.run(&["sha256sum", "fix.py"], "").await.ok();
    let sha = &sum[..64];
    let base = ["send_handoff", "--room", &room, "--to"];
    let rest = [
        "--title",
        "Mend\nthe parser",
        "--body",
        "See below.",
        "--attach-code",
        "fix.py",
    ];
    let hand = |to: &'static str, sha: &str| {
        let line = [&base[..], &[to], &rest, &["--expect-sha", sha, "--json"]].concat();
        line.into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let line = hand("curious_otter-3a9f1c20", &sha[..12]);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let posted = answer(&home, &line).await;
    assert_eq!(
        posted["attachments"],
        json!([{"name": "fix.py", "sha256": sha}])
    );
    let message = bob.reads(&room, posted["seq"].as_i64().unwrap()).await;
    let content = format!(
        "@{} **Hand-over: Mend the parser**\n\nSee below.\n\n`fix.py` sha256 `{sha}`\n````\nprint('```')\n````",
        bob.id()
    );
    assert_eq!(message["content"], content);
    assert_eq!(message["mentions_me"], true);

    let before = alice.latest_seq(&room).await;
    for (to, sha, words) in [
        ("curious_otter-3a9f1c20", "00000000", "nothing was sent"),
        ("curious_otter-3a9f1c20", "x;id", "hexadecimal"),
        ("nobody", &sha[..12], "nobody here"),
    ] {
        let line = hand(to, sha);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let said = complains(&home, &line).await;
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(alice.latest_seq(&room).await, before);
}

async fn what_the_shell_tool_keeps_is_used(setup: Setup) {
    let server = setup.start().await;
    let host = AgentHost::start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice.invites(&room).await;
    let home = agent(&server, &host, "u_bob", "workroom").await;
    let home = home
        .env("CONTAINER_JWT", "")
        .env("STARCHILD_SERVER", server.base_url());
    let tool = [
        "sh",
        "workroom/bin/workroom",
        "join",
        &invite,
        "--id",
        "curious_otter-3a9f1c20",
    ];
    home.run(&tool, "").await.ok();
    let sent = answer_to(&home, &["send", &room, "-"], "from a pipe").await;
    let message = alice.reads(&room, sent["seq"].as_i64().unwrap()).await;
    assert_eq!(message["content"], "from a pipe");
    assert_eq!(message["sender_user_id"], "ext_curious_otter-3a9f1c20");
    assert_eq!(answer(&home, &["leave", &room]).await["ok"], true);
    let gone = complains(&home, &["send", &room, "hello?"]).await;
    assert!(gone.contains("no token"), "{gone}");
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

/// An archive as Python writes it: each entry a name, and a kind or what the file says.
async fn archive(home: &Home, entries: Value) -> Vec<u8> {
    let pack = "import io, json, sys, tarfile\n\
        with tarfile.open('made.tar.gz', 'w:gz') as tar:\n    \
            for name, kind, text in json.load(sys.stdin):\n        \
                info = tarfile.TarInfo(name)\n        \
                info.type, info.linkname, info.size = kind.encode(), text, len(text) if kind == '0' else 0\n        \
                tar.addfile(info, io.BytesIO(text.encode()))";
    home.run(&["python3", "-c", pack], &entries.to_string())
        .await
        .ok();
    std::fs::read(home.file("made.tar.gz")).unwrap()
}

/// A server that offers this archive as the workroom skill of version 9.9.9.
async fn offering(home: &Home, archive: Vec<u8>, sha256: Option<&str>) -> String {
    std::fs::write(home.file("made.tar.gz"), &archive).unwrap();
    let sum = home.run(&["sha256sum", "made.tar.gz"], "").await.ok();
    let sha256 = sha256.unwrap_or(&sum[..64]).to_owned();
    let index =
        json!({"skills": [{"name": "workroom", "version": "9.9.9", "sha256": sha256, "url": "x"}]});
    let index = index.to_string();
    let routes = Router::new()
        .route(
            "/skills/index.json",
            routing::get(async move || index.clone()),
        )
        .route(
            "/skills/workroom.tar.gz",
            routing::get(async move || archive.clone()),
        );
    stand_in(routes).await
}

#[tokio::test]
async fn an_older_skill_becomes_the_servers_and_works_on() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let root = home.path().to_str().unwrap().to_owned();
    let home = home.env("SKILLS_ROOT", &root);
    assert_eq!(answer(&home, &["self_update"]).await["updated"], false);
    let ours = home.reads("workroom/SKILL.md");
    let theirs = "---\nname: workroom\nversion: 0.5.2\n---\n";
    std::fs::write(home.file("workroom/SKILL.md"), theirs).unwrap();
    std::fs::write(home.file("workroom/scripts/old.py"), "").unwrap();
    let checked = answer(&home, &["self_update", "--check"]).await;
    assert_eq!(
        (&checked["installed"], &checked["update"]),
        (&json!("0.5.2"), &json!(true))
    );
    assert_eq!(home.reads("workroom/SKILL.md"), theirs);
    assert_eq!(answer(&home, &["self_update"]).await["updated"], true);
    assert_eq!(home.reads("workroom/SKILL.md"), ours);
    assert!(!home.file("workroom/scripts/old.py").exists());
    assert_eq!(
        answer(&home, &["self_update", "--force"]).await["updated"],
        true
    );
    assert_eq!(answer(&home, &["list"]).await["rooms"], json!([]));
    let left = std::fs::read_dir(home.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".workroom-")
    });
    assert_eq!(left.count(), 0, "nothing stays beside it");
}

#[tokio::test]
async fn an_archive_writes_nowhere_but_in_its_folder() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = agent(&server, &host, "u_alice", "workroom").await;
    let ours = home.reads("workroom/SKILL.md");
    let about = json!(["workroom/SKILL.md", "0", "---\nversion: 9.9.9\n---\n"]);
    for (entry, words) in [
        (json!(["workroom/../evil", "0", "x"]), "wants to write"),
        (json!(["../evil", "0", "x"]), "wants to write"),
        (json!(["/tmp/evil", "0", "x"]), "wants to write"),
        (json!(["elsewhere/evil", "0", "x"]), "wants to write"),
        (json!(["workroom/evil", "2", "/etc/passwd"]), "no file"),
        (
            json!(["workroom/evil", "1", "workroom/SKILL.md"]),
            "no file",
        ),
        (json!(["workroom/SKILL.md", "0", "twice"]), "cannot replace"),
    ] {
        let packed = archive(&home, json!([about, entry])).await;
        let url = offering(&home, packed, None).await;
        let home = unpacked(&server, "workroom").await;
        let home = home.env("CHATROOM_SERVER_URL", &url);
        let said = complains(&home, &["self_update"]).await;
        assert!(said.contains(words), "{entry}: {said}");
        assert_eq!(home.reads("workroom/SKILL.md"), ours, "{entry}");
        assert!(!home.file("evil").exists());
    }
    let packed = archive(&home, json!([about])).await;
    let wrong = "0".repeat(64);
    for (packed, sha256, words) in [
        (packed, Some(wrong.as_str()), "not the one"),
        (b"rubbish".to_vec(), None, "cannot be read"),
        (archive(&home, json!([])).await, None, "another version"),
    ] {
        let url = offering(&home, packed, sha256).await;
        let home = unpacked(&server, "workroom").await;
        let home = home.env("CHATROOM_SERVER_URL", &url);
        let said = complains(&home, &["self_update"]).await;
        assert!(said.contains(words), "{said}");
        assert_eq!(home.reads("workroom/SKILL.md"), ours);
    }
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
