//! The skills: their archives, and their tools run with sh against the real server.

use crate::harness::{AgentHost, Caller, Engine, Home, Setup, TestServer, eventually, one_engine};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

one_engine![
    an_owner_runs_a_room_with_the_workroom_skill,
    an_agent_takes_part_with_the_workroom_skill,
    following_goes_on_where_it_stopped,
    an_agent_joins_to_be_called,
    whoever_was_removed_stops_following,
];

/// A home with a skill unpacked in it, as an agent would.
pub async fn unpacked(server: &TestServer, skill: &str) -> Home {
    let home = Home::new();
    let url = server.base_url();
    let line = format!("curl -sSL {url}/skills/{skill}.tar.gz | tar -xz");
    home.run(&["sh", "-c", &line], "").await.ok();
    home.env("STARCHILD_SERVER", url)
}

/// Runs the skill's tool; its answer as JSON.
async fn tool(home: &Home, name: &str, args: &[&str]) -> Value {
    let printed = home.run(&run(name, args), "").await.ok();
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

fn run<'a>(name: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let path = match name {
        "workroom" => "workroom/bin/workroom",
        _ => "cli-bridge/bin/cli-bridge",
    };
    [&["sh", path][..], args].concat()
}

async fn workroom(home: &Home, args: &[&str]) -> Value {
    tool(home, "workroom", args).await
}

#[tokio::test]
async fn each_archive_is_as_the_index_says() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let visitor = server.anonymous().seen_from_outside();
    let index = visitor.get("/skills/index.json").await.ok();
    let skills = index["skills"].as_array().unwrap();
    let names: Vec<&str> = skills.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cli-bridge", "workroom"]);
    for skill in skills {
        let name = skill["name"].as_str().unwrap();
        let path = format!("/skills/{name}.tar.gz");
        assert_eq!(skill["url"], format!("{}{path}", server.base_url()));
        let reply = visitor.get(&path).await;
        assert_eq!(reply.header("content-type"), Some("application/gzip"));
        let etag = reply.header("etag").unwrap();
        assert_eq!(etag, format!("\"{}\"", skill["sha256"].as_str().unwrap()));
        let home = Home::new();
        std::fs::write(home.file("a.tar.gz"), reply.bytes()).unwrap();
        let sum = home.run(&["sha256sum", "a.tar.gz"], "").await.ok();
        assert!(sum.starts_with(skill["sha256"].as_str().unwrap()));
        let list = home.run(&["tar", "-tzf", "a.tar.gz"], "").await.ok();
        assert!(
            list.lines()
                .all(|line| line.starts_with(&format!("{name}/"))),
            "{list}"
        );
        home.run(&["tar", "-xzf", "a.tar.gz"], "").await.ok();
        let about = home.reads(&format!("{name}/SKILL.md"));
        assert!(
            about.starts_with(&format!("---\nname: {name}\ndescription: ")),
            "{about}"
        );
        let version = skill["version"].as_str().unwrap();
        assert!(about.contains(&format!("\nversion: {version}\n---\n")));
        let tool = format!("{name}/bin/{name}");
        home.run(&["test", "-x", &tool], "").await.ok();
        home.run(&["shellcheck", "-s", "sh", &tool], "").await.ok();
        for shell in [&["dash", "-n"][..], &["busybox", "sh", "-n"]] {
            home.run(&[shell, &[&tool]].concat(), "").await.ok();
        }
        let again = visitor.get(&path).header("if-none-match", etag).await;
        assert_eq!((again.status, again.text()), (304, ""));
    }
}

#[tokio::test]
async fn chatroom_is_another_name_for_workroom() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let visitor = server.anonymous();
    let one = visitor.get("/skills/chatroom.tar.gz").await;
    let other = visitor.get("/skills/workroom.tar.gz").await;
    assert_eq!(one.bytes(), other.bytes());
    for unknown in [
        "nosuch.tar.gz",
        "workroom",
        "workroom.zip",
        "..%2Fdocs.tar.gz",
        ".tar.gz",
    ] {
        visitor
            .get(format!("/skills/{unknown}"))
            .await
            .refused(404, "not_found");
    }
}

async fn an_owner_runs_a_room_with_the_workroom_skill(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let home = unpacked(&server, "workroom")
        .await
        .env("STARCHILD_USER_TOKEN", alice.token().unwrap());
    let made = workroom(&home, &["create", "Straße \"7\"\\ lab", "--public"]).await;
    assert_eq!(made["name"], "Straße \"7\"\\ lab");
    assert_eq!(made["visibility"], "public");
    let room = made["room_id"].as_str().unwrap();
    assert_eq!(
        workroom(&home, &["rooms"]).await["rooms"][0]["room_id"],
        room
    );

    let rules = "Be brief.\n\tAnswer \"yes\" or 'no' \\ nothing else.";
    let set = workroom(&home, &["rules", room, "--set", rules]).await;
    assert_eq!(
        (&set["content"], &set["version"]),
        (&json!(rules), &json!(1))
    );
    assert_eq!(workroom(&home, &["rules", room]).await["content"], rules);

    let invite = workroom(
        &home,
        &[
            "invite", room, "--name", "Bob", "--uses", "3", "--ttl", "600",
        ],
    )
    .await;
    assert_eq!(invite["max_uses"], 3);
    let bob = server
        .anonymous()
        .joins(
            room,
            invite["invite_code"].as_str().unwrap(),
            "curious_otter-3a9f1c20",
        )
        .await;
    assert_eq!(bob.joined["user_name"], "Bob");
    let members = workroom(&home, &["members", room]).await;
    assert_eq!(members["members"].as_array().unwrap().len(), 2);

    let key = workroom(&home, &["key", room, "--view-only"]).await;
    assert_eq!(key["scope"], "view");
    let link = key["viewer_url"]
        .as_str()
        .unwrap()
        .strip_prefix(server.base_url())
        .unwrap();
    assert_eq!(server.anonymous().get(link).await.status, 302);
    assert_eq!(workroom(&home, &["revoke-keys", room]).await["revoked"], 1);

    let attached = workroom(
        &home,
        &[
            "attach",
            room,
            "--endpoint",
            "https://a.example",
            "--key",
            "sk_\"x\"",
        ],
    )
    .await;
    assert_eq!(attached["ok"], true);
    let me = alice.sees_member(room, "u_alice").await.unwrap();
    assert_eq!(
        (&me["has_agent_endpoint"], &me["has_akm_key"]),
        (&json!(true), &json!(true))
    );
    assert!(
        !home.file(".starchild").exists(),
        "a user token needs no files"
    );
}

async fn an_agent_takes_part_with_the_workroom_skill(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    let home = unpacked(&server, "chatroom").await;
    let id = "curious_otter-3a9f1c20";
    let joined = workroom(
        &home,
        &["join", invite["short_code"].as_str().unwrap(), "--id", id],
    )
    .await;
    assert_eq!(joined["user_id"], format!("ext_{id}"));
    assert!(
        !joined.to_string().contains("eyJ"),
        "no token is shown: {joined}"
    );
    let listed = home
        .run(
            &["find", ".starchild", "-type", "f", "-not", "-perm", "600"],
            "",
        )
        .await;
    assert_eq!(listed.ok(), "", "what is kept is the agent's alone");

    let asked = alice
        .says(&room, &format!("@ext_{id} are you there?"))
        .await;
    assert_eq!(workroom(&home, &["me", &room]).await["mentions_pending"], 1);
    let page = workroom(
        &home,
        &["read", &room, "--since", "0", "--limit", "10", "--mentions"],
    )
    .await;
    assert_eq!(page["messages"][0]["seq"], asked);
    let text = "Yes: \"here\" \\o/\nline two\t\u{1f9a6} $(id) `id` %s";
    let reply = asked.to_string();
    let send = ["send", &room, text, "--reply", &reply, "--once", "answer-1"];
    let sent = workroom(&home, &send).await;
    assert_eq!(
        workroom(&home, &send).await["seq"],
        sent["seq"],
        "posted once"
    );
    let message = alice.reads(&room, sent["seq"].as_i64().unwrap()).await;
    assert_eq!(
        (&message["content"], &message["reply_to_seq"]),
        (&json!(text), &json!(asked))
    );
    let piped = home
        .run(&run("workroom", &["send", &room, "-"]), "from a pipe")
        .await
        .ok();
    let piped: Value = serde_json::from_str(&piped).unwrap();
    assert_eq!(
        alice.reads(&room, piped["seq"].as_i64().unwrap()).await["content"],
        "from a pipe"
    );
    assert_eq!(
        workroom(&home, &["react", &room, &reply, "👍"]).await["added"],
        true
    );

    // A second room: the identity proves that it is the same agent, so one token recovers both.
    let other = server.user("u_bob").creates_a_public_room().await;
    let second = server
        .anonymous()
        .post_nothing(format!("/rooms/{other}/auto-invite"))
        .await
        .created();
    let address = second["install_url"].as_str().unwrap();
    workroom(&home, &["join", address, "--id", id]).await;
    std::fs::remove_file(home.file(&format!(".starchild/workroom/rooms/{other}/token"))).unwrap();
    let lost = home
        .run(&run("workroom", &["me", &other]), "")
        .await
        .failed(1);
    assert!(lost.contains("no token"), "{lost}");
    workroom(&home, &["recover", &other]).await;
    assert_eq!(
        workroom(&home, &["me", &other]).await["user_id"],
        format!("ext_{id}")
    );

    let no = home
        .run(&run("workroom", &["rules", &room, "--set", "mine"]), "")
        .await
        .failed(1);
    assert!(no.starts_with("workroom: "), "{no}");
    assert_eq!(workroom(&home, &["leave", &room]).await["ok"], true);
    assert!(
        alice
            .sees_member(&room, &format!("ext_{id}"))
            .await
            .is_none()
    );
}

async fn following_goes_on_where_it_stopped(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice.invites(&room).await;
    let home = unpacked(&server, "workroom").await;
    workroom(&home, &["join", &invite, "--id", "curious_otter-3a9f1c20"]).await;
    let follow = ["follow", &room, "--count", "1", "--seconds", "50"];
    let said = async |home: &Home| {
        let printed = home.run(&run("workroom", &follow), "").await.ok();
        let event: Value = serde_json::from_str(printed.trim()).unwrap();
        assert_eq!(event["event"], "message");
        event["data"]["content"].as_str().unwrap().to_owned()
    };
    let following = async {
        eventually("the agent listens", async || {
            let agent = alice
                .sees_member(&room, "ext_curious_otter-3a9f1c20")
                .await?;
            (agent["online"] == true).then_some(())
        })
        .await;
        alice.says(&room, "one \"quoted\"").await;
    };
    let (first, ()) = tokio::join!(said(&home), following);
    assert_eq!(first, "one \"quoted\"");
    // Said while nobody followed.
    alice.says(&room, "two").await;
    alice.says(&room, "three").await;
    assert_eq!(said(&home).await, "two");
    assert_eq!(said(&home).await, "three");
}

async fn an_agent_joins_to_be_called(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let reach = [
        "--endpoint",
        "https://a.example",
        "--key",
        "sk_live_0123456789",
    ];
    let join = |invite: String, more: &[&'static str]| {
        let mut args = vec!["join".to_owned(), invite];
        args.extend(reach.iter().chain(more).map(|&arg| arg.to_owned()));
        args
    };

    // A user's agent proves itself with the user token.
    let bob = server.user("u_bob");
    let home = unpacked(&server, "workroom")
        .await
        .env("STARCHILD_USER_TOKEN", bob.token().unwrap());
    let args = join(alice.invites(&room).await, &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let joined = workroom(&home, &args).await;
    assert_eq!(joined["member_kind"], "starchild_agent");
    assert_eq!(joined["user_id"], "u_bob");

    // Another one has its id alone; its identity token gets it a key to the room.
    let home = unpacked(&server, "workroom").await;
    let args = join(
        alice.invites(&room).await,
        &["--id", "curious_otter-3a9f1c20"],
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let joined = workroom(&home, &args).await;
    assert_eq!(joined["member_kind"], "external_agent");
    workroom(&home, &["recover", &room]).await;
    let attached = workroom(&home, &["attach", &room, "--key", "sk_live_9876543210"]).await;
    assert_eq!(attached["prior_akm_prefix"], "sk_liv");
}

async fn whoever_was_removed_stops_following(setup: Setup) {
    let server = setup.limit("agent_cooldown_seconds", 60).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let invite = alice.invites(&room).await;
    let home = unpacked(&server, "workroom").await;
    workroom(&home, &["join", &invite, "--id", "curious_otter-3a9f1c20"]).await;
    workroom(&home, &["send", &room, "one"]).await;
    let soon = home
        .run(&run("workroom", &["send", &room, "two"]), "")
        .await;
    let soon = soon.failed(2);
    assert!(
        soon.contains("agent_cooldown") && soon.contains("Try again in"),
        "{soon}"
    );

    let member = format!("/rooms/{room}/members/ext_curious_otter-3a9f1c20");
    let removing = async {
        eventually("the agent listens", async || {
            let agent = alice
                .sees_member(&room, "ext_curious_otter-3a9f1c20")
                .await?;
            (agent["online"] == true).then_some(())
        })
        .await;
        alice.delete(member).await.ok();
    };
    let follow = run("workroom", &["follow", &room]);
    let (followed, ()) = tokio::join!(home.run(&follow, ""), removing);
    let said = followed.failed(1);
    assert!(said.starts_with("workroom: "), "{said}");
}

#[tokio::test]
async fn the_tools_say_what_to_change() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let home = unpacked(&server, "workroom").await;
    for (args, words) in [
        (&["create", "x"][..], "STARCHILD_USER_TOKEN"),
        (&["send", "nonsense", "x"], "begins with rm_"),
        (&["send", "rm_a/../b", "x"], "begins with rm_"),
        (&["send", "rm_aaaaaa", "x"], "join it first"),
        (&["join", "nonsense"], "no invite"),
        (
            &["join", "i_unknown1", "--id", "curious_otter-3a9f1c20"],
            "not_found",
        ),
        (&["read", "rm_aaaaaa", "--since", "1;id"], "number"),
        (&["dance"], "workroom help"),
    ] {
        let said = home.run(&run("workroom", args), "").await.failed(1);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let help = home.run(&run("workroom", &["help"]), "").await.ok();
    assert!(help.contains("workroom follow"), "{help}");
    let away = home.env("STARCHILD_SERVER", "http://127.0.0.1:9");
    let said = away
        .run(&run("workroom", &["join", "i_unknown1"]), "")
        .await
        .failed(2);
    assert!(said.contains("cannot reach"), "{said}");
}

async fn bridge(server: &TestServer, host: &AgentHost, user: &Caller) -> Home {
    let home = unpacked(server, "cli-bridge").await;
    home.env("STARCHILD_AGENT_HOST", &host.url)
        .env("STARCHILD_USER_TOKEN", user.token().unwrap())
        .env("STARCHILD_CONTAINER_ID", "568359")
}

#[tokio::test]
async fn a_login_that_the_server_refuses_leaves_no_key_behind() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = bridge(&server, &host, &server.anonymous().with_token("rubbish")).await;
    let said = home.run(&run("cli-bridge", &["login"]), "").await.failed(1);
    assert!(said.contains("answered 4"), "{said}");
    assert_eq!(host.keys(), [Value::Null; 0]);
}

#[tokio::test]
async fn a_terminal_is_logged_in_and_out_with_the_cli_bridge_skill() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let host = AgentHost::start().await;
    let home = bridge(&server, &host, &server.user("u_alice")).await;
    let login = ["login", "--label", "Alice's \"laptop\"", "--days", "2"];
    let printed = home.run(&run("cli-bridge", &login), "").await.ok();
    let bundle = printed.trim_end().strip_prefix("starchild_").unwrap();
    let bundle: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(bundle).unwrap()).unwrap();
    assert_eq!(bundle["d"], server.base_url());
    assert_eq!(
        (&bundle["c"], &bundle["s"]),
        (&json!(""), &json!("chat:bridge:cli"))
    );
    assert_eq!(bundle["l"], "Alice's \"laptop\"");
    let code = bundle["k"].as_str().unwrap();
    assert!(code.starts_with("sc_"), "{bundle}");
    assert!(bundle["exp"].as_i64().unwrap() > crate::harness::now() + 86_400);
    let key = &host.keys()[0];
    assert_eq!(
        (&key["scope"], &key["ttl_seconds"]),
        (&json!("chat:bridge:cli"), &json!(172_800))
    );
    assert!(!printed.contains("secret"));

    let list = tool(&home, "cli-bridge", &["list"]).await;
    assert_eq!(list["keys"][0]["label"], "Alice's \"laptop\"");
    assert_eq!(
        tool(&home, "cli-bridge", &["revoke", code]).await["ok"],
        true
    );
    assert_eq!(host.keys(), [Value::Null; 0]);
}
