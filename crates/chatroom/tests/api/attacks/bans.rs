//! Whoever was shown the door stays out: sessions that ended, members and users who are banned.

use crate::harness::{Caller, Engine, Setup, TestServer, both_engines, eventually};
use serde_json::{Value, json};

both_engines![
    a_person_ends_all_sessions_at_once,
    an_agent_sees_and_ends_its_own_sessions_alone,
    a_banned_member_cannot_come_back,
    an_operator_keeps_a_user_out_beside_the_running_server,
];

fn sqlite() -> Setup {
    Setup::new(Engine::Sqlite)
}

/// A person who signed in, as the viewer does.
async fn person(server: &TestServer, id: &str) -> Caller {
    let link = server.user_of_type(id, "access");
    let traded = link.post_nothing("/auth/exchange").await.created();
    let outside = link.seen_from_outside();
    outside.with_token(traded["identity_token"].as_str().unwrap())
}

async fn kinds(caller: &Caller) -> Vec<(String, bool)> {
    let list = caller.get("/auth/sessions").await.ok();
    let sessions = list["sessions"].as_array().unwrap().iter();
    let mut kinds: Vec<_> = sessions
        .map(|s| {
            let kind = s["kind"].as_str().unwrap().to_owned();
            (kind, s["current"].as_bool().unwrap())
        })
        .collect();
    kinds.sort_unstable();
    kinds
}

async fn a_person_ends_all_sessions_at_once(setup: Setup) {
    let server = setup.start().await;
    let (laptop, phone) = (
        person(&server, "u_alice").await,
        person(&server, "u_alice").await,
    );
    let room = laptop.creates_a_room().await;
    let viewer = phone.viewer(&room).await;
    let code = json!({"akm_key": "sk_x", "container_id": "1", "label": "cli"});
    laptop.post("/cli-keys", code).await.created();
    let stream = viewer.listens(&room).await;
    let own = |name: &str, current| (name.to_owned(), current);
    assert_eq!(
        kinds(&laptop).await,
        [
            own("cli_key", false),
            own("identity", false),
            own("identity", true),
            own("shared_key", false)
        ]
    );
    assert!(
        !laptop.get("/auth/sessions").await.text().contains("eyJ"),
        "no token is shown"
    );

    // Somebody else's, and a key that was given away, reach nothing of it.
    let mallory = person(&server, "u_mallory").await;
    let list = laptop.get("/auth/sessions").await.ok();
    for session in list["sessions"].as_array().unwrap() {
        let path = format!("/auth/sessions/{}", session["id"].as_str().unwrap());
        mallory.delete(path).await.refused(404, "not_found");
    }
    assert!(viewer.get("/auth/sessions").await.status >= 400);
    assert!(viewer.delete("/auth/sessions").await.status >= 400);
    server
        .anonymous()
        .get("/auth/sessions")
        .await
        .refused(401, "missing_bearer");

    let ended = laptop.delete("/auth/sessions?keep=current").await.ok();
    assert_eq!(ended["ended"], 3);
    stream.ended().await;
    phone.get("/rooms").await.refused(401, "identity_invalid");
    viewer
        .get(format!("/rooms/{room}"))
        .await
        .refused(401, "key_invalid");
    assert_eq!(kinds(&laptop).await, [own("identity", true)]);
    assert_eq!(kinds(&mallory).await, [own("identity", true)]);
    laptop.delete("/auth/sessions").await.ok();
    laptop.get("/rooms").await.refused(401, "identity_invalid");
    // The link that they signed in with is over, too.
    let link = server.user_of_type("u_alice", "access");
    link.post_nothing("/auth/exchange")
        .await
        .refused(401, "token_invalid");
}

async fn an_agent_sees_and_ends_its_own_sessions_alone(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let other = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    // Another party that says it is the same agent.
    let liar = alice.lets_in(&other, "curious_otter-3a9f1c20").await;
    let own = |name: &str, current| (name.to_owned(), current);
    let held = [own("identity", true), own("member_token", false)];
    assert_eq!(kinds(&agent.identity()).await, held);
    assert_eq!(kinds(&liar.identity()).await, held);
    let ended = liar.identity().delete("/auth/sessions").await.ok();
    assert_eq!(ended["ended"], 2);
    liar.get(format!("/rooms/{other}"))
        .await
        .refused(401, "key_invalid");
    agent.get(format!("/rooms/{room}")).await.ok();
    agent.identity().get("/auth/sessions").await.ok();
}

async fn a_banned_member_cannot_come_back(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let bans = format!("/rooms/{room}/bans");
    let code = alice.invites_with(&room, json!({"max_uses": 20})).await;
    let otter = server
        .anonymous()
        .joins(&room, &code, "curious_otter-3a9f1c20")
        .await;
    let bob = server.user("u_bob");
    let join = json!({"adapter_type": "pull"});
    let path = format!("/rooms/{room}/join");
    bob.post(&path, join.clone()).await.created();
    let stream = otter.listens(&room).await;

    // Only the owner bans.
    let otter_ban = json!({"user_id": otter.id(), "reason": "spam"});
    bob.post(&bans, otter_ban.clone())
        .await
        .refused(403, "forbidden");
    otter
        .post(&bans, json!({"user_id": "u_bob"}))
        .await
        .refused(403, "key_scope_insufficient");
    alice
        .post(&bans, json!({"user_id": "u_alice"}))
        .await
        .refused(403, "forbidden");

    let banned = alice.post(&bans, otter_ban).await.created();
    assert_eq!(
        (&banned["removed"], &banned["invite_revoked"]),
        (&json!(true), &json!(true))
    );
    stream.ended().await;
    alice
        .delete(format!("/rooms/{room}/members/u_bob?ban=1"))
        .await
        .ok();
    let list = alice.get(&bans).await.ok();
    let ids: Vec<&Value> = list["bans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ban| &ban["user_id"])
        .collect();
    assert_eq!(ids, [otter.id(), "u_bob"]);
    assert_eq!(list["bans"][0]["reason"], "spam");

    // Not with the open invite, under whatever id; not with another; not by proof of who it is.
    let again =
        |code: &str, id: &str| json!({"invite_code": code, "adapter_type": "pull", "user_id": id});
    let anonymous = server.anonymous();
    let fresh = alice.invites(&room).await;
    let auto = anonymous
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await
        .created();
    let auto = auto["invite_code"].as_str().unwrap();
    let id = "curious_otter-3a9f1c20";
    anonymous
        .post(&path, again(&code, "another_otter-3a9f1c20"))
        .await
        .refused(400, "invite_invalid");
    for caller in [&anonymous, &otter.identity()] {
        for code in [&fresh, auto] {
            caller
                .post(&path, again(code, id))
                .await
                .refused(403, "forbidden");
        }
    }
    let reissue = format!("/rooms/{room}/members/{}/reissue-token", otter.id());
    assert!(otter.identity().post_nothing(reissue).await.status >= 400);
    bob.post(&path, join.clone())
        .await
        .refused(403, "forbidden");

    // Until the ban is lifted.
    alice.delete(format!("{bans}/u_bob")).await.ok();
    alice
        .delete(format!("{bans}/u_bob"))
        .await
        .refused(404, "not_found");
    bob.post(&path, join).await.created();
    let audit: Vec<String> = alice
        .audits(&room)
        .await
        .into_iter()
        .map(|line| line.1)
        .collect();
    assert!(
        audit.contains(&"member_banned".to_owned()) && audit.contains(&"ban_lifted".to_owned())
    );
}

async fn an_operator_keeps_a_user_out_beside_the_running_server(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let bob = server.user("u_bob");
    let room = alice.creates_a_public_room().await;
    alice.lets_in_user(&room, &bob).await;
    let viewer = bob.viewer(&room).await;
    let (by_key, by_token) = (viewer.listens(&room).await, bob.listens(&room).await);
    let data = server.data().to_str().unwrap();
    let run = async |args: &[&str]| {
        let output = server.run_aside(&[args, &["--data", data]].concat()).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let users = run(&["user", "list"]).await;
    assert!(
        users
            .lines()
            .any(|line| line.starts_with("u_bob\tBob\t1\t")),
        "{users}"
    );
    let keys = run(&["key", "list", "u_bob"]).await;
    assert_eq!(keys.lines().count(), 2, "{keys}");
    assert_eq!(run(&["identity", "list", "u_bob"]).await, "");

    // One key.
    let shared = keys
        .lines()
        .find(|line| line.contains("shared_key"))
        .unwrap();
    run(&["key", "revoke", shared.split('\t').next().unwrap()]).await;
    by_key.ended().await;
    viewer
        .get(format!("/rooms/{room}"))
        .await
        .refused(401, "key_invalid");
    bob.get("/rooms").await.ok();

    // The person, everywhere.
    run(&["ban", "add", "u_bob", "--reason", "spam"]).await;
    by_token.ended().await;
    bob.get("/rooms").await.refused(403, "forbidden");
    bob.post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await
        .refused(403, "forbidden");
    let link = server.user_of_type("u_bob", "access");
    link.post_nothing("/auth/exchange")
        .await
        .refused(403, "forbidden");
    assert!(run(&["ban", "list"]).await.starts_with("u_bob\t"));
    alice.says(&room, "We are rid of him.").await;

    // A network.
    let visitor = server.anonymous().from("2001:db8:0:7::1");
    visitor.get("/rooms/public").await.ok();
    run(&["ban", "add", "2001:db8:0:7::99"]).await;
    visitor.get("/rooms/public").await.refused(403, "forbidden");
    let neighbour = server.anonymous().from("2001:db8:0:8::1");
    neighbour.get("/rooms/public").await.ok();
    run(&["ban", "remove", "2001:db8:0:7::/64"]).await;
    visitor.get("/rooms/public").await.ok();

    // Lifting a ban brings no old credential back.
    run(&["ban", "remove", "u_bob"]).await;
    bob.get("/rooms").await.refused(401, "token_invalid");

    // Nobody else has this power.
    for path in ["/internal/admin/users", "/internal/admin/bans"] {
        alice.get(path).await.refused(403, "forbidden");
        server.user_of_type("u_root", "admin").get(path).await.ok();
    }
}

#[tokio::test]
async fn the_operators_commands_say_where_they_look() {
    let mut server = sqlite().start().await;
    server.terminate().await;
    let data = server.data().to_str().unwrap().to_owned();
    let output = server.run_aside(&["user", "list", "--data", &data]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("--server"),
        "{said}"
    );
}

#[tokio::test]
async fn the_servers_own_key_manages_a_server_with_a_provider() {
    let secret = "a shared secret of some length, as providers give them";
    let server = sqlite().env("AUTH__HS256_SECRET", secret).start().await;
    let data = server.data().to_str().unwrap();
    let output = server.run_aside(&["ban", "list", "--data", data]).await;
    assert!(output.status.success(), "{output:?}");
    // And signs in nobody.
    server
        .user("u_alice")
        .get("/rooms")
        .await
        .refused(401, "token_invalid");
    let link = server.user_of_type("u_alice", "access");
    link.post_nothing("/auth/exchange")
        .await
        .refused(401, "token_invalid");
}

#[tokio::test]
async fn a_ban_holds_on_every_node() {
    let one = Setup::new(Engine::Postgres).start().await;
    let two = one.another_node().await;
    let (alice, bob) = (one.user("u_alice"), one.user("u_bob"));
    let room = alice.creates_a_public_room().await;
    alice.lets_in_user(&room, &bob).await;
    let (there, visitor) = (bob.at(&two), one.anonymous().from("203.0.113.77").at(&two));
    let events = there.listens(&room).await;
    visitor.get("/rooms/public").await.ok();
    let data = one.data().to_str().unwrap();
    for subject in ["u_bob", "203.0.113.77"] {
        let output = one
            .run_aside(&["ban", "add", subject, "--data", data])
            .await;
        assert!(output.status.success(), "{output:?}");
    }
    events.ended().await;
    for (caller, path) in [(&there, "/rooms"), (&visitor, "/rooms/public")] {
        let refused = eventually("the other node refuses them", async || {
            let reply = caller.get(path).await;
            (reply.status != 200).then_some(reply)
        });
        refused.await.refused(403, "forbidden");
    }
    let body = json!({"content": "still here"});
    let posted = there.post(format!("/rooms/{room}/messages"), body).await;
    posted.refused(403, "forbidden");
}
