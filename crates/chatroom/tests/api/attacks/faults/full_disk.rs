//! A full disk is survived, and a damaged database noticed.

use crate::harness::{Caller, Engine, Setup, TestServer, eventually, stand_in};
use axum::{Router, routing::post};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};
use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

#[tokio::test]
async fn once_there_is_space_again_everything_works() {
    let Some((mut server, disk)) = server_on_a_small_disk().await else {
        return;
    };
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let fill = disk.0.join("fill");
    fill_up(&fill);
    let long = "x".repeat(3_000);
    let refused = loop {
        let posted = say(&alice, &room, &long).await;
        if posted.status != 201 {
            break posted;
        }
    };
    assert!(refused.header("retry-after").is_some());
    let words = refused.refused(503, "unavailable");
    assert!(words.contains("disk"), "{words}");
    // Each way of writing fails in a way of its own.
    for _ in 0..3 {
        let made = alice.post("/rooms", json!({"name": "n".repeat(200)})).await;
        assert!([201, 503].contains(&made.status), "{}", made.text());
        let rules = json!({"content": long});
        let written = alice.patch(format!("/rooms/{room}/rules"), rules).await;
        assert!([200, 503].contains(&written.status), "{}", written.text());
    }
    fs::remove_file(&fill).unwrap();
    assert_eq!(say(&alice, &room, &long).await.status, 201);
    alice
        .post("/rooms", json!({"name": "works"}))
        .await
        .created();
    let rules = json!({"content": long});
    alice
        .patch(format!("/rooms/{room}/rules"), rules)
        .await
        .ok();
    server.anonymous().get("/health").await.ok();
    assert!(server.terminate().await.success());
    drop(server);
    drop(disk);
}

#[tokio::test]
async fn an_agent_is_not_asked_again_while_its_answer_cannot_be_kept() {
    let (calls, answer) = (Arc::<Mutex<Vec<i64>>>::default(), Arc::new(Notify::new()));
    let (noted, may_answer) = (calls.clone(), answer.clone());
    let agent = Router::new().route(
        "/chat/stream",
        post(async move |body: axum::Json<Value>| {
            let seq = body["thread_metadata"]["seq"].as_i64().unwrap();
            noted.lock().unwrap().push(seq);
            may_answer.notified().await;
            may_answer.notify_one();
            let text = json!({"text": "an answer ".repeat(200)});
            format!("data: {text}\n\n")
        }),
    );
    let agent = stand_in(agent).await;
    let Some((mut server, disk)) = server_on_a_small_disk().await else {
        return;
    };
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let bob = server.user("u_bob");
    let body = json!({"invite_code": alice.invites(&room).await, "agent_endpoint": agent,
                      "akm_key": "sk_secret_of_bob"});
    bob.post(format!("/rooms/{room}/join"), body)
        .await
        .created();
    let first = alice.says(&room, "What is new?").await;
    let asked = |seq: i64| calls.lock().unwrap().iter().filter(|s| **s == seq).count();
    eventually("the agent is asked", async || {
        (asked(first) == 1).then_some(())
    })
    .await;
    let fill = disk.0.join("fill");
    fill_up(&fill);
    while say(&alice, &room, &"x".repeat(3_000)).await.status == 201 {}
    answer.notify_one();
    eventually("the answer cannot be kept", async || {
        server.log().contains("disk").then_some(())
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(asked(first), 1, "{:?}", calls.lock().unwrap());
    fs::remove_file(&fill).unwrap();
    let answers = eventually("the answer is there", async || {
        let page = alice.get(format!("/rooms/{room}/messages?limit=200")).await;
        let page = page.ok();
        let messages = page["messages"].as_array().unwrap().clone();
        let answers = messages.iter().filter(|m| m["reply_to_seq"] == first);
        let answers = answers.count();
        (answers > 0).then_some(answers)
    })
    .await;
    assert_eq!((answers, asked(first)), (1, 1));
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn a_damaged_database_takes_no_message() {
    let mut server = Setup::new(Engine::Sqlite).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..40 {
        alice
            .says(&room, &format!("{n} {}", "x".repeat(2000)))
            .await;
    }
    assert!(server.terminate().await.success());
    let file = server.data().join("chatroom.db");
    // Pages that stand in the log too would be read from there.
    let options = SqliteConnectOptions::new().filename(&file);
    let mut database = options.connect().await.unwrap();
    let checkpoint = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
    checkpoint.execute(&mut database).await.unwrap();
    database.close().await.unwrap();
    damage(&file);
    let data = server.data().to_str().unwrap().to_owned();
    let started = server
        .run_aside(&["serve", "--listen", "127.0.0.1:0", "--data", &data])
        .await;
    assert!(!started.status.success());
    let said = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(said.contains("damaged"), "{said}");
}

/// Writes over the pages in the middle of the file.
fn damage(file: &Path) {
    let mut file = File::options().read(true).write(true).open(file).unwrap();
    let length = file.metadata().unwrap().len();
    let mut head = [0; 18];
    file.read_exact(&mut head).unwrap();
    let page = u64::from(u16::from_be_bytes([head[16], head[17]]));
    let middle = length / page / 2 * page;
    file.seek(SeekFrom::Start(middle)).unwrap();
    let noise: Vec<u8> = (0..8 * page).map(|n| (n * 31 % 251) as u8).collect();
    file.write_all(&noise).unwrap();
}

async fn say(caller: &Caller, room: &str, content: &str) -> crate::harness::Reply {
    let body = json!({"content": content});
    caller.post(format!("/rooms/{room}/messages"), body).await
}

/// A server whose data is on a disk that is soon full; none where nobody may mount one.
async fn server_on_a_small_disk() -> Option<(TestServer, SmallDisk)> {
    let mut server = Setup::new(Engine::Sqlite).start().await;
    assert!(server.terminate().await.success());
    let Some(disk) = SmallDisk::mount(server.folder()) else {
        eprintln!("nobody may mount a file system here: the test is left out");
        return None;
    };
    copy_folder(server.data(), &disk.0);
    server.move_data_to(&disk.0.clone());
    server.restart().await;
    Some((server, disk))
}

/// A file system of its own, a few megabytes in all.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path) -> Option<Self> {
        let place = folder.join("small");
        fs::create_dir(&place).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "none"])
            .arg(&place)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

/// Writes until nothing more fits.
fn fill_up(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [64 * 1024, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
