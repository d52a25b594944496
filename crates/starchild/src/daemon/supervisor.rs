//! All rooms of one agent: side by side, new ones as they come, until the daemon ends.

use super::{
    credentials::{access::Access, queue::KeyQueue, refresh},
    room::{AgentContext, End, Room},
};
use crate::home::{AgentHome, RoomAddress, RoomFile};
use crate::telemetry;
use client::{Client, ClientError};
use runtime::Shutdown;
use std::{
    cell::RefCell,
    collections::HashMap,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tracing::Instrument;

/// How often the rooms' files are looked at.
const SCAN_EVERY: Duration = Duration::from_secs(1);

/// The clients of the servers, one for each, so that rooms share their connections.
#[derive(Default)]
struct Clients(RefCell<HashMap<String, Client>>);

impl Clients {
    fn of(&self, server: &str) -> Result<Client, ClientError> {
        if let Some(client) = self.0.borrow().get(server) {
            return Ok(client.clone());
        }
        let client = Client::new(server)?;
        self.0
            .borrow_mut()
            .insert(server.to_owned(), client.clone());
        Ok(client)
    }
}

/// Follows rooms.
pub struct RoomSupervisor {
    home: AgentHome,
    shared: Arc<AgentContext>,
    clients: Rc<Clients>,
    rooms: HashMap<RoomAddress, Shutdown>,
    tasks: JoinSet<(RoomAddress, End)>,
    key_missing: Rc<Notify>,
    keys: KeyQueue,
    modified: Option<Modified>,
}

/// When what is watched was last changed.
#[derive(PartialEq)]
struct Modified([Option<SystemTime>; 2]);

impl RoomSupervisor {
    /// A supervisor without rooms yet.
    pub fn new(home: AgentHome, shared: Arc<AgentContext>) -> Self {
        Self {
            home,
            shared,
            clients: Rc::default(),
            rooms: HashMap::new(),
            tasks: JoinSet::new(),
            key_missing: Rc::default(),
            keys: KeyQueue::default(),
            modified: None,
        }
    }

    /// Follows every room until a shutdown. Runs inside a `LocalSet`.
    pub async fn run(mut self, shutdown: Shutdown) {
        // Of its own, so that it can also end the rooms when nobody asked for it.
        let shutdown = shutdown.child();
        let clients = self.clients.clone();
        let refresh = refresh::run(
            self.home.clone(),
            self.key_missing.clone(),
            self.keys.clone(),
            move |server: &str| clients.of(server),
        );
        let refresh = tokio::task::spawn_local(refresh);
        let mut tick = interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = shutdown.begun() => break,
                _ = tick.tick() => match self.home.pid_file().exists() {
                    true => self.scan_rooms(&shutdown),
                    // Nobody could stop it any more, and another may be started.
                    false => {
                        tracing::warn!("the agent's folder is gone");
                        shutdown.begin();
                    }
                },
                Some(ended) = self.tasks.join_next() => self.room_ended(ended),
            }
        }
        refresh.abort();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Takes up rooms that are new, and lets go of those that were left.
    fn scan_rooms(&mut self, shutdown: &Shutdown) {
        let modified = Modified([
            modified_at(&self.home.rooms_folder()),
            modified_at(&self.home.identity_folder()),
        ]);
        // A change right after the last look may have left the same time behind.
        let settled = modified.0.iter().flatten().all(|time| {
            let age = SystemTime::now().duration_since(*time);
            age.is_ok_and(|age| age > 2 * SCAN_EVERY)
        });
        if settled && self.modified.as_ref() == Some(&modified) {
            return;
        }
        self.modified = Some(modified);
        let files = match self.home.rooms() {
            Ok(files) => files,
            Err(error) => return tracing::error!(%error, "the rooms cannot be read"),
        };
        let without_key = refresh::rooms_without_key(&self.home);
        if !without_key.is_empty() {
            self.key_missing.notify_one();
        }
        self.rooms.retain(|room, shutdown| {
            let stays = files
                .iter()
                .any(|file| file.address() == *room && file.left.is_none())
                || without_key.contains(room);
            if !stays {
                shutdown.begin();
            }
            stays
        });
        for file in files.into_iter().filter(|file| file.left.is_none()) {
            if !self.rooms.contains_key(&file.address()) {
                self.follow(file, shutdown);
            }
        }
    }

    fn follow(&mut self, file: RoomFile, shutdown: &Shutdown) {
        let room = file.address();
        let span = tracing::info_span!(telemetry::ROOM, id = %self.home.room_name(&room));
        let client = self.clients.of(&file.server);
        let access =
            client.and_then(|client| Access::new(&self.home, file, client, self.keys.clone()));
        let access = match access {
            Ok(access) => access,
            Err(error) => return tracing::error!(%room, %error, "the room cannot be followed"),
        };
        let shutdown = shutdown.child();
        self.rooms.insert(room.clone(), shutdown.clone());
        let (home, shared) = (self.home.clone(), self.shared.clone());
        let follow = async move {
            let end = Room::follow(&home, shared, access, shutdown).await;
            (room, end)
        };
        self.tasks.spawn_local(follow.instrument(span));
    }

    fn room_ended(&mut self, ended: Result<(RoomAddress, End), tokio::task::JoinError>) {
        let (room, end) = match ended {
            Ok(ended) => ended,
            Err(error) => return tracing::error!(%error, "a room's task failed"),
        };
        let End::Left(words) = end else {
            return tracing::info!(%room, "not followed any more");
        };
        tracing::warn!(%room, "left: {words}");
        self.rooms.remove(&room);
        if let Ok(Some(file)) = self.home.room(&room) {
            let left = RoomFile {
                left: Some(words),
                ..file
            };
            if let Err(error) = self.home.save_room(&left) {
                tracing::error!(%room, %error, "that the room was left is not written down");
            }
        }
    }
}

fn modified_at(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}
