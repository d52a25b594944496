//! A way through the network to a service, which fails as networks do.

use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What the network does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Weather {
    /// It passes everything on.
    Fair,
    /// It passes nothing on, and nobody is told.
    Silent,
    /// It ends every connection.
    Cut,
    /// Whoever sends this text gets no answer to their COMMIT, which arrives, and is cut off.
    LosesCommitsOf(String),
}

/// A TCP proxy on a port of its own, for as long as the test runs.
pub struct Proxy {
    address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
}

impl Proxy {
    /// A way to this address, `host:port`.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            weather: Arc::new(watch::Sender::new(Weather::Fair)),
        };
        let (target, weather) = (target.to_owned(), proxy.weather.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (target, weather) = (target.clone(), weather.clone());
                tokio::spawn(async move {
                    if let Ok(service) = TcpStream::connect(target).await {
                        pass_on(socket, service, weather).await;
                    }
                });
            }
        });
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing passes, and nobody is told.
    pub fn falls_silent(&self) {
        self.weather.send_replace(Weather::Silent);
    }

    /// From now on there is no way through.
    pub fn cuts(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Whoever sends this text does not hear what becomes of their transaction.
    pub fn loses_commits_of(&self, text: &str) {
        self.weather
            .send_replace(Weather::LosesCommitsOf(text.to_owned()));
    }

    /// Everything passes again.
    pub fn clears_up(&self) {
        self.weather.send_replace(Weather::Fair);
    }
}

/// One connection, until either side or the network ends it.
async fn pass_on(client: TcpStream, service: TcpStream, weather: Arc<watch::Sender<Weather>>) {
    let (from_client, to_client) = client.into_split();
    let (from_service, to_service) = service.into_split();
    let mut cut = weather.subscribe();
    let lost = watch::Sender::new(false);
    tokio::select! {
        () = requests(from_client, to_service, weather.subscribe(), &lost) => {}
        () = answers(from_service, to_client, weather.subscribe(), lost.subscribe()) => {}
        _ = cut.wait_for(|weather| *weather == Weather::Cut) => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    lost: &watch::Sender<bool>,
) {
    let mut marked = false;
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if heard(&mut weather).await.is_none() {
            return;
        }
        let passed = &bytes[..read];
        if let Weather::LosesCommitsOf(text) = &*weather.borrow() {
            marked |= contains(passed, text.as_bytes());
            if marked && contains(passed, b"COMMIT\0") {
                lost.send_replace(true);
            }
        }
        if to.write_all(passed).await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    lost: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        // The answer is here, so it has happened.
        if *lost.borrow() || heard(&mut weather).await.is_none() {
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Waits while the network is silent.
async fn heard(weather: &mut watch::Receiver<Weather>) -> Option<()> {
    let heard = weather.wait_for(|weather| *weather != Weather::Silent);
    heard.await.ok().map(drop)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
