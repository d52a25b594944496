//! The live stream: every event in one durable order, for whoever may read it.

use crate::harness::{
    Caller, DEADLINE, Events, Setup, TestServer, agent_id, both_engines, one_engine,
};
use client::{
    Cursor, Event,
    sse::{Frame, Parser},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

both_engines![
    a_stream_begins_where_the_room_stands,
    a_message_is_told_with_its_seq_as_id,
    every_kind_of_event_is_told,
    side_events_stand_after_the_newest_message,
    a_revoked_key_ends_its_streams,
    a_key_that_expires_ends_a_busy_stream_too,
    all_readers_get_the_same_order,
    readers_who_come_and_go_miss_nothing_while_others_post,
    a_replay_that_meets_the_present_has_no_doubles,
    a_reader_that_falls_behind_is_cut_off_and_resumes,
    the_client_follows_over_a_crash,
    a_stream_ends_when_the_server_does,
];

one_engine![
    a_browser_sends_its_key_in_the_query,
    an_idle_stream_gets_signs_of_life,
    readers_are_members_and_key_holders,
    the_stream_is_not_cached,
    a_key_that_expires_ends_its_streams,
    what_changes_nothing_is_not_told,
];

pub fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

async fn a_stream_begins_where_the_room_stands(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "before").await;
    let seq = alice.says(&room, "last").await;
    let mut events = Events::open(alice.get(format!("/rooms/{room}/stream"))).await;
    let first = events.next().await;
    assert_eq!(first.id.as_deref(), Some(seq.to_string().as_str()));
    let cursor = json!({"cursor": seq.to_string()}).to_string();
    assert_eq!(
        (first.event.as_deref(), first.data),
        (Some("ready"), Some(cursor))
    );
    alice.says(&room, "after").await;
    assert_eq!(events.expect("message").await["content"], "after");
}

async fn a_message_is_told_with_its_seq_as_id(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.viewer_with(&room, "view").await.listens(&room).await;
    let seq = alice.says(&room, "hello").await;
    let (event, id, told) = events.event().await;
    assert_eq!((event.as_str(), id), ("message", seq.to_string()));
    let mut read = alice.reads(&room, seq).await;
    read.as_object_mut().unwrap().remove("mentions_me");
    let mut told = told;
    told.as_object_mut().unwrap().remove("mentions_me");
    assert_eq!(told, read, "the same row as in the backfill");
}

async fn every_kind_of_event_is_told(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.listens(&room).await;
    let seq = alice.says(&room, "helo").await;
    let path = format!("{}/{seq}", messages(&room));
    alice.patch(&path, json!({"content": "hello"})).await.ok();
    alice
        .post(format!("{path}/reactions"), json!({"emoji": "👍"}))
        .await
        .ok();
    alice.delete(format!("{path}/reactions/👍")).await.ok();
    alice.delete(&path).await.ok();
    alice
        .patch(
            format!("/rooms/{room}/rules"),
            json!({"content": "Be kind."}),
        )
        .await
        .ok();

    assert_eq!(events.expect("message").await["content"], "helo");
    let edited = events.expect("message_edited").await;
    assert_eq!(
        (&edited["seq"], &edited["content"]),
        (&json!(seq), &json!("hello"))
    );
    assert!(edited["edited_at"].is_i64());
    let reaction = json!({"seq": seq, "user_id": "u_alice", "emoji": "👍"});
    assert_eq!(events.expect("reaction_added").await, reaction);
    assert_eq!(events.expect("reaction_removed").await, reaction);
    assert_eq!(events.expect("message_deleted").await, json!({"seq": seq}));
    assert_eq!(
        events.expect("rules_updated").await["updated_by"],
        "u_alice"
    );
    assert_eq!(events.expect("message").await["via"], "system");
}

async fn what_changes_nothing_is_not_told(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let reactions = format!("{}/{seq}/reactions", messages(&room));
    alice.post(&reactions, json!({"emoji": "👍"})).await.ok();
    let mut events = alice.listens(&room).await;
    let again = alice.post(&reactions, json!({"emoji": "👍"})).await.ok();
    assert_eq!(again["added"], false);
    let not_there = alice.delete(format!("{reactions}/👎")).await.ok();
    assert_eq!(not_there["removed"], false);
    let too_long = json!({"content": "x".repeat(5000)});
    alice
        .post(messages(&room), too_long)
        .await
        .refused(400, "too_large");
    alice.says(&room, "next").await;
    assert_eq!(events.expect("message").await["content"], "next");
}

async fn side_events_stand_after_the_newest_message(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let first = alice.says(&room, "one").await;
    let newest = alice.says(&room, "two").await;
    let mut events = alice.listens(&room).await;
    for emoji in ["👍", "👎"] {
        let path = format!("{}/{first}/reactions", messages(&room));
        alice.post(path, json!({"emoji": emoji})).await.ok();
    }
    alice.says(&room, "three").await;
    let ids = [
        events.event().await.1,
        events.event().await.1,
        events.event().await.1,
    ];
    let expected = [
        format!("{newest}.1"),
        format!("{newest}.2"),
        format!("{}", newest + 1),
    ];
    assert_eq!(ids, expected);
}

async fn a_browser_sends_its_key_in_the_query(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let browser = server.anonymous().seen_from_outside();
    let path = format!("/rooms/{room}/stream?token={}", viewer.token().unwrap());
    let mut events = Events::open(browser.get(&path)).await;
    events.next().await;
    alice.says(&room, "hello").await;
    assert_eq!(events.expect("message").await["content"], "hello");
    for elsewhere in ["", "/messages", "/members"] {
        let path = path.replace("/stream", elsewhere);
        let reply = browser.get(path).await;
        assert!(
            matches!(reply.status, 401 | 404),
            "only the stream takes it there"
        );
    }
}

async fn readers_are_members_and_key_holders(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let path = format!("/rooms/{room}/stream");
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
    server
        .user("u_eve")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    let with = |token: &str| server.anonymous().get(format!("{path}?token={token}"));
    with("rubbish").await.refused(401, "token_invalid");
    let elsewhere = alice.creates_a_room().await;
    let key = alice.viewer(&elsewhere).await;
    key.get(&path).await.refused(403, "key_scope_insufficient");
    alice
        .get("/rooms/rm_nosuch/stream")
        .await
        .refused(404, "not_found");
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    agent.seen_from_outside().listens(&room).await;
}

async fn a_revoked_key_ends_its_streams(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (one, two) = (alice.viewer(&room).await, alice.viewer(&room).await);
    let (first, mut second) = (one.listens(&room).await, two.listens(&room).await);
    let jti = crate::harness::claims(one.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice
        .delete(format!("/rooms/{room}/room-keys/{jti}"))
        .await
        .ok();
    first.ended().await;
    alice.says(&room, "still here").await;
    assert_eq!(second.expect("message").await["content"], "still here");
    alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
    second.ended().await;
}

async fn a_key_that_expires_ends_its_streams(setup: Setup) {
    let setup = setup.env("TOKENS__ROOM_KEY_TTL_SECONDS", "2");
    let server = setup.env("STREAM__HEARTBEAT_SECONDS", "1").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    viewer.listens(&room).await.ended().await;
    let reply = viewer.get(format!("/rooms/{room}/stream")).await;
    reply.refused(401, "key_invalid");
}

async fn a_key_that_expires_ends_a_busy_stream_too(setup: Setup) {
    let setup = setup.env("TOKENS__ROOM_KEY_TTL_SECONDS", "2");
    let server = setup.env("STREAM__HEARTBEAT_SECONDS", "5").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.viewer(&room).await.listens(&room).await;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        alice.says(&room, "busy").await;
        if events.next_or_end().await.is_none() {
            break;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "the stream outlives its key"
        );
    }
}

async fn an_idle_stream_gets_signs_of_life(setup: Setup) {
    let server = setup.env("STREAM__HEARTBEAT_SECONDS", "1").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.listens(&room).await;
    for _ in 0..2 {
        let bytes = events.bytes().await;
        assert_eq!(bytes, b": still here\n");
    }
}

async fn all_readers_get_the_same_order(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(alice.listens(&room).await);
    }
    let posters = (0..8).map(|task| {
        let (alice, room) = (alice.clone(), room.clone());
        tokio::spawn(async move {
            for n in 0..5 {
                let seq = alice.says(&room, &format!("{task} {n}")).await;
                let path = format!("{}/{seq}/reactions", messages(&room));
                alice.post(path, json!({"emoji": "👍"})).await.ok();
            }
        })
    });
    for poster in posters.collect::<Vec<_>>() {
        poster.await.unwrap();
    }
    let mut orders = Vec::new();
    for reader in &mut readers {
        let mut order = Vec::new();
        for _ in 0..80 {
            order.push(reader.event().await);
        }
        let cursors: Vec<Cursor> = order.iter().map(|(_, id, _)| id.parse().unwrap()).collect();
        assert!(cursors.is_sorted_by(|a, b| a < b), "{cursors:?}");
        orders.push(order);
    }
    orders.dedup();
    assert_eq!(orders.len(), 1, "one order for all");
}

async fn readers_who_come_and_go_miss_nothing_while_others_post(setup: Setup) {
    const POSTS: i64 = 150;
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let start = alice.says(&room, "start").await;
    let posters = (0..3).map(|_| {
        let (alice, room) = (alice.clone(), room.clone());
        tokio::spawn(async move {
            for n in 0..POSTS / 3 {
                let seq = alice.says(&room, &n.to_string()).await;
                if n % 5 == 0 {
                    let path = format!("{}/{seq}", messages(&room));
                    alice.patch(path, json!({"content": "edited"})).await.ok();
                }
            }
        })
    });
    let posters: Vec<_> = posters.collect();
    let readers = (1..=3).map(|patience| {
        let (alice, room) = (alice.clone(), room.clone());
        tokio::spawn(async move {
            let mut cursor = start.to_string();
            let mut seen: Vec<Cursor> = Vec::new();
            let mut edits = 0;
            while seen.last().is_none_or(|last| last.seq < start + POSTS) || edits < POSTS / 5 {
                let mut events = alice.resumes(&room, &cursor).await;
                for _ in 0..patience * 4 {
                    if seen.len() as i64 == POSTS + POSTS / 5 {
                        break;
                    }
                    let (name, id, _) = events.event().await;
                    edits += i64::from(name == "message_edited");
                    seen.push(id.parse().unwrap());
                    cursor = id;
                }
            }
            seen
        })
    });
    let readers: Vec<_> = readers.collect();
    for poster in posters {
        poster.await.unwrap();
    }
    for reader in readers {
        let seen = reader.await.unwrap();
        assert!(seen.is_sorted_by(|a, b| a < b), "no double, in order");
        let seqs = seen.iter().filter(|c| c.sub == 0).map(|c| c.seq);
        assert!(seqs.eq(start + 1..=start + POSTS), "no gap");
    }
}

/// Readers come whose replay ends just where new messages are being written.
async fn a_replay_that_meets_the_present_has_no_doubles(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let _keeps_the_room_read = alice.listens(&room).await;
    let posters: Vec<_> = (0..16)
        .map(|_| {
            let (alice, room) = (alice.clone(), room.clone());
            tokio::spawn(async move {
                for n in 0..80 {
                    alice.says(&room, &n.to_string()).await;
                }
            })
        })
        .collect();
    while posters.iter().any(|poster| !poster.is_finished()) {
        for back in [199, 198, 195, 190] {
            let latest = alice.latest_seq(&room).await;
            let from = (latest - back).max(0);
            let mut events = alice.resumes(&room, &from.to_string()).await;
            // The posters have finished at 1280 messages, or there is more to come.
            for seq in from + 1..=(latest + 40).min(1280) {
                assert_eq!(events.expect("message").await["seq"], seq, "from {from}");
            }
        }
    }
    for poster in posters {
        poster.await.unwrap();
    }
}

async fn a_reader_that_falls_behind_is_cut_off_and_resumes(setup: Setup) {
    const BYTES: usize = 24_000;
    const POSTERS: usize = 8;
    let server = setup.env("STREAM__BUFFER", "16").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let start = alice.latest_seq(&room).await;
    let mut sleepy = SleepyReader::of(&server, &alice, &room).await;
    // More than the sockets between the two can hold, while nothing is read.
    let posts_each = (send_buffer_limit() / BYTES + 64).div_ceil(POSTERS);
    let posters = (0..POSTERS).map(|_| {
        let (alice, room) = (alice.clone(), room.clone());
        tokio::spawn(async move {
            for _ in 0..posts_each {
                // Six bytes in JSON.
                alice.says(&room, &"\u{1}".repeat(BYTES / 6)).await;
            }
        })
    });
    for poster in posters.collect::<Vec<_>>() {
        poster.await.unwrap();
    }
    let last = start + (POSTERS * posts_each) as i64;
    let mut seen = start;
    while let Some(frame) = sleepy.next_or_end().await {
        let seq: i64 = frame.id.unwrap().parse().unwrap();
        assert_eq!(seq, seen + 1, "never a hole");
        seen = seq;
        assert!(
            seen < last,
            "the reader was served all of it, so nothing bounds what is held for it"
        );
    }
    let mut resumed = alice.resumes(&room, &seen.to_string()).await;
    while seen < last {
        let message = resumed.expect("message").await;
        assert_eq!(message["seq"], seen + 1);
        seen += 1;
    }
}

/// How much the system lets a sender's socket grow to.
fn send_buffer_limit() -> usize {
    const USUAL: usize = 4 * 1024 * 1024;
    let settings = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap_or_default();
    let limit = settings.split_whitespace().last();
    limit.map_or(USUAL, |limit| limit.parse().unwrap())
}

/// A reader whose socket holds little, however much the system would give it: what it leaves unread
/// stays with the server.
struct SleepyReader {
    socket: TcpStream,
    parser: Parser,
}

impl SleepyReader {
    /// Opens the room's stream. In HTTP/1.0 the frames come as they are, without chunks around them.
    async fn of(server: &TestServer, caller: &Caller, room: &str) -> Self {
        let address = server.base_url().strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let mut socket = socket.connect(address.parse().unwrap()).await.unwrap();
        let token = caller.token().unwrap();
        let request = format!(
            "GET /rooms/{room}/stream HTTP/1.0\r\nhost: {address}\r\n\
             authorization: Bearer {token}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        let parser = Parser::new();
        let mut reader = Self { socket, parser };
        let first = reader.next_or_end().await.unwrap();
        assert_eq!(first.event.as_deref(), Some("ready"));
        reader
    }

    /// The next frame, or nothing if the stream is over or was cut.
    async fn next_or_end(&mut self) -> Option<Frame> {
        let mut bytes = [0; 16 * 1024];
        loop {
            if let Some(frame) = self.parser.next_frame() {
                return Some(frame);
            }
            let reading = tokio::time::timeout(DEADLINE, self.socket.read(&mut bytes));
            match reading.await.expect("an event in time") {
                Ok(read @ 1..) => self.parser.push(&bytes[..read]).unwrap(),
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

async fn the_client_follows_over_a_crash(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let id = room.parse().unwrap();
    let mut events = server.client(&alice).stream(&id, None).await.unwrap();
    alice.says(&room, "one").await;
    let (cursor, event) = events.next().await.unwrap().unwrap();
    let Event::Message(message) = event else {
        panic!("{event:?}")
    };
    assert_eq!(message.content, "one");
    server.kill9();
    server.restart().await;
    let alice = alice.at(&server);
    alice.says(&room, "two").await;
    let mut events = server.client(&alice).follow(&id, cursor);
    let (_, event) = events.next().await.unwrap();
    let Event::Message(message) = event else {
        panic!("{event:?}")
    };
    assert_eq!(message.content, "two");
}

async fn a_stream_ends_when_the_server_does(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let events = alice.listens(&room).await;
    server.ask_to_end();
    events.ended().await;
    assert!(server.terminate().await.success());
}

async fn the_stream_is_not_cached(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let url = format!("{}/rooms/{room}/stream", server.base_url());
    let reply = reqwest::Client::new()
        .get(url)
        .bearer_auth(alice.token().unwrap())
        .send();
    let reply = reply.await.unwrap();
    let cache = reply.headers()["cache-control"].to_str().unwrap();
    assert!(
        cache.contains("no-cache") || cache.contains("no-store"),
        "{cache}"
    );
}
