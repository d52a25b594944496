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
        Ok(Self {
            rules: Arc::new(Mutex::new(read(file)?)),
            file: Some(file.into()),
        })
    }

    /// What is allowed.
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// Allows something for good. It holds at once, also where it cannot be
    /// written down. What another program added meanwhile stays, and what the
    /// owner took out of the file does not come back.
    pub fn add(&self, rule: Rule) -> io::Result<()> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.file.as_deref().map(read).transpose();
        if let Ok(Some(known)) = &known {
            rules.clone_from(known);
        }
        if !rules.contains(&rule) {
            rules.push(rule);
        }
        known?;
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

fn read(file: &Path) -> io::Result<Vec<Rule>> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(meta) if meta.len() > MAX_FILE => {
            Err(io::Error::other(format!("over {MAX_FILE} bytes")))
        }
        Ok(_) => Ok(serde_json::from_slice(&fs::read(file)?)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::{Effect, Pattern};

    #[test]
    fn two_programs_keep_each_others_rules_and_what_the_owner_took_out_stays_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("always.json");
        let rule = |name: &str| Rule::new(Effect::Allow, Pattern::new(name));
        let (one, other) = (Grants::open(&file).unwrap(), Grants::open(&file).unwrap());
        one.add(rule("a")).unwrap();
        other.add(rule("b")).unwrap();
        assert_eq!(other.rules(), [rule("a"), rule("b")]);
        fs::write(&file, serde_json::to_vec(&[rule("b")]).unwrap()).unwrap();
        one.add(rule("c")).unwrap();
        assert_eq!(Grants::open(&file).unwrap().rules(), [rule("b"), rule("c")]);
        assert_eq!(one.rules(), [rule("b"), rule("c")]);
    }
}
