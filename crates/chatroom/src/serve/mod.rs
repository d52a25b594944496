//! Running the server: from settings to an open port, and a graceful shutdown.

mod connections;
mod data_folder;

use crate::{
    api,
    app::{App, Parts},
    auth::{
        denylist::Denylist,
        secrets::{Secrets, SecretsError},
        tokens::Tokens,
        user::{UserKeys, UserKeysError},
    },
    clock::Now,
    config::Config,
    discovery::programs::Programs,
    docs::Docs,
    events::{AtWork, Bus, BusError, Hub, Live},
    jobs::{
        Jobs,
        jwks::{self, JwksError},
    },
    metrics::Metrics,
    outbound::Outbound,
    private_files::make_private_folder,
    render::Renderer,
    services::{
        delivery::{self, LaneRegistry},
        members::names,
        messages::posting::{Traffic, Writer},
        people,
        rooms::{reserved, storage::Storage},
    },
    store::{Db, DbError},
};
use connections::{Acceptor, listen};
use hyper_util::server::graceful::GracefulShutdown;
use runtime::Shutdown;
use sqlx::migrate::MigrateError;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
    task::JoinHandle,
    time::Instant,
};

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
    #[error(
        "the database is a newer program's: it has migration {0}, which this one does not know; start the newer one, or restore a backup from before"
    )]
    NewerDatabase(i64),
    #[error("cannot bring the database up to date: {0}")]
    Migrate(MigrateError),
    #[error(
        "the database was written with another master key; point auth.keys_dir to the keys it was written with"
    )]
    OtherKeys,
    #[error(
        "the ban of {0:?} cannot be read, so whom it is of would not be kept out; correct its subject in the table bans, or delete it"
    )]
    UnreadableBan(String),
    #[error("cannot make the reserved rooms: {0}")]
    ReservedRooms(#[from] crate::error::Error),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error(transparent)]
    Jwks(#[from] JwksError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

impl From<MigrateError> for ServeError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) => Self::NewerDatabase(version),
            error => Self::Migrate(error),
        }
    }
}

/// What is known once the server serves.
#[derive(Debug)]
pub struct Opened {
    /// What links begin with.
    pub public_url: String,
    /// With what the first person signs in, as long as nobody has.
    pub first_link: Option<String>,
}

/// Runs the server until it is told to stop. `opened` is called once it serves.
pub async fn serve(config: Config, opened: impl FnOnce(Opened)) -> Result<(), ServeError> {
    // Each stream is an open file.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
    make_private_folder(&config.data)
        .map_err(|error| ServeError::DataDir(config.data.display().to_string(), error))?;
    let lock = data_folder::lock(&config)?;
    let secrets = Secrets::open(&config.keys_dir())?;
    let users = UserKeys::open(&config.auth, &config.keys_dir())?;
    let db = data_folder::open_database(&config).await?;
    data_folder::check_keys(&db, &secrets).await?;
    let listener =
        listen(config.listen).map_err(|error| ServeError::Listen(config.listen, error))?;
    let address = listener
        .local_addr()
        .map_err(|error| ServeError::Listen(config.listen, error))?;

    data_folder::tell_address(&lock, address)
        .map_err(|error| ServeError::DataDir(config.data.display().to_string(), error))?;
    let denylist = Arc::new(Denylist::default());
    denylist.reload(&mut db.read().await?).await?;
    // At the start an operator is there to put it right; later the server goes on, and tells of it.
    if let Some(subject) = denylist.unreadable() {
        return Err(ServeError::UnreadableBan(subject));
    }

    let node = secrets.random_code("node-", 8)?;
    let shutdown = Shutdown::default();
    let hub = Arc::new(Hub::new(config.stream.buffer, shutdown.graceful_token()));
    let at_work = Arc::new(AtWork::new(hub.clone()));
    let bus = match &config.bus {
        None => None,
        Some(url) => Some(Arc::new(
            Bus::connect(url, node.clone(), hub.clone(), at_work.clone()).await?,
        )),
    };
    let live = Arc::new(Live::new(hub.clone(), bus.clone(), at_work));
    let metrics = Arc::new(Metrics::default());
    let traffic = Arc::new(Traffic::default());
    let writer = Writer {
        db: db.clone(),
        live: live.clone(),
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
        live,
        poster,
        traffic: traffic.clone(),
        storage: Storage::default(),
        node: node.clone(),
        lanes: LaneRegistry::new(&config.fanout),
        outbound: Outbound::new(config.fanout.private_endpoints, &config.network),
        visitor_reads: Default::default(),
        write_counter: Default::default(),
        open_streams: Default::default(),
        metrics,
        docs: Docs::default(),
        programs: Programs::new(config.assets.folder.as_deref()),
        renderer: Renderer::default(),
        text_deleted: Notify::new(),
        mcp_keys: Default::default(),
        shutdown: shutdown.clone(),
        config,
    });
    if let Some(url) = app.config.auth.jwks_url.clone() {
        jwks::read(&app, &url).await?;
    }
    reserved::prepare(&app).await?;
    names::prepare(&app).await?;
    let _jobs = Jobs::start(&app);
    let dispatcher = delivery::DispatcherHandle::start(app.clone());
    let mut signals = ShutdownSignals::new().map_err(ServeError::Signals)?;
    let service = api::service(app.clone());
    tracing::info!(%address, engine = if db.is_sqlite() { "sqlite" } else { "postgres" }, "serving");
    opened(Opened {
        public_url: app.public_url.clone(),
        first_link: people::first_link(&app).await?,
    });

    let graceful = GracefulShutdown::new();
    let acceptor = Acceptor::new(service, &graceful, &shutdown, app);
    acceptor.accept(&listener, signals.received()).await;
    drop(acceptor);
    tracing::info!("stopping: streams are closed, work in hand is finished");
    let deadline = Instant::now() + grace;
    drop(listener);
    shutdown.begin();
    // The rest of the time is for writing down what they came to.
    let for_requests = grace.mul_f32(0.8);
    let (answered, ()) = tokio::join!(
        tokio::time::timeout(for_requests, graceful.shutdown()),
        dispatcher.finish(for_requests)
    );
    if answered.is_err() {
        tracing::warn!("some requests took too long and are cut off");
        shutdown.force();
    }
    let finishing = finish(writing, &traffic, &db, &node);
    if tokio::time::timeout_at(deadline, finishing).await.is_err() {
        tracing::warn!(
            seconds = grace.as_secs(),
            "not all work in hand was finished in time"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

/// Waits for the posts in hand, and closes the database.
async fn finish(writing: JoinHandle<()>, traffic: &Traffic, db: &Db, node: &str) {
    if let Err(error) = writing.await {
        tracing::error!(%error, "the task that writes messages failed");
    }
    if let Err(error) = traffic.save(db, node, Now::get()).await {
        tracing::warn!(%error, "the last messages are not counted");
    }
    db.close().await;
}

/// The signals that begin a shutdown.
struct ShutdownSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl ShutdownSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
