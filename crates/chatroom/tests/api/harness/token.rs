//! User tokens for tests, and a look into tokens of every kind.

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    signature::KeyPair,
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{LazyLock, Mutex},
};

/// The server's program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sc-chatroom");

/// The keys that all servers of this run share, so that making an RSA key pair is paid for once:
/// those that the test command made, else some of this process's own.
pub fn shared_keys() -> &'static Path {
    static KEYS: LazyLock<PathBuf> = LazyLock::new(|| {
        if let Some(data) = std::env::var_os("SC_TEST_DATA") {
            return Path::new(&data).join("keys");
        }
        let name = format!("api-keys-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        sign(&folder.join("keys"), &["--user", "u_first"]);
        folder.join("keys")
    });
    &KEYS
}

/// A user token of this type that lasts an hour. The name is part of it where it is not empty.
pub fn user_token(user: &str, name: &str, token_type: &str) -> String {
    static TOKENS: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);
    let wanted = format!("{user} {name} {token_type}");
    let mut tokens = TOKENS.lock().unwrap();
    let sign_it = || {
        let mut args = vec!["--user", user, "--type", token_type];
        if !name.is_empty() {
            args.extend(["--name", name]);
        }
        sign(shared_keys(), &args)
    };
    tokens.entry(wanted).or_insert_with(sign_it).clone()
}

/// Runs `sc-chatroom token` with these arguments.
pub fn sign(keys: &Path, args: &[&str]) -> String {
    let output = Command::new(PROGRAM)
        .arg("token")
        .arg("--data")
        .arg(keys.parent().unwrap())
        .args(args)
        .env("SC_CHATROOM__AUTH__KEYS_DIR", keys)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let token = printed.trim_end().to_owned();
    assert!(
        !token.contains(char::is_whitespace),
        "more than a token: {printed}"
    );
    token
}

/// The public half of the shared keys, as identity providers publish theirs.
pub fn public_jwks() -> String {
    let key = jsonwebtoken::EncodingKey::from_rsa_pem(private_pem().as_bytes()).unwrap();
    let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&key, jsonwebtoken::Algorithm::RS256);
    serde_json::json!({"keys": [jwk.unwrap()]}).to_string()
}

/// The same as a PEM file.
pub fn public_pem() -> String {
    let lines = private_pem();
    let base64: String = lines
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let private = STANDARD.decode(base64).unwrap();
    let pair = aws_lc_rs::rsa::KeyPair::from_pkcs8(&private).unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let base64 = STANDARD.encode(public.as_ref());
    format!("-----BEGIN PUBLIC KEY-----\n{base64}\n-----END PUBLIC KEY-----\n")
}

fn private_pem() -> String {
    let files = std::fs::read_dir(shared_keys()).unwrap();
    files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .find(|text| text.starts_with("-----BEGIN"))
        .unwrap()
}

/// What a token says, unchecked. An invite code may keep its `inv_`.
pub fn claims(token: &str) -> Value {
    let middle = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(middle).unwrap()).unwrap()
}

/// The same token with other claims and the old signature.
pub fn with_claims(token: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut changed = claims(token);
    change(&mut changed);
    let middle = URL_SAFE_NO_PAD.encode(changed.to_string());
    let parts: Vec<&str> = token.split('.').collect();
    format!("{}.{middle}.{}", parts[0], parts[2])
}

/// Tokens with this one's claims that nobody signed who may.
pub fn forged(token: &str) -> Vec<String> {
    let (prefix, token) = match token.strip_prefix("inv_") {
        Some(token) => ("inv_", token),
        None => ("", token),
    };
    let middle = token.split('.').nth(1).unwrap();
    let unsigned = |alg: &str| {
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#));
        format!("{header}.{middle}.")
    };
    let other_secret = jsonwebtoken::encode(
        &jsonwebtoken::Header::default(),
        &claims(token),
        &jsonwebtoken::EncodingKey::from_secret(b"secret"),
    );
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let reversed: String = signature.chars().rev().collect();
    [
        unsigned("none"),
        unsigned("None"),
        unsigned("HS256"),
        other_secret.unwrap(),
        format!("{signed}.{reversed}"),
        format!("{signed}."),
        signed.to_owned(),
    ]
    .map(|forgery| format!("{prefix}{forgery}"))
    .to_vec()
}

/// The time, in unix seconds.
pub fn now() -> i64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64
}
