//! Whether the database takes writes, and what kind of trouble a failure is a sign of.

use super::{Conn, DbError, DbResult, db::exec};

impl Conn {
    /// Writes what nobody needs, to find out whether it can be written.
    pub async fn write_health_check(&mut self, node: &str, at: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO health_checks (node, at) VALUES ($1, $2) \
             ON CONFLICT (node) DO UPDATE SET at = excluded.at",
            node,
            at
        )?;
        Ok(())
    }

    /// Forgets the nodes that wrote nothing since.
    pub async fn forget_health_checks(&mut self, before: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM health_checks WHERE at < $1", before)?;
        Ok(())
    }
}

/// The database was found damaged; nothing more is written to it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the database is damaged, so nothing is written to it: restore a backup, or salvage it with the .recover command of sqlite3"
)]
pub struct Damaged;

/// The failure in words that say what to do, where it is a sign of damage.
pub fn tell_damage(error: DbError) -> DbError {
    match Trouble::of(&error) {
        Some(Trouble::Damaged) => {
            tracing::error!(%error, "the database cannot be read");
            DbError::AnyDriverError(Box::new(Damaged))
        }
        _ => error,
    }
}

/// Trouble of the storage itself, as against a query that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full.
    Full,
    /// Somebody else holds what is needed.
    Busy,
    /// A page cannot be what was written.
    Damaged,
    /// The database does not answer, or cannot reach its disk.
    Away,
}

impl Trouble {
    /// What this failure is a sign of, where it is one of the storage.
    pub fn of(error: &DbError) -> Option<Self> {
        match error {
            DbError::PoolTimedOut
            | DbError::PoolClosed
            | DbError::Io(_)
            | DbError::Tls(_)
            | DbError::WorkerCrashed
            | DbError::BeginFailed
            | DbError::InvalidSavePointStatement => Some(Self::Away),
            DbError::Database(error) => Self::of_code(&error.code()?),
            DbError::AnyDriverError(error) => {
                if error.is::<Damaged>() {
                    return Some(Self::Damaged);
                }
                let error = error.downcast_ref::<rusqlite::Error>()?;
                Self::of_sqlite(error.sqlite_error()?.extended_code)
            }
            _ => None,
        }
    }

    /// SQLite's codes are numbers, PostgreSQL's have five characters.
    fn of_code(code: &str) -> Option<Self> {
        match code.as_bytes() {
            [_, _, _, _, _] => Self::of_postgres(code),
            _ => Self::of_sqlite(code.parse().ok()?),
        }
    }

    fn of_sqlite(code: i32) -> Option<Self> {
        // The lowest byte is the kind, the others tell more of it.
        match code & 0xff {
            // SQLITE_BUSY, LOCKED
            5 | 6 => Some(Self::Busy),
            // NOMEM, READONLY, IOERR, CANTOPEN
            7 | 8 | 10 | 14 => Some(Self::Away),
            // CORRUPT, NOTADB
            11 | 26 => Some(Self::Damaged),
            13 => Some(Self::Full),
            _ => None,
        }
    }

    fn of_postgres(code: &str) -> Option<Self> {
        match code {
            "53100" => Some(Self::Full),
            // Lock not available, serialisation failure, deadlock.
            "55P03" | "40001" | "40P01" => Some(Self::Busy),
            "XX001" | "XX002" => Some(Self::Damaged),
            // A transaction that idled too long, or one on a node that only reads.
            "25P03" | "25006" | "57P01" | "57P02" | "57P03" | "57P05" => Some(Self::Away),
            // Connections, resources, and the system below.
            _ if ["08", "53", "58"]
                .iter()
                .any(|class| code.starts_with(class)) =>
            {
                Some(Self::Away)
            }
            _ => None,
        }
    }
}

/// Whether somebody else held what the transaction needs.
pub fn is_locked(error: &DbError) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("55P03")
}

/// Whether the database undid the transaction only because another was in its way.
pub fn wants_retry(error: &DbError) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_the_storage_is_told_from_a_wrong_query() {
        let of = |code: &'static str| Trouble::of_code(code);
        assert_eq!(of("13"), Some(Trouble::Full));
        assert_eq!(of("778"), Some(Trouble::Away));
        assert_eq!(of("267"), Some(Trouble::Damaged));
        assert_eq!(of("53100"), Some(Trouble::Full));
        assert_eq!(of("55P03"), Some(Trouble::Busy));
        assert_eq!(of("08006"), Some(Trouble::Away));
        assert_eq!(of("2067"), None);
        assert_eq!(of("23505"), None);
    }
}
