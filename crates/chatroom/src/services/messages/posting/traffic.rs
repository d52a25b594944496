//! How busy this node is.

use crate::{
    clock::Now,
    store::{Db, DbError},
};
use std::sync::atomic::{AtomicI64, Ordering};

/// Messages of this node that `/health` counts: written to the store now and then, not with each.
#[derive(Debug, Default)]
pub struct Traffic(AtomicI64);

impl Traffic {
    /// So many messages were posted.
    pub fn add(&self, messages: usize) {
        self.0.fetch_add(
            i64::try_from(messages).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
    }

    /// Those not written yet.
    pub fn pending(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes them.
    pub async fn save(&self, db: &Db, node: &str, now: Now) -> Result<(), DbError> {
        let messages = self.0.swap(0, Ordering::Relaxed);
        if messages == 0 {
            return Ok(());
        }
        let saved = async {
            let mut tx = db.begin().await?;
            tx.add_traffic(now.minutes(), node, messages).await?;
            tx.commit().await
        };
        saved.await.inspect_err(|_| {
            self.0.fetch_add(messages, Ordering::Relaxed);
        })
    }
}
