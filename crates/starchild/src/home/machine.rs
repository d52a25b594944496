//! What tells this machine from others: the second half of an agent's id.

use super::{FileError, Home, files};
use protocol::{AgentId, BadId};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Mixed into the hash, so that the id tells nobody the machine's own.
const PURPOSE: &[u8] = b"starchild agent id\n";

/// Why there is no id.
#[derive(Debug, thiserror::Error)]
pub enum AgentIdError {
    /// The prefix is not one.
    #[error("{0:?} is no prefix: want 8 to 20 characters of a-z 0-9 _ .")]
    Prefix(String),
    /// The machine's id cannot be kept.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The agent's id: the prefix, and eight hexadecimal digits from the machine's id.
pub fn agent_id(home: &Home, prefix: &str) -> Result<AgentId, AgentIdError> {
    let suffix = suffix(&machine_id(home)?);
    // An id may carry ext_ in front; a prefix that begins with it would be read as shorter.
    let id = format!("{prefix}-{suffix}").parse();
    id.map_err(|_: BadId| AgentIdError::Prefix(prefix.to_owned()))
}

fn suffix(machine_id: &str) -> String {
    let hash = Sha256::new().chain_update(PURPOSE).chain_update(machine_id);
    let hash = hash.finalize();
    hash.iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn machine_id(home: &Home) -> Result<String, FileError> {
    if let Some(id) = system_id() {
        return Ok(id);
    }
    let path = home.machine_id_file();
    if let Some(id) = file_id(&path) {
        return Ok(id);
    }
    let id = uuid::Uuid::new_v4().simple().to_string();
    files::write(&path, format!("{id}\n").as_bytes())?;
    Ok(id)
}

fn system_id() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(|path| file_id(Path::new(path)))
        .or_else(platform_id)
}

fn file_id(path: &Path) -> Option<String> {
    let bytes = files::read(path).ok()??;
    let id = String::from_utf8(bytes).ok()?.trim().to_owned();
    // A fresh image says `uninitialized`, or nothing.
    (id.len() >= 16 && id != "uninitialized").then_some(id)
}

#[cfg(target_os = "macos")]
fn platform_id() -> Option<String> {
    let output = std::process::Command::new("/usr/sbin/ioreg")
        .args(["-rd1", "-c", "IOPlatformExpertDevice"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().find(|line| line.contains("IOPlatformUUID"))?;
    let id = line.split('"').nth(3)?;
    Some(id.to_owned())
}

#[cfg(not(target_os = "macos"))]
fn platform_id() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_has_one_suffix_and_another_has_another() {
        assert_eq!(suffix("a"), suffix("a"));
        assert_ne!(suffix("a"), suffix("b"));
        assert_eq!(suffix("a").len(), 8);
    }

    #[test]
    fn a_machine_without_an_id_keeps_the_one_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home(folder.path().to_owned());
        let path = home.machine_id_file();
        files::write(&path, b"0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(file_id(&path).unwrap(), "0123456789abcdef0123456789abcdef");
        files::write(&path, b"uninitialized\n").unwrap();
        assert_eq!(file_id(&path), None);
    }

    #[test]
    fn a_prefix_has_8_to_20_characters_of_its_alphabet() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home(folder.path().to_owned());
        let id = agent_id(&home, "curious_otter").unwrap();
        assert!(id.as_str().starts_with("curious_otter-"));
        for bad in [
            "short",
            "Curious_otter",
            "curious-otter",
            "a b c d e f",
            &"x".repeat(21),
        ] {
            assert!(agent_id(&home, bad).is_err(), "{bad}");
        }
    }
}
