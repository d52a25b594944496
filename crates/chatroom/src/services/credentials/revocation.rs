//! Ending credentials. Whatever was derived from one ends with it: keys and identity tokens that
//! were minted with it, and what these minted. Who reads with one of them is disconnected.

use crate::{error::Result, services::change::RoomTx};
use protocol::{RoomId, UserId};

/// Ends these credentials and everything derived from them. What `spared` names goes on, with what
/// was derived from it: whoever ends an older credential of theirs keeps the one in hand.
pub async fn revoke(tx: &mut RoomTx, roots: &[&str], spared: Option<&str>) -> Result<()> {
    let spared = spared.unwrap_or_default();
    // One that was being made meanwhile is seen the next time round: who makes one holds its
    // source.
    loop {
        let keys = tx.revoke_key_chain(roots, spared).await?;
        let identities = tx.revoke_identity_chain(roots, spared).await?;
        if keys.is_empty() && identities == 0 {
            return Ok(());
        }
        keys.iter().for_each(|room| tx.recheck_readers(room));
    }
}

/// Ends all keys of a member of a room, and everything derived from them.
pub async fn revoke_member(tx: &mut RoomTx, room: &RoomId, user: &UserId) -> Result<()> {
    let keys = tx.keys_of_member(room, user).await?;
    let roots: Vec<&str> = keys.iter().map(|(jti,)| jti.as_str()).collect();
    // Also those who read with a user token.
    tx.recheck_readers(room);
    revoke(tx, &roots, None).await
}
