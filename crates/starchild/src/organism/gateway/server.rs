//! A small HTTP server: bounded connections, and a time within which a request's
//! head has to come.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 1024;
const HEAD: Duration = Duration::from_secs(10);

/// Binds, and says where.
pub async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let wrong = |error: std::io::Error| format!("{listen}: {error}");
    let listener = TcpListener::bind(listen).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok((listener, address))
}

/// Serves until it is dropped, and its connections with it.
pub async fn serve(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; it is tried again");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(32 * 1024)
                .serve_connection(TokioIo::new(socket), service);
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection broke");
            }
            drop(place);
        });
    }
}
