//! Several nodes on one database: what one commits wakes the readers on the others.
//!
//! The bus carries cursors, never messages: a node that hears of a new head reads the log. A
//! message lost on the bus is made up for by [`super::follow`].

use super::{
    at_work::AtWork,
    hub::{Audience, Ephemeral, Hub},
    users::UserEvent,
};
use async_nats::{Event, connection::State};
use bytes::Bytes;
use futures_util::StreamExt;
use protocol::{AgentStop, AgentTyping, Cursor, RoomId, UserId};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::MissedTickBehavior};

const SUBJECT: &str = "sc-chatroom.rooms";
const QUEUE: usize = 4096;
const FIRST_CONNECT: Duration = Duration::from_secs(2);
/// What operators are told.
pub const AWAY: &str = "the bus is away: until it comes, this node looks at the database for what others do, and who reads on them is not known";
const PRESENCE_EVERY: Duration = Duration::from_secs(2);
const PRESENCE_LASTS: Duration = Duration::from_secs(10);

/// Why there is no bus.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the bus: {0}")]
pub struct BusError(#[from] async_nats::ConnectError);

/// What a node sends over the bus.
#[derive(Debug, Serialize, Deserialize)]
struct BusMessage {
    node: String,
    #[serde(flatten)]
    event: BusEvent,
}

/// What other nodes are told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum BusEvent {
    Commit {
        room: RoomId,
        seq: i64,
        sub: i64,
    },
    Recheck {
        room: RoomId,
    },
    Typing {
        room: RoomId,
        event: AgentTyping,
        text: Option<String>,
    },
    Stop {
        room: RoomId,
        stop: AgentStop,
    },
    #[serde(rename = "tell")]
    ToMember {
        room: RoomId,
        user: UserId,
        frame: String,
    },
    ToUser {
        user: UserId,
        frame: String,
    },
    Presence {
        rooms: Vec<(RoomId, Vec<UserId>)>,
    },
}

/// This node's end of the bus.
pub struct Bus {
    client: async_nats::Client,
    outbox: mpsc::Sender<BusEvent>,
    elsewhere: Arc<Elsewhere>,
}

/// Who reads what on other nodes.
type Elsewhere = Mutex<HashMap<String, (Instant, HashMap<RoomId, Vec<UserId>>)>>;

impl Bus {
    /// Keeps this node and the others in step. Where the bus is away, it is tried again until it
    /// comes.
    pub async fn connect(
        url: &str,
        node: String,
        hub: Arc<Hub>,
        at_work: Arc<AtWork>,
    ) -> Result<Self, BusError> {
        let client = async_nats::ConnectOptions::new()
            .retry_on_initial_connect()
            .event_callback(|event| async move {
                match event {
                    Event::Connected => tracing::info!("the bus is here"),
                    Event::Disconnected => tracing::warn!(AWAY),
                    other => tracing::debug!(%other, "from the bus"),
                }
            })
            .connect(url)
            .await?;
        tokio::spawn(warn_if_away(client.clone()));
        let (outbox, inbox) = mpsc::channel(QUEUE);
        let elsewhere = Arc::new(Elsewhere::default());
        tokio::spawn(send_messages(client.clone(), node.clone(), inbox));
        tokio::spawn(receive_messages(
            client.clone(),
            node,
            hub.clone(),
            at_work,
            elsewhere.clone(),
        ));
        tokio::spawn(publish_presence(outbox.clone(), hub));
        Ok(Self {
            client,
            outbox,
            elsewhere,
        })
    }

    /// Whether this node is connected to it.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Tells other nodes of a commit.
    pub fn publish_commit(&self, room: &RoomId, head: Cursor) {
        // A full queue means the bus is away; the others look for what they missed.
        let _ = self.outbox.try_send(BusEvent::Commit {
            room: room.clone(),
            seq: head.seq,
            sub: head.sub,
        });
    }

    /// Tells other nodes that the room's readers must prove anew that they may read.
    pub fn publish_recheck(&self, room: &RoomId) {
        let _ = self
            .outbox
            .try_send(BusEvent::Recheck { room: room.clone() });
    }

    /// Tells the user's own streams on other nodes.
    pub fn publish_to_user(&self, user: &UserId, frame: &Bytes) {
        let _ = self.outbox.try_send(BusEvent::ToUser {
            user: user.clone(),
            frame: String::from_utf8_lossy(frame).into_owned(),
        });
    }

    /// Tells other nodes what a member does, and what it has written so far.
    pub fn publish_typing(&self, room: &RoomId, event: AgentTyping, text: Option<String>) {
        let room = room.clone();
        let _ = self.outbox.try_send(BusEvent::Typing { room, event, text });
    }

    /// Tells other nodes that an agent was stopped.
    pub fn publish_stop(&self, room: &RoomId, stop: AgentStop) {
        let room = room.clone();
        let _ = self.outbox.try_send(BusEvent::Stop { room, stop });
    }

    /// Tells a member who may read on other nodes.
    pub fn publish_to_member(&self, room: &RoomId, user: &UserId, frame: &Bytes) {
        let _ = self.outbox.try_send(BusEvent::ToMember {
            room: room.clone(),
            user: user.clone(),
            frame: String::from_utf8_lossy(frame).into_owned(),
        });
    }

    /// Whether anybody reads the room on another node.
    pub fn is_read(&self, room: &RoomId) -> bool {
        !self.present(room).is_empty()
    }

    /// Who reads the room on other nodes.
    pub fn present(&self, room: &RoomId) -> Vec<UserId> {
        let mut elsewhere = self
            .elsewhere
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        elsewhere.retain(|_, (heard, _)| heard.elapsed() < PRESENCE_LASTS);
        elsewhere
            .values()
            .filter_map(|(_, rooms)| rooms.get(room))
            .flatten()
            .cloned()
            .collect()
    }
}

/// Nobody is told that the bus has gone who never saw it.
async fn warn_if_away(client: async_nats::Client) {
    tokio::time::sleep(FIRST_CONNECT).await;
    if client.connection_state() != State::Connected {
        tracing::warn!(AWAY);
    }
}

async fn send_messages(
    client: async_nats::Client,
    node: String,
    mut inbox: mpsc::Receiver<BusEvent>,
) {
    while let Some(event) = inbox.recv().await {
        let message = BusMessage {
            node: node.clone(),
            event,
        };
        let Ok(payload) = serde_json::to_vec(&message) else {
            continue;
        };
        if let Err(error) = client.publish(SUBJECT, payload.into()).await {
            tracing::warn!(%error, "the bus takes no messages; other nodes find out by looking");
        }
    }
}

async fn receive_messages(
    client: async_nats::Client,
    node: String,
    hub: Arc<Hub>,
    at_work: Arc<AtWork>,
    elsewhere: Arc<Elsewhere>,
) {
    let mut messages = match client.subscribe(SUBJECT).await {
        Ok(messages) => messages,
        Err(error) => {
            tracing::error!(%error, "cannot listen to the bus; this node looks for what it missed");
            return;
        }
    };
    while let Some(message) = messages.next().await {
        let Ok(message) = serde_json::from_slice::<BusMessage>(&message.payload) else {
            tracing::warn!("a message on the bus is not from a node of ours");
            continue;
        };
        if message.node == node {
            continue;
        }
        match message.event {
            BusEvent::Commit { room, seq, sub } => hub.wake_readers(&room, Cursor { seq, sub }),
            BusEvent::Recheck { room } => hub.recheck(&room),
            BusEvent::ToUser { user, frame } => {
                hub.users().publish(&user, UserEvent::Frame(frame.into()));
            }
            BusEvent::Typing { room, event, text } => {
                // Counted here too: a limit that each node counts alone is none.
                if let Ok(user) = event.user_id.parse() {
                    let _ = at_work.count_typing(&room, &user, 0);
                }
                at_work.record_typing(&room, event, text);
            }
            BusEvent::Stop { room, stop } => at_work.stop_agent(&room, &stop),
            BusEvent::ToMember { room, user, frame } => {
                let (to, frame) = (Audience::Member(user), frame.into());
                hub.publish_ephemeral(&room, Ephemeral { to, frame });
            }
            BusEvent::Presence { rooms } => {
                let mut elsewhere = elsewhere
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                elsewhere.insert(message.node, (Instant::now(), rooms.into_iter().collect()));
            }
        }
    }
}

async fn publish_presence(outbox: mpsc::Sender<BusEvent>, hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(PRESENCE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if outbox
            .send(BusEvent::Presence {
                rooms: hub.presence(),
            })
            .await
            .is_err()
        {
            return;
        }
    }
}
