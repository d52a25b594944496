//! What can be searched is written down after it was said, in batches: posting does not wait for it.
//! What is edited or deleted is taken out of the index in the same transaction.

use super::terms::searchable;
use crate::store::{
    Db, DbResult, Tx,
    messages::{MessageRow, Page},
};
use protocol::RoomId;
use std::time::{Duration, Instant};

/// The messages of one transaction: nobody waits long for it.
const BATCH: usize = 256;

/// What became of a batch.
#[derive(Debug)]
pub struct Batch {
    /// The rooms in which there may be more.
    pub left: Vec<RoomId>,
    /// How long the transaction kept others from writing.
    pub took: Duration,
}

/// Makes searchable what was said in these rooms since the last time, as far as one batch goes.
pub async fn index(db: &Db, rooms: &[RoomId]) -> DbResult<Batch> {
    // In their order, so that nodes do not wait for each other in a circle.
    let mut rooms: Vec<&RoomId> = rooms.iter().collect();
    rooms.sort_unstable();
    rooms.dedup();
    let mut left = Vec::new();
    let mut messages = Vec::new();
    let mut taken = 0;
    let mut tx = db.begin_keeping_cache().await?;
    let began = Instant::now();
    for room in rooms {
        if taken >= BATCH {
            left.push(room.clone());
            continue;
        }
        let page = Page {
            since: tx.lock_indexed_seq(room).await?,
            limit: i64::try_from(BATCH - taken).unwrap_or(1),
            ..Page::default()
        };
        let rows = tx.messages(room, &page).await?;
        let Some(last) = rows.last() else {
            continue;
        };
        tx.set_indexed_seq(room, last.seq).await?;
        taken += rows.len();
        messages.extend(rows.iter().filter_map(|row| searchable(room, row)));
        if taken >= BATCH {
            left.push(room.clone());
        }
    }
    messages.sort_by_key(|message| message.created_at);
    tx.index_messages(&messages).await?;
    tx.commit().await?;
    Ok(Batch {
        left,
        took: began.elapsed(),
    })
}

/// Nobody finds the message any more.
pub async fn forget(tx: &mut Tx, room: &RoomId, seq: i64) -> DbResult<()> {
    if seq <= tx.lock_indexed_seq(room).await? {
        tx.unindex_message(room, seq).await?;
    }
    Ok(())
}

/// The message is found by its new text alone.
pub async fn replace(tx: &mut Tx, room: &RoomId, row: &MessageRow) -> DbResult<()> {
    if row.seq <= tx.lock_indexed_seq(room).await? {
        tx.unindex_message(room, row.seq).await?;
        let message: Vec<_> = searchable(room, row).into_iter().collect();
        tx.index_messages(&message).await?;
    }
    Ok(())
}
