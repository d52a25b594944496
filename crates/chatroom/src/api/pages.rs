//! The pages, embedded in the program. They load nothing from elsewhere and run no inline script.

use crate::app::App;
use axum::{
    Router,
    http::{HeaderName, header},
    response::IntoResponse,
    routing::get,
};

const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub fn routes() -> Router<App> {
    Router::new()
        .route(
            "/",
            get(async || page(include_str!("../../../../web/index.html"))),
        )
        .route(
            "/view",
            get(async || page(include_str!("../../../../web/view.html"))),
        )
        .route(
            "/assets/plain.css",
            get(async || css(include_str!("../../../../web/plain.css"))),
        )
}

fn page(html: &'static str) -> impl IntoResponse {
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, html)
}

fn css(text: &'static str) -> impl IntoResponse {
    (
        [
            (header::CONTENT_TYPE, "text/css; charset=utf-8"),
            (header::CACHE_CONTROL, "max-age=300"),
        ],
        text,
    )
}
