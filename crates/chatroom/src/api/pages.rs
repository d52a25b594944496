//! The pages, embedded in the program. They load nothing from elsewhere and run no inline script.
//!
//! All assets lie under a path that holds a fingerprint of them, so browsers keep them for good
//! and never mix those of two versions. The pages themselves are asked for anew each time.

use super::extract::Path;
use crate::{
    app::App,
    auth::secrets::sha256_hex,
    docs,
    error::{Error, ErrorWords, Result},
    render::document,
};
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use flate2::{Compression, write::GzEncoder};
use include_dir::{Dir, include_dir};
use std::{collections::HashMap, io::Write, sync::LazyLock};

static ASSETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web/assets");
const FRONT: &str = include_str!("../../../../web/index.html");
const VIEW: &str = include_str!("../../../../web/view.html");
const LEADERBOARD: &str = include_str!("../../../../web/leaderboard.html");
const AUTHORIZE: &str = include_str!("../../../../web/authorize.html");

/// A page of text, which needs no script.
const TEXT: &str = include_str!("text_page.html");

/// Where a page's text has the path of the assets.
const PLACEHOLDER: &str = "{assets}";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types sc-render";
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// Made when the first page is asked for.
static SITE: LazyLock<Site> = LazyLock::new(Site::build);

struct Site {
    fingerprint: String,
    front: Text,
    view: Text,
    leaderboard: Text,
    authorize: Text,
    assets: HashMap<&'static str, Text>,
}

/// Something to serve, as it is and compressed.
struct Text {
    kind: &'static str,
    plain: Bytes,
    gzip: Bytes,
}

/// Whether a browser asks, for somebody to read. Programs that take anything get what is made for them.
pub fn is_for_people(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

/// A page of text in the dress of the others.
pub fn text_page(status: StatusCode, title: &str, html: &str) -> Response {
    let assets = format!("/assets/{}", SITE.fingerprint);
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let page = TEXT
        .replace(PLACEHOLDER, &assets)
        .replace("{title}", &title)
        .replace("{text}", html);
    let head = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::VARY, "accept"),
    ];
    (status, head, page).into_response()
}

/// Errors of pages that people open, as a link that has ended, are pages too. What scripts fetch is JSON.
pub fn error_for_people(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    let Some(ErrorWords(message)) = head.extensions.remove() else {
        return Response::from_parts(head, body);
    };
    let status = head.status;
    let title = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::GONE => "No longer there",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Not open to you",
        StatusCode::TOO_MANY_REQUESTS => "Too often",
        _ => "That did not work",
    };
    let words = message.replace('&', "&amp;").replace('<', "&lt;");
    let page = text_page(
        status,
        title,
        &format!(
            "<h1>{title}</h1>\n<p>{words}.</p>\n<p><a href=\"/\">Begin at the front page</a>, \
             <a href=\"/view\">go to your rooms</a>, or <a href=\"/docs/\">read the documents</a>.</p>"
        ),
    );
    head.headers.remove(header::CONTENT_LENGTH);
    let (mut page_head, body) = page.into_parts();
    // What the error tells programs, as when to try again, stays.
    head.headers.extend(std::mem::take(&mut page_head.headers));
    page_head.headers = head.headers;
    Response::from_parts(page_head, body)
}

/// The documents that there are.
async fn documents(headers: HeaderMap) -> Response {
    let text = docs::INDEX;
    match is_for_people(&headers) {
        true => text_page(
            StatusCode::OK,
            document::title(text),
            &document::html(text, docs::is_served),
        ),
        false => {
            let head = [
                (header::CONTENT_TYPE, "text/markdown; charset=utf-8"),
                (header::VARY, "accept"),
            ];
            (head, text).into_response()
        }
    }
}

pub fn routes() -> Router<App> {
    Router::new()
        .route("/docs", get(documents))
        .route("/docs/", get(documents))
        .route("/", get(async |headers| page(&SITE.front, &headers)))
        .route("/view", get(async |headers| page(&SITE.view, &headers)))
        .route(
            "/leaderboard.html",
            get(async |headers| page(&SITE.leaderboard, &headers)),
        )
        .route("/assets/{fingerprint}/{name}", get(asset))
}

/// Where an asset of these pages lies.
pub fn asset_path(name: &str) -> String {
    format!("/assets/{}/{name}", SITE.fingerprint)
}

/// Where a person allows an MCP client to act for them.
pub async fn authorize(headers: HeaderMap) -> Response {
    page(&SITE.authorize, &headers)
}

fn page(text: &Text, headers: &HeaderMap) -> Response {
    let etag = format!("\"{}\"", SITE.fingerprint);
    let known = headers.get(header::IF_NONE_MATCH);
    let fixed: [(HeaderName, &str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), microphone=(), geolocation=()",
        ),
    ];
    if known.is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, fixed, [(header::ETAG, etag)]).into_response();
    }
    (fixed, [(header::ETAG, etag)], text.send(headers)).into_response()
}

async fn asset(
    Path((fingerprint, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    let asset = SITE.assets.get(name.as_str());
    let asset = asset
        .filter(|_| fingerprint == SITE.fingerprint)
        .ok_or_else(|| Error::not_found("No such asset in this version; load the page anew"))?;
    Ok(([(header::CACHE_CONTROL, FOR_GOOD)], asset.send(&headers)).into_response())
}

impl Site {
    fn build() -> Self {
        let files = || {
            let named = |file: &'static include_dir::File<'static>| {
                Some((file.path().to_str()?, file.contents()))
            };
            ASSETS.files().filter_map(named)
        };
        let mut all = [FRONT, VIEW, LEADERBOARD, AUTHORIZE]
            .join("\0")
            .into_bytes();
        files().for_each(|(name, contents)| {
            all.extend_from_slice(name.as_bytes());
            all.extend_from_slice(contents);
        });
        let fingerprint = sha256_hex(&all)[..16].to_owned();
        let page = |html: &str| {
            let html = html.replace(PLACEHOLDER, &format!("/assets/{fingerprint}"));
            Text::new("text/html; charset=utf-8", html.into())
        };
        Self {
            front: page(FRONT),
            view: page(VIEW),
            leaderboard: page(LEADERBOARD),
            authorize: page(AUTHORIZE),
            assets: files()
                .filter_map(|(name, contents)| {
                    Some((name, Text::new(kind(name)?, Bytes::from_static(contents))))
                })
                .collect(),
            fingerprint,
        }
    }
}

impl Text {
    fn new(kind: &'static str, plain: Bytes) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into memory does not fail.
        let gzip = encoder.write_all(&plain).and_then(|()| encoder.finish());
        Self {
            kind,
            gzip: gzip.unwrap_or_default().into(),
            plain,
        }
    }

    fn send(&self, headers: &HeaderMap) -> Response {
        let shared = [
            (header::CONTENT_TYPE, self.kind),
            (header::VARY, "accept-encoding"),
        ];
        match accepts_gzip(headers) {
            true => (
                shared,
                [(header::CONTENT_ENCODING, "gzip")],
                self.gzip.clone(),
            )
                .into_response(),
            false => (shared, self.plain.clone()).into_response(),
        }
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    accepted
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value.split(',').any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                parts.next() == Some("gzip") && parts.next() != Some("q=0")
            })
        })
}

fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_assets_together_stay_small() {
        let site = Site::build();
        let pages = [&site.front, &site.view, &site.leaderboard, &site.authorize];
        let bytes: usize = pages
            .into_iter()
            .chain(site.assets.values())
            .map(|text| text.gzip.len())
            .sum();
        assert!(bytes > 1000 && bytes < 150_000, "{bytes} bytes compressed");
        println!("{bytes} bytes compressed");
    }

    #[test]
    fn pages_name_only_assets_that_exist() {
        let site = Site::build();
        let prefix = format!("/assets/{}/", site.fingerprint);
        for page in [&site.front, &site.view, &site.leaderboard, &site.authorize] {
            let html = std::str::from_utf8(&page.plain).unwrap();
            assert!(!html.contains(PLACEHOLDER) && html.contains(&prefix));
            for rest in html.split(prefix.as_str()).skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(site.assets.contains_key(name), "{name}");
            }
        }
    }
}
