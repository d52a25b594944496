//! Files that are whole or not there, and nobody else's business.

use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// No file of ours is larger.
const MAX_BYTES: u64 = 1024 * 1024;

/// What went wrong with which file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// It was read, and makes no sense.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl FileError {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { what, path, error }
    }
}

/// Makes a folder, and those above it, for the owner alone.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(FileError::io("make", path))
}

/// Writes a file for the owner alone. A kill or a power cut leaves the old one or the new one.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let failed = || FileError::io("write", path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_folder(folder)?;
    let temporary = temporary(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(failed())?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(&temporary);
        return Err(failed()(error));
    }
    sync_folder(folder)
}

/// Removes a file for good. One that is not there is gone already.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(path.parent().unwrap_or(Path::new("/"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FileError::io("remove", path)(error)),
    }
}

/// Reads a file, if it is there.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("read", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::io("read", path))?;
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it has more than {MAX_BYTES} bytes");
        let path = path.to_owned();
        return Err(FileError::Damaged { path, why });
    }
    Ok(Some(bytes))
}

/// Reads a JSON file, if it is there.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    let Some(bytes) = read(path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| FileError::Damaged {
            path: path.to_owned(),
            why: error.to_string(),
        })
}

/// Writes a JSON file, as [`write`] does.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| FileError::Damaged {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// The names in a folder; none where there is no folder.
pub fn names(folder: &Path) -> Result<Vec<String>, FileError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("read", folder)(error)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.collect())
}

/// Removes what writers that were killed left behind.
pub fn sweep(folder: &Path) {
    let leftovers = names(folder).unwrap_or_default();
    for name in leftovers.iter().filter(|name| name.ends_with(TEMPORARY)) {
        let _ = fs::remove_file(folder.join(name));
    }
}

const TEMPORARY: &str = ".tmp";

fn temporary(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{count}{TEMPORARY}", std::process::id()))
}

fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(FileError::io("write to", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_the_owners_alone_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/secret.json");
        write_json(&path, &[1, 2]).unwrap();
        write_json(&path, &[3]).unwrap();
        assert_eq!(read_json::<Vec<i32>>(&path).unwrap().unwrap(), [3]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(names(path.parent().unwrap()).unwrap(), ["secret.json"]);
    }

    #[test]
    fn what_is_damaged_or_too_large_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert!(read_json::<Vec<i32>>(&path).unwrap().is_none());
        fs::write(&path, "[1, 2").unwrap();
        assert!(matches!(
            read_json::<Vec<i32>>(&path),
            Err(FileError::Damaged { .. })
        ));
        fs::write(&path, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(matches!(read(&path), Err(FileError::Damaged { .. })));
    }

    #[test]
    fn leftovers_of_a_killed_writer_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        write(&path, b"1").unwrap();
        fs::write(temporary(&path), "half").unwrap();
        sweep(folder.path());
        assert_eq!(names(folder.path()).unwrap(), ["x.json"]);
    }
}
