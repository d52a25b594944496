//! Whether the server can keep what it is told.

use crate::{
    clock::Now,
    error::{Error, Result},
    store::{Db, DbError},
};
use std::time::Duration;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// A check holds for this long: whoever asks often loads the database no more than that.
const HOLDS: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(3);

/// Checks the database by writing to it.
#[derive(Default)]
pub struct Storage {
    last: Mutex<Option<(Instant, Result<()>)>>,
}

impl Storage {
    /// Fails where the database does not take a write in time.
    pub async fn check(&self, db: &Db, node: &str) -> Result<()> {
        // Those who ask meanwhile wait for the same check.
        let mut last = self.last.lock().await;
        if let Some((at, checked)) = &*last
            && at.elapsed() < HOLDS
        {
            return checked.clone();
        }
        let checked = match timeout(DEADLINE, write(db, node)).await {
            Ok(written) => written.map_err(Error::from),
            Err(_) => Err(Error::unavailable(
                "The database does not take writes. Try again",
            )),
        };
        *last = Some((Instant::now(), checked.clone()));
        checked
    }
}

async fn write(db: &Db, node: &str) -> Result<(), DbError> {
    let mut tx = db.begin_keeping_cache().await?;
    tx.write_health_check(node, Now::get().seconds()).await?;
    tx.commit().await
}
