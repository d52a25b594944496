//! The journal: every input of the rules in a file, before anything follows from
//! it. After a crash the inputs go in again, and the state is what it was.
//!
//! The file begins with a snapshot, and frames of inputs follow. A frame is what
//! one write to the disk has made safe; the last may be torn by a crash, and then
//! nothing has followed from it. When the file grows long, a new one with a new
//! snapshot takes its place, and the old one stays beside it until the next.

mod commit;
mod frame;
mod log;
mod replay;

pub use crate::core::{OpenBudget, OpenMessage, OpenThread, OpenTodo, Overview};
pub(crate) use commit::{Commits, Journal};
pub(crate) use log::Log;
pub use replay::{Replayed, replay};

use std::path::{Path, PathBuf};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("the journal {}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// Another program has it open.
    #[error("the journal {} is in use by another program; end that one first", .0.display())]
    InUse(PathBuf),
    /// Something before its end was changed.
    #[error(
        "the journal {} is damaged at byte {at}, before its end; restore it from a copy, or move \
         it away to begin anew", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
    },
    /// It was written by a program that does it otherwise.
    #[error(
        "the journal {} cannot be understood ({reason}); was it written by another version? Move \
         it away to begin anew", path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
}

impl JournalError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    fn unreadable(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
