//! `organism.yaml` with the kinds of listeners that this program has.

use super::gateway::GatewayKind;
use super::kinds::{self, Kind};
use super::model::ModelsFile;
use super::original;
use agentserver::Organism;
use agentserver::config::{ConfigError, OrganismFile};
use std::path::{Path, PathBuf};

/// The file as this program reads it.
pub type File = OrganismFile<Kind, ModelsFile, GatewayKind>;

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// Something is wrong in it. Each problem has a line of its own.
    #[error("{}", lines(path, error))]
    Wrong {
        /// Which.
        path: PathBuf,
        /// What.
        #[source]
        error: ConfigError,
    },
    /// It is of the project that this one takes after.
    #[error("{}: {words}", path.display())]
    Original {
        /// Which.
        path: PathBuf,
        /// What it would be here.
        words: String,
    },
}

/// What is wrong, a line each, with the file's name.
pub fn lines(path: &Path, error: &ConfigError) -> String {
    let problems = error.0.iter().map(|problem| match problem.line {
        0 => format!("{}: {}", path.display(), problem.message),
        _ => format!("{}:{problem}", path.display()),
    });
    problems.collect::<Vec<_>>().join("\n")
}

/// Reads the file and builds the organism.
pub fn load(path: &Path) -> Result<(File, Organism), LoadError> {
    let text = std::fs::read_to_string(path).map_err(|error| LoadError::Read {
        path: path.to_owned(),
        error,
    })?;
    let wrong = |error| LoadError::Wrong {
        path: path.to_owned(),
        error,
    };
    let file = match (File::parse(&text), original::refusal(&text)) {
        (Ok(file), _) => file,
        (Err(_), Some(words)) => {
            let path = path.to_owned();
            return Err(LoadError::Original { path, words });
        }
        (Err(error), None) => return Err(wrong(error)),
    };
    let organism = kinds::build(&file, folder_of(path)).map_err(wrong)?;
    Ok((file, organism))
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}
