//! The dedup key of a post: a room that gets the same one again keeps one message.

use protocol::RoomId;

/// The same for every retry of a post about the message `seq`, so that it is made once at most.
/// `attempt` tells posts about the same message apart; it is empty for the first answer.
pub fn dedup_key(user_id: &str, room: &RoomId, seq: i64, attempt: &str) -> String {
    let key = format!("starchild-{user_id}-{room}-{seq}");
    match attempt {
        "" => key,
        attempt => format!("{key}-{attempt}"),
    }
}
