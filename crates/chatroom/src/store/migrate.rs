//! Versioned migrations, applied at start.

use super::db::{Db, DbError, Tx, exec, row};
use sqlx::migrate::{MigrateError, Migrator};

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// Brings the schema up to this program's version.
pub async fn migrate(db: &Db) -> Result<(), MigrateError> {
    match db {
        Db::Sqlite { writer, .. } => SQLITE.run(writer).await,
        Db::Postgres(pool) => {
            // Nodes that start together wait here for the first one. An advisory lock would be
            // shorter, but not every engine that speaks PostgreSQL has them.
            let gate = pass_gate(db).await.map_err(MigrateError::Execute)?;
            let mut migrator = Migrator {
                migrations: POSTGRES.migrations.clone(),
                ..Migrator::DEFAULT
            };
            migrator.set_locking(false);
            migrator.run(pool).await?;
            gate.commit().await.map_err(MigrateError::Execute)
        }
    }
}

async fn pass_gate(db: &Db) -> Result<Tx, DbError> {
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
