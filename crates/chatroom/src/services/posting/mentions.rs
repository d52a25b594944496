//! Who a message mentions. What may be a name is found in the text once; the store knows whose it is.

use crate::store::{Conn, DbResult};
use protocol::mentions::{MAX_MENTIONS, candidates};

/// The members of the room that the text mentions, [`MAX_MENTIONS`] at the most.
pub async fn mentioned(conn: &mut Conn, room: &str, text: &str) -> DbResult<Vec<String>> {
    if !text.contains('@') {
        return Ok(Vec::new());
    }
    let names = candidates(text);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    conn.members_called(room, &names, MAX_MENTIONS).await
}
