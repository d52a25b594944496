//! The two engines behind one connection type.
//!
//! Most SQL reads the same on SQLite and PostgreSQL; where it does not, [`Sql`] holds both texts.
//! The macros run a text on whichever engine a connection belongs to.

use super::{
    group::{Group, GroupWriter},
    health::{Damaged, Trouble},
    postgres_tx::{self, PostgresTx, is_unanswered},
    reading::{
        self, Deadline, PostgresReader, PostgresReaders, QueryTimer, READERS, SqliteReader,
        SqliteReaders,
    },
};
use crate::private_files::{close_to_others, make_private_file};
use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool, Sqlite, SqliteConnection, SqlitePool,
    Transaction,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{path::Path, str::FromStr, sync::Arc, time::Duration};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// What a query can fail with.
pub type DbError = sqlx::Error;
type DbResult<T> = Result<T, DbError>;

const STATEMENTS: usize = 256;

/// What a PostgreSQL session that writes is held to, in milliseconds: a node that stalls in the
/// middle of a transaction must not hold up the others for longer.
const WRITING: [(&str, &str); 3] = [
    ("lock_timeout", "2000"),
    ("statement_timeout", "10000"),
    ("idle_in_transaction_session_timeout", "3000"),
];
/// The same for a statement that writes to SQLite.
const SQLITE_STATEMENT_TIME: Duration = Duration::from_secs(10);
/// The posting task waits for no room on behalf of all the others.
const POSTING: (&str, &str) = ("lock_timeout", "100");
/// How PostgreSQL finds out that a node is gone. Not every system has all of these.
const CONNECTION_CHECKS: &str = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
     SET tcp_keepalives_count = 3; SET tcp_user_timeout = 5000; \
     SET client_connection_check_interval = 500";

/// Every query here is short. Where statistics are missing PostgreSQL takes some for long ones and
/// compiles them, which takes it longer than to answer.
const NO_COMPILER: (&str, &str) = ("jit", "off");

/// A query's text on each engine.
#[derive(Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

impl Sql {
    /// The same text on both.
    pub const fn same(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }

    /// In tests, remembers the text, so that a test can look at every query's plan.
    pub fn noted(self) -> Self {
        #[cfg(test)]
        super::plans::record_query(self.sqlite);
        self
    }
}

/// Where connections come from.
#[derive(Clone)]
pub enum Db {
    /// One writer, so that writes never meet a lock, and readers beside it. Whoever writes holds
    /// the write lock.
    Sqlite {
        writer: SqliteWriter,
        readers: SqliteReaders,
        /// For the posting task alone: whoever reads much does not keep others from posting.
        posting_reader: SqliteReaders,
        write_lock: Arc<Mutex<WriteLock>>,
    },
    Postgres {
        pool: PgPool,
        /// For the posting task alone.
        posting: PgPool,
        readers: PostgresReaders,
    },
}

/// The one connection that writes to SQLite, opened anew where it is of no more use.
#[derive(Clone)]
pub struct SqliteWriter {
    pub pool: SqlitePool,
    /// When its statement has to end.
    deadline: Arc<Deadline>,
}

impl SqliteWriter {
    async fn open(options: SqliteConnectOptions) -> DbResult<Self> {
        let deadline = Arc::<Deadline>::default();
        let watching = deadline.clone();
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(30))
            .after_connect(move |conn, _| {
                let deadline = watching.clone();
                Box::pin(async move { deadline.watch(conn).await })
            })
            // A full disk undoes a transaction under the driver, which then believes to be in one
            // for ever: such a connection is of no more use.
            .before_acquire(|conn, _| Box::pin(async { Ok(!conn.is_in_transaction()) }))
            .connect_with(options)
            .await?;
        Ok(Self { pool, deadline })
    }

    async fn begin(
        &self,
        write_lock: OwnedMutexGuard<WriteLock>,
        statement_time: Duration,
    ) -> DbResult<Tx> {
        write_lock.refuse_damaged()?;
        let tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let timer = QueryTimer::new(self.deadline.clone(), statement_time);
        Ok(Tx {
            conn: Conn::SqliteTx(tx, timer),
            _write_lock: Some(write_lock),
        })
    }
}

/// A connection, in a transaction or not.
pub enum Conn {
    Sqlite(SqliteReader),
    SqliteTx(Transaction<'static, Sqlite>, QueryTimer),
    Postgres(PostgresReader),
    PostgresTx(PostgresTx),
}

/// A connection's engine, for the macros.
pub enum Engine<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Conn {
    /// The engine, to ask one query.
    pub fn engine(&mut self) -> Engine<'_> {
        match self {
            Self::Sqlite(reader) => Engine::Sqlite(reader.ask()),
            Self::SqliteTx(tx, timer) => {
                timer.start();
                Engine::Sqlite(tx)
            }
            Self::Postgres(reader) => Engine::Postgres(reader.ask()),
            Self::PostgresTx(tx) => Engine::Postgres(tx.ask()),
        }
    }

    /// How long to wait for PostgreSQL's answer: longer than it may take for it.
    pub fn answer_time(&self) -> Duration {
        match self {
            Self::Postgres(reader) => reader.answer_time(),
            _ => postgres_tx::ANSWER_TIME,
        }
    }

    /// What a query came to; `query` says which one it was.
    pub fn answered<T>(&mut self, result: DbResult<T>, query: &'static str) -> DbResult<T> {
        match self {
            // The connection is closed, because it may answer yet.
            Self::Postgres(_) | Self::PostgresTx(_) if is_unanswered(&result) => {}
            Self::Sqlite(reader) => reader.answered(),
            Self::SqliteTx(_, timer) => timer.stop(),
            Self::Postgres(reader) => reader.answered(),
            Self::PostgresTx(tx) => tx.answered(),
        }
        reading::note_timeout(&result, query);
        result
    }
}

/// The right to write to SQLite; one holds it at a time.
pub struct WriteLock {
    /// Transactions begun by anybody but the posting thread.
    by_others: u64,
    /// What the posting thread writes with.
    groups: GroupWriter,
    /// Whether the database was found damaged. Then nobody writes until the operator has acted.
    damaged: bool,
}

impl WriteLock {
    fn refuse_damaged(&self) -> DbResult<()> {
        match self.damaged {
            true => Err(DbError::AnyDriverError(Box::new(Damaged))),
            false => Ok(()),
        }
    }

    fn note_damage<T>(&mut self, written: DbResult<T>) -> DbResult<T> {
        if let Err(error) = &written
            && Trouble::of(error) == Some(Trouble::Damaged)
        {
            tracing::error!(%error, "the database is damaged: nothing more is written to it; restore a backup");
            self.damaged = true;
        }
        written
    }
}

/// A transaction. Dropped without [`Tx::commit`], it is undone.
pub struct Tx {
    conn: Conn,
    /// Held until the transaction is over.
    _write_lock: Option<OwnedMutexGuard<WriteLock>>,
}

impl std::ops::Deref for Tx {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl std::ops::DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

impl Tx {
    /// Makes the transaction last: when this returns, it is on the disk.
    pub async fn commit(self) -> DbResult<()> {
        match self.conn {
            Conn::SqliteTx(tx, _) => tx.commit().await,
            Conn::PostgresTx(tx) => tx.commit().await,
            Conn::Sqlite(_) | Conn::Postgres(_) => Ok(()),
        }
    }
}

/// The transaction that a group of posts is written in.
pub enum GroupTx {
    /// Nobody else writes meanwhile.
    Sqlite {
        write_lock: OwnedMutexGuard<WriteLock>,
        posting_reader: SqliteReaders,
        reader: Option<Conn>,
    },
    /// Others may; what the group depends on is locked.
    Postgres(Tx),
}

impl GroupTx {
    /// How many transactions others have begun. Unknown where other processes write too.
    pub fn writes_by_others(&self) -> Option<u64> {
        match self {
            Self::Sqlite { write_lock, .. } => Some(write_lock.by_others),
            Self::Postgres(_) => None,
        }
    }

    /// A connection to ask with. Most groups on SQLite need none.
    pub async fn conn(&mut self) -> DbResult<&mut Conn> {
        Ok(match self {
            Self::Sqlite {
                posting_reader,
                reader,
                ..
            } => {
                let conn = match reader.take() {
                    Some(conn) => conn,
                    None => Conn::Sqlite(posting_reader.acquire().await?),
                };
                reader.insert(conn)
            }
            Self::Postgres(tx) => tx,
        })
    }

    /// Writes the group: when this returns, it is on the disk. On SQLite this blocks the thread.
    pub async fn write(self, group: &Group<'_>) -> DbResult<()> {
        match self {
            Self::Sqlite { mut write_lock, .. } => {
                let written = write_lock.groups.write(group);
                write_lock.note_damage(written)
            }
            Self::Postgres(mut tx) => {
                tx.write_group(group).await?;
                tx.commit().await
            }
        }
    }
}

impl Db {
    /// Opens the SQLite file, making it where there is none. No query that reads takes longer than
    /// `read_time`.
    pub async fn open_sqlite(file: &Path, read_time: Duration) -> DbResult<Self> {
        close_files(file)?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10))
            .statement_cache_capacity(STATEMENTS)
            // What is deleted is written over.
            .pragma("secure_delete", "ON")
            .pragma("cache_size", "-4096")
            .pragma("cell_size_check", "ON")
            .pragma("wal_autocheckpoint", "4000")
            .pragma("journal_size_limit", "67108864")
            .disable_statement_logging();
        let writer = SqliteWriter::open(options.clone()).await?;
        let reading = options.create_if_missing(false).pragma("query_only", "ON");
        Ok(Self::Sqlite {
            writer,
            readers: SqliteReaders::new(reading.clone(), READERS, read_time),
            posting_reader: SqliteReaders::new(reading, 1, read_time),
            write_lock: Arc::new(Mutex::new(WriteLock {
                by_others: 0,
                groups: GroupWriter::open(file)?,
                damaged: false,
            })),
        })
    }

    /// Connects to PostgreSQL. No query that reads takes longer than `read_time`.
    pub async fn open_postgres(url: &str, read_time: Duration) -> DbResult<Self> {
        let options = PgConnectOptions::from_str(url)?
            .options([NO_COMPILER])
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let writing = options.clone().options(WRITING);
        let pool = writers(16).connect_with(writing.clone()).await?;
        Ok(Self::Postgres {
            pool,
            posting: writers(2).connect_lazy_with(writing.options([POSTING])),
            readers: PostgresReaders::new(options, read_time),
        })
    }

    /// A connection to read with.
    pub async fn read(&self) -> DbResult<Conn> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.acquire().await?),
            Self::Postgres { readers, .. } => Conn::Postgres(readers.acquire().await?),
        })
    }

    /// A transaction to write in. On SQLite there is one at a time.
    pub async fn begin(&self) -> DbResult<Tx> {
        Ok(match self {
            Self::Sqlite {
                writer, write_lock, ..
            } => {
                let mut write_lock = write_lock.clone().lock_owned().await;
                write_lock.by_others += 1;
                writer.begin(write_lock, SQLITE_STATEMENT_TIME).await?
            }
            Self::Postgres { pool, .. } => Tx {
                conn: Conn::PostgresTx(PostgresTx::begin(pool).await?),
                _write_lock: None,
            },
        })
    }

    /// A transaction that touches nothing the posting task has cached: its cache stays valid.
    pub async fn begin_keeping_cache(&self) -> DbResult<Tx> {
        Ok(match self {
            Self::Sqlite {
                writer, write_lock, ..
            } => {
                let write_lock = write_lock.clone().lock_owned().await;
                writer.begin(write_lock, SQLITE_STATEMENT_TIME).await?
            }
            Self::Postgres { .. } => self.begin().await?,
        })
    }

    /// The transaction for a group of posts.
    pub async fn begin_group(&self) -> DbResult<GroupTx> {
        Ok(match self {
            Self::Sqlite {
                posting_reader,
                write_lock,
                ..
            } => {
                let write_lock = write_lock.clone().lock_owned().await;
                write_lock.refuse_damaged()?;
                GroupTx::Sqlite {
                    write_lock,
                    posting_reader: posting_reader.clone(),
                    reader: None,
                }
            }
            Self::Postgres { posting, .. } => GroupTx::Postgres(Tx {
                conn: Conn::PostgresTx(PostgresTx::begin(posting).await?),
                _write_lock: None,
            }),
        })
    }

    /// Another process has written: what the posting task remembers may be out of date.
    pub async fn note_write_by_others(&self) {
        if let Self::Sqlite { write_lock, .. } = self {
            write_lock.lock().await.by_others += 1;
        }
    }

    /// Reads all of SQLite's file once, and lets nobody write to a damaged one. PostgreSQL has
    /// checksums of its own.
    pub async fn check_pages(&self, file: &Path) -> DbResult<()> {
        let Self::Sqlite { write_lock, .. } = self else {
            return Ok(());
        };
        let mut conn = SqliteConnectOptions::new()
            .filename(file)
            .disable_statement_logging()
            .connect()
            .await?;
        let checked = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)")
            .fetch_one(&mut conn)
            .await;
        let checked = match checked {
            Ok(verdict) if verdict != "ok" => {
                tracing::error!(verdict, "the database does not pass its check");
                Err(DbError::AnyDriverError(Box::new(Damaged)))
            }
            other => other.map(drop),
        };
        write_lock.lock().await.note_damage(checked)
    }

    /// Empties SQLite's write-ahead log, which holds what was written over since. Whether it could:
    /// a reader may be in the way.
    pub async fn empty_wal(&self) -> DbResult<bool> {
        let Self::Sqlite { write_lock, .. } = self else {
            return Ok(true);
        };
        let mut write_lock = write_lock.clone().lock_owned().await;
        tokio::task::spawn_blocking(move || write_lock.groups.empty_wal())
            .await
            .map_err(|_| DbError::WorkerCrashed)?
    }

    /// Closes every connection, work in hand first.
    pub async fn close(&self) {
        match self {
            Self::Sqlite {
                writer,
                readers,
                posting_reader,
                ..
            } => {
                readers.close();
                posting_reader.close();
                writer.pool.close().await;
            }
            Self::Postgres {
                pool,
                posting,
                readers,
            } => {
                posting.close().await;
                readers.close().await;
                pool.close().await;
            }
        }
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite { .. })
    }
}

/// A pool of so many PostgreSQL sessions that write.
fn writers(most: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(Duration::from_secs(5))
        .after_connect(|conn, _| {
            Box::pin(async move {
                let _ = sqlx::raw_sql(CONNECTION_CHECKS).execute(conn).await;
                Ok(())
            })
        })
}

/// Makes the database a file that only its owner may open, whatever the folder lets others do.
/// SQLite gives the files beside it the same rights.
fn close_files(database: &Path) -> DbResult<()> {
    make_private_file(database)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = database.as_os_str().to_owned();
        beside.push(suffix);
        close_to_others(Path::new(&beside))?;
    }
    Ok(())
}

/// All rows of a query: `rows!(conn, Row, "SELECT … $1", a)`.
macro_rules! rows {
    ($conn:expr, $row:ty, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        let answer_time = $conn.answer_time();
        let result = match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query_as::<sqlx::Sqlite, $row>(sql.sqlite)$(.bind($crate::store::argument::Argument::bound($arg)))*.fetch_all(conn).await
            }
            $crate::store::db::Engine::Postgres(conn) => {
                let asking = sqlx::query_as::<sqlx::Postgres, $row>(sql.postgres)$(.bind($crate::store::argument::Argument::bound($arg)))*.fetch_all(conn);
                $crate::store::postgres_tx::in_time(answer_time, asking).await
            }
        };
        $conn.answered(result, concat!(module_path!(), ":", line!()))
    }};
}

/// The first row of a query, if there is one.
macro_rules! row {
    ($conn:expr, $row:ty, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        let answer_time = $conn.answer_time();
        let result = match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query_as::<sqlx::Sqlite, $row>(sql.sqlite)$(.bind($crate::store::argument::Argument::bound($arg)))*.fetch_optional(conn).await
            }
            $crate::store::db::Engine::Postgres(conn) => {
                let asking = sqlx::query_as::<sqlx::Postgres, $row>(sql.postgres)$(.bind($crate::store::argument::Argument::bound($arg)))*.fetch_optional(conn);
                $crate::store::postgres_tx::in_time(answer_time, asking).await
            }
        };
        $conn.answered(result, concat!(module_path!(), ":", line!()))
    }};
}

/// Runs a statement and tells how many rows it changed.
macro_rules! exec {
    ($conn:expr, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        let answer_time = $conn.answer_time();
        let result = match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query::<sqlx::Sqlite>(sql.sqlite)$(.bind($crate::store::argument::Argument::bound($arg)))*.execute(conn).await.map(|done| done.rows_affected())
            }
            $crate::store::db::Engine::Postgres(conn) => {
                let asking = sqlx::query::<sqlx::Postgres>(sql.postgres)$(.bind($crate::store::argument::Argument::bound($arg)))*.execute(conn);
                $crate::store::postgres_tx::in_time(answer_time, asking).await.map(|done| done.rows_affected())
            }
        };
        $conn.answered(result, concat!(module_path!(), ":", line!()))
    }};
}
pub(crate) use {exec, row, rows};

#[cfg(test)]
mod tests {
    use super::{super::reading::tests::ENDLESS, *};

    /// Begins a transaction whose statements have so much time.
    async fn begin(db: &Db, statement_time: Duration) -> Tx {
        let Db::Sqlite {
            writer, write_lock, ..
        } = db
        else {
            unreachable!("this is SQLite");
        };
        let write_lock = write_lock.clone().lock_owned().await;
        writer.begin(write_lock, statement_time).await.unwrap()
    }

    #[tokio::test]
    async fn a_statement_in_a_transaction_ends_in_time_or_when_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rooms.db");
        let db = Db::open_sqlite(&file, Duration::from_secs(5))
            .await
            .unwrap();
        let mut tx = begin(&db, Duration::from_millis(50)).await;
        let error = row!(tx, (i64,), ENDLESS).unwrap_err();
        assert!(reading::is_timed_out(&error), "{error}");
        drop(tx);

        let abandoned = async {
            let mut tx = begin(&db, Duration::from_secs(3600)).await;
            row!(tx, (i64,), ENDLESS)
        };
        let waited = tokio::time::timeout(Duration::from_millis(50), abandoned).await;
        assert!(waited.is_err());
        // Nobody could write before the statement has ended.
        let mut tx = db.begin().await.unwrap();
        assert_eq!(row!(tx, (i64,), "SELECT 7").unwrap(), Some((7,)));
        tx.commit().await.unwrap();
    }
}
