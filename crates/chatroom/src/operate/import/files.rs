//! The files of an export, in a folder or in a zip file. They are read, never unpacked; nothing outside is
//! read, whatever the names say, and no more than fits.

use super::ImportError;
use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};
use zip::ZipArchive;

/// The largest file that is read, and all that is read of one export.
const MAX_FILE: u64 = 64 * 1024 * 1024;
const MAX_ALL: u64 = 8 * 1024 * 1024 * 1024;
/// Files of an export, at the most.
const MOST_FILES: usize = 500_000;

/// Where the files are.
pub struct Files {
    source: Source,
    left: u64,
}

enum Source {
    Folder(PathBuf),
    Zip(Box<ZipArchive<File>>),
}

impl Files {
    /// The files of a folder or of a zip file; none where it is another file.
    pub fn open(path: &Path) -> Result<Option<Self>, ImportError> {
        let io = |error| ImportError::Io(path.to_owned(), error);
        let source = if fs::metadata(path).map_err(io)?.is_dir() {
            Source::Folder(path.to_owned())
        } else {
            let mut file = File::open(path).map_err(io)?;
            let mut magic = [0; 4];
            if file.read_exact(&mut magic).is_err() || magic != *b"PK\x03\x04" {
                return Ok(None);
            }
            let unfit = |why: String| ImportError::unfit(path.display(), why);
            let archive = ZipArchive::new(File::open(path).map_err(io)?)
                .map_err(|error| unfit(error.to_string()))?;
            if archive.len() > MOST_FILES {
                return Err(unfit(format!("it holds more than {MOST_FILES} files")));
            }
            Source::Zip(Box::new(archive))
        };
        Ok(Some(Self {
            source,
            left: MAX_ALL,
        }))
    }

    /// A file by its name within the export, whole.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, ImportError> {
        let unfit = |why: &dyn ToString| ImportError::unfit(name, why.to_string());
        let most = MAX_FILE.min(self.left);
        let mut bytes = Vec::new();
        let read = match &mut self.source {
            Source::Folder(folder) => {
                let path = folder.join(name);
                let kind = fs::symlink_metadata(&path).map_err(|error| unfit(&error))?;
                if !kind.is_file() {
                    return Err(unfit(&"it is no plain file"));
                }
                let file = File::open(path).map_err(|error| unfit(&error))?;
                file.take(most + 1).read_to_end(&mut bytes)
            }
            Source::Zip(archive) => {
                let file = archive.by_name(name).map_err(|error| unfit(&error))?;
                file.take(most + 1).read_to_end(&mut bytes)
            }
        };
        read.map_err(|error| unfit(&error))?;
        if bytes.len() as u64 > most {
            return Err(unfit(&format!(
                "it is too large: a file may have {MAX_FILE} bytes, and all of them {MAX_ALL}"
            )));
        }
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    /// The names of a channel's files, one for each day, in their order.
    pub fn days(&mut self, channel: &str) -> Result<Vec<String>, ImportError> {
        let mut days: Vec<String> = match &self.source {
            Source::Folder(folder) => {
                let path = folder.join(channel);
                let io = |error| ImportError::Io(path.clone(), error);
                if !fs::symlink_metadata(&path).is_ok_and(|kind| kind.is_dir()) {
                    return Ok(Vec::new());
                }
                let mut names = Vec::new();
                for entry in fs::read_dir(&path).map_err(io)?.take(MOST_FILES) {
                    let name = entry.map_err(io)?.file_name();
                    names.extend(name.into_string().ok());
                }
                names
            }
            Source::Zip(archive) => {
                let prefix = format!("{channel}/");
                let names = archive.file_names();
                let inside = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
                names.filter_map(|name| inside(&name.ok()?)).collect()
            }
        };
        days.retain(|name| is_day(name));
        days.sort_unstable();
        Ok(days
            .into_iter()
            .map(|name| format!("{channel}/{name}"))
            .collect())
    }
}

/// Whether a name is that of a folder of its own, and of nothing elsewhere.
pub fn is_folder_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| c.is_control() || "/\\:".contains(c))
}

/// `2026-11-17.json`.
fn is_day(name: &str) -> bool {
    let day = name.strip_suffix(".json").unwrap_or_default().as_bytes();
    day.len() == 10
        && day.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_looked_up() {
        for good in ["general", "émile", "a.b"] {
            assert!(is_folder_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "c:", "a\0"] {
            assert!(!is_folder_name(bad), "{bad}");
        }
        assert!(is_day("2026-11-17.json"));
        for bad in [
            "2026-11-17",
            "x.json",
            "2026-11-1x.json",
            "../26-11-17.json",
        ] {
            assert!(!is_day(bad), "{bad}");
        }
    }
}
