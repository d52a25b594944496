//! The skills: folders of command-line tools for agents, each packed into one archive. They are
//! part of the program, and the same program packs the same bytes.

use crate::auth::secrets::sha256_hex;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use include_dir::{Dir, File, include_dir};
use serde::Serialize;
use std::{io, sync::LazyLock};
use utoipa::ToSchema;

static FOLDERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../skills");
static SKILLS: LazyLock<Vec<Skill>> = LazyLock::new(|| {
    let packed: io::Result<Vec<Skill>> = FOLDERS.dirs().map(Skill::pack).collect();
    packed.expect("writing into memory does not fail")
});
/// Skills that go by another name too.
const OTHER_NAMES: [(&str, &str); 1] = [("chatroom", "workroom")];

/// A skill and its archive.
pub struct Skill {
    pub name: &'static str,
    version: &'static str,
    pub archive: Bytes,
    pub sha256: String,
}

/// `GET /skills/index.json`.
#[derive(Serialize, ToSchema)]
pub struct Index {
    /// In the order of their names.
    pub skills: Vec<Entry>,
}

/// A skill in the index.
#[derive(Serialize, ToSchema)]
pub struct Entry {
    /// Its name, which is also the folder in its archive.
    pub name: String,
    /// What its SKILL.md says.
    pub version: String,
    /// Of the archive, in hexadecimal.
    pub sha256: String,
    /// Where the archive is.
    pub url: String,
}

/// The skill of this name.
pub fn find(name: &str) -> Option<&'static Skill> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    let name = other.map_or(name, |(_, name)| name);
    SKILLS.iter().find(|skill| skill.name == name)
}

/// Every skill, for the server at this address.
pub fn index(public_url: &str) -> Index {
    let entries = SKILLS.iter().map(|skill| Entry {
        name: skill.name.to_owned(),
        version: skill.version.to_owned(),
        sha256: skill.sha256.clone(),
        url: format!("{public_url}/skills/{}.tar.gz", skill.name),
    });
    Index {
        skills: entries.collect(),
    }
}

impl Skill {
    fn pack(folder: &'static Dir<'static>) -> io::Result<Self> {
        let name = folder.path().to_str().unwrap_or_default();
        let about = folder.get_file(folder.path().join("SKILL.md"));
        let version = about
            .and_then(File::contents_utf8)
            .and_then(version)
            .unwrap_or_default();
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        add_folder(&mut archive, folder)?;
        let archive = archive.into_inner()?.finish()?;
        Ok(Self {
            name,
            version,
            sha256: sha256_hex(&archive),
            archive: archive.into(),
        })
    }
}

fn add_folder<W: io::Write>(archive: &mut tar::Builder<W>, folder: &Dir<'_>) -> io::Result<()> {
    let mut header = header(tar::EntryType::Directory, 0o755, 0);
    let name = format!("{}/", folder.path().display());
    archive.append_data(&mut header, name, io::empty())?;
    // Embedded files are sorted by path already.
    for file in folder.files() {
        let bytes = file.contents();
        let mode = if bytes.starts_with(b"#!") {
            0o755
        } else {
            0o644
        };
        let mut header = self::header(tar::EntryType::Regular, mode, bytes.len() as u64);
        archive.append_data(&mut header, file.path(), bytes)?;
    }
    folder
        .dirs()
        // What Python leaves behind where somebody ran a script is no part of a skill.
        .filter(|inner| !inner.path().ends_with("__pycache__"))
        .try_for_each(|inner| add_folder(archive, inner))
}

/// Nothing of the machine that packs is in an archive: no time, no owner.
fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The `version:` of a SKILL.md's front matter.
fn version(about: &str) -> Option<&str> {
    let (front, _) = about.strip_prefix("---\n")?.split_once("\n---")?;
    let line = front
        .lines()
        .find_map(|line| line.strip_prefix("version:"))?;
    Some(line.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_twice_gives_the_same_bytes() {
        for folder in FOLDERS.dirs() {
            let (one, two) = (Skill::pack(folder).unwrap(), Skill::pack(folder).unwrap());
            assert_eq!(one.archive, two.archive);
        }
    }

    #[test]
    fn the_version_is_in_the_front_matter_alone() {
        let about = "---\nname: x\nversion: 1.2.0\n---\nversion: 9\n";
        assert_eq!(version(about), Some("1.2.0"));
        assert_eq!(version("version: 1\n"), None);
        assert_eq!(version("---\nname: x\n---\nversion: 9\n"), None);
    }
}
