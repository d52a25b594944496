//! Searching what was said.

use crate::harness::{Caller, Setup, both_engines, eventually, one_engine};
use serde_json::{Value, json};

both_engines![
    words_phrases_and_filters_find_what_they_say,
    a_search_finds_only_what_its_caller_may_read,
    a_deleted_or_edited_text_is_found_no_more,
    results_are_paged_and_each_comes_once,
    whatever_is_typed_is_an_answer_and_no_fault,
    what_was_said_before_a_crash_is_found_after_it,
];
one_engine![a_server_without_search_says_so];

/// What a search finds: the marked text of each result.
async fn finds(caller: &Caller, path: &str, q: &str) -> Vec<String> {
    let query = url_encoded(q);
    let found = caller.get(format!("{path}?q={query}")).await.ok();
    let results = found["results"].as_array().unwrap().iter();
    results.map(marked).collect()
}

fn url_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn marked(result: &Value) -> String {
    let pieces = result["snippet"].as_array().unwrap().iter();
    pieces
        .map(|piece| match piece["matched"].as_bool().unwrap() {
            true => format!("[{}]", piece["text"].as_str().unwrap()),
            false => piece["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}

/// Waits until what was said last can be searched.
async fn indexed(caller: &Caller, room: &str) {
    let word = format!("sentinel{}", caller.latest_seq(room).await);
    caller.says(room, &word).await;
    eventually("the newest message is found", async || {
        let found = finds(caller, &format!("/rooms/{room}/search"), &word).await;
        (!found.is_empty()).then_some(())
    })
    .await;
}

async fn words_phrases_and_filters_find_what_they_say(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, "tidy_falcon-227a4218").await;
    let web = alice.viewer(&room).await;
    web.says(&room, "The deployment of the café failed at noon")
        .await;
    let linked = web
        .says(&room, "see https://example.org/deploy and `cargo run`")
        .await;
    agent
        .says(&room, "I deploy failed things; 東京タワー")
        .await;
    web.post(
        format!("/rooms/{room}/messages/{linked}/reactions"),
        json!({"emoji": "👍"}),
    )
    .await
    .ok();
    indexed(&alice, &room).await;
    let here = format!("/rooms/{room}/search");
    let found = async |q: &str| {
        let mut found = finds(&alice, &here, q).await;
        found.sort();
        found
    };
    assert_eq!(
        found("CAFE noon").await,
        ["The deployment of the [café] failed at [noon]"]
    );
    assert_eq!(found("deployment").await.len(), 1);
    assert_eq!(found("deploy").await.len(), 3, "the last word may go on");
    assert_eq!(found("deploy ").await.len(), 2, "a finished one does not");
    assert_eq!(
        found("\"deploy failed\"").await,
        ["I [deploy failed] things; 東京タワー"]
    );
    assert_eq!(
        found("京タ").await,
        ["I deploy failed things; 東[京タ]ワー"]
    );
    assert_eq!(found("is:agent failed").await.len(), 1);
    assert_eq!(found("is:person failed").await.len(), 1);
    assert_eq!(found("from:tidy_falcon").await.len(), 1);
    assert_eq!(found("from:alice deploy").await.len(), 2);
    assert_eq!(found("has:link").await.len(), 1);
    assert_eq!(found("has:code has:reaction deploy").await.len(), 1);
    assert_eq!(found("has:reaction noon").await.len(), 0);
    assert_eq!(found("before:2020-01-01 deploy").await.len(), 0);
    assert_eq!(found("after:2020-01-01 deploy").await.len(), 3);
    assert_eq!(found("nowhere").await.len(), 0);
    // Everywhere, and in a room by its name.
    assert_eq!(
        finds(&alice, "/search", "in:strategy deployment")
            .await
            .len(),
        1
    );
    assert_eq!(
        finds(&alice, "/search", "in:elsewhere deployment")
            .await
            .len(),
        0
    );
}

async fn a_search_finds_only_what_its_caller_may_read(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let (private, public) = (
        alice.creates_a_room().await,
        alice.creates_a_public_room().await,
    );
    for room in [&private, &public] {
        alice.says(room, "the zebra is out").await;
    }
    let agent = alice.lets_in(&private, "curious_otter-3a9f1c20").await;
    let view = alice.viewer_with(&private, "view").await;
    indexed(&alice, &private).await;
    indexed(&alice, &public).await;
    let here = format!("/rooms/{private}/search");
    assert_eq!(finds(&alice, "/search", "zebra").await.len(), 2);
    assert_eq!(
        finds(&alice, "/search", &format!("in:{private} zebra"))
            .await
            .len(),
        1
    );
    for reader in [&agent.caller, &view] {
        assert_eq!(finds(reader, &here, "zebra").await.len(), 1);
        reader
            .get("/search?q=zebra")
            .await
            .refused(401, "token_invalid");
    }
    // A key opens its own room alone.
    let elsewhere = alice.viewer(&public).await;
    elsewhere
        .get(format!("{here}?q=zebra"))
        .await
        .refused(404, "not_found");
    // Somebody else: nothing of the private room, by whatever name.
    assert_eq!(finds(&bob, "/search", "zebra").await, Vec::<String>::new());
    let by_id = format!("in:{private} zebra");
    assert_eq!(finds(&bob, "/search", &by_id).await, Vec::<String>::new());
    bob.get(format!("{here}?q=zebra"))
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .get(format!("{here}?q=zebra"))
        .await
        .refused(404, "not_found");
    server
        .anonymous()
        .get("/search?q=zebra")
        .await
        .refused(401, "missing_bearer");
    // Visitors search public rooms.
    let visitor = server.anonymous();
    assert_eq!(
        finds(&visitor, &format!("/rooms/{public}/search"), "zebra")
            .await
            .len(),
        1
    );
    // A member finds it until removed, at once.
    alice.lets_in_user(&private, &bob).await;
    assert_eq!(finds(&bob, "/search", "zebra").await.len(), 1);
    alice
        .delete(format!("/rooms/{private}/members/u_bob"))
        .await
        .ok();
    assert_eq!(finds(&bob, "/search", "zebra").await, Vec::<String>::new());
    alice
        .delete(format!("/rooms/{private}/members/{}", agent.id()))
        .await
        .ok();
    agent
        .get(format!("{here}?q=zebra"))
        .await
        .refused(401, "key_invalid");
}

async fn a_deleted_or_edited_text_is_found_no_more(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let here = format!("/rooms/{room}/search");
    let deleted = alice.says(&room, "a quagga in the garden").await;
    let edited = alice.says(&room, "a wombat in the garden").await;
    indexed(&alice, &room).await;
    assert_eq!(finds(&alice, &here, "garden").await.len(), 2);
    alice
        .delete(format!("/rooms/{room}/messages/{deleted}"))
        .await
        .ok();
    let text = json!({"content": "a numbat in the house"});
    alice
        .patch(format!("/rooms/{room}/messages/{edited}"), text)
        .await
        .ok();
    // At once: nobody waits for the index here.
    for gone in ["quagga", "wombat", "garden"] {
        assert_eq!(
            finds(&alice, &here, gone).await,
            Vec::<String>::new(),
            "{gone}"
        );
    }
    assert_eq!(
        finds(&alice, &here, "numbat").await,
        ["a [numbat] in the house"]
    );
    // Also where the index had not come to it yet.
    let fresh = alice.says(&room, "an okapi").await;
    alice
        .delete(format!("/rooms/{room}/messages/{fresh}"))
        .await
        .ok();
    indexed(&alice, &room).await;
    assert_eq!(finds(&alice, &here, "okapi").await, Vec::<String>::new());
}

async fn results_are_paged_and_each_comes_once(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..230 {
        alice.says(&room, &format!("pebble number {n}")).await;
    }
    indexed(&alice, &room).await;
    let all = async |path: &str, q: &str| {
        let mut seen = std::collections::BTreeSet::new();
        let mut cursor = String::new();
        for page in 0.. {
            let path = format!("{path}?q={}&limit=50{cursor}", url_encoded(q));
            let found = alice.get(path).await.ok();
            for result in found["results"].as_array().unwrap() {
                assert!(
                    seen.insert(result["seq"].as_i64().unwrap()),
                    "{result} twice"
                );
            }
            match found["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
            assert!(page < 10, "pages without end");
        }
        seen
    };
    let here = format!("/rooms/{room}/search");
    // More than are ranked at once, by its beginning, as a whole word, in a phrase, and with a mark.
    let queries = ["pebb", "pebble ", "\"pebble number\"", "is:agent pebb"];
    for path in [&here, "/search"] {
        for q in queries {
            assert_eq!(all(path, q).await.len(), 230, "{path} {q}");
        }
        assert_eq!(all(path, "pebble from:bob").await.len(), 0);
    }
    let other = alice
        .post("/rooms", json!({"name": "Quarry"}))
        .await
        .created();
    let other = other["room_id"].as_str().unwrap().to_owned();
    let alone = alice.says(&other, "a pebble alone").await;
    indexed(&alice, &other).await;
    let found: Vec<i64> = all("/search", "in:quarry pebb").await.into_iter().collect();
    assert_eq!(found, [alone], "in one room alone");
    let newest = *all(&here, "pebb").await.last().unwrap();
    alice
        .delete(format!("/rooms/{room}/messages/{newest}"))
        .await
        .ok();
    for q in queries {
        assert!(!all(&here, q).await.contains(&newest), "{q}");
    }
}

async fn whatever_is_typed_is_an_answer_and_no_fault(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice
        .says(
            &room,
            "it's a \"quoted\" 100% sure-thing; DROP TABLE messages",
        )
        .await;
    indexed(&alice, &room).await;
    let long = "x".repeat(10_000);
    let many = "a b ".repeat(100);
    let hostile = [
        "\"",
        "'",
        "''",
        "a\"b",
        "NEAR(a b, 5)",
        "a AND OR NOT b",
        "col:x",
        "terms:it",
        "search_words:a",
        "*",
        "a*",
        "^a",
        "a^2",
        "(",
        ")",
        "{a b}:c",
        "-a",
        "a + b",
        "\\",
        "\\\\'",
        "%",
        "_",
        "a & b | !c <-> d",
        "':*",
        "a:*bc",
        "it's",
        "/in_rm_x",
        "\u{202e}",
        "🙂",
        "\u{feff}",
        "from:\"",
        "in:\"x",
        "before:9999999999999",
        "before:99999999999999999999",
        "has:",
        "1; DROP TABLE messages",
        &long,
        &many,
    ];
    for path in ["/search".to_owned(), format!("/rooms/{room}/search")] {
        for typed in hostile {
            let reply = alice.get(format!("{path}?q={}", url_encoded(typed))).await;
            assert!(
                matches!(reply.status, 200 | 400),
                "{typed:?}: {}",
                reply.text()
            );
        }
        alice
            .get(format!("{path}?q=a%00b"))
            .await
            .refused(400, "bad_request");
        alice
            .get(format!("{path}?q=%ff"))
            .await
            .refused(400, "bad_request");
        alice.get(&path).await.refused(400, "bad_request");
        for bad in ["x", "1", "1.x", "-1.0", "1.9999", "99999999999999999999.0"] {
            let path = format!("{path}?q=it&cursor={bad}");
            alice.get(path).await.refused(400, "bad_request");
        }
        alice
            .get(format!("{path}?q=it&limit=0"))
            .await
            .refused(400, "bad_request");
    }
    let here = format!("/rooms/{room}/search");
    assert_eq!(finds(&alice, &here, "it's 100%").await.len(), 1);
}

async fn what_was_said_before_a_crash_is_found_after_it(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..20 {
        alice.says(&room, &format!("aardvark {n}")).await;
    }
    server.kill9();
    server.restart().await;
    let alice = alice.at(&server);
    eventually("all of it is found", async || {
        let found = alice
            .get(format!("/rooms/{room}/search?q=aardvark&limit=50"))
            .await
            .ok();
        (found["results"].as_array().unwrap().len() == 20).then_some(())
    })
    .await;
}

async fn a_server_without_search_says_so(setup: Setup) {
    let server = setup.env("SEARCH__ENABLED", "false").start().await;
    let alice = server.user("u_alice");
    let words = alice.get("/search?q=x").await.refused(404, "not_found");
    assert!(words.contains("search.enabled"), "{words}");
}
