//! Skills that replace themselves with what the server offers.

use super::{agent, answer, complains};
use crate::{
    harness::{AgentHost, Engine, Home, Setup, stand_in},
    skills::unpacked,
};
use axum::{Router, routing};
use serde_json::{Value, json};

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
