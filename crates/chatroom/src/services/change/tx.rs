//! Changing rooms: one transaction for what changes, what the rooms' logs say of it, and who has
//! to prove anew that they may read. Committing, publishing and rechecking belong together and to
//! the server: they run to their end when the caller has gone.

use super::RoomLog;
use crate::{
    app::App,
    auth::denylist,
    error::{Error, Result},
    store::Tx,
};
use protocol::RoomId;
use std::{
    collections::BTreeSet,
    ops::{Deref, DerefMut},
};

/// A transaction that changes one or more rooms. Dropped without [`RoomTx::commit`], it is undone.
pub struct RoomTx {
    app: App,
    tx: Tx,
    logs: Vec<RoomLog>,
    rechecked: BTreeSet<RoomId>,
    denylist_changed: bool,
    text_deleted: bool,
}

impl RoomTx {
    pub async fn begin(app: &App) -> Result<Self> {
        Ok(Self {
            app: app.clone(),
            tx: app.db.begin().await?,
            logs: Vec::new(),
            rechecked: BTreeSet::new(),
            denylist_changed: false,
            text_deleted: false,
        })
    }

    /// Adds what the change says in a room's log.
    pub fn add_log(&mut self, log: RoomLog) {
        self.logs.push(log);
    }

    /// Somebody may have lost the right to read this room: its readers have to prove theirs anew.
    pub fn recheck_readers(&mut self, room: &RoomId) {
        self.rechecked.insert(room.clone());
    }

    /// Whom the operator keeps out, or whose user tokens are over, has changed: every node has to know.
    pub async fn change_denylist(&mut self) -> Result<()> {
        let version = self.tx.meta(denylist::VERSION).await?;
        // Counting from the beginning could come to a version that another node knows already.
        let version: i64 = version
            .map_or(Ok(0), |text| text.parse())
            .map_err(|error| {
                Error::internal(format!("{} in the table meta: {error}", denylist::VERSION))
            })?;
        self.tx
            .set_meta(denylist::VERSION, &(version + 1).to_string())
            .await?;
        self.denylist_changed = true;
        Ok(())
    }

    /// A text was deleted: it has to be gone from the disk, too.
    pub fn erase_deleted_text(&mut self) {
        self.text_deleted = true;
    }

    /// Makes the change last, and tells whoever reads the rooms. Once called, this happens whether
    /// the caller waits for it or not.
    pub async fn commit(self) -> Result<()> {
        tokio::spawn(self.commit_and_publish())
            .await
            .map_err(Error::internal)?
    }

    async fn commit_and_publish(self) -> Result<()> {
        let Self {
            app,
            mut tx,
            logs,
            rechecked,
            denylist_changed,
            text_deleted,
        } = self;
        let posted = logs.iter().map(RoomLog::posted).sum();
        let mut commits = Vec::with_capacity(logs.len());
        for log in logs.into_iter().filter(RoomLog::has_grown) {
            commits.push(log.finish(&mut tx).await?);
        }
        for room in &rechecked {
            tx.insert_revocation(room).await?;
        }
        let committed = tx.commit().await;
        // Also when the answer was lost: to recheck those who may read costs them nothing.
        for room in &rechecked {
            app.recheck_readers(room);
        }
        committed?;
        if text_deleted {
            app.text_deleted.notify_one();
        }
        if posted > 0 {
            app.metrics.committed(posted);
            app.traffic.add(posted);
        }
        for commit in commits {
            app.publish(commit);
        }
        if denylist_changed {
            app.reload_denylist().await?;
        }
        Ok(())
    }
}

impl Deref for RoomTx {
    type Target = Tx;
    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for RoomTx {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}
