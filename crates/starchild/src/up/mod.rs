//! `starchild up`: a team from one `starchild.yaml`. [`file`] is what it says, [`project`] where
//! things are kept; [`server`] starts a room server where none is named; [`rooms`] and [`agents`]
//! make what is missing and nothing twice; [`supervisor`] keeps it all running; [`team`] puts them
//! together and applies changes of the file; [`board`] shows it.

pub mod agents;
pub mod board;
pub mod file;
pub mod project;
pub mod rooms;
pub mod server;
pub mod supervisor;
pub mod team;

use crate::home::FileError;
use client::ClientError;
use std::io;

/// Why a team is not up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// `starchild.yaml` does not fit.
    #[error("{0}")]
    File(String),
    /// Something is missing or refuses, in words that say what to do.
    #[error("{0}")]
    Failed(String),
    /// The server said no, or was not reached.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Kept(#[from] FileError),
    /// The system refuses something.
    #[error("{0}")]
    Io(#[from] io::Error),
}
