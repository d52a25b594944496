//! Owners and members of rooms, who use nothing but the scripts.

use super::{agent, answer, answer_to, complains, prints, script};
use crate::harness::{AgentHost, Setup, eventually, one_engine};
use serde_json::{Value, json};

one_engine![
    an_owner_runs_a_room_with_the_scripts,
    a_room_can_be_shared_and_closed_with_the_scripts,
    an_agent_that_joined_with_the_scripts_is_called,
    work_is_handed_over,
    what_the_shell_tool_keeps_is_used,
];

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
