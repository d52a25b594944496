//! What lies on the disk, and what lies in others' caches.

use crate::harness::{Engine, Setup, eventually};
use serde_json::json;
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

fn sqlite() -> Setup {
    Setup::new(Engine::Sqlite)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let (folders, mut files): (Vec<_>, Vec<_>) = entries
        .map(|entry| entry.unwrap().path())
        .partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_in(folder)));
    files
}

fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let mode = |file: &PathBuf| file.metadata().unwrap().permissions().mode();
    let mut files = files_in(folder);
    files.retain(|file| mode(file) & 0o777 != 0o600);
    files
}

#[tokio::test]
async fn nobody_else_on_the_machine_reads_the_files() {
    let mut server = sqlite().with_its_own_keys().start().await;
    let alice = server.token(&["--user", "u_alice"]);
    let alice = server.anonymous().with_token(&alice);
    let room = alice.post("/rooms", json!({"name": "a"})).await.created();
    assert_eq!(open_to_others(server.data()), Vec::<PathBuf>::new());
    let path = format!("/rooms/{}/messages", room["room_id"].as_str().unwrap());
    alice.post(path, json!({"content": "x"})).await.created();

    // A folder that anybody may enter, and files from a time when nobody took care.
    server.kill9();
    std::fs::set_permissions(server.data(), Permissions::from_mode(0o755)).unwrap();
    let left = files_in(server.data());
    assert!(left.iter().any(|file| file.ends_with("chatroom.db-wal")));
    for file in left {
        std::fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
    }
    server.restart().await;
    assert_eq!(open_to_others(server.data()), Vec::<PathBuf>::new());

    let (file, copy) = (
        server.folder().join("backup.tar"),
        server.folder().join("copy"),
    );
    let (file, copy_name) = (file.to_str().unwrap(), copy.to_str().unwrap());
    let data = server.data().to_str().unwrap();
    for args in [
        ["backup", file, "--data", data],
        ["restore", file, "--data", copy_name],
    ] {
        let output = server.run_aside(&args).await;
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(open_to_others(&copy), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_deleted_text_is_nowhere_on_the_disk() {
    let server = sqlite().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "something before").await;
    let deleted = alice.says(&room, "the first wording of a secret").await;
    alice.says(&room, "something after").await;
    let path = format!("/rooms/{room}/messages/{deleted}");
    let edit = json!({"content": "the second wording of a secret"});
    alice.patch(&path, edit).await.ok();
    let stored = async |text: &str| {
        let bytes = server.stored_bytes().await;
        bytes.windows(text.len()).any(|at| at == text.as_bytes())
    };
    assert!(stored("the first wording").await && stored("the second wording").await);
    alice.delete(&path).await.ok();
    // The server empties the database's log in its own time.
    eventually("both wordings are gone", async || {
        let gone = !stored("the first wording").await && !stored("the second wording").await;
        gone.then_some(())
    })
    .await;
    assert!(stored("something after").await);
}

#[tokio::test]
async fn private_answers_are_kept_by_no_cache() {
    let server = sqlite().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = json!({"for_user_id": "u_alice"});
    let key = alice
        .post(format!("/rooms/{room}/room-keys"), key)
        .await
        .created();
    let link = format!("/k/{}", key["code"].as_str().unwrap());
    for path in [
        "/rooms".to_owned(),
        format!("/rooms/{room}"),
        format!("/rooms/{room}/messages"),
        format!("/rooms/{room}/members"),
        format!("/rooms/{room}/rules"),
        format!("/rooms/{room}/room-keys"),
        format!("/rooms/{room}/nothing"),
        "/cli-keys".to_owned(),
        "/metrics".to_owned(),
        link,
    ] {
        let reply = alice.get(&path).await;
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    }
    let made = alice.post("/rooms", json!({"name": "a"})).await;
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let refused = server.anonymous().get("/rooms").await;
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    for (path, kept) in [
        ("/docs/api", "public"),
        ("/skills/workroom.tar.gz", "public"),
        ("/", "no-cache"),
    ] {
        let reply = server.anonymous().get(path).await;
        let says = reply.header("cache-control").unwrap().to_owned();
        assert!(says.starts_with(kept), "{path}: {says}");
    }
}
