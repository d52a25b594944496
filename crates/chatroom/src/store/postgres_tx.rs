//! Transactions on PostgreSQL that end in time, whatever the network does.
//!
//! A connection that went silent says nothing, and the driver would wait for it. So every statement
//! has a deadline on this side too, and a connection that was left in the middle of one is closed
//! instead of going back to its pool.

use super::{DbError, DbResult};
use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long this side waits for an answer to what writes; PostgreSQL ends a statement earlier.
pub const ANSWER_TIME: Duration = Duration::from_secs(12);
/// How long a transaction that was given up may take to be undone.
const ROLLBACK_TIME: Duration = Duration::from_secs(5);

/// The answer, if it comes in time.
pub async fn in_time<T>(
    answer_time: Duration,
    asking: impl Future<Output = DbResult<T>>,
) -> DbResult<T> {
    match tokio::time::timeout(answer_time, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(DbError::PoolTimedOut),
    }
}

/// Whether the connection may still be in the middle of what it was asked.
pub fn is_unanswered<T>(result: &DbResult<T>) -> bool {
    matches!(result, Err(DbError::PoolTimedOut))
}

/// A transaction. Dropped without [`PostgresTx::commit`], it is undone.
pub struct PostgresTx {
    conn: OwnedMutexGuard<PoolConnection<Postgres>>,
    is_open: bool,
    asking: bool,
}

impl PostgresTx {
    pub async fn begin(pool: &PgPool) -> DbResult<Self> {
        let conn = Arc::new(Mutex::new(pool.acquire().await?));
        let mut tx = Self {
            conn: conn.lock_owned().await,
            is_open: true,
            asking: false,
        };
        tx.run("BEGIN").await?;
        Ok(tx)
    }

    /// The connection, to ask one query.
    pub fn ask(&mut self) -> &mut PgConnection {
        self.asking = true;
        &mut self.conn
    }

    /// The query was answered, one way or another.
    pub fn answered(&mut self) {
        self.asking = false;
    }

    pub async fn commit(mut self) -> DbResult<()> {
        self.run("COMMIT").await?;
        self.is_open = false;
        Ok(())
    }

    async fn run(&mut self, statement: &'static str) -> DbResult<()> {
        let done = in_time(ANSWER_TIME, sqlx::raw_sql(statement).execute(self.ask())).await;
        if !is_unanswered(&done) {
            self.answered();
        }
        done.map(drop)
    }
}

impl Drop for PostgresTx {
    fn drop(&mut self) {
        if self.asking {
            self.conn.close_on_drop();
        } else if self.is_open
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(roll_back(OwnedMutexGuard::mutex(&self.conn).clone()));
        }
    }
}

async fn roll_back(conn: Arc<Mutex<PoolConnection<Postgres>>>) {
    let mut conn = conn.lock().await;
    let undoing = sqlx::raw_sql("ROLLBACK").execute(&mut **conn);
    let undone = tokio::time::timeout(ROLLBACK_TIME, undoing).await;
    if !matches!(undone, Ok(Ok(_))) {
        conn.close_on_drop();
    }
}
