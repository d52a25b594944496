//! A revoked key stops reading: the store is the truth, and the bus only faster.

use super::bus::no_bus;
use crate::harness::{Engine, Events, Setup, both_engines};

#[tokio::test]
async fn a_revoked_key_stops_reading_on_another_node_while_the_bus_is_away() {
    let one = Setup::new(Engine::Postgres)
        .env("BUS", &no_bus())
        .start()
        .await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let events = alice.viewer(&room).await.at(&two).listens(&room).await;
    let agent = alice.lets_in(&room, "curious_otter-00000001").await;
    let of_agent = agent.caller.at(&two).listens(&room).await;
    alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
    events.ended().await;
    let path = format!("/rooms/{room}/members/{}", agent.caller.id());
    alice.delete(path).await.ok();
    of_agent.ended().await;
}

both_engines!(a_key_that_is_revoked_while_its_stream_opens_does_not_read);

async fn a_key_that_is_revoked_while_its_stream_opens_does_not_read(setup: Setup) {
    let server = setup.limit("room_keys_per_user", 0).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..60u64 {
        let viewer = alice.viewer(&room).await;
        let opening = viewer.get(format!("/rooms/{room}/stream"));
        let opening = tokio::spawn(Events::try_open(opening));
        tokio::time::sleep(std::time::Duration::from_micros(60 * n)).await;
        alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
        match opening.await.unwrap() {
            Ok(events) => events.ended().await,
            Err(refused) => assert_eq!(refused.status(), 401),
        }
    }
}
