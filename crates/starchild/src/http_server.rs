//! A small HTTP server for organisms' gateways and the host: bounded connections, a time within
//! which a request's head has to come, and a shutdown that lets answers be finished.

use axum::{
    Extension, Router,
    http::{HeaderMap, header},
};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use runtime::{CancellationToken, Shutdown};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 1024;
const HEAD: Duration = Duration::from_secs(10);

/// Who called, for handlers: `Extension<Peer>`.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Binds, and says where.
pub async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let wrong = |error: std::io::Error| format!("{listen}: {error}");
    let listener = TcpListener::bind(listen).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok((listener, address))
}

/// Serves until it is dropped, and its connections with it.
pub async fn serve(listener: TcpListener, router: Router) {
    serve_until(listener, router, Shutdown::default()).await;
}

/// Serves until a shutdown begins, then until every answer in hand is finished or the shutdown is
/// forced. Dropped, it ends at once.
pub async fn serve_until(listener: TcpListener, router: Router, shutdown: Shutdown) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let finish = CancellationToken::new();
    let mut connections = JoinSet::new();
    while !shutdown.has_begun() {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            () = shutdown.begun() => break,
        };
        let Some((socket, peer, permit)) = accepted else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let router = router.clone().layer(Extension(Peer(peer)));
        let finish = finish.clone();
        connections.spawn(async move {
            serve_connection(socket, router, finish).await;
            drop(permit);
        });
    }
    drop(listener);
    finish.cancel();
    tokio::select! {
        () = async { while connections.join_next().await.is_some() {} } => {}
        () = shutdown.forced() => {}
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, peer)) => Some((socket, peer, permit)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection; it is tried again");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn serve_connection(socket: TcpStream, router: Router, finish: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = finish.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Whether a request calls this machine by its own name, so that no name that somebody else made to
/// point here does.
pub fn calls_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_own_names_are_loopback() {
        let calls = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            calls_loopback(&headers)
        };
        for own in [
            "localhost",
            "localhost:8000",
            "127.0.0.1:1",
            "[::1]:8000",
            "[::1]",
        ] {
            assert!(calls(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io:80",
            "0.0.0.0:8000",
        ] {
            assert!(!calls(other), "{other}");
        }
        assert!(!calls_loopback(&HeaderMap::new()));
    }
}
