//! Whether agents are called: not from a copy, until the operator says so.

use crate::{
    config::Config,
    services::delivery::PAUSE_MARK,
    store::{Db, DbError},
};
use std::{path::PathBuf, time::Duration};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    #[error("there is no database at {0}; name the server's data folder with --data")]
    NoDatabase(PathBuf),
    #[error("cannot write to the database: {0}")]
    Database(#[from] DbError),
}

/// Lets agents be called, or not, by whatever server runs on this database.
pub async fn set_paused(config: &Config, paused: bool) -> Result<(), CallsError> {
    let read_time = Duration::from_secs(10);
    let db = match &config.database_url {
        Some(url) => Db::open_postgres(url, read_time).await?,
        None => {
            let file = config.sqlite_file();
            if !file.exists() {
                return Err(CallsError::NoDatabase(file));
            }
            Db::open_sqlite(&file, read_time).await?
        }
    };
    mark(&db, paused).await?;
    db.close().await;
    Ok(())
}

/// Marks a database as a copy, or takes the mark away.
pub async fn mark(db: &Db, paused: bool) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    match paused {
        true => tx.set_meta(PAUSE_MARK, "paused").await?,
        false => tx.forget_meta(PAUSE_MARK).await?,
    }
    tx.commit().await
}
