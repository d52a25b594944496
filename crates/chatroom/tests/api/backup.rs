//! A backup is taken while the server runs, and restores to what it was.

use crate::harness::{Engine, Setup, both_engines};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

both_engines![
    a_backup_taken_under_load_restores,
    a_backup_never_overwrites,
    a_restore_needs_a_new_folder_and_a_backup,
];

async fn a_backup_taken_under_load_restores(setup: Setup) {
    let engine = setup.engine();
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let endpoint = json!({"akm_key": "sk_live_abc", "agent_endpoint": "https://a.example"});
    alice
        .put(format!("/rooms/{room}/members/u_alice/endpoint"), endpoint)
        .await
        .ok();
    let viewer = alice.viewer(&room).await;
    let kept = alice.says(&room, "said before the backup").await;
    let poster = tokio::spawn({
        let (alice, room) = (alice.clone(), room.clone());
        async move {
            loop {
                alice.says(&room, "meanwhile").await;
            }
        }
    });
    let file = server.folder().join("backup.tar");
    let data = server.data().to_owned();
    let output = server
        .run_aside(&[
            "backup",
            file.to_str().unwrap(),
            "--data",
            data.to_str().unwrap(),
        ])
        .await;
    poster.abort();
    if engine == Engine::Postgres {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("pg_dump"),
            "{said}"
        );
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else may read it");
    let restored = server.folder().join("restored");
    let output = server
        .run_aside(&[
            "restore",
            file.to_str().unwrap(),
            "--data",
            restored.to_str().unwrap(),
        ])
        .await;
    assert!(output.status.success(), "{output:?}");
    let mode = std::fs::metadata(&restored).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else may read what was restored");
    assert!(server.terminate().await.success());
    server.move_to(&restored);
    server.restart().await;

    let alice = alice.at(&server);
    assert_eq!(
        alice.reads(&room, kept).await["content"],
        "said before the backup"
    );
    let last = alice.latest_seq(&room).await;
    assert_eq!(viewer.at(&server).says(&room, "goes on").await, last + 1);
    let rooms = alice.get("/rooms").await.ok();
    assert_eq!(rooms["rooms"][0]["has_akm_key"], true);
}

async fn a_backup_never_overwrites(setup: Setup) {
    if setup.engine() == Engine::Postgres {
        return;
    }
    let server = setup.start().await;
    let file = server.folder().join("precious");
    std::fs::write(&file, "precious").unwrap();
    let data = server.data().to_str().unwrap().to_owned();
    let output = server
        .run_aside(&["backup", file.to_str().unwrap(), "--data", &data])
        .await;
    assert!(!output.status.success());
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let nowhere = server.folder().join("nowhere");
    let target = server.folder().join("new.tar");
    let nowhere = nowhere.to_str().unwrap();
    let output = server
        .run_aside(&["backup", target.to_str().unwrap(), "--data", nowhere])
        .await;
    assert!(!output.status.success() && !target.exists());
}

async fn a_restore_needs_a_new_folder_and_a_backup(setup: Setup) {
    if setup.engine() == Engine::Postgres {
        return;
    }
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let file = server.folder().join("backup.tar");
    let data = server.data().to_str().unwrap().to_owned();
    let file = file.to_str().unwrap();
    assert!(
        server
            .run_aside(&["backup", file, "--data", &data])
            .await
            .status
            .success()
    );
    let into_the_old = server.run_aside(&["restore", file, "--data", &data]).await;
    assert!(!into_the_old.status.success());
    alice.get(format!("/rooms/{room}")).await.ok();

    let rubbish = server.folder().join("rubbish");
    std::fs::write(&rubbish, "this is no backup").unwrap();
    let new = server.folder().join("new");
    let (rubbish, new) = (rubbish.to_str().unwrap(), new.to_str().unwrap());
    assert!(
        !server
            .run_aside(&["restore", rubbish, "--data", new])
            .await
            .status
            .success()
    );
    assert!(
        !server
            .run_aside(&["restore", "/nonexistent", "--data", new])
            .await
            .status
            .success()
    );
}
