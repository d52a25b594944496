//! Versioned migrations, applied at start.

use super::db::{Db, DbError, Engine, Sql, Tx, exec, row, rows};
use sqlx::{
    PgPool, SqlSafeStr,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

/// Every migration on both engines, in the order they are applied: number, name and file.
macro_rules! migrations {
    ($($number:literal $name:literal $file:literal),+ $(,)?) => {
        [$((
            $number,
            $name,
            Sql {
                sqlite: include_str!(concat!("../../migrations/sqlite/", $file)),
                postgres: include_str!(concat!("../../migrations/postgres/", $file)),
            },
        )),+]
    };
}

const MIGRATIONS: &[(i64, &str, Sql)] = &migrations![
    1 "rooms" "0001_rooms.sql",
    2 "fanout" "0002_fanout.sql",
    3 "reputation" "0003_reputation.sql",
    4 "boards" "0004_boards.sql",
    5 "derived_credentials" "0005_derived_credentials.sql",
    6 "operators" "0006_operators.sql",
    7 "mentions" "0007_mentions.sql",
    8 "exchanges" "0008_exchanges.sql",
    9 "faults" "0009_faults.sql",
    10 "agents_at_work" "0010_agents_at_work.sql",
    11 "wake_policies" "0011_wake_policies.sql",
    12 "reading" "0012_reading.sql",
    13 "search" "0013_search.sql",
    14 "people" "0014_people.sql",
    15 "oauth" "0015_oauth.sql",
    16 "a2a" "0016_a2a.sql",
    17 "webhooks" "0017_webhooks.sql",
    18 "answers" "0018_answers.sql",
    19 "thread_reads" "0019_thread_reads.sql",
    20 "push_issued_at" "0020_push_issued_at.sql",
];

/// The migrations in one engine's words.
fn migrator(text: impl Fn(Sql) -> &'static str) -> Migrator {
    let migrations = MIGRATIONS.iter().map(|(number, name, sql)| {
        let sql = text(*sql).into_sql_str();
        Migration::new(*number, (*name).into(), MigrationType::Simple, sql, false)
    });
    Migrator {
        migrations: migrations.collect(),
        ..Migrator::DEFAULT
    }
}

/// Brings the schema up to this program's version.
pub async fn migrate(db: &Db) -> Result<(), MigrateError> {
    match db {
        Db::Sqlite { writer, .. } => migrator(|sql| sql.sqlite).run(&writer.pool).await?,
        Db::Postgres { pool, .. } => {
            let migrator = migrator(|sql| sql.postgres);
            // Most starts find nothing to do, and need not wait for whoever migrates.
            if !is_applied(&migrator, db).await {
                apply(migrator, db, pool).await?;
            }
        }
    }
    fold_names(db).await.map_err(MigrateError::Execute)
}

/// Whether these migrations were applied, all and no others. Where that cannot be told, they were not.
async fn is_applied(migrator: &Migrator, db: &Db) -> bool {
    let Ok(mut conn) = db.read().await else {
        return false;
    };
    let applied = rows!(
        conn,
        (i64, Vec<u8>, bool),
        "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version"
    );
    let Ok(applied) = applied else {
        return false;
    };
    let applied = applied
        .iter()
        .map(|(version, checksum, is_whole)| (*version, &checksum[..], *is_whole));
    applied.eq(migrator
        .iter()
        .map(|migration| (migration.version, &migration.checksum[..], true)))
}

/// Applies what is missing in PostgreSQL, one node at a time: those that start together wait here
/// for the first one. An advisory lock would be shorter, but not every engine that speaks PostgreSQL
/// has them.
async fn apply(mut migrator: Migrator, db: &Db, pool: &PgPool) -> Result<(), MigrateError> {
    let lock = lock_migrations(db).await.map_err(MigrateError::Execute)?;
    migrator.set_locking(false);
    let mut conn = pool.acquire().await.map_err(MigrateError::Execute)?;
    // A migration takes its time, and its session is not used for anything else.
    conn.close_on_drop();
    sqlx::raw_sql(NO_TIMEOUTS)
        .execute(&mut *conn)
        .await
        .map_err(MigrateError::Execute)?;
    migrator.run(&mut *conn).await?;
    lock.commit().await.map_err(MigrateError::Execute)
}

/// SQL folds a name otherwise than this program does, so a migration cannot.
async fn fold_names(db: &Db) -> Result<(), DbError> {
    const AT_ONCE: usize = 500;
    loop {
        let mut tx = db.begin().await?;
        let folded = tx.fold_names(AT_ONCE as i64).await?;
        tx.commit().await?;
        if folded < AT_ONCE {
            return Ok(());
        }
    }
}

/// Takes the limits of sessions that write from one.
const NO_LOCAL_TIMEOUTS: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";
const NO_TIMEOUTS: &str = "SET lock_timeout = 0; SET statement_timeout = 0; \
     SET idle_in_transaction_session_timeout = 0";

async fn lock_migrations(db: &Db) -> Result<Tx, DbError> {
    let mut tx = db.begin().await?;
    exec!(
        tx,
        "CREATE TABLE IF NOT EXISTS migration_gate (id BIGINT PRIMARY KEY)"
    )
    .ok();
    tx.commit().await?;
    let mut tx = db.begin().await?;
    exec!(
        tx,
        "INSERT INTO migration_gate (id) VALUES (1) ON CONFLICT DO NOTHING"
    )?;
    tx.commit().await?;
    let mut tx = db.begin().await?;
    if let Engine::Postgres(conn) = tx.engine() {
        // The node before may take long, and so may this one while it holds the lock.
        sqlx::raw_sql(NO_LOCAL_TIMEOUTS).execute(conn).await?;
    }
    row!(
        tx,
        (i64,),
        "SELECT id FROM migration_gate WHERE id = 1 FOR UPDATE"
    )?;
    Ok(tx)
}

impl super::Conn {
    /// A setting that belongs to the database itself.
    pub async fn meta(&mut self, name: &str) -> Result<Option<String>, DbError> {
        let found = row!(
            self,
            (String,),
            "SELECT value FROM meta WHERE name = $1",
            name
        )?;
        Ok(found.map(|(value,)| value))
    }

    pub async fn set_meta(&mut self, name: &str, value: &str) -> Result<(), DbError> {
        exec!(
            self,
            "INSERT INTO meta (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value
        )?;
        Ok(())
    }

    pub async fn forget_meta(&mut self, name: &str) -> Result<(), DbError> {
        exec!(self, "DELETE FROM meta WHERE name = $1", name)?;
        Ok(())
    }

    /// Sets such a setting, unless it is set already.
    pub async fn set_meta_once(&mut self, name: &str, value: &str) -> Result<(), DbError> {
        exec!(
            self,
            "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            name,
            value
        )?;
        Ok(())
    }
}
