//! Signatures: as GitHub signs what comes in, and as Standard Webhooks says for what goes out.

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use base64::{Engine, prelude::BASE64_STANDARD};

const STANDARD_PREFIX: &str = "whsec_";
const HUB_PREFIX: &str = "sha256=";

/// Whether a body was signed with the secret, as `X-Hub-Signature-256` says. Takes as long for a wrong
/// signature as for a right one.
pub fn is_signed(secret: &str, body: &[u8], header: Option<&str>) -> bool {
    let Some(tag) = header.and_then(|header| hex(header.strip_prefix(HUB_PREFIX)?)) else {
        return false;
    };
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, body, &tag).is_ok()
}

/// A secret as receivers of Standard Webhooks take it.
pub fn standard_secret(key: &[u8]) -> String {
    format!("{STANDARD_PREFIX}{}", BASE64_STANDARD.encode(key))
}

/// The `webhook-signature` of a delivery; nothing where the secret is none.
pub fn sign(secret: &str, id: &str, timestamp: i64, body: &str) -> Option<String> {
    let key = secret.strip_prefix(STANDARD_PREFIX)?;
    let key = Key::new(HMAC_SHA256, &BASE64_STANDARD.decode(key).ok()?);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(tag)))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 128 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of GitHub's own documentation.
    #[test]
    fn a_body_signed_as_github_does_is_known() {
        let (secret, body) = ("It's a Secret to Everybody", b"Hello, World!");
        let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(is_signed(secret, body, Some(good)));
        for bad in [
            None,
            Some(""),
            Some("sha256="),
            Some("sha256=7"),
            Some("sha256=zz"),
            Some(&good[..70]),
            Some(&good[7..]),
            Some(&good.replace('7', "8")),
        ] {
            assert!(!is_signed(secret, body, bad), "{bad:?}");
        }
        assert!(!is_signed(secret, b"Hello, World?", Some(good)));
    }
}
