//! What was done in a room that its owner should be able to look up. Each line seals the one
//! before it, so that a line changed or taken out later is found.

use crate::{
    app::App,
    auth::{Caller, secrets::sha256_hex},
    clock::Now,
    error::Result,
    services::access::{self, RoomLock},
    store::{Json, Tx, audit::AuditRow},
};
use protocol::{AuditEntry, AuditLog, RoomId, UserId};
use serde_json::Value;

/// Adds a line. The room must be locked in the transaction.
pub async fn record(
    tx: &mut Tx,
    room: &RoomId,
    actor: &UserId,
    action: &str,
    target: Option<&str>,
    detail: Value,
    now: Now,
) -> Result<()> {
    let (n, sealed) = tx.audit_head(room).await?.unwrap_or_default();
    let mut line = AuditRow {
        n: n + 1,
        at: now.seconds(),
        actor: actor.clone(),
        action: action.to_owned(),
        target: target.map(str::to_owned),
        detail: Json(detail),
        hash: String::new(),
    };
    line.hash = seal(&sealed, room, &line);
    tx.insert_audit(room, &line).await?;
    Ok(())
}

/// The lines after line `since`, for the room's owner.
pub async fn read(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    since: i64,
    limit: i64,
) -> Result<AuditLog> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_owner()?;
    let lines = conn.audit_after(room, since, limit).await?;
    let entries = lines
        .into_iter()
        .map(|line| AuditEntry {
            n: line.n,
            at: line.at,
            actor: line.actor.into(),
            action: line.action,
            target: line.target,
            detail: line.detail.0,
            hash: line.hash,
        })
        .collect();
    Ok(AuditLog { entries })
}

fn seal(before: &str, room: &RoomId, line: &AuditRow) -> String {
    let sealed = serde_json::json!([
        before,
        room,
        line.n,
        line.at,
        line.actor,
        line.action,
        line.target,
        line.detail.0.to_string()
    ]);
    sha256_hex(sealed.to_string().as_bytes())
}
