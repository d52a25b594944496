//! Rooms of the same id on two servers: each has its own key, its own place and its own answers.

use crate::harness::{Owner, PARROT, Room, Server, eventually};

#[tokio::test]
async fn a_room_of_the_same_id_on_another_server_overwrites_nothing() {
    let (first, second) = (Server::start().await, Server::start().await);
    let owner = Owner::with_handler(&first, PARROT).await;
    owner.joins(&Room::new(&first.alice()).await).await;
    let elsewhere = Room::new(&second.alice()).await;
    let code = elsewhere.invite().await.short_code;
    let url = second.url();
    owner
        .types(&["room", "join", &code, "--server", &url])
        .await;
    let _daemon = owner.runs().await;

    // Every server has rooms of these ids.
    let reserved = async || {
        let listed = owner.types(&["room", "list", "--json"]).await;
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
        let bugs = listed.into_iter();
        bugs.filter(|room| room["room_id"] == "rm_bugs" && room["state"] == "joined")
            .map(|room| room["server"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    eventually("it has both keys", async || {
        (reserved().await.len() == 2).then_some(())
    })
    .await;
    let file = owner.place().join("rooms/rm_bugs.json");
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept.contains(&first.url()), "{kept}");
    for server in [&first, &second] {
        let bugs = Room::reserved(&server.alice(), "rm_bugs").await;
        assert_eq!(bugs.ask("hello").await, "re hello");
    }
    assert_eq!(elsewhere.ask("and here").await, "re and here");

    let which = owner.tries(&["room", "leave", "rm_bugs"]).await;
    assert_eq!(which.status.code(), Some(1));
    let said = String::from_utf8(which.stderr).unwrap();
    assert!(said.contains("--server"), "{said}");
    owner
        .types(&["room", "leave", "rm_bugs", "--server", &url])
        .await;
    assert_eq!(reserved().await, [first.url()]);
}
