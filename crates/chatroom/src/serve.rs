//! Running the server: from settings to an open port, and back down in good order.

use crate::{
    api,
    app::{App, Parts},
    auth::{
        denylist::Denylist,
        network::{Peer, one_customer},
        secrets::{Secrets, SecretsError, make_private_file, make_private_folder},
        tokens::Tokens,
        user::{UserKeys, UserKeysError},
    },
    clock::Now,
    config::Config,
    discovery::programs::Programs,
    docs::Docs,
    events::{self, Bus, BusError, ConnectionCut, Hub},
    metrics::Metrics,
    occupancy::Occupancy,
    outbound::Outbound,
    render::Renderer,
    services::{
        fanout::{self, Fanout},
        idempotency::KEPT_SECONDS,
        names,
        posting::{Traffic, Writer},
        reputation::scorer,
        reserved,
        storage::Storage,
    },
    store::{Db, DbError, migrate},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use std::{
    fs::{File, TryLockError},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch},
    task::JoinHandle,
    time::Instant,
};
use tower::ServiceExt;

const BACKLOG: u32 = 4096;
/// Not with the start itself, which has enough to do.
const FIRST_SWEEP: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// A start waits this long for the check of the database; a larger one is checked while it serves.
const CHECK_WAIT: Duration = Duration::from_secs(10);
const DAY_SECONDS: i64 = 86_400;
/// Deletions that come together are erased together.
const ERASE_AFTER: Duration = Duration::from_secs(5);
const DENYLIST_EVERY: Duration = Duration::from_secs(1);
const JWKS_EVERY: Duration = Duration::from_secs(600);

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot make the data folder {0}: {1}")]
    DataDir(String, io::Error),
    #[error("another server uses the data folder {0}; stop it, or name another folder with --data")]
    InUse(String),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error(transparent)]
    UserKeys(#[from] UserKeysError),
    #[error("cannot open the database: {0}")]
    Database(#[from] DbError),
    #[error("cannot bring the database up to date: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    #[error(
        "the database was written with another master key; point auth.keys_dir to the keys it was written with"
    )]
    OtherKeys,
    #[error("cannot make the reserved rooms: {0}")]
    ReservedRooms(#[from] crate::error::Error),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("cannot read the JWKS from {0}: {1}")]
    Jwks(String, reqwest::Error),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// Runs the server until it is told to stop. `opened` is called once it serves.
pub async fn serve(config: Config, opened: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    // Each stream is an open file.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
    make_private_folder(&config.data)
        .map_err(|error| ServeError::DataDir(config.data.display().to_string(), error))?;
    let lock = lock_folder(&config)?;
    let secrets = Secrets::open(&config.keys_dir())?;
    let users = UserKeys::open(&config.auth, &config.keys_dir())?;
    let db = open_database(&config).await?;
    check_keys(&db, &secrets).await?;
    let listener =
        listen(config.listen).map_err(|error| ServeError::Listen(config.listen, error))?;
    let address = listener
        .local_addr()
        .map_err(|error| ServeError::Listen(config.listen, error))?;

    tell_address(&lock, address)
        .map_err(|error| ServeError::DataDir(config.data.display().to_string(), error))?;
    let denylist = Arc::new(Denylist::default());
    denylist.reload(&mut db.read().await?).await?;

    let node = secrets.random_code("node-", 8)?;
    let hub = Arc::new(Hub::new(config.stream.buffer));
    let bus = match &config.bus {
        None => None,
        Some(url) => Some(Arc::new(
            Bus::connect(url, node.clone(), hub.clone()).await?,
        )),
    };
    let following = tokio::spawn(events::follow(hub.clone(), db.clone()));
    let metrics = Arc::new(Metrics::default());
    let traffic = Arc::new(Traffic::default());
    let writer = Writer {
        db: db.clone(),
        hub: hub.clone(),
        bus: bus.clone(),
        limits: config.limits.clone(),
        metrics: metrics.clone(),
        traffic: traffic.clone(),
    };
    let (poster, writing) = writer.start();
    let grace = Duration::from_secs(config.shutdown_seconds);
    let public_url = config
        .public_url
        .clone()
        .unwrap_or_else(|| format!("http://{address}"));
    let app = App::new(Parts {
        public_url: public_url.trim_end_matches('/').to_owned(),
        tokens: Tokens::new(&secrets),
        secrets,
        users,
        denylist,
        db: db.clone(),
        hub: hub.clone(),
        bus,
        poster,
        traffic: traffic.clone(),
        storage: Storage::default(),
        node: node.clone(),
        fanout: Fanout::new(&config.fanout),
        outbound: Outbound::new(config.fanout.private_endpoints, &config.network),
        visitor_reads: Default::default(),
        write_counter: Default::default(),
        open_streams: Default::default(),
        metrics,
        docs: Docs::default(),
        programs: Programs::new(config.assets.folder.as_deref()),
        renderer: Renderer::default(),
        text_deleted: Notify::new(),
        config,
    });
    if let Some(url) = app.config.auth.jwks_url.clone() {
        read_jwks(&app, &url).await?;
        tokio::spawn(keep_jwks(app.clone(), url));
    }
    reserved::prepare(&app).await?;
    names::prepare(&app).await?;
    let sweeping = tokio::spawn(sweep(app.clone()));
    // A server that was killed may not have come to it.
    app.text_deleted.notify_one();
    let erasing = tokio::spawn(erase_deleted_texts(app.clone()));
    if !db.is_sqlite() {
        tokio::spawn(follow_denylist(app.clone()));
    }
    let calling = fanout::Calling::start(app.clone());
    let mut stop = Stop::new().map_err(ServeError::Signals)?;
    let service = api::service(app.clone());
    tracing::info!(%address, engine = if db.is_sqlite() { "sqlite" } else { "postgres" }, "serving");
    opened(address);

    let graceful = GracefulShutdown::new();
    let cut_off = watch::Sender::new(false);
    let door = Door {
        service,
        graceful: &graceful,
        cut_off: &cut_off,
        open: Occupancy::default(),
        app,
    };
    door.accept(&listener, &mut stop).await;
    drop(door);
    tracing::info!("stopping: streams are closed, work in hand is finished");
    let deadline = Instant::now() + grace;
    drop(listener);
    hub.close();
    sweeping.abort();
    following.abort();
    erasing.abort();
    // The rest of the time is for writing down what they came to.
    let for_requests = grace.mul_f32(0.8);
    let (answered, ()) = tokio::join!(
        tokio::time::timeout(for_requests, graceful.shutdown()),
        calling.finish(for_requests)
    );
    if answered.is_err() {
        tracing::warn!("some requests took too long and are cut off");
        cut_off.send_replace(true);
    }
    let closing = close(writing, &traffic, &db, &node);
    if tokio::time::timeout_at(deadline, closing).await.is_err() {
        tracing::warn!(
            seconds = grace.as_secs(),
            "not all work in hand was finished in time"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

/// Waits for the posts in hand, and closes the database.
async fn close(writing: JoinHandle<()>, traffic: &Traffic, db: &Db, node: &str) {
    if let Err(error) = writing.await {
        tracing::error!(%error, "the task that writes messages failed");
    }
    if let Err(error) = traffic.save(db, node, Now::get()).await {
        tracing::warn!(%error, "the last messages are not counted");
    }
    db.close().await;
}

/// Holds the data folder. On SQLite the posting task relies on being the only one who writes.
fn lock_folder(config: &Config) -> Result<File, ServeError> {
    let shown = config.data.display().to_string();
    let path = config.data.join("server.lock");
    let file =
        make_private_file(&path).map_err(|error| ServeError::DataDir(shown.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ServeError::InUse(shown)),
        Err(TryLockError::Error(error)) => Err(ServeError::DataDir(shown, error)),
    }
}

/// Writes into the lock where the server is, for the commands that an operator runs beside it.
fn tell_address(mut lock: &File, mut address: SocketAddr) -> io::Result<()> {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    lock.set_len(0)?;
    writeln!(lock, "http://{address}")
}

/// Keeps up with what other nodes do to the denylist.
async fn follow_denylist(app: App) {
    loop {
        tokio::time::sleep(DENYLIST_EVERY).await;
        match app.denylist.keep_up(&app.db).await {
            Ok(true) => app.hub.recheck_all(),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "cannot look at the denylist; it is tried again"),
        }
    }
}

async fn open_database(config: &Config) -> Result<Db, ServeError> {
    let read_time = Duration::from_secs(config.query_seconds.max(1));
    let db = match &config.database_url {
        Some(url) => Db::open_postgres(url, read_time).await?,
        None => Db::open_sqlite(&config.sqlite_file(), read_time).await?,
    };
    let (checked, file) = (db.clone(), config.sqlite_file());
    let checking = tokio::spawn(async move { checked.check_pages(&file).await });
    if let Ok(Ok(checked)) = tokio::time::timeout(CHECK_WAIT, checking).await {
        checked?;
    }
    migrate::migrate(&db).await?;
    Ok(db)
}

/// A node with another master key could read no secret and accept no token of the others.
async fn check_keys(db: &Db, secrets: &Secrets) -> Result<(), ServeError> {
    const NAME: &str = "master_key";
    let mine = secrets.fingerprint();
    let mut tx = db.begin().await?;
    tx.set_meta_once(NAME, &mine).await?;
    let stored = tx.meta(NAME).await?;
    tx.commit().await?;
    if stored.as_deref() == Some(mine.as_str()) {
        Ok(())
    } else {
        Err(ServeError::OtherKeys)
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Where connections come in.
struct Door<'a> {
    service: api::Service,
    graceful: &'a GracefulShutdown,
    cut_off: &'a watch::Sender<bool>,
    /// The connections that are open, for each address.
    open: Occupancy<IpAddr>,
    app: App,
}

impl Door<'_> {
    /// Takes connections until it is time to stop.
    async fn accept(&self, listener: &TcpListener, stop: &mut Stop) {
        loop {
            tokio::select! {
                () = stop.requested() => return,
                accepted = listener.accept() => match accepted {
                    Ok((socket, peer)) => self.admit(socket, peer.ip().to_canonical()),
                    Err(error) => {
                        // Out of files, most likely: others may close soon.
                        tracing::warn!(%error, "cannot take a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
    }

    fn admit(&self, socket: TcpStream, peer: IpAddr) {
        // All that a proxy passes on comes from its one address.
        let most = match self.app.config.network.is_trusted_proxy(&peer) {
            true => 0,
            false => self.app.config.limits.connections_per_address,
        };
        let Some(seat) = self.open.enter(one_customer(peer), most) else {
            tracing::debug!(%peer, "an address has too many connections");
            tokio::spawn(refuse_connection(socket));
            return;
        };
        let head_time = Duration::from_secs(self.app.config.limits.head_seconds.max(1));
        let service = self.service.clone();
        let serving = connection(socket, peer, service, head_time, self.graceful.watcher());
        let mut cut_off = self.cut_off.subscribe();
        tokio::spawn(async move {
            let _seat = seat;
            tokio::select! {
                () = serving => {}
                _ = cut_off.wait_for(|cut| *cut) => {}
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

/// Forgets what is over: windows that have ended, old counts, events beyond those kept. Scores what
/// was said meanwhile.
async fn sweep(app: App) {
    let mut ticks = tokio::time::interval_at(Instant::now() + FIRST_SWEEP, SWEEP_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = sweep_once(&app).await {
            tracing::warn!(%error, "cannot tidy up; it is tried again soon");
        }
    }
}

async fn sweep_once(app: &App) -> Result<(), DbError> {
    let now = Now::get();
    app.traffic.save(&app.db, &app.node, now).await?;
    let keep = app.config.stream.retain_events;
    let rooms = app.db.read().await?.rooms_to_prune(keep).await?;
    let mut tx = app.db.begin().await?;
    tx.forget_windows(now.millis()).await?;
    tx.forget_replies(now.seconds() - KEPT_SECONDS).await?;
    tx.forget_traffic(now.minutes() - 120).await?;
    tx.forget_health_checks(now.seconds() - DAY_SECONDS).await?;
    let seconds = tx.database_seconds().await?;
    tx.forget_revocations(seconds - DAY_SECONDS).await?;
    tx.commit().await?;
    for (room,) in rooms {
        let mut tx = app.db.begin().await?;
        tx.lock_room(&room).await?;
        tx.prune_events(&room, keep).await?;
        tx.commit().await?;
    }
    scorer::expire(&app.db, now).await?;
    scorer::settle_all(&app.db).await
}

/// A deleted text stands in the database's write-ahead log until that is emptied.
async fn erase_deleted_texts(app: App) {
    loop {
        app.text_deleted.notified().await;
        loop {
            tokio::time::sleep(ERASE_AFTER).await;
            match app.db.empty_wal().await {
                Ok(true) => break,
                // A reader was in the way.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "deleted texts are still in the database's log; it is tried again");
                }
            }
        }
    }
}

async fn read_jwks(app: &App, url: &str) -> Result<(), ServeError> {
    let failed = |error| ServeError::Jwks(url.to_owned(), error);
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .map_err(failed)?;
    let reply = client
        .get(url)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(failed)?;
    let text = reply.text().await.map_err(failed)?;
    app.users.replace_with_jwks(url, &text)?;
    Ok(())
}

async fn keep_jwks(app: App, url: String) {
    loop {
        tokio::time::sleep(JWKS_EVERY).await;
        if let Err(error) = read_jwks(&app, &url).await {
            tracing::warn!(%error, "the keys from before stay in use");
        }
    }
}

/// The signals that end the server.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
