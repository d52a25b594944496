//! `organism run --ui`: a page on this machine that shows the organism at work.
//!
//! The page itself holds nothing; what it shows needs the token that its address
//! was printed with, in a header, so that no other page in the same browser can
//! ask for it. The token is after the `#`, which no browser sends anywhere.

mod page_guard;
mod replay;
mod stream;

use super::config::File;
use super::graph::Graph;
use super::observe::metrics;
use super::observe::recent::Recent;
use crate::http_server as server;
use agentserver::Pump;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use page_guard::PageGuard;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// What the page is made from.
struct Ui {
    pump: Pump,
    recent: Arc<Recent>,
    graph: watch::Receiver<Value>,
    /// The folder of the journal, where there is one.
    journal: Option<PathBuf>,
    /// Readers of the journal: it is read anew for each.
    replays: Semaphore,
    page_guard: PageGuard,
}

/// The page, for as long as this lives.
pub struct Page {
    graph: watch::Sender<Value>,
    server: JoinHandle<()>,
}

/// Reads where to listen.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        "an address is like 127.0.0.1:8069; where the organism's file follows, write --ui=ADDRESS"
    })?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("the page is for this machine: listen on 127.0.0.1 or [::1]".to_owned()),
    }
}

impl Page {
    /// Serves the page, and says where.
    pub async fn start(
        listen: SocketAddr,
        file: &File,
        pump: Pump,
        recent: Arc<Recent>,
        journal: Option<PathBuf>,
    ) -> Result<Self, String> {
        let (listener, address) = server::bind(listen).await?;
        let (graph, drawn) = watch::channel(drawing(file));
        let page_guard = PageGuard::new(address);
        eprintln!("page: http://{address}/#{}", page_guard.token());
        let ui = Arc::new(Ui {
            pump,
            recent,
            graph: drawn,
            journal,
            replays: Semaphore::new(1),
            page_guard,
        });
        let private = Router::new()
            .route("/events", get(stream::events))
            .route("/replay", get(replay::hops))
            .route("/replay/{hop}", get(replay::state))
            .route("/metrics", get(scrape))
            .route_layer(middleware::from_fn_with_state(
                ui.clone(),
                page_guard::token,
            ));
        let router = Router::new()
            .route(
                "/",
                get(async || asset("text/html", include_str!("page.html"))),
            )
            .route(
                "/page.css",
                get(async || asset("text/css", include_str!("page.css"))),
            )
            .route("/page.js", get(async || script(include_str!("page.js"))))
            .route("/graph.js", get(async || script(include_str!("graph.js"))))
            .route(
                "/sequence.js",
                get(async || script(include_str!("sequence.js"))),
            )
            .merge(private)
            .layer(middleware::from_fn_with_state(ui.clone(), page_guard::host))
            .with_state(ui);
        let server = tokio::spawn(server::serve(listener, router));
        Ok(Self { graph, server })
    }

    /// The file was read again.
    pub fn redraw(&self, file: &File) {
        self.graph.send_replace(drawing(file));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn drawing(file: &File) -> Value {
    json!({ "name": file.organism, "svg": Graph::of(file).drawing() })
}

async fn scrape(State(ui): State<Arc<Ui>>) -> Response {
    metrics::response(&ui.pump.stats())
}

/// The page may load what is here and nothing else, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn asset(kind: &'static str, content: &'static str) -> Response {
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, content).into_response()
}

fn script(content: &'static str) -> Response {
    asset("text/javascript", content)
}
