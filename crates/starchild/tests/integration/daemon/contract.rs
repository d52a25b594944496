//! handler-interface.md, sentence by sentence.

use crate::harness::{DEADLINE, OBEY, Owner, Room, Server, eventually, room_with};
use serde_json::{Value, json};
use std::time::Instant;

#[tokio::test]
async fn a_handler_gets_the_message_and_the_variables_and_its_answer_is_posted() {
    let (_server, room, owner, daemon) = room_with(
        "#!/bin/sh\ncat > \"$SCCHAT_HANDLER_LOG_DIR/$SCCHAT_ROOM_ID.$$\"\n\
         echo \"$SCCHAT_USER_ID $SCCHAT_SESSION_ID\" > \"$SCCHAT_HANDLER_LOG_DIR/env\"\n\
         [ -e answered ] && exit 0\ntouch answered\necho 'my answer'\n",
    )
    .await;
    let seq = room.say("hey @my-bot \"what's\" up? ünï\n2").await;
    let answer = room.answer(seq).await;
    assert_eq!(answer.content, "my answer");
    assert_eq!(answer.sender_user_id, format!("ext_{}", owner.agent));
    assert_eq!(answer.reply_chain_depth, 1);

    let session = std::fs::read_dir(owner.place().join("sessions")).unwrap();
    let session = session.map(|entry| entry.unwrap().path()).next().unwrap();
    let id = session.file_name().unwrap().to_str().unwrap().to_owned();
    let digits: Vec<_> = id.split('-').map(str::len).collect();
    assert_eq!(digits, [8, 6], "{id}");
    let env = std::fs::read_to_string(session.join("env")).unwrap();
    assert_eq!(env.trim(), format!("ext_{} {id}", owner.agent));

    // The agent's own answer is handed to it, too: it decides everything.
    let documents = async || {
        let files = std::fs::read_dir(&session)
            .unwrap()
            .map(|file| file.unwrap().path());
        let files = files.filter(|file| file.to_str().unwrap().contains("/rm_"));
        let read =
            files.filter_map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).ok());
        let mut documents: Vec<Value> = read.collect();
        documents.sort_by_key(|document| document["seq"].as_i64());
        (documents.len() >= 2).then_some(documents)
    };
    let documents = eventually("its own message is handed to it", documents).await;
    let said = room.said().await;
    let asked = said.iter().find(|message| message.seq == seq).unwrap();
    assert_eq!(
        documents[0],
        json!({
            "room_id": room.id, "seq": seq, "sender_user_id": "u_alice",
            "sender_user_name": "Alice", "via": "agent", "type": "chat",
            "content": "hey @my-bot \"what's\" up? ünï\n2", "reply_to_seq": null,
            "reply_chain_depth": 0, "rules_version": asked.rules_version,
            "created_at": asked.created_at,
        })
    );
    assert_eq!(
        documents[1]["sender_user_id"],
        format!("ext_{}", owner.agent)
    );
    assert_eq!(documents[1]["reply_to_seq"], seq);

    // What a handler logs stays there when the daemon starts anew.
    drop(daemon);
    let _daemon = owner.runs().await;
    assert!(session.join("env").exists());
}

#[tokio::test]
async fn system_messages_are_handed_over_too() {
    let (_server, room, _owner, _daemon) =
        room_with("#!/bin/sh\nread -r m\ncase \"$m\" in *'\"via\":\"system\",\"type\":\"system\"'*) echo seen ;; esac\n").await;
    room.alice.set_rules(&room.id, "Be brief.").await.unwrap();
    eventually("the rules' change is answered", async || {
        let said = room.said().await;
        said.into_iter().find(|message| message.content == "seen")
    })
    .await;
}

#[tokio::test]
async fn what_a_handler_prints_is_what_is_posted() {
    let (_server, room, owner, _daemon) = room_with(OBEY).await;
    for silent in [
        "echo '[SILENT]'",
        "echo '[SILENT] not now'",
        "true",
        "printf ' \\r\\n'",
    ] {
        let seq = room.say(silent).await;
        // Messages of a room are dealt with in order: when the next is answered, this one was not.
        assert_eq!(room.ask("echo next").await, "next");
        assert!(room.answers(seq).await.is_empty(), "{silent}");
    }
    assert_eq!(room.ask("printf 'one\\r\\ntwo\\n\\n'").await, "one\ntwo");
    assert_eq!(room.ask("printf 'a\\xffb'").await, "a\u{fffd}b");

    let whole = room.ask("head -c 4096 /dev/zero | tr '\\0' x").await;
    assert_eq!(whole, "x".repeat(4096));
    let long = room.ask("head -c 9000 /dev/zero | tr '\\0' x").await;
    assert_eq!(long, format!("{}…", "x".repeat(4093)));
    let wide = room.ask("yes é | head -n 3000 | tr -d '\\n'").await;
    assert!(wide.len() <= 4096 && wide.ends_with("é…"), "{}", wide.len());
    let endless = room.ask("yes").await;
    assert!(endless.starts_with("y\ny\n") && endless.ends_with('…'));

    let begun = Instant::now();
    assert_eq!(room.ask("sleep 600 & echo done").await, "done");
    assert!(begun.elapsed() < DEADLINE);

    let seq = room
        .say("echo no; echo 'this went wrong' >&2; exit 3")
        .await;
    assert_eq!(room.ask("echo yes").await, "yes");
    assert!(room.answers(seq).await.is_empty());
    let log = owner.log();
    assert!(log.contains("stderr: this went wrong"), "{log}");
    assert!(log.contains("exit status: 3"), "{log}");
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_ended_with_all_it_started() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_settings(&server, OBEY, &["--timeout-seconds", "10"]).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    let late = room
        .say("(trap '' TERM; echo $BASHPID > child; sleep 600) & wait")
        .await;
    assert_eq!(room.ask("echo on time").await, "on time");
    assert!(room.answers(late).await.is_empty());
    assert!(
        owner.log().contains("no answer within 10 s"),
        "{}",
        owner.log()
    );
    let child = std::fs::read_to_string(owner.folder.path().join("child")).unwrap();
    let status = format!("/proc/{}/status", child.trim());
    eventually("its child is gone", async || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        (status.is_empty() || status.contains("State:\tZ")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_cannot_be_run_is_said_at_start() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, OBEY).await;
    owner.write_script("handler.sh", OBEY, 0o644);
    for args in [["run", "--foreground"].as_slice(), &["run"]] {
        let output = owner.tries(args).await;
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("chmod +x"), "{stderr}");
    }
    std::fs::remove_file(owner.folder.path().join("handler.sh")).unwrap();
    let output = owner.tries(&["run"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("handler_path"));
}

#[tokio::test]
async fn a_script_with_windows_line_endings_works() {
    let script = "#!/bin/bash\nread -r m\ncase \"$m\" in *u_alice*)\n  echo fine\n  ;;\nesac\n";
    let (_server, room, _owner, _daemon) = room_with(&script.replace('\n', "\r\n")).await;
    assert_eq!(room.ask("hello").await, "fine");
}
