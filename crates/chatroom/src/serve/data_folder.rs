//! The folder that a server keeps its data in: held by one server, with a database that is whole and
//! was written with the same keys.

use super::ServeError;
use crate::{
    auth::secrets::Secrets,
    config::Config,
    private_files::make_private_file,
    store::{Db, health::tell_damage, migrate},
};
use std::{
    fs::{File, TryLockError},
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// A start waits this long for the check of the database; a larger one is checked while it serves.
const CHECK_WAIT: Duration = Duration::from_secs(10);

/// Holds the data folder. On SQLite the posting task relies on being the only one who writes.
pub fn lock(config: &Config) -> Result<File, ServeError> {
    let shown = config.data.display().to_string();
    let path = config.data.join("server.lock");
    let file =
        make_private_file(&path).map_err(|error| ServeError::DataDir(shown.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ServeError::InUse(shown)),
        Err(TryLockError::Error(error)) => Err(ServeError::DataDir(shown, error)),
    }
}

/// Writes into the lock where the server is, for the commands that an operator runs beside it.
pub fn tell_address(mut lock: &File, mut address: SocketAddr) -> io::Result<()> {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    lock.set_len(0)?;
    writeln!(lock, "http://{address}")
}

/// Opens the database, looks at its pages, and brings it up to date.
pub async fn open_database(config: &Config) -> Result<Db, ServeError> {
    let read_time = Duration::from_secs(config.query_seconds.max(1));
    let opened = match &config.database_url {
        Some(url) => Db::open_postgres(url, read_time).await,
        None => Db::open_sqlite(&config.sqlite_file(), read_time).await,
    };
    let db = opened.map_err(tell_damage)?;
    let (checked, file) = (db.clone(), config.sqlite_file());
    let checking = tokio::spawn(async move { checked.check_pages(&file).await });
    if let Ok(Ok(checked)) = tokio::time::timeout(CHECK_WAIT, checking).await {
        checked.map_err(tell_damage)?;
    }
    migrate::migrate(&db).await?;
    Ok(db)
}

/// A node with another master key could read no secret and accept no token of the others.
pub async fn check_keys(db: &Db, secrets: &Secrets) -> Result<(), ServeError> {
    const NAME: &str = "master_key";
    let mine = secrets.fingerprint();
    let mut tx = db.begin().await?;
    tx.set_meta_once(NAME, &mine).await?;
    let stored = tx.meta(NAME).await?;
    tx.commit().await?;
    if stored.as_deref() == Some(mine.as_str()) {
        Ok(())
    } else {
        Err(ServeError::OtherKeys)
    }
}
