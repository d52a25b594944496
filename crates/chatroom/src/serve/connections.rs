//! Connections: taken in, bounded for each address, and cut off at the end.

use crate::{
    api,
    app::App,
    auth::network::{Peer, one_customer},
    events::ConnectionCut,
    keyed_permits::KeyedPermits,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use runtime::Shutdown;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tower::ServiceExt;

const BACKLOG: u32 = 4096;

/// A socket that listens there.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes connections in.
pub struct Acceptor<'a> {
    service: api::Service,
    graceful: &'a GracefulShutdown,
    shutdown: &'a Shutdown,
    /// The connections that are open, for each address.
    open: KeyedPermits<IpAddr>,
    app: App,
}

impl<'a> Acceptor<'a> {
    pub fn new(
        service: api::Service,
        graceful: &'a GracefulShutdown,
        shutdown: &'a Shutdown,
        app: App,
    ) -> Self {
        Self {
            service,
            graceful,
            shutdown,
            open: KeyedPermits::default(),
            app,
        }
    }

    /// Takes connections until a signal begins the shutdown.
    pub async fn accept(&self, listener: &TcpListener, signal: impl Future<Output = ()>) {
        tokio::pin!(signal);
        loop {
            tokio::select! {
                () = &mut signal => return,
                accepted = listener.accept() => match accepted {
                    Ok((socket, peer)) => self.serve(socket, peer.ip().to_canonical()),
                    Err(error) => {
                        // Out of files, most likely: others may close soon.
                        tracing::warn!(%error, "cannot take a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
    }

    fn serve(&self, socket: TcpStream, peer: IpAddr) {
        // All that a proxy passes on comes from its one address.
        let most = match self.app.config.network.is_trusted_proxy(&peer) {
            true => 0,
            false => self.app.config.limits.connections_per_address,
        };
        let Some(permit) = self.open.try_acquire(one_customer(peer), most) else {
            tracing::debug!(%peer, "an address has too many connections");
            tokio::spawn(refuse_connection(socket));
            return;
        };
        let head_time = Duration::from_secs(self.app.config.limits.head_seconds.max(1));
        let service = self.service.clone();
        let serving = connection(socket, peer, service, head_time, self.graceful.watcher());
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move {
            let _permit = permit;
            tokio::select! {
                () = serving => {}
                () = shutdown.forced() => {}
            }
        });
    }
}

/// Tells a client that it has too many connections, if it listens.
async fn refuse_connection(mut socket: TcpStream) {
    const BODY: &str = r#"{"error":"rate_limited","message":"Too many connections are open from your address; close some, and try again in 10 s"}"#;
    let answer = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 10\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    let telling = async {
        socket.write_all(answer.as_bytes()).await?;
        socket.shutdown().await?;
        // What it has sent is read, or it would not see the answer.
        tokio::io::copy(&mut socket.take(64 * 1024), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), telling).await;
}

async fn connection(
    socket: TcpStream,
    peer: IpAddr,
    service: api::Service,
    head_time: Duration,
    watcher: Watcher,
) {
    let _ = socket.set_nodelay(true);
    let cut = ConnectionCut::default();
    let marked = cut.clone();
    let service = service.map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        request.extensions_mut().insert(marked.clone());
        request.map(axum::body::Body::new)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(service));
    tokio::select! {
        served = watcher.watch(serving) => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection broke");
            }
        }
        () = cut.requested() => tracing::debug!("a reader fell behind and was cut off"),
    }
}
