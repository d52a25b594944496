//! The ceiling: what one room could do if a server had nothing to check.
//!
//! A bare axum program. It takes POST bodies on keep-alive connections, commits each as a row
//! before it answers 201, and writes the committed rows to the open streams. There are no callers,
//! no rooms and no rules here, and none may be added: the room server is measured against what is
//! left when all of that is gone.

mod hub;
mod writer;

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use clap::Parser;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use hub::Hub;
use writer::Writer;

#[derive(Parser)]
struct Options {
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
    /// The folder for the database.
    #[arg(long)]
    data: PathBuf,
}

#[derive(Clone)]
struct Ceiling {
    hub: Hub,
    writer: Writer,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    rlimit::increase_nofile_limit(u64::MAX)?;

    let hub = Hub::default();
    let writer = Writer::start(&options.data.join("ceiling.db"), hub.clone())?;
    let app = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/messages", post(take))
        .route("/stream", get(stream))
        .with_state(Ceiling { hub, writer });

    let listener = TcpListener::bind(options.listen).await?;
    serve(listener, app).await
}

/// Serves HTTP/1.1 alone, which spares each connection the search for HTTP/2.
async fn serve(listener: TcpListener, app: Router) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(async move {
            // A connection that breaks concerns nobody but its client.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn take(State(ceiling): State<Ceiling>, body: Bytes) -> Response {
    match ceiling.writer.commit(body).await {
        Some(seq) => (
            StatusCode::CREATED,
            [(header::CONTENT_TYPE, "application/json")],
            format!("{{\"seq\":{seq}}}"),
        )
            .into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn stream(State(ceiling): State<Ceiling>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from_stream(ceiling.hub.subscribe())).into_response()
}
