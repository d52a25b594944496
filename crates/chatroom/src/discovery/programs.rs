//! The `starchild` program for agents' owners, one for each platform. It is no part of the server:
//! the operator puts the files into a folder, or leaves them beside the server's own program.

use aws_lc_rs::digest::{Context, SHA256};
use std::{
    collections::HashMap,
    fs::{File, Metadata},
    io::{self, Read, Seek},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The platforms that there are programs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    DarwinArm64,
    DarwinAmd64,
    LinuxArm64,
    LinuxAmd64,
}

impl Platform {
    pub const ALL: [Self; 4] = [
        Self::DarwinArm64,
        Self::DarwinAmd64,
        Self::LinuxArm64,
        Self::LinuxAmd64,
    ];

    /// As it is written in addresses and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DarwinArm64 => "darwin-arm64",
            Self::DarwinAmd64 => "darwin-amd64",
            Self::LinuxArm64 => "linux-arm64",
            Self::LinuxAmd64 => "linux-amd64",
        }
    }

    /// The platform of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|platform| platform.name() == name)
    }

    /// The one that this server runs on.
    fn here() -> Option<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("macos", "aarch64") => Some(Self::DarwinArm64),
            ("macos", "x86_64") => Some(Self::DarwinAmd64),
            ("linux", "aarch64") => Some(Self::LinuxArm64),
            ("linux", "x86_64") => Some(Self::LinuxAmd64),
            _ => None,
        }
    }
}

/// A program, open for reading.
pub struct Program {
    pub file: File,
    pub length: u64,
    /// In hexadecimal.
    pub sha256: String,
}

/// Where the programs are, and their digests. Cheap to clone.
#[derive(Clone)]
pub struct Programs {
    folder: PathBuf,
    digests: Arc<Mutex<HashMap<Platform, (Stamp, String)>>>,
}

/// What changes when a file is replaced.
type Stamp = (u64, u64, u64, i64, i64);

impl Programs {
    /// The programs in this folder; beside the server's own program where none is named.
    pub fn new(folder: Option<&Path>) -> Self {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
        Self {
            folder: folder
                .map(Path::to_owned)
                .or_else(beside)
                .unwrap_or_default(),
            digests: Arc::default(),
        }
    }

    /// Opens a program. The digest is of the very file that was opened, so a program that is
    /// replaced meanwhile does no harm. It reads the whole file the first time.
    pub fn open(&self, platform: Platform) -> io::Result<Option<Program>> {
        let Some((mut file, meta)) = self.find(platform)? else {
            return Ok(None);
        };
        let stamp = stamp(&meta);
        let known = self.digests().get(&platform).cloned();
        let sha256 = match known {
            Some((of, sha256)) if of == stamp => sha256,
            _ => {
                let sha256 = digest(&mut file)?;
                self.digests().insert(platform, (stamp, sha256.clone()));
                sha256
            }
        };
        Ok(Some(Program {
            file,
            length: meta.len(),
            sha256,
        }))
    }

    fn find(&self, platform: Platform) -> io::Result<Option<(File, Metadata)>> {
        let own = (Platform::here() == Some(platform)).then(|| "starchild".to_owned());
        let names = [format!("starchild-{}", platform.name())]
            .into_iter()
            .chain(own);
        for name in names {
            match File::open(self.folder.join(name)) {
                Ok(file) => {
                    let meta = file.metadata()?;
                    if meta.is_file() {
                        return Ok(Some((file, meta)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn digests(&self) -> std::sync::MutexGuard<'_, HashMap<Platform, (Stamp, String)>> {
        self.digests
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn stamp(meta: &Metadata) -> Stamp {
    (
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
    )
}

/// The file's digest; the file is at its start again afterwards.
fn digest(file: &mut File) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => context.update(&buffer[..read]),
        }
    }
    file.rewind()?;
    let digest = context.finish();
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha256(programs: &Programs, platform: Platform) -> Option<String> {
        Some(programs.open(platform).unwrap()?.sha256)
    }

    #[test]
    fn a_replaced_program_has_a_new_digest() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(Some(folder.path()));
        let path = folder.path().join("starchild-darwin-arm64");
        assert_eq!(sha256(&programs, Platform::DarwinArm64), None);
        std::fs::write(&path, "one").unwrap();
        let one = sha256(&programs, Platform::DarwinArm64).unwrap();
        assert_eq!(one, crate::auth::secrets::sha256_hex(b"one"));
        let next = folder.path().join("next");
        std::fs::write(&next, "two").unwrap();
        std::fs::rename(next, path).unwrap();
        let two = sha256(&programs, Platform::DarwinArm64).unwrap();
        assert_eq!(two, crate::auth::secrets::sha256_hex(b"two"));
    }

    #[test]
    fn a_folder_is_no_program() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("starchild-linux-arm64")).unwrap();
        let programs = Programs::new(Some(folder.path()));
        assert_eq!(sha256(&programs, Platform::LinuxArm64), None);
    }

    #[test]
    fn the_plain_name_serves_the_servers_own_platform_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("starchild"), "mine").unwrap();
        let programs = Programs::new(Some(folder.path()));
        for platform in Platform::ALL {
            let there = sha256(&programs, platform).is_some();
            assert_eq!(there, Platform::here() == Some(platform), "{platform:?}");
        }
    }
}
