//! The host: serves one agent to rooms that push, and to its owner's command line. Rooms call
//! `POST /chat/stream` with a key that the host gave out; any backend answers.
//!
//! [`keys`] says who may call, [`call`] what was asked, [`chat`] has the backend answer and streams
//! it as it grows ([`answer_diff`]); [`rooms`] is what the host knows of the rooms it was brought into.

mod a2a;
mod answer_diff;
mod call;
mod card;
mod chat;
pub mod keys;
mod refusal;
pub mod rooms;
mod threads;

use crate::{
    backend::{Backend, DaemonSession, answer_in::AnswerIn, build::build, config::BackendConfig},
    daemon::{DaemonError, credentials::key, log, process::PidLock, session, signals},
    home::{AgentHome, Secret, files},
    http_server,
};
use a2a::{Notifications, Tasks};
use axum::Router;
use chat::AnswerCache;
use client::Client;
use keys::Keys;
use rooms::HostedRooms;
use runtime::Shutdown;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};
use threads::Threads;
use tokio::net::TcpListener;

/// How often credentials are looked after.
const UPKEEP_EVERY: Duration = Duration::from_secs(600);
/// How often rooms are asked whether their calls come through.
const REPORT_EVERY: Duration = Duration::from_secs(30);
/// How long answers may take to be finished once the host was asked to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);

/// Where the host listens, and what it is called from outside.
#[derive(Debug, Clone)]
pub struct Listen {
    /// For rooms.
    pub address: SocketAddr,
    /// What rooms call it by, where that is not the address.
    pub public_url: Option<String>,
    /// For `/api/keys` alone, where rooms come through a proxy.
    pub keys_address: Option<SocketAddr>,
    /// Whether A2A's notifications may go to private addresses.
    pub private_notifications: bool,
}

impl Listen {
    /// Whether keys are managed where rooms call. Behind a proxy on this machine everybody seems to
    /// call from here, so they are not.
    fn keys_beside_rooms(&self) -> bool {
        self.keys_address.is_none() && self.public_url.is_none()
    }
}

/// What every request of the host shares.
pub struct HostState {
    agent: AgentHome,
    backend: Box<dyn Backend>,
    answer_in: AnswerIn,
    timeout: Duration,
    session: Arc<DaemonSession>,
    /// The server that calls come from where nothing else is known.
    server: Client,
    /// What the agent is called in its card.
    pub base_url: String,
    /// Who may call.
    pub keys: Arc<Keys>,
    /// The rooms it was brought into.
    pub rooms: HostedRooms,
    threads: Threads,
    answers: AnswerCache,
    /// What A2A clients asked.
    tasks: Tasks,
    notifications: Notifications,
}

/// A host that holds its agent, is bound, and has what it needs.
pub struct Host {
    /// What its requests share.
    pub shared: Arc<HostState>,
    listener: TcpListener,
    keys_listener: Option<TcpListener>,
    keys_beside_rooms: bool,
    _lock: PidLock,
}

impl Host {
    /// Makes this process the agent's host, if all is there.
    pub async fn prepare(
        agent: AgentHome,
        listen: Listen,
        user_token: Option<Secret>,
    ) -> Result<Self, DaemonError> {
        let config = BackendConfig::load(&agent.config_file())?;
        let lock = PidLock::acquire(&agent)?;
        log::init(&agent.log_file(), true)?;
        let backend = build(&config, agent.folder())?;
        let folder = rooms::folder(&agent);
        files::make_folder(&folder)?;
        files::sweep(&folder);
        let bound = |error: String| DaemonError::Io(std::io::Error::other(error));
        let (listener, address) = http_server::bind(listen.address).await.map_err(bound)?;
        let keys_listener = match listen.keys_address {
            Some(address) if !address.ip().is_loopback() => {
                return Err(bound(format!(
                    "--keys-listen {address}: keys are managed on loopback alone, e.g. 127.0.0.1:8001"
                )));
            }
            Some(address) => Some(http_server::bind(address).await.map_err(bound)?.0),
            None => None,
        };
        let base_url = listen.public_url.clone();
        let base_url = base_url.unwrap_or_else(|| format!("http://{address}"));
        let server = Client::new(&config.server);
        let server = server.map_err(|error| bound(error.to_string()))?;
        let session = Arc::new(session::create(&agent)?);
        let shared = Arc::new(HostState {
            backend,
            answer_in: config.answer_in(),
            timeout: config.timeout(),
            session,
            server,
            base_url: base_url.trim_end_matches('/').to_owned(),
            keys: Arc::new(Keys::open(folder.join("keys.json"))?),
            rooms: HostedRooms::open(agent.clone(), user_token)?,
            threads: Threads::default(),
            answers: AnswerCache::default(),
            tasks: Tasks::open(folder.join("tasks"))?,
            notifications: Notifications::new(listen.private_notifications).map_err(bound)?,
            agent,
        });
        Ok(Self {
            shared,
            keys_beside_rooms: listen.keys_beside_rooms(),
            listener,
            keys_listener,
            _lock: lock,
        })
    }

    /// Serves until it is asked to end.
    pub async fn run(self) -> Result<(), DaemonError> {
        let shutdown = Shutdown::default();
        tracing::info!(agent = %self.shared.agent.id(), url = self.shared.base_url, "serving");
        let keys = keys::router(self.shared.keys.clone());
        let mut router = Router::new()
            .merge(chat::router(self.shared.clone()))
            .merge(a2a::router(self.shared.clone()))
            .merge(card::router(self.shared.clone()));
        if self.keys_beside_rooms {
            router = router.merge(keys.clone());
        }
        let rooms = http_server::serve_until(self.listener, router, shutdown.clone());
        let managing = async {
            if let Some(listener) = self.keys_listener {
                http_server::serve_until(listener, keys, shutdown.clone()).await;
            }
        };
        let forced_late = async {
            shutdown.begun().await;
            tokio::time::sleep(SHUTDOWN_GRACE).await;
            shutdown.force();
            std::future::pending().await
        };
        tokio::select! {
            _ = async { tokio::join!(rooms, managing) } => {}
            () = self.shared.look_after_credentials() => {}
            () = self.shared.report_failed_calls() => {}
            () = forced_late => {}
            failed = signals::forward_signals(&shutdown) => failed?,
        }
        tracing::info!("ended");
        Ok(())
    }
}

impl HostState {
    /// Keeps what the host holds from ending: its rooms' keys, and the agent's own credentials.
    async fn look_after_credentials(&self) {
        loop {
            for room in self.rooms.all() {
                if let Err(error) = self.keys.touch(&room.key_prefix, key::now()) {
                    tracing::warn!(room = %room.room_id, %error, "the room's key is not prolonged");
                }
            }
            if let Err(error) = key::refresh_identities(&self.agent, Client::new).await {
                tracing::warn!(%error, "an identity token is not renewed; tried again soon");
            }
            tokio::time::sleep(UPKEEP_EVERY).await;
        }
    }

    /// Says once when a room's calls do not come through, and once when they do again.
    async fn report_failed_calls(&self) {
        let mut failing = BTreeSet::new();
        loop {
            tokio::time::sleep(REPORT_EVERY).await;
            for room in self.rooms.all() {
                let Ok(client) = self.rooms.client(&room) else {
                    continue;
                };
                let Ok(members) = client.members(&room.room_id).await else {
                    continue;
                };
                let mut members = members.members.into_iter();
                let me = members.find(|member| member.user_id == room.user_id);
                match me.and_then(|me| me.last_error) {
                    Some(why) if failing.insert(room.address()) => {
                        tracing::warn!(room = %room.room_id, endpoint = room.endpoint, why, "the room cannot call the agent");
                    }
                    None if failing.remove(&room.address()) => {
                        tracing::info!(room = %room.room_id, "the room calls the agent again");
                    }
                    _ => {}
                }
            }
        }
    }
}
