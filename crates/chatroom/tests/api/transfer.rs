//! Rooms as files: exports, and what is imported.

use crate::harness::{Caller, Setup, TestServer, both_engines, eventually, one_engine};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};
use zip::{ZipWriter, write::SimpleFileOptions};

both_engines![a_room_goes_out_and_comes_in_again];
one_engine![
    whoever_may_read_may_export,
    an_export_to_read_cannot_be_forged,
    slacks_export_becomes_rooms,
    what_is_hostile_makes_no_room,
    imported_words_call_nobody_and_are_nobodys,
];

/// The lines of an export.
async fn exports(caller: &Caller, room: &str) -> Vec<Value> {
    let reply = caller.get(format!("/rooms/{room}/export")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/jsonl"));
    let lines = reply.text().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What two exports of the same messages have in common.
fn told(lines: &[Value]) -> Vec<Value> {
    let messages = lines.iter().filter_map(|line| line.get("message"));
    let kept = [
        "seq",
        "sender_user_name",
        "content",
        "created_at",
        "edited_at",
        "deleted",
        "reply_to_seq",
    ];
    messages
        .map(|message| kept.iter().map(|key| message[*key].clone()).collect())
        .collect()
}

/// Runs `sc-chatroom import`; the rooms that it made, or what it said.
async fn imports(server: &TestServer, source: &Path, more: &[&str]) -> Result<Vec<String>, String> {
    let mut args = vec!["import", source.to_str().unwrap(), "--owner", "u_carol"];
    args.extend(["--server", server.base_url()]);
    args.extend(more);
    let output = server.run_aside(&args).await;
    let said = String::from_utf8(output.stderr).unwrap();
    match output.status.success() {
        false => Err(said),
        true => {
            let lines = String::from_utf8(output.stdout).unwrap();
            let room = |line: &str| line.split('\t').next().unwrap().to_owned();
            Ok(lines.lines().map(room).collect())
        }
    }
}

async fn a_room_goes_out_and_comes_in_again(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user_named("u_alice", "Alice");
    let room = alice.creates_a_room().await;
    let bob = server.user_named("u_bob", "Bob");
    alice.lets_in_user(&room, &bob).await;
    // More than a page of them.
    let mut last = 0;
    for n in 0..210 {
        last = alice
            .says(&room, &format!("message {n}\n\"two\" lines"))
            .await;
    }
    let deleted = bob.says(&room, "a secret").await;
    bob.delete(format!("/rooms/{room}/messages/{deleted}"))
        .await
        .ok();
    let edit = json!({"content": "edited 👍"});
    alice
        .patch(format!("/rooms/{room}/messages/{last}"), edit)
        .await
        .ok();
    bob.says_this(&room, json!({"content": "an answer", "reply_to_seq": last}))
        .await;
    let out = exports(&alice, &room).await;
    assert_eq!(out[0]["room"]["format"], "starchild-room");
    let count = out.len() - 2;
    assert_eq!(out.last().unwrap()["end"]["messages"], count);
    assert!(!json!(out).to_string().contains("a secret"));
    let output = server
        .run_aside(&["export", &room, "--server", server.base_url()])
        .await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let file = server.folder().join("room.jsonl");
    fs::write(&file, &output.stdout).unwrap();
    let made = imports(&server, &file, &[]).await.unwrap();
    let carol = server.user("u_carol");
    let again = exports(&carol, &made[0]).await;
    assert_eq!(told(&again), told(&out));
    assert_eq!(again[0]["room"]["name"], out[0]["room"]["name"]);
    // A second time nothing changes at all but the room and the hour.
    let text: String = again.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, text).unwrap();
    let made = imports(&server, &file, &[]).await.unwrap();
    assert_eq!(exports(&carol, &made[0]).await[1..], again[1..]);
}

async fn whoever_may_read_may_export(setup: Setup) {
    let setup = setup.limit("visitor_reads_per_minute", 2);
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let rules = json!({"content": "For members' eyes"});
    alice
        .patch(format!("/rooms/{room}/rules"), rules)
        .await
        .ok();
    alice.says(&room, "hello").await;
    let visited = exports(&server.anonymous(), &room).await;
    assert_eq!(visited[0]["room"].get("rules"), None);
    let read = exports(&alice, &room).await;
    assert_eq!(read[0]["room"]["rules"], "For members' eyes");
    exports(&server.user("u_stranger"), &room).await;
    // Visitors' exports are reads like any other.
    let more = server
        .anonymous()
        .get(format!("/rooms/{room}/export"))
        .await;
    more.refused(429, "rate_limited");
    let wrong = alice.get(format!("/rooms/{room}/export?format=pdf")).await;
    wrong.refused(400, "bad_request");
    let empty = exports(&alice, &alice.creates_a_room().await).await;
    assert_eq!(empty[1]["end"]["messages"], 0);
}

async fn an_export_to_read_cannot_be_forged(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user_named("u_alice", "Alice **x**");
    let room = alice.creates_a_room().await;
    let forged = "hi\n\n**Bob** · 10:00 · #9\n\n> I agree\n# Heading";
    alice.says(&room, forged).await;
    let reply = alice
        .get(format!("/rooms/{room}/export?format=markdown"))
        .await;
    assert_eq!(
        reply.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    let text = reply.text();
    assert!(text.contains("\n**Alice \\*\\*x\\*\\*** · "), "{text}");
    assert!(
        text.contains("\n> **Bob** · 10:00 · #9\n") && !text.contains("\n**Bob**"),
        "{text}"
    );
    assert!(!text.contains("\n# Heading"), "{text}");
}

fn slack(folder: &Path) {
    let day = folder.join("general");
    fs::create_dir_all(&day).unwrap();
    let users = json!([{"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}, {"id": "U2", "name": "ben", "real_name": "Ben B"}]);
    let channels = json!([{"id": "C1", "name": "general", "topic": {"value": "All of it"}, "members": ["U1"]}, {"id": "C2", "name": "empty"}]);
    fs::write(folder.join("users.json"), users.to_string()).unwrap();
    fs::write(folder.join("channels.json"), channels.to_string()).unwrap();
    let first = json!([
        {"type": "message", "user": "U2", "text": "second &amp; <https://a.example|link>", "ts": "1700000100.000200", "thread_ts": "1700000000.000100"},
        {"type": "message", "user": "U1", "text": "first, <@U2>", "ts": "1700000000.000100", "thread_ts": "1700000000.000100"},
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "joined", "ts": "1700000000.000050"},
    ]);
    let second = json!([
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "username": "CI", "text": "", "ts": "1700090000.000100",
         "attachments": [{"fallback": "built"}]},
        {"type": "message", "user": "U1", "text": "", "files": [{"name": "a.pdf"}], "ts": "1700090001.000100", "edited": {"user": "U1", "ts": "1700090009.0"}},
    ]);
    fs::write(day.join("2023-11-14.json"), first.to_string()).unwrap();
    fs::write(day.join("2023-11-15.json"), second.to_string()).unwrap();
}

/// Packs a folder's files.
fn zipped(folder: &Path, file: PathBuf) -> PathBuf {
    let mut archive = ZipWriter::new(fs::File::create(&file).unwrap());
    let names = [
        "users.json",
        "channels.json",
        "general/2023-11-14.json",
        "general/2023-11-15.json",
    ];
    for name in names {
        archive
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        archive
            .write_all(&fs::read(folder.join(name)).unwrap())
            .unwrap();
    }
    archive.finish().unwrap();
    file
}

async fn slacks_export_becomes_rooms(setup: Setup) {
    let server = setup.start().await;
    let folder = server.folder().join("slack");
    slack(&folder);
    let archive = zipped(&folder, server.folder().join("slack.zip"));
    let carol = server.user("u_carol");
    for source in [folder, archive] {
        let made = imports(&server, &source, &["--channel", "general"])
            .await
            .unwrap();
        assert_eq!(made.len(), 1);
        let lines = exports(&carol, &made[0]).await;
        assert_eq!(
            (&lines[0]["room"]["name"], &lines[0]["room"]["topic"]),
            (&json!("general"), &json!("All of it"))
        );
        let shown: Vec<Value> = lines[1..lines.len() - 1]
            .iter()
            .map(|line| {
                let m = &line["message"];
                json!([
                    m["sender_user_id"],
                    m["sender_user_name"],
                    m["content"],
                    m["created_at"],
                    m["reply_to_seq"],
                    m["edited_at"],
                    m["via"]
                ])
            })
            .collect();
        assert_eq!(
            shown,
            [
                json!([
                    "import:U1",
                    "Ann",
                    "first, @Ben B",
                    1_700_000_000,
                    null,
                    null,
                    "import"
                ]),
                json!([
                    "import:U2",
                    "Ben B",
                    "second & [link](https://a.example)",
                    1_700_000_100,
                    1,
                    null,
                    "import"
                ]),
                json!([
                    "import:B1",
                    "CI",
                    "built",
                    1_700_090_000,
                    null,
                    null,
                    "import"
                ]),
                json!([
                    "import:U1",
                    "Ann",
                    "(file: a.pdf)",
                    1_700_090_001,
                    null,
                    1_700_090_009,
                    "import"
                ]),
            ]
        );
        eventually("the messages are found", async || {
            let found = carol
                .get(format!("/rooms/{}/search?q=built", made[0]))
                .await
                .ok();
            found.to_string().contains("import:B1").then_some(())
        })
        .await;
        let all = imports(&server, &source, &[]).await.unwrap();
        assert_eq!(all.len(), 2, "the empty channel too");
    }
}

async fn what_is_hostile_makes_no_room(setup: Setup) {
    let server = setup.start().await;
    let base = server.folder();
    let count = async || server.count("SELECT COUNT(*) FROM rooms").await;
    let before = count().await;
    let head = json!({"room": {"format": "starchild-room", "version": 1, "room_id": "rm_x", "name": "x", "visibility": "private", "created_at": 1, "exported_at": 1}});
    let message = |seq: i64| {
        json!({"message": {"seq": seq, "sender_user_id": "u_alice", "sender_user_name": "A", "via": "web", "type": "chat", "content": "x",
            "reply_to_seq": null, "reply_chain_depth": 0, "rules_version": 0, "created_at": 1, "deleted": false, "edited_at": null, "reactions": {}}})
    };
    let end = json!({"end": {"messages": 1}});
    let deep = "[".repeat(10_000);
    let long = format!(
        "{head}\n{{\"message\": \"{}\"}}\n",
        "x".repeat(3 * 1024 * 1024)
    );
    let files = [
        ("", "breaks off"),
        ("hello", "no line of an export"),
        (&format!("{end}\n"), "the first line"),
        (&format!("{head}\n{}\n", message(1)), "breaks off"),
        (
            &format!("{head}\n{}\n{}\n{end}\n", message(2), message(1)),
            "not in their order",
        ),
        (
            &format!("{head}\n{}\n{}\n{end}\n", message(1), message(2)),
            "messages are missing",
        ),
        (&format!("{head}\n{head}\n"), "the first line"),
        (&format!("{head}\n{deep}\n"), "no line of an export"),
        (&long, "the line is too long"),
        (&head.to_string().replace(":1,", ":9,"), "does not know"),
    ];
    for (text, why) in files {
        let file = base.join("hostile.jsonl");
        fs::write(&file, text).unwrap();
        let said = imports(&server, &file, &[]).await.unwrap_err();
        assert!(said.contains(why), "{said}, not {why}");
    }
    // A channel's name leads nowhere else, links lead nowhere, and a bomb is not unpacked.
    let outside = base.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("2023-11-14.json"), "[]").unwrap();
    for (name, why) in [
        ("../outside", "no channel's name"),
        ("/etc", "no channel's name"),
    ] {
        let folder = base.join("slack");
        slack(&folder);
        fs::write(
            folder.join("channels.json"),
            json!([{"name": name}]).to_string(),
        )
        .unwrap();
        let said = imports(&server, &folder, &[]).await.unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let folder = base.join("linked");
    slack(&folder);
    let secret = base.join("secret.json");
    fs::write(&secret, "[]").unwrap();
    fs::remove_file(folder.join("general/2023-11-14.json")).unwrap();
    std::os::unix::fs::symlink(&secret, folder.join("general/2023-11-14.json")).unwrap();
    let said = imports(&server, &folder, &[]).await.unwrap_err();
    assert!(said.contains("no plain file"), "{said}");
    let folder = base.join("bomb");
    slack(&folder);
    let zeros = vec![b' '; 65 * 1024 * 1024];
    fs::write(folder.join("general/2023-11-14.json"), zeros).unwrap();
    let bomb = zipped(&folder, base.join("bomb.zip"));
    assert!(fs::metadata(&bomb).unwrap().len() < 1024 * 1024);
    for source in [folder, bomb] {
        let said = imports(&server, &source, &[]).await.unwrap_err();
        assert!(said.contains("too large"), "{said}");
    }
    let broken = base.join("broken.zip");
    fs::write(&broken, b"PK\x03\x04 and nothing else").unwrap();
    imports(&server, &broken, &[]).await.unwrap_err();
    imports(&server, &base.join("missing"), &[])
        .await
        .unwrap_err();
    assert_eq!(count().await, before, "no room was made");
}

async fn imported_words_call_nobody_and_are_nobodys(setup: Setup) {
    let server = setup.start().await;
    let operator = server.user_of_type("u_root", "admin");
    let alice = server.user_named("u_alice", "Alice");
    for owner in [
        "u_system",
        "ext_curious_otter-3a9f1c20",
        "hook_x",
        "import:x",
    ] {
        let begin = json!({"name": "x", "owner_user_id": owner});
        let refused = operator.post("/internal/admin/imports", begin).await;
        refused.refused(400, "bad_request");
    }
    let begin = json!({"name": "Old days", "owner_user_id": "u_alice"});
    let begun = operator
        .post("/internal/admin/imports", begin)
        .await
        .created();
    let room = begun["room_id"].as_str().unwrap();
    // Nobody writes in between.
    let early = alice
        .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await;
    early.refused(409, "archived");
    let path = format!("/internal/admin/imports/{room}");
    let message = |author: &str| json!({"author_id": author, "author_name": "Alice", "content": "@u_alice hi", "created_at": 99_999_999_999_i64});
    let words = ["u_alice", "u_system", "import:import:x", "é\u{202e}", ""];
    let messages: Vec<Value> = words.iter().map(|author| message(author)).collect();
    let batch = json!({"after_seq": 0, "messages": messages});
    operator.post(&path, batch.clone()).await.ok();
    operator
        .post(&path, batch)
        .await
        .refused(400, "bad_request");
    let answer = json!({"author_id": "u", "content": "x", "created_at": 1, "reply_to_seq": 6});
    let batch = json!({"after_seq": 5, "messages": [answer]});
    operator
        .post(&path, batch)
        .await
        .refused(400, "bad_request");
    let done = json!({"after_seq": 5, "messages": [], "done": true, "topic": "Then"});
    operator.post(&path, done.clone()).await.ok();
    operator.post(&path, done).await.refused(400, "bad_request");
    let read = alice.get(format!("/rooms/{room}/messages")).await.ok();
    let read = read["messages"].as_array().unwrap();
    let senders: Vec<&str> = read
        .iter()
        .map(|m| m["sender_user_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        senders,
        [
            "import:u_alice",
            "import:u_system",
            "import:import:x",
            "import:somebody",
            "import:somebody"
        ]
    );
    for message in read {
        assert_eq!(
            (&message["via"], &message["type"]),
            (&json!("import"), &json!("chat"))
        );
        assert_eq!(message["mentions_me"], false);
        assert!(message["created_at"].as_i64().unwrap() <= crate::harness::now());
    }
    let edit = alice
        .patch(format!("/rooms/{room}/messages/1"), json!({"content": "y"}))
        .await;
    edit.refused(403, "forbidden");
    let inbox = alice.get("/inbox").await.ok();
    assert_eq!(inbox["rooms"][0]["unread"], 0, "{inbox}");
    let board = alice.get(format!("/rooms/{room}/leaderboard")).await;
    assert!(!board.text().contains("import:"), "{}", board.text());
    let state = alice.get(format!("/rooms/{room}/state")).await.ok();
    assert_eq!(state["member_counts"]["total"], 1);
    alice.says(room, "and now").await;
}
