//! Rooms and rules as resources: `room://rm_…`, `room://rm_…/rules` and `room://rm_…/data`.

use super::{
    api::{ApiCall, ApiRefusal, RoomApi},
    follow::Following,
};
use protocol::{EventKind, MyRoom, RoomId};
use rmcp::{
    RoleServer,
    model::{Resource, ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam},
    service::{Peer, SubscriptionSink},
};
use std::{fmt, str::FromStr, time::Duration};

const SCHEME: &str = "room://";
/// A stream that was cut off is opened again after this.
const REOPEN: Duration = Duration::from_secs(2);

/// What of a room a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its members and newest messages.
    State,
    Rules,
    Data,
}

/// A resource's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    pub room: RoomId,
    pub part: Part,
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = match self.part {
            Part::State => "",
            Part::Rules => "/rules",
            Part::Data => "/data",
        };
        write!(f, "{SCHEME}{}{rest}", self.room)
    }
}

impl FromStr for Uri {
    type Err = ApiRefusal;

    fn from_str(text: &str) -> Result<Self, ApiRefusal> {
        let unknown = || {
            ApiRefusal(format!(
                "{text} is no resource here; there are {SCHEME}rm_…, /rules and /data"
            ))
        };
        let (room, rest) = text
            .strip_prefix(SCHEME)
            .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            .ok_or_else(unknown)?;
        let part = match rest {
            "" => Part::State,
            "rules" => Part::Rules,
            "data" => Part::Data,
            _ => return Err(unknown()),
        };
        let room = room.parse().map_err(|_| unknown())?;
        Ok(Self { room, part })
    }
}

impl Uri {
    /// What the resource holds now.
    pub async fn read(&self, api: &RoomApi) -> Result<ResourceContents, ApiRefusal> {
        let path = match self.part {
            Part::State => "/state",
            Part::Rules => "/rules",
            Part::Data => "/data",
        };
        let answer = api.call(ApiCall::get(&self.room, path)).await?;
        let uri = self.to_string();
        Ok(match self.part {
            Part::State => {
                ResourceContents::text(answer.to_string(), uri).with_mime_type("application/json")
            }
            Part::Rules | Part::Data => {
                let text = answer["content"].as_str().unwrap_or_default();
                ResourceContents::text(text, uri).with_mime_type("text/markdown")
            }
        })
    }

    /// Whether its changes are told. The room's data changes without an event.
    pub fn can_be_followed(&self) -> bool {
        self.part != Part::Data
    }

    /// Tells of changes for as long as somebody hears of them and the caller may read the room.
    pub async fn notify_of_updates(&self, api: &RoomApi, listener: &Listener) {
        while let Ok(mut stream) = Following::open(api, &self.room, false).await {
            while let Some(event) = stream.next().await {
                let concerns = match self.part {
                    Part::State => true,
                    Part::Rules => event == EventKind::RulesUpdated,
                    Part::Data => false,
                };
                if concerns && !listener.notify_updated(self).await {
                    return;
                }
            }
            tokio::time::sleep(REOPEN).await;
        }
    }
}

/// Who is told that a resource has changed.
pub enum Listener {
    /// A session.
    Session(Peer<RoleServer>),
    /// A request that stays open.
    Request(SubscriptionSink),
}

impl Listener {
    /// Whether it was heard.
    async fn notify_updated(&self, uri: &Uri) -> bool {
        match self {
            Self::Session(peer) => {
                let changed = ResourceUpdatedNotificationParam::new(uri.to_string());
                peer.notify_resource_updated(changed).await.is_ok()
            }
            Self::Request(sink) => sink.notify_resource_updated(uri.to_string()).await.is_ok(),
        }
    }
}

/// The resources of these rooms.
pub fn list(rooms: &[MyRoom]) -> Vec<Resource> {
    let one = |room: &MyRoom, part, name: &str, about: &str, kind: &str| {
        let uri = Uri {
            room: room.room_id.clone(),
            part,
        };
        Resource::new(uri.to_string(), name)
            .with_title(format!("{}: {name}", room.name))
            .with_description(about)
            .with_mime_type(kind)
    };
    let of_room = |room| {
        [
            one(
                room,
                Part::State,
                "room",
                "Members and newest messages",
                "application/json",
            ),
            one(
                room,
                Part::Rules,
                "rules",
                "What the owner asks of everybody",
                "text/markdown",
            ),
            one(
                room,
                Part::Data,
                "data",
                "The owner's reference text",
                "text/markdown",
            ),
        ]
    };
    rooms.iter().flat_map(of_room).collect()
}

/// The forms of names.
pub fn templates() -> Vec<ResourceTemplate> {
    let one = |rest: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(format!("{SCHEME}{{room_id}}{rest}"), name)
            .with_description(about)
            .with_mime_type(kind)
    };
    vec![
        one(
            "",
            "room",
            "A room's members and newest messages",
            "application/json",
        ),
        one("/rules", "rules", "A room's rules", "text/markdown"),
        one("/data", "data", "A room's data", "text/markdown"),
    ]
}
