//! Who a message mentions. What may be a name is found in the text once; the store knows whose it is.

use crate::store::{Db, DbResult};
use protocol::{
    RoomId, UserId,
    mentions::{MAX_MENTIONS, Mentionable, candidates, parts},
};

/// In a room with more members, only whole names and ids mention anybody.
const MOST_MEMBERS: usize = 200;

/// Whom a text mentions.
#[derive(Debug, Default)]
pub struct Mentioned {
    /// [`MAX_MENTIONS`] at the most.
    pub users: Vec<UserId>,
    /// What fits several members, and mentions none.
    pub ambiguous: Vec<String>,
}

/// The members of the room that the text mentions. Looked up outside of any transaction, so that
/// nobody waits for it.
pub async fn mentioned(db: &Db, room: &RoomId, text: &str) -> DbResult<Mentioned> {
    if !text.contains('@') {
        return Ok(Mentioned::default());
    }
    let names = candidates(text);
    if names.is_empty() {
        return Ok(Mentioned::default());
    }
    // Most texts mention nobody: a post in hand takes no space for asking who it is.
    Box::pin(members_mentioned(db, room, text, &names)).await
}

async fn members_mentioned(
    db: &Db,
    room: &RoomId,
    text: &str,
    names: &[String],
) -> DbResult<Mentioned> {
    let mut conn = db.read().await?;
    let mut users = conn.members_called(room, names, MAX_MENTIONS).await?;
    let members = conn.member_names(room, MOST_MEMBERS as i64 + 1).await?;
    if members.len() > MOST_MEMBERS {
        return Ok(Mentioned {
            users,
            ambiguous: Vec::new(),
        });
    }
    let called: Vec<_> = members
        .iter()
        .map(|member| Mentionable {
            id: member.user_id.as_str(),
            name: member.user_name.as_deref(),
        })
        .collect();
    let by_part = parts(text, &called);
    for at in by_part.mentioned {
        let user = &members[at].user_id;
        if users.len() < MAX_MENTIONS && !users.contains(user) {
            users.push(user.clone());
        }
    }
    Ok(Mentioned {
        users,
        ambiguous: by_part.ambiguous,
    })
}
