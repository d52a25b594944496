//! The two engines behind one connection type.
//!
//! Most SQL reads the same on SQLite and PostgreSQL; where it does not, [`Sql`] holds both texts.
//! The macros run a text on whichever engine a connection belongs to.

use super::group::{Group, GroupWriter};
use sqlx::{
    ConnectOptions, PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, SqlitePool,
    Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{path::Path, str::FromStr, sync::Arc, time::Duration};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// What a query can fail with.
pub type DbError = sqlx::Error;
type DbResult<T> = Result<T, DbError>;

const READERS: u32 = 4;
const STATEMENTS: usize = 256;

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
        super::plans::note(self.sqlite);
        self
    }
}

/// Where connections come from.
#[derive(Clone)]
pub enum Db {
    /// One writer, so that writes never meet a lock, and readers beside it. Whoever writes holds
    /// the turn.
    Sqlite {
        writer: SqlitePool,
        readers: SqlitePool,
        turn: Arc<Mutex<Turn>>,
    },
    Postgres(PgPool),
}

/// A connection, in a transaction or not.
pub enum Conn {
    Sqlite(PoolConnection<Sqlite>),
    SqliteTx(Transaction<'static, Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTx(Transaction<'static, Postgres>),
}

/// A connection's engine, for the macros.
pub enum Engine<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Conn {
    pub fn engine(&mut self) -> Engine<'_> {
        match self {
            Self::Sqlite(conn) => Engine::Sqlite(conn),
            Self::SqliteTx(tx) => Engine::Sqlite(tx),
            Self::Postgres(conn) => Engine::Postgres(conn),
            Self::PostgresTx(tx) => Engine::Postgres(tx),
        }
    }
}

/// The turn to write to SQLite.
pub struct Turn {
    /// Transactions begun by anybody but the posting thread.
    by_others: u64,
    /// What the posting thread writes with.
    groups: GroupWriter,
}

/// A transaction. Dropped without [`Tx::commit`], it is undone.
pub struct Tx {
    conn: Conn,
    /// Held until the transaction is over.
    _turn: Option<OwnedMutexGuard<Turn>>,
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
            Conn::SqliteTx(tx) => tx.commit().await,
            Conn::PostgresTx(tx) => tx.commit().await,
            Conn::Sqlite(_) | Conn::Postgres(_) => Ok(()),
        }
    }
}

/// The turn to write a group of posts, until it is written.
pub enum GroupTurn {
    /// Nobody else writes meanwhile.
    Sqlite {
        turn: OwnedMutexGuard<Turn>,
        readers: SqlitePool,
        reader: Option<Conn>,
    },
    /// Others may; what the group depends on is locked.
    Postgres(Tx),
}

impl GroupTurn {
    /// How many transactions others have begun. Unknown where other processes write too.
    pub fn writes_by_others(&self) -> Option<u64> {
        match self {
            Self::Sqlite { turn, .. } => Some(turn.by_others),
            Self::Postgres(_) => None,
        }
    }

    /// A connection to ask with. Most groups on SQLite need none.
    pub async fn conn(&mut self) -> DbResult<&mut Conn> {
        Ok(match self {
            Self::Sqlite {
                readers, reader, ..
            } => {
                let conn = match reader.take() {
                    Some(conn) => conn,
                    None => Conn::Sqlite(readers.acquire().await?),
                };
                reader.insert(conn)
            }
            Self::Postgres(tx) => tx,
        })
    }

    /// Writes the group: when this returns, it is on the disk. On SQLite this blocks the thread.
    pub async fn write(self, group: &Group<'_>) -> DbResult<()> {
        match self {
            Self::Sqlite { mut turn, .. } => turn.groups.write(group),
            Self::Postgres(mut tx) => {
                tx.write_group(group).await?;
                tx.commit().await
            }
        }
    }
}

impl Db {
    /// Opens the SQLite file, making it where there is none.
    pub async fn open_sqlite(file: &Path) -> DbResult<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10))
            .statement_cache_capacity(STATEMENTS)
            .pragma("cache_size", "-4096")
            .pragma("wal_autocheckpoint", "4000")
            .pragma("journal_size_limit", "67108864")
            .disable_statement_logging();
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(30))
            .connect_with(options.clone())
            .await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(options.create_if_missing(false).pragma("query_only", "ON"));
        Ok(Self::Sqlite {
            writer,
            readers,
            turn: Arc::new(Mutex::new(Turn {
                by_others: 0,
                groups: GroupWriter::open(file)?,
            })),
        })
    }

    /// Connects to PostgreSQL.
    pub async fn open_postgres(url: &str) -> DbResult<Self> {
        let options = PgConnectOptions::from_str(url)?
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .acquire_timeout(Duration::from_secs(10))
            .connect_with(options)
            .await?;
        Ok(Self::Postgres(pool))
    }

    /// A connection to read with.
    pub async fn read(&self) -> DbResult<Conn> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.acquire().await?),
            Self::Postgres(pool) => Conn::Postgres(pool.acquire().await?),
        })
    }

    /// A transaction to write in. On SQLite there is one at a time.
    pub async fn begin(&self) -> DbResult<Tx> {
        Ok(match self {
            Self::Sqlite { writer, turn, .. } => {
                let mut turn = turn.clone().lock_owned().await;
                turn.by_others += 1;
                let tx = writer.begin_with("BEGIN IMMEDIATE").await?;
                Tx {
                    conn: Conn::SqliteTx(tx),
                    _turn: Some(turn),
                }
            }
            Self::Postgres(pool) => Tx {
                conn: Conn::PostgresTx(pool.begin().await?),
                _turn: None,
            },
        })
    }

    /// A transaction that touches nothing the posting task remembers: it goes unnoticed there.
    pub async fn begin_aside(&self) -> DbResult<Tx> {
        Ok(match self {
            Self::Sqlite { writer, turn, .. } => {
                let turn = turn.clone().lock_owned().await;
                let tx = writer.begin_with("BEGIN IMMEDIATE").await?;
                Tx {
                    conn: Conn::SqliteTx(tx),
                    _turn: Some(turn),
                }
            }
            Self::Postgres(_) => self.begin().await?,
        })
    }

    /// The turn to write a group of posts.
    pub async fn begin_group(&self) -> DbResult<GroupTurn> {
        Ok(match self {
            Self::Sqlite { readers, turn, .. } => GroupTurn::Sqlite {
                turn: turn.clone().lock_owned().await,
                readers: readers.clone(),
                reader: None,
            },
            Self::Postgres(_) => GroupTurn::Postgres(self.begin().await?),
        })
    }

    /// Closes every connection, work in hand first.
    pub async fn close(&self) {
        match self {
            Self::Sqlite {
                writer, readers, ..
            } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite { .. })
    }
}

/// All rows of a query: `rows!(conn, Row, "SELECT … $1", a)`.
macro_rules! rows {
    ($conn:expr, $row:ty, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query_as::<sqlx::Sqlite, $row>(sql.sqlite)$(.bind($arg))*.fetch_all(conn).await
            }
            $crate::store::db::Engine::Postgres(conn) => {
                sqlx::query_as::<sqlx::Postgres, $row>(sql.postgres)$(.bind($arg))*.fetch_all(conn).await
            }
        }
    }};
}

/// The first row of a query, if there is one.
macro_rules! row {
    ($conn:expr, $row:ty, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query_as::<sqlx::Sqlite, $row>(sql.sqlite)$(.bind($arg))*.fetch_optional(conn).await
            }
            $crate::store::db::Engine::Postgres(conn) => {
                sqlx::query_as::<sqlx::Postgres, $row>(sql.postgres)$(.bind($arg))*.fetch_optional(conn).await
            }
        }
    }};
}

/// Runs a statement and tells how many rows it changed.
macro_rules! exec {
    ($conn:expr, $sql:expr $(, $arg:expr)* $(,)?) => {{
        let sql = $crate::store::db::Sql::from($sql).noted();
        match $conn.engine() {
            $crate::store::db::Engine::Sqlite(conn) => {
                sqlx::query::<sqlx::Sqlite>(sql.sqlite)$(.bind($arg))*.execute(conn).await.map(|done| done.rows_affected())
            }
            $crate::store::db::Engine::Postgres(conn) => {
                sqlx::query::<sqlx::Postgres>(sql.postgres)$(.bind($arg))*.execute(conn).await.map(|done| done.rows_affected())
            }
        }
    }};
}
pub(crate) use {exec, row, rows};
