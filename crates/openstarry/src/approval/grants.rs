//! What a person has allowed for good.

use super::Rule;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const MAX_FILE: u64 = 1 << 20;

/// Rules that were added by a person's "always". Clones are the same.
#[derive(Clone, Default)]
pub struct Grants {
    rules: Arc<Mutex<Vec<Rule>>>,
    file: Option<PathBuf>,
}

impl Grants {
    /// The rules of this file; none where it does not exist.
    pub fn open(file: &Path) -> io::Result<Self> {
        let rules = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
            Ok(meta) if meta.len() > MAX_FILE => {
                return Err(io::Error::other(format!("over {MAX_FILE} bytes")));
            }
            Ok(_) => serde_json::from_slice(&fs::read(file)?)?,
        };
        Ok(Self {
            rules: Arc::new(Mutex::new(rules)),
            file: Some(file.into()),
        })
    }

    /// What is allowed.
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// Allows something for good. It holds at once, also where it cannot be
    /// written down.
    pub fn add(&self, rule: Rule) -> io::Result<()> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut draft = tempfile::NamedTempFile::new_in(folder)?;
        draft.write_all(&serde_json::to_vec_pretty(&*rules)?)?;
        draft.as_file().sync_all()?;
        draft.persist(file).map_err(|error| error.error)?;
        Ok(())
    }
}
