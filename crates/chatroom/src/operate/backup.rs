//! Backups: one file with the database and the keys it is of no use without.

use super::calls;
use crate::{
    private_files::{close_to_others, make_private_file, make_private_folder},
    store::Db,
};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

const DATABASE: &str = "chatroom.db";
const KEYS: &str = "keys";

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "this server keeps its rooms in PostgreSQL: use pg_dump for them, and copy the keys folder {0} beside the dump"
    )]
    Postgres(PathBuf),
    #[error("there is no database at {0}; name the server's data folder with --data")]
    NoDatabase(PathBuf),
    #[error("{0} exists already; backups never overwrite")]
    Exists(PathBuf),
    #[error("{0} is not empty; restore into a new folder")]
    NotEmpty(PathBuf),
    #[error("{0} is not a backup of this server: {1}")]
    NotABackup(PathBuf, String),
    #[error("cannot write {0}: {1}")]
    Io(PathBuf, io::Error),
    #[error("cannot copy the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Writes the backup. The server may run meanwhile: the copy is of one moment.
pub async fn backup(sqlite: &Path, keys_dir: &Path, target: &Path) -> Result<(), BackupError> {
    if !sqlite.exists() {
        return Err(BackupError::NoDatabase(sqlite.to_owned()));
    }
    let failed = |error| BackupError::Io(target.to_owned(), error);
    if target.exists() {
        return Err(BackupError::Exists(target.to_owned()));
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let scratch = tempfile::Builder::new()
        .prefix(".backup-")
        .tempdir_in(folder)
        .map_err(failed)?;
    let copy = scratch.path().join(DATABASE);
    copy_database(sqlite, &copy).await?;
    // The archive keeps a file's rights, and gives them back when it is restored.
    close_to_others(&copy).map_err(failed)?;
    let draft = scratch.path().join("backup.tar");
    let file = make_private_file(&draft).map_err(failed)?;
    let mut archive = tar::Builder::new(file);
    archive
        .append_path_with_name(&copy, DATABASE)
        .and_then(|()| archive.append_dir_all(KEYS, keys_dir))
        .and_then(|()| archive.into_inner())
        .and_then(|file| file.sync_all())
        // A link does not overwrite, and appears whole.
        .and_then(|()| std::fs::hard_link(&draft, target))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(failed)
}

/// Unpacks a backup into a new data folder, and checks the database.
pub async fn restore(source: &Path, data: &Path) -> Result<(), BackupError> {
    let failed = |error| BackupError::Io(data.to_owned(), error);
    let bad = |why: String| BackupError::NotABackup(source.to_owned(), why);
    if data
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(BackupError::NotEmpty(data.to_owned()));
    }
    let file = File::open(source).map_err(|error| BackupError::Io(source.to_owned(), error))?;
    let mut archive = tar::Archive::new(file);
    let entries = archive.entries().map_err(|error| bad(error.to_string()))?;
    make_private_folder(data).map_err(failed)?;
    let mut found_database = false;
    for entry in entries {
        let mut entry = entry.map_err(|error| bad(error.to_string()))?;
        let path = entry
            .path()
            .map_err(|error| bad(error.to_string()))?
            .into_owned();
        let known = path == Path::new(DATABASE) || path.starts_with(KEYS);
        if !known {
            return Err(bad(format!("it holds {}", path.display())));
        }
        found_database |= path == Path::new(DATABASE);
        // Refuses whatever would land outside the folder.
        if !entry.unpack_in(data).map_err(failed)? {
            return Err(bad(format!("it holds {}", path.display())));
        }
        if entry.header().entry_type().is_file() {
            close_to_others(&data.join(&path)).map_err(failed)?;
        }
    }
    if !found_database {
        return Err(bad("it holds no database".to_owned()));
    }
    let database = data.join(DATABASE);
    check_database(&database)
        .await
        .map_err(|error| bad(error.to_string()))?;
    // The original may run on: a copy does not call its agents until it is told to.
    let db = Db::open_sqlite(&database, Duration::from_secs(10)).await?;
    calls::mark(&db, true).await?;
    db.close().await;
    Ok(())
}

async fn copy_database(from: &Path, to: &Path) -> Result<(), BackupError> {
    let options = SqliteConnectOptions::new().filename(from);
    let mut conn = SqliteConnection::connect_with(&options).await?;
    sqlx::query("VACUUM INTO $1")
        .bind(to.display().to_string())
        .execute(&mut conn)
        .await?;
    conn.close().await?;
    Ok(())
}

async fn check_database(file: &Path) -> Result<(), sqlx::Error> {
    let mut magic = [0u8; 16];
    File::open(file)
        .and_then(|mut file| file.read_exact(&mut magic))
        .map_err(sqlx::Error::Io)?;
    let options = SqliteConnectOptions::new().filename(file);
    let mut conn = SqliteConnection::connect_with(&options).await?;
    let (verdict,): (String,) = sqlx::query_as("PRAGMA quick_check(1)")
        .fetch_one(&mut conn)
        .await?;
    conn.close().await?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(sqlx::Error::Protocol(verdict))
    }
}
