//! Who a message mentions. What may be a name is found in the text once; the store knows whose it is.

use crate::store::{Db, DbResult};
use protocol::{
    RoomId, UserId,
    mentions::{MAX_MENTIONS, candidates},
};

/// The members of the room that the text mentions, [`MAX_MENTIONS`] at the most. Looked up outside
/// of any transaction, so that nobody waits for it.
pub async fn mentioned(db: &Db, room: &RoomId, text: &str) -> DbResult<Vec<UserId>> {
    if !text.contains('@') {
        return Ok(Vec::new());
    }
    let names = candidates(text);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut conn = db.read().await?;
    conn.members_called(room, &names, MAX_MENTIONS).await
}
