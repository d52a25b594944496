//! Who may see the page's data: a hostile page in the same browser may not.

use super::Ui;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use uuid::Uuid;

pub struct PageGuard {
    token: String,
    /// How a browser may call it: by address, or as localhost.
    hosts: [String; 2],
}

impl PageGuard {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            token: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
        }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let host = text(headers, &header::HOST);
        host.is_some_and(|host| self.hosts.iter().any(|own| own == host))
    }

    /// Whether a request that says where it comes from comes from the page.
    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return true;
        };
        let host = origin.to_str().ok().and_then(|o| o.strip_prefix("http://"));
        host.is_some_and(|host| self.hosts.iter().any(|own| own == host))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = text(headers, &header::AUTHORIZATION);
        let given = given.and_then(|given| given.strip_prefix("Bearer "));
        // Digests are compared, so the time tells nothing of the token.
        let digest = |token: &str| Sha256::digest(token.as_bytes());
        given.is_some_and(|given| digest(given) == digest(&self.token))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Lets through who calls this machine by its own name: no name that somebody else
/// made to point here.
pub async fn host(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Response {
    let mut response = match ui.page_guard.is_own_host(request.headers()) {
        true => next.run(request).await,
        false => refused("call it by the address that was printed"),
    };
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Lets through who has the token.
pub async fn token(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    match (
        ui.page_guard.is_own_origin(headers),
        ui.page_guard.has_token(headers),
    ) {
        (false, _) => refused("other pages may not ask"),
        (true, false) => refused("open the address that was printed: its token is missing"),
        (true, true) => next.run(request).await,
    }
}

fn refused(why: &'static str) -> Response {
    (StatusCode::FORBIDDEN, why).into_response()
}
