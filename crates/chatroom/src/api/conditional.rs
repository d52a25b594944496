//! Answers that a client may hold already: the same bytes have the same `ETag`.

use crate::{
    app::App,
    error::{Error, Result},
};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};

/// The version that the caller has seen of what it changes, where it says so: `If-Match: "6"`.
pub struct IfMatch(pub Option<i64>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let version = text.trim_matches('"').parse().ok();
        version.map(|version| Self(Some(version))).ok_or_else(|| {
            Error::bad_request("If-Match takes the version that you have seen, in quotes: \"6\"")
        })
    }
}

/// The `ETag` of what has this fingerprint.
pub fn etag(fingerprint: &str) -> String {
    format!("\"{fingerprint}\"")
}

/// Whether the client says that it holds what has this `ETag`.
pub fn is_held(headers: &HeaderMap, etag: &str) -> bool {
    let held = headers.get_all(header::IF_NONE_MATCH);
    held.iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tag_of_the_list_counts() {
        let held = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, value.parse().unwrap())]);
            is_held(&headers, &etag("abc"))
        };
        assert!(held("\"abc\"") && held("\"x\", \"abc\"") && held("W/\"abc\"") && held("*"));
        assert!(!held("abc") && !held("\"ab\"") && !held("") && !held("\"abc\"x"));
    }
}
