//! What a running server is made of.

use crate::{
    auth::{
        denylist::{self, Denylist},
        secrets::Secrets,
        tokens::Tokens,
        user::UserKeys,
    },
    config::Config,
    discovery::programs::Programs,
    docs::Docs,
    events::{self, Bus, Commit, Hub, Live, UserEvent},
    keyed_permits::KeyedPermits,
    metrics::Metrics,
    outbound::Outbound,
    render::Renderer,
    services::{
        credentials::key_cache::KeyCache,
        delivery::{self, LaneRegistry},
        limits,
        messages::posting::{Poster, Traffic},
        rooms::storage::Storage,
    },
    store::{Db, DbError},
};
use protocol::{EventKind, RoomId, UserId};
use runtime::Shutdown;
use serde::Serialize;
use std::{collections::HashSet, ops::Deref, sync::Arc};
use tokio::sync::Notify;

/// The parts of a running server. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// What [`App`] gives access to.
pub struct Parts {
    pub config: Config,
    /// What links begin with, without a slash at the end.
    pub public_url: String,
    pub db: Db,
    pub secrets: Secrets,
    pub tokens: Tokens,
    pub users: UserKeys,
    pub denylist: Arc<Denylist>,
    pub hub: Arc<Hub>,
    pub bus: Option<Arc<Bus>>,
    /// The way to the readers of rooms.
    pub live: Arc<Live>,
    pub poster: Poster,
    pub lanes: LaneRegistry,
    pub outbound: Outbound,
    pub traffic: Arc<Traffic>,
    pub storage: Storage,
    /// This process's name among the nodes.
    pub node: String,
    /// Counts what visitors read.
    pub visitor_reads: limits::Counter,
    /// Counts what is written besides messages.
    pub write_counter: limits::Counter,
    /// The streams that are open, by key or user and by address.
    pub open_streams: KeyedPermits<String>,
    pub metrics: Arc<Metrics>,
    pub docs: Docs,
    pub programs: Programs,
    pub renderer: Renderer,
    /// Told when a text was deleted, which the database's own log may still hold.
    pub text_deleted: Notify,
    /// The room keys with which MCP clients of identity tokens act.
    pub mcp_keys: KeyCache,
    /// Begun when the server is told to stop: whatever stays open ends, and nothing new is begun.
    pub shutdown: Shutdown,
}

impl App {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Hands a commit to its readers, here and on other nodes.
    pub fn publish(&self, commit: Commit) {
        self.live.publish(commit);
    }

    /// Makes the room's readers prove anew that they may read, here and on other nodes.
    pub fn recheck_readers(&self, room: &RoomId) {
        if let Some(bus) = &self.bus {
            bus.publish_recheck(room);
        }
        self.hub.recheck(room);
    }

    /// What is not as it should be, in words for operators.
    pub fn warnings(&self) -> Vec<String> {
        let bus_away = self.bus.as_ref().is_some_and(|bus| !bus.is_connected());
        let warnings = [
            (bus_away, events::BUS_AWAY),
            (self.lanes.is_paused(), delivery::PAUSED),
            (self.denylist.unreadable().is_some(), denylist::UNREADABLE),
        ];
        let warnings = warnings.into_iter().filter(|(holds, _)| *holds);
        warnings.map(|(_, words)| words.to_owned()).collect()
    }

    /// Knows at once whom the operator keeps out from now on; those who read prove anew that they may.
    pub async fn reload_denylist(&self) -> Result<(), DbError> {
        self.denylist.reload(&mut self.db.read().await?).await?;
        self.hub.recheck_all();
        Ok(())
    }

    /// Tells the user's own streams, here and on other nodes, what is not worth keeping.
    pub fn publish_to_user(&self, user: &UserId, kind: EventKind, data: &impl Serialize) {
        let frame = events::ephemeral_frame(kind, data);
        if let Some(bus) = &self.bus {
            bus.publish_to_user(user, &frame);
        }
        self.hub.users().publish(user, UserEvent::Frame(frame));
    }

    /// The users with an open stream in the room, on any node.
    pub fn online(&self, room: &RoomId) -> HashSet<UserId> {
        let elsewhere = self.bus.iter().flat_map(|bus| bus.present(room));
        self.hub
            .present(room)
            .into_iter()
            .chain(elsewhere)
            .collect()
    }
}

impl Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
