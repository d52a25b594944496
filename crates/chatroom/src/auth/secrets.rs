//! The server's own secrets: kept in files outside the database, each use with a key of its own.

use crate::private_files::{PRIVATE, close_to_others, make_private_folder};
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest, hkdf, hmac,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

const MASTER_FILE: &str = "master.key";
const USER_KEY_FILE: &str = "user-tokens.pem";
const CODE_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Why the secrets could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error("cannot use the key file {0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0} is not a key that this server wrote; restore it from a backup")]
    Broken(PathBuf),
    #[error("this machine gives no random numbers")]
    Random,
}

/// Everything that is derived from the master key.
pub struct Secrets {
    master: hkdf::Prk,
    seal: LessSafeKey,
    code: hmac::Key,
    pseudonym: hmac::Key,
}

/// The size of a derived key, for HKDF.
struct Bytes32;
impl hkdf::KeyType for Bytes32 {
    fn len(&self) -> usize {
        32
    }
}

impl Secrets {
    /// Reads the master key from the folder, or makes both.
    pub fn open(dir: &Path) -> Result<Self, SecretsError> {
        let path = dir.join(MASTER_FILE);
        let master = read_or_make(&path, || {
            let mut bytes = [0u8; 32];
            fill_random(&mut bytes)?;
            Ok(URL_SAFE_NO_PAD.encode(bytes))
        })?;
        let bytes = URL_SAFE_NO_PAD
            .decode(master.trim())
            .ok()
            .filter(|bytes| bytes.len() == 32)
            .ok_or(SecretsError::Broken(path))?;
        Ok(Self::from_master(&bytes))
    }

    fn from_master(bytes: &[u8]) -> Self {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"sc-chatroom").extract(bytes);
        let seal = UnboundKey::new(&AES_256_GCM, &derive(&master, "seal"))
            .map(LessSafeKey::new)
            .unwrap_or_else(|_| unreachable!("AES-256 takes 32 bytes"));
        let code = hmac::Key::new(hmac::HMAC_SHA256, &derive(&master, "code"));
        let pseudonym = hmac::Key::new(hmac::HMAC_SHA256, &derive(&master, "pseudonym"));
        Self {
            master,
            seal,
            code,
            pseudonym,
        }
    }

    /// A key for one use. Keys for different uses have nothing in common.
    pub fn derive(&self, usage: &str) -> [u8; 32] {
        derive(&self.master, usage)
    }

    /// Tells one master key from another without telling anything of it.
    pub fn fingerprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.derive("fingerprint")[..12])
    }

    /// Encrypts text for the database.
    pub fn seal(&self, text: &str) -> Result<String, SecretsError> {
        let mut nonce = [0u8; NONCE_LEN];
        fill_random(&mut nonce)?;
        let mut sealed = text.as_bytes().to_vec();
        self.seal
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .map_err(|_| SecretsError::Random)?;
        let mut whole = nonce.to_vec();
        whole.append(&mut sealed);
        Ok(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Decrypts what [`Secrets::seal`] made; nothing where it was made with another key.
    pub fn unseal(&self, sealed: &str) -> Option<String> {
        let mut whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = whole.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.seal.open_in_place(nonce, Aad::empty(), text).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// What a short code is looked up by. The code cannot be had back from it.
    pub fn hash_code(&self, code: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.code, code.as_bytes()))
    }

    /// A random number.
    pub fn random_number(&self) -> Result<u32, SecretsError> {
        let mut bytes = [0u8; 4];
        fill_random(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// What stands for a user where its id must not show: 16 hexadecimal digits, always the same.
    pub fn pseudonym(&self, user: &str) -> String {
        let tag = hmac::sign(&self.pseudonym, user.as_bytes());
        tag.as_ref()[..8]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// A new random word of `length` characters, none of which look like another.
    pub fn random_code(&self, prefix: &str, length: usize) -> Result<String, SecretsError> {
        let mut bytes = vec![0u8; length];
        fill_random(&mut bytes)?;
        let tail = bytes
            .iter()
            .map(|b| char::from(CODE_ALPHABET[usize::from(b % 32)]));
        Ok(prefix.chars().chain(tail).collect())
    }
}

/// From the operating system. The library's own generator would measure the processor's jitter at
/// every start, for longer than all the rest takes.
fn fill_random(bytes: &mut [u8]) -> Result<(), SecretsError> {
    getrandom::fill(bytes).map_err(|_| SecretsError::Random)
}

/// The private key that this server signs user tokens with, in PEM; made where there is none.
pub fn user_key_pem(dir: &Path) -> Result<String, SecretsError> {
    read_or_make(&dir.join(USER_KEY_FILE), || {
        let key = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048)
            .map_err(|_| SecretsError::Random)?;
        let der = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&key)
            .map_err(|_| SecretsError::Random)?;
        Ok(pem("PRIVATE KEY", der.as_ref()))
    })
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

/// SHA-256 as hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes)
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

fn derive(master: &hkdf::Prk, usage: &str) -> [u8; 32] {
    let mut key = [0u8; 32];
    let info = [usage.as_bytes()];
    master
        .expand(&info, Bytes32)
        .and_then(|okm| okm.fill(&mut key))
        .unwrap_or_else(|_| unreachable!("HKDF-SHA256 gives 32 bytes"));
    key
}

/// Reads a secret file, or writes it whole before anybody can read a part of it.
fn read_or_make(
    path: &Path,
    make: impl FnOnce() -> Result<String, SecretsError>,
) -> Result<String, SecretsError> {
    let failed = |error| SecretsError::File(path.to_owned(), error);
    match std::fs::read_to_string(path) {
        Ok(text) => {
            // The keys may be mounted read-only; then they are not ours to close.
            if let Err(error) = close_to_others(path) {
                tracing::warn!(%error, path = %path.display(), "others on this machine may read a key");
            }
            return Ok(text);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let text = make()?;
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private_folder(dir).map_err(failed)?;
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        // A link does not replace what another process wrote in the meantime.
        .and_then(|()| match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        })
        .and_then(|()| File::open(dir)?.sync_all());
    let cleaned = std::fs::remove_file(&draft);
    written.and(cleaned).map_err(failed)?;
    std::fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_sealed_can_be_had_back_with_the_same_key_alone() {
        let (one, other) = (
            Secrets::from_master(&[1; 32]),
            Secrets::from_master(&[2; 32]),
        );
        let sealed = one.seal("sk_live_secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(one.unseal(&sealed).as_deref(), Some("sk_live_secret"));
        assert_eq!(other.unseal(&sealed), None);
        assert_eq!(one.unseal("rubbish"), None);
        assert_eq!(one.unseal(""), None);
    }

    #[test]
    fn the_key_file_is_private_and_lasts() {
        let dir = tempfile::tempdir().unwrap();
        let first = Secrets::open(&dir.path().join("keys")).unwrap();
        let again = Secrets::open(&dir.path().join("keys")).unwrap();
        assert_eq!(first.fingerprint(), again.fingerprint());
        let mode = std::fs::metadata(dir.path().join("keys/master.key"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_broken_key_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MASTER_FILE), "short").unwrap();
        assert!(matches!(
            Secrets::open(dir.path()),
            Err(SecretsError::Broken(_))
        ));
        assert_eq!(
            std::fs::read_to_string(dir.path().join(MASTER_FILE)).unwrap(),
            "short"
        );
    }

    #[test]
    fn a_pseudonym_is_the_same_for_the_same_user_and_key_alone() {
        let (one, other) = (
            Secrets::from_master(&[1; 32]),
            Secrets::from_master(&[2; 32]),
        );
        assert_eq!(one.pseudonym("u_alice"), one.pseudonym("u_alice"));
        assert_ne!(one.pseudonym("u_alice"), one.pseudonym("u_bob"));
        assert_ne!(one.pseudonym("u_alice"), other.pseudonym("u_alice"));
        assert_eq!(one.pseudonym("u_alice").len(), 16);
    }

    #[test]
    fn codes_differ_and_keep_their_form() {
        let secrets = Secrets::from_master(&[3; 32]);
        let (one, two) = (
            secrets.random_code("ck_", 8).unwrap(),
            secrets.random_code("ck_", 8).unwrap(),
        );
        assert_ne!(one, two);
        assert_eq!(one.len(), 11);
    }
}
