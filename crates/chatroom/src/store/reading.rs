//! Connections to read with: every query has a deadline, and one whose caller has gone is ended.
//!
//! A query of SQLite runs on a thread that hears nothing of its caller; it is stopped from inside,
//! by the handler that SQLite calls every so many steps. PostgreSQL stops a query at its
//! `statement_timeout`, or when it finds the connection closed.

use super::{DbError, DbResult};
use prometheus_client::metrics::counter::Counter;
use sqlx::{
    ConnectOptions, PgConnection, PgPool, Postgres, SqliteConnection,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::SqliteConnectOptions,
};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// Connections to read with, on either engine.
pub const READERS: usize = 8;
/// How many of them the requests from one address may hold at once, so that it never holds all.
const READERS_PER_ADDRESS: usize = 4;
/// SQLite looks at the deadline after so many steps of a query: some tens of microseconds.
const STEPS: i32 = 1000;
/// How often PostgreSQL looks whether the connection that a query runs for is still there.
const CONNECTION_CHECK: Duration = Duration::from_millis(500);

/// How much later than its time limit a query of PostgreSQL may be answered.
const LATE_ANSWER: Duration = Duration::from_secs(2);

/// Queries that ran into their deadline.
pub static TIMED_OUT: LazyLock<Counter> = LazyLock::new(Counter::default);

tokio::task_local! {
    /// The address whose request this task answers.
    static REQUESTED_BY: IpAddr;
}

/// The work for a request, which shares the connections with the work for other addresses.
pub type Requested<F> = tokio::task::futures::TaskLocalFuture<IpAddr, F>;

/// What the future reads is read for a request from this address.
pub fn requested_by<F: Future>(address: IpAddr, future: F) -> Requested<F> {
    REQUESTED_BY.scope(address, future)
}

/// Whether the query was ended because it took too long.
pub fn is_timed_out(error: &DbError) -> bool {
    // SQLITE_INTERRUPT, and PostgreSQL's query_canceled.
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("9" | "57014"))
}

/// Notes a query that took too long; the others' errors are logged where they are handled.
pub fn note_timeout<T>(result: &DbResult<T>, query: &'static str) {
    if let Err(error) = result
        && is_timed_out(error)
    {
        TIMED_OUT.inc();
        tracing::warn!(query, "a query took too long and was ended");
    }
}

/// How many connections each address holds.
#[derive(Clone, Default)]
struct AddressPermits(Arc<Mutex<HashMap<IpAddr, Arc<Semaphore>>>>);

/// An address's right to one connection.
struct AddressPermit {
    address_permits: AddressPermits,
    address: IpAddr,
    permit: Option<OwnedSemaphorePermit>,
}

impl AddressPermits {
    /// Waits until the address whose request this is holds few enough. What the server does of
    /// its own accord needs none.
    async fn acquire(&self, timeout: Duration) -> DbResult<Option<AddressPermit>> {
        let Ok(address) = REQUESTED_BY.try_with(|address| *address) else {
            return Ok(None);
        };
        let permits = lock(&self.0)
            .entry(address)
            .or_insert_with(|| Arc::new(Semaphore::new(READERS_PER_ADDRESS)))
            .clone();
        let mut address_permit = AddressPermit {
            address_permits: self.clone(),
            address,
            permit: None,
        };
        address_permit.permit = Some(acquire(permits, timeout).await?);
        Ok(Some(address_permit))
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        self.permit = None;
        let mut address_permits = lock(&self.address_permits.0);
        // Whoever holds or awaits a permit holds the semaphore too.
        if address_permits
            .get(&self.address)
            .is_some_and(|permits| Arc::strong_count(permits) == 1)
        {
            address_permits.remove(&self.address);
        }
    }
}

async fn acquire(permits: Arc<Semaphore>, timeout: Duration) -> DbResult<OwnedSemaphorePermit> {
    match tokio::time::timeout(timeout, permits.acquire_owned()).await {
        Ok(permit) => permit.map_err(|_| DbError::PoolClosed),
        Err(_) => Err(DbError::PoolTimedOut),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections that read SQLite. Cheap to clone.
#[derive(Clone)]
pub struct SqliteReaders(Arc<SqliteParts>);

struct SqliteParts {
    options: SqliteConnectOptions,
    most_time: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Arc<AsyncMutex<SqliteSlot>>>>,
    address_permits: AddressPermits,
}

struct SqliteSlot {
    conn: SqliteConnection,
    deadline: Arc<Deadline>,
}

/// When a connection's query has to end, in milliseconds after the first look at the clock.
pub struct Deadline(AtomicU64);

impl Default for Deadline {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Deadline {
    /// Ends this connection's queries from now on.
    pub async fn watch(self: &Arc<Self>, conn: &mut SqliteConnection) -> DbResult<()> {
        let handled = self.clone();
        conn.lock_handle()
            .await?
            .set_progress_handler(STEPS, move || handled.is_ahead());
        Ok(())
    }

    fn now() -> Duration {
        static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
        FIRST.elapsed()
    }

    fn set(&self, most_time: Duration) {
        let at = Self::now() + most_time;
        self.0.store(at.as_millis() as u64, Ordering::Relaxed);
    }

    fn is_ahead(&self) -> bool {
        Self::now().as_millis() <= u128::from(self.0.load(Ordering::Relaxed))
    }

    fn end_now(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The time of one query after the other. Dropped in the middle of one, it ends the query.
pub struct QueryTimer {
    deadline: Arc<Deadline>,
    most_time: Duration,
    asking: bool,
}

impl QueryTimer {
    pub fn new(deadline: Arc<Deadline>, most_time: Duration) -> Self {
        Self {
            deadline,
            most_time,
            asking: false,
        }
    }

    /// A query begins, and has its time from now on.
    pub fn start(&mut self) {
        self.asking = true;
        self.deadline.set(self.most_time);
    }

    /// The query was answered, one way or another.
    pub fn stop(&mut self) {
        self.asking = false;
    }
}

impl Drop for QueryTimer {
    fn drop(&mut self) {
        if self.asking {
            self.deadline.end_now();
        }
    }
}

impl SqliteReaders {
    /// At most so many connections, opened when they are needed.
    pub fn new(options: SqliteConnectOptions, most: usize, most_time: Duration) -> Self {
        Self(Arc::new(SqliteParts {
            options,
            most_time,
            permits: Arc::new(Semaphore::new(most)),
            idle: Mutex::default(),
            address_permits: AddressPermits::default(),
        }))
    }

    /// A connection to read with.
    pub async fn acquire(&self) -> DbResult<SqliteReader> {
        let address_permit = self.0.address_permits.acquire(self.0.most_time).await?;
        let permit = acquire(self.0.permits.clone(), self.0.most_time).await?;
        let idle = lock(&self.0.idle).pop();
        let slot = match idle {
            Some(slot) => slot,
            None => Arc::new(AsyncMutex::new(self.connect().await?)),
        };
        let slot = slot.lock_owned().await;
        Ok(SqliteReader {
            timer: QueryTimer::new(slot.deadline.clone(), self.0.most_time),
            slot,
            readers: self.clone(),
            _permit: permit,
            _address_permit: address_permit,
        })
    }

    async fn connect(&self) -> DbResult<SqliteSlot> {
        let mut conn = self.0.options.connect().await?;
        let deadline = Arc::new(Deadline::default());
        deadline.watch(&mut conn).await?;
        Ok(SqliteSlot { conn, deadline })
    }

    /// Closes what is idle. What is still in use closes when it is given back.
    pub fn close(&self) {
        self.0.permits.close();
        lock(&self.0.idle).clear();
    }
}

/// A connection that reads SQLite. Dropped in the middle of a query, it ends the query.
pub struct SqliteReader {
    slot: OwnedMutexGuard<SqliteSlot>,
    timer: QueryTimer,
    readers: SqliteReaders,
    _permit: OwnedSemaphorePermit,
    _address_permit: Option<AddressPermit>,
}

impl SqliteReader {
    /// The connection, to ask one query that has its time from now on.
    pub fn ask(&mut self) -> &mut SqliteConnection {
        self.timer.start();
        &mut self.slot.conn
    }

    /// The query was answered, one way or another.
    pub fn answered(&mut self) {
        self.timer.stop();
    }
}

impl Drop for SqliteReader {
    fn drop(&mut self) {
        // A connection in the middle of a query closes as soon as its thread has noticed.
        if !self.timer.asking && !self.readers.0.permits.is_closed() {
            let slot = OwnedMutexGuard::mutex(&self.slot).clone();
            lock(&self.readers.0.idle).push(slot);
        }
    }
}

/// The connections that read PostgreSQL. Cheap to clone.
#[derive(Clone)]
pub struct PostgresReaders {
    pool: PgPool,
    most_time: Duration,
    address_permits: AddressPermits,
}

impl PostgresReaders {
    /// At most [`READERS`] connections, opened when they are needed.
    pub fn new(options: PgConnectOptions, most_time: Duration) -> Self {
        let statement_timeout = most_time.as_millis().to_string();
        let pool = PgPoolOptions::new()
            .max_connections(READERS as u32)
            .acquire_timeout(most_time)
            .after_connect(|conn, _| {
                Box::pin(async move {
                    let every = CONNECTION_CHECK.as_millis();
                    let check = format!("SET client_connection_check_interval = {every}");
                    // Not every system has it; the time limit holds all the same.
                    let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(check))
                        .execute(conn)
                        .await;
                    Ok(())
                })
            })
            .connect_lazy_with(options.options([("statement_timeout", statement_timeout)]));
        Self {
            pool,
            most_time,
            address_permits: AddressPermits::default(),
        }
    }

    /// A connection to read with.
    pub async fn acquire(&self) -> DbResult<PostgresReader> {
        let address_permit = self.address_permits.acquire(self.most_time).await?;
        Ok(PostgresReader {
            conn: self.pool.acquire().await?,
            asking: false,
            answer_time: self.most_time + LATE_ANSWER,
            address_permit,
        })
    }

    /// Closes every connection, work in hand first.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// A connection that reads PostgreSQL. Dropped in the middle of a query, it is closed, so that the
/// query ends.
pub struct PostgresReader {
    conn: PoolConnection<Postgres>,
    asking: bool,
    answer_time: Duration,
    address_permit: Option<AddressPermit>,
}

impl PostgresReader {
    /// How long to wait for an answer: a connection that went silent gives none.
    pub fn answer_time(&self) -> Duration {
        self.answer_time
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
}

impl Drop for PostgresReader {
    fn drop(&mut self) {
        if !self.asking {
            return;
        }
        self.conn.close_on_drop();
        // The address gets its permit back when the server has noticed too.
        if let (Some(address_permit), Ok(runtime)) = (
            self.address_permit.take(),
            tokio::runtime::Handle::try_current(),
        ) {
            runtime.spawn(async move {
                tokio::time::sleep(CONNECTION_CHECK).await;
                drop(address_permit);
            });
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::store::{Conn, db::row};
    use std::sync::Weak;

    pub const ENDLESS: &str = "WITH RECURSIVE endless (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM endless) \
                           SELECT COUNT(*) FROM endless";

    fn readers(most_time: Duration) -> SqliteReaders {
        SqliteReaders::new(SqliteConnectOptions::new(), 2, most_time)
    }

    async fn counts(reader: SqliteReader) -> DbResult<Option<(i64,)>> {
        let mut conn = Conn::Sqlite(reader);
        row!(conn, (i64,), ENDLESS)
    }

    #[tokio::test]
    async fn a_query_that_takes_too_long_fails_and_its_connection_serves_on() {
        let readers = readers(Duration::from_millis(50));
        let error = counts(readers.acquire().await.unwrap()).await.unwrap_err();
        assert!(is_timed_out(&error), "{error}");
        let mut conn = Conn::Sqlite(readers.acquire().await.unwrap());
        assert_eq!(row!(conn, (i64,), "SELECT 7").unwrap(), Some((7,)));
    }

    #[tokio::test]
    async fn a_query_that_nobody_waits_for_ends() {
        let readers = readers(Duration::from_secs(3600));
        let reader = readers.acquire().await.unwrap();
        let deadline: Weak<Deadline> = Arc::downgrade(&reader.slot.deadline);
        let abandoned = tokio::time::timeout(Duration::from_millis(50), counts(reader)).await;
        assert!(abandoned.is_err());
        // The connection owns the handler that owns the deadline.
        while deadline.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn an_address_cannot_take_more_than_its_permits() {
        let address_permits = AddressPermits::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let take = |address| {
            requested_by(address, async {
                address_permits.acquire(Duration::from_millis(20)).await
            })
        };
        let mut held = Vec::new();
        for _ in 0..READERS_PER_ADDRESS {
            held.push(take(one).await.unwrap());
        }
        assert!(take(one).await.is_err());
        assert!(take(other).await.is_ok());
        held.pop();
        assert!(take(one).await.is_ok());
        held.clear();
        assert!(lock(&address_permits.0).is_empty());
    }
}
