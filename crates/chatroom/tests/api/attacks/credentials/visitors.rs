//! What visitors of a public room were given ends when it turns private.

use super::OTTER;
use crate::harness::{Setup, both_engines};
use serde_json::{Value, json};

both_engines![a_visitors_invite_ends_when_the_room_turns_private];

async fn a_visitors_invite_ends_when_the_room_turns_private(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let visitor = server.anonymous().seen_from_outside();
    let auto_invite = format!("/rooms/{room}/auto-invite");
    let invite = visitor.post_nothing(&auto_invite).await.created();
    let join = |invite: &Value, id: &str| json!({"invite_code": invite["invite_code"], "adapter_type": "pull", "user_id": id});
    let by_owner = json!({"invite_code": alice.invites(&room).await});

    let path = format!("/rooms/{room}");
    alice
        .patch(&path, json!({"visibility": "private"}))
        .await
        .ok();
    let into = format!("/rooms/{room}/join");
    let reply = visitor.post(&into, join(&invite, OTTER)).await;
    reply.refused(400, "invite_invalid");
    let short = format!("/i/{}", invite["short_code"].as_str().unwrap());
    visitor.get(short).await.refused(404, "not_found");
    visitor
        .post_nothing(&auto_invite)
        .await
        .refused(404, "not_found");
    // The owner's own holds, and so does who was let in before.
    visitor.post(&into, join(&by_owner, OTTER)).await.created();

    // Turning it public again brings the old ones back for nobody.
    alice
        .patch(&path, json!({"visibility": "public"}))
        .await
        .ok();
    let again = "sunny_willow-7e2bd401";
    let reply = visitor.post(&into, join(&invite, again)).await;
    reply.refused(400, "invite_invalid");
    let fresh = visitor.post_nothing(&auto_invite).await.created();
    alice.patch(&path, json!({"archived": true})).await.ok();
    let reply = visitor.post(&into, join(&fresh, again)).await;
    reply.refused(409, "archived");
}
