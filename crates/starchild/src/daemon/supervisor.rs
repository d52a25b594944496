//! All rooms of one agent: side by side, new ones as they come, until the daemon ends.

use super::{
    credentials::{access::Access, queue::Mint, refresh},
    room::{End, Room, Shared},
    shutdown::{self, Stop, Stopper},
};
use crate::home::{AgentHome, RoomAddress, RoomFile};
use client::{Client, ClientError};
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
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
pub struct Supervisor {
    home: AgentHome,
    shared: Arc<Shared>,
    clients: Rc<Clients>,
    rooms: HashMap<RoomAddress, Stopper>,
    tasks: JoinSet<(RoomAddress, End)>,
    missed: Rc<Notify>,
    mint: Mint,
    seen: Option<Seen>,
}

/// When what is watched was last changed.
#[derive(PartialEq)]
struct Seen([Option<SystemTime>; 2]);

impl Supervisor {
    /// A supervisor without rooms yet.
    pub fn new(home: AgentHome, shared: Arc<Shared>) -> Self {
        Self {
            home,
            shared,
            clients: Rc::default(),
            rooms: HashMap::new(),
            tasks: JoinSet::new(),
            missed: Rc::default(),
            mint: Mint::default(),
            seen: None,
        }
    }

    /// Follows every room until it is asked to stop. Runs inside a `LocalSet`.
    pub async fn run(mut self, stop: Stop) {
        let clients = self.clients.clone();
        let keeper = refresh::keep(
            self.home.clone(),
            self.missed.clone(),
            self.mint.clone(),
            move |server: &str| clients.of(server),
        );
        let keeper = tokio::task::spawn_local(keeper);
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.asked() => break,
                _ = tick.tick() => match self.home.pid_file().exists() {
                    true => self.look(),
                    // Nobody could stop it any more, and another may be started.
                    false => {
                        tracing::warn!("the agent's folder is gone");
                        break;
                    }
                },
                Some(ended) = self.tasks.join_next() => self.ended(ended),
            }
        }
        keeper.abort();
        self.rooms.values().for_each(Stopper::ask);
        let hurried = async {
            stop.hurried().await;
            self.rooms.values().for_each(Stopper::hurry);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = hurried => {}
            () = async { while self.tasks.join_next().await.is_some() {} } => {}
        }
    }

    /// Takes up rooms that are new, and lets go of those that were left.
    fn look(&mut self) {
        let seen = Seen([
            changed_at(&self.home.rooms_folder()),
            changed_at(&self.home.identity_folder()),
        ]);
        // A change right after the last look may have left the same time behind.
        let settled = seen.0.iter().flatten().all(|time| {
            let age = SystemTime::now().duration_since(*time);
            age.is_ok_and(|age| age > 2 * LOOK_EVERY)
        });
        if settled && self.seen.as_ref() == Some(&seen) {
            return;
        }
        self.seen = Some(seen);
        let files = match self.home.rooms() {
            Ok(files) => files,
            Err(error) => return tracing::error!(%error, "the rooms cannot be read"),
        };
        let lost = refresh::lost_rooms(&self.home);
        if !lost.is_empty() {
            self.missed.notify_one();
        }
        self.rooms.retain(|room, stopper| {
            let stays = files
                .iter()
                .any(|file| file.address() == *room && file.left.is_none())
                || lost.contains(room);
            if !stays {
                stopper.ask();
            }
            stays
        });
        for file in files.into_iter().filter(|file| file.left.is_none()) {
            if !self.rooms.contains_key(&file.address()) {
                self.follow(file);
            }
        }
    }

    fn follow(&mut self, file: RoomFile) {
        let room = file.address();
        let span = tracing::info_span!("room", id = %self.home.room_name(&room));
        let client = self.clients.of(&file.server);
        let access =
            client.and_then(|client| Access::new(&self.home, file, client, self.mint.clone()));
        let access = match access {
            Ok(access) => access,
            Err(error) => return tracing::error!(%room, %error, "the room cannot be followed"),
        };
        let (stopper, stop) = shutdown::channel();
        self.rooms.insert(room.clone(), stopper);
        let (home, shared) = (self.home.clone(), self.shared.clone());
        let follow = async move {
            let end = Room::follow(&home, shared, access, stop).await;
            (room, end)
        };
        self.tasks.spawn_local(follow.instrument(span));
    }

    fn ended(&mut self, ended: Result<(RoomAddress, End), tokio::task::JoinError>) {
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

fn changed_at(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}
