//! Rendering has a budget, for each message and each request.

use crate::harness::{Engine, Setup};
use futures_util::future::join_all;
use std::time::Duration;

/// Code that grammars take long for: every line is one they look at again and again.
pub fn crafted(n: usize) -> String {
    let line = "template<a<".repeat(17);
    let lines = format!("{line}\n").repeat(20);
    format!("{n}\n```cpp\n{lines}```")
}

#[tokio::test]
async fn fifty_crafted_blocks_delay_nobody() {
    let server = Setup::new(Engine::Sqlite).start().await;
    let (mallory, bob) = (server.user("u_mallory"), server.user("u_bob"));
    let (room, elsewhere) = (mallory.creates_a_room().await, bob.creates_a_room().await);
    for n in 0..50 {
        mallory.says(&room, &crafted(n)).await;
    }
    bob.says(&elsewhere, "```rust\nfn main() {}\n```").await;
    let path = |room: &str| format!("/rooms/{room}/messages?render=html");
    let spent_before = server.processor_time();
    let attack = {
        let reads: Vec<_> = (0..4)
            .map(|_| mallory.get(path(&room)).into_future())
            .collect();
        tokio::spawn(join_all(reads))
    };
    let page = bob.get(path(&elsewhere)).await.ok();
    let html = page["messages"][0]["content_html"].as_str().unwrap();
    assert!(html.starts_with("<pre><code>"), "{html}");
    for page in attack.await.unwrap() {
        let page = page.ok();
        let messages = page["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 50);
        assert!(
            messages
                .iter()
                .all(|message| message["content_html"].is_string())
        );
    }
    // A page alone took half a minute. What else the machine does, does not count.
    let spent = server.processor_time() - spent_before;
    assert!(spent < Duration::from_secs(20), "{spent:?}");
}
