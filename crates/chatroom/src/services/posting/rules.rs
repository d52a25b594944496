//! The rules of posting, without I/O: what the store knows goes in, what to write comes out.
//!
//! A group of posts is decided in order, each seeing what the ones before it did: that is how a
//! seq has no gaps and no doubles, and how a limit holds within a group.

use super::super::{
    access::{foreign_key, refuse_archived, scope_insufficient},
    checks::Content,
    limits::{Limit, Windows},
};
use super::mentions::mentioned;
use crate::{
    auth::{self, Credential},
    clock::Now,
    config::Limits,
    error::{Error, Result},
    store::{
        posting::{AuthorRow, NewMessage, PostingKeyRow, PriorPostRow},
        rooms::RoomRow,
    },
};
use protocol::{ErrorCode, MessageType, Posted, RoomId, Scope, Via};
use std::{collections::HashMap, net::IpAddr};

/// A message that somebody wants to post.
#[derive(Debug, Clone)]
pub struct Post {
    pub room: RoomId,
    /// Signed well, but not yet looked up: that happens with the rest.
    pub credential: Credential,
    pub ip: IpAddr,
    pub content: Content,
    pub reply_to_seq: Option<i64>,
    /// What the request says; it can only make the depth deeper.
    pub depth: i64,
    pub client_key: Option<String>,
}

impl Post {
    /// The user the credential is for.
    pub fn user(&self) -> Option<&str> {
        match &self.credential {
            Credential::User(user) => Some(user.id.as_str()),
            Credential::RoomKey(claims) => Some(&claims.user_id),
            Credential::None | Credential::Identity(_) => None,
        }
    }

    /// The room key the credential is, where it is one.
    pub fn jti(&self) -> Option<&str> {
        match &self.credential {
            Credential::RoomKey(claims) => Some(&claims.jti),
            _ => None,
        }
    }

    /// The buckets that its limits count in, whichever it is posted as.
    pub fn limits(&self, via: Via, limits: &Limits) -> Vec<Limit> {
        let user = self.user().unwrap_or_default();
        let room = &self.room;
        match via {
            Via::Agent => vec![
                Limit {
                    bucket: format!("cooldown {room} {user}"),
                    most: i64::from(limits.agent_cooldown_seconds > 0),
                    window_ms: limits.agent_cooldown_seconds * 1000,
                    code: ErrorCode::AgentCooldown,
                    words: "An agent waits between two messages in a room",
                },
                Limit {
                    bucket: format!("agent {room} {user}"),
                    most: limits.agent_messages_per_minute,
                    window_ms: 60_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages a minute for an agent in this room",
                },
            ],
            Via::Web => vec![
                Limit {
                    bucket: format!("web-key {}", self.jti().unwrap_or_default()),
                    most: limits.web_messages_per_hour_per_key,
                    window_ms: 3_600_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages an hour with this room key",
                },
                Limit {
                    bucket: format!("web-ip {}", self.ip),
                    most: limits.web_messages_per_hour_per_ip,
                    window_ms: 3_600_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages an hour from your address",
                },
            ],
            Via::System => Vec::new(),
        }
    }
}

/// What the store knows that a group of posts depends on.
#[derive(Debug, Default)]
pub struct Known {
    pub rooms: HashMap<String, RoomRow>,
    pub authors: HashMap<(String, String), AuthorRow>,
    pub keys: HashMap<String, PostingKeyRow>,
    /// The depth of the messages that are answered, by room and seq.
    pub depths: HashMap<(String, i64), i64>,
    /// What was posted before under a client key, by room, sender and key.
    pub prior: HashMap<(String, String, String), PriorPostRow>,
    pub windows: Windows,
    /// The members of rooms in which somebody may be mentioned.
    pub names: HashMap<String, Vec<AuthorRow>>,
}

/// What is to be written, and what has been decided.
#[derive(Debug, Default)]
pub struct Decided {
    pub messages: Vec<NewMessage>,
    /// Room, user and seq of each mention.
    pub mentions: Vec<(String, String, i64)>,
    pub answers: Vec<Result<Posted>>,
}

/// Decides a group of posts.
pub fn decide(posts: &[Post], known: &mut Known, limits: &Limits, now: Now) -> Decided {
    let mut decided = Decided::default();
    for post in posts {
        let answer = decide_one(post, known, limits, now, &mut decided);
        decided.answers.push(answer);
    }
    decided
}

fn decide_one(
    post: &Post,
    known: &mut Known,
    limits: &Limits,
    now: Now,
    decided: &mut Decided,
) -> Result<Posted> {
    let (via, author) = author_of(post, known, now)?;
    let prior = post.client_key.as_ref().and_then(|key| {
        known
            .prior
            .get(&(post.room.to_string(), author.user_id.clone(), key.clone()))
    });
    if let Some(prior) = prior {
        return answer_again(post, prior);
    }
    let room = known
        .rooms
        .get(post.room.as_str())
        .ok_or_else(Error::room_not_found)?;
    refuse_archived(room)?;
    let depth = depth_of(post, via, room, &known.depths)?;
    known.windows.take(&post.limits(via, limits), now)?;

    let seq = room.last_seq + 1;
    let message = NewMessage {
        room_id: post.room.to_string(),
        seq,
        sender_user_id: author.user_id,
        sender_user_name: author.user_name,
        via: via.as_str(),
        r#type: MessageType::Chat.as_str(),
        content: post.content.as_str().to_owned(),
        reply_to_seq: post.reply_to_seq,
        reply_chain_depth: depth,
        created_at: now.seconds(),
        client_key: post.client_key.clone(),
    };
    note(&message, known, decided);
    decided.messages.push(message);
    Ok(Posted {
        seq,
        via,
        created_at: now.seconds(),
    })
}

/// Who posts and as what, if the credential holds.
fn author_of(post: &Post, known: &mut Known, now: Now) -> Result<(Via, AuthorRow)> {
    let user = match &post.credential {
        Credential::None => return Err(Error::missing_bearer()),
        Credential::Identity(_) => {
            return Err(Error::new(
                ErrorCode::TokenInvalid,
                "An identity token opens no room by itself; mint a room key with reissue-token",
            ));
        }
        Credential::User(_) | Credential::RoomKey(_) => post.user().unwrap_or_default(),
    };
    let key = match post.jti() {
        None => None,
        Some(jti) => {
            let held = known
                .keys
                .get(jti)
                .filter(|key| !key.revoked && key.expires_at > now.seconds());
            Some(held.ok_or_else(auth::key_ended)?)
        }
    };
    let room = known
        .rooms
        .get(post.room.as_str())
        .ok_or_else(Error::room_not_found)?;
    if let Credential::RoomKey(claims) = &post.credential
        && claims.room_id != post.room.as_str()
    {
        return Err(foreign_key(room));
    }
    let member = known
        .authors
        .get_mut(&(post.room.to_string(), user.to_owned()));
    match key {
        Some(key) => {
            // A key ends with the membership that it was made for.
            let member = member.ok_or_else(auth::key_ended)?;
            if key.scope != Scope::ViewPost.as_str() {
                return Err(scope_insufficient());
            }
            let via = if key.posts_as == Via::Web.as_str() {
                Via::Web
            } else {
                Via::Agent
            };
            Ok((via, member.clone()))
        }
        None => {
            let member = member.ok_or_else(|| {
                Error::new(
                    ErrorCode::NotAMember,
                    "You are not a member of this room; join it first",
                )
            })?;
            // A user's name comes with the token, and the room keeps up with it.
            if let Credential::User(user) = &post.credential
                && user.name.is_some()
            {
                member.user_name.clone_from(&user.name);
            }
            Ok((Via::Agent, member.clone()))
        }
    }
}

/// The depth is the server's: an agent's reply stands one deeper than what it answers.
fn depth_of(
    post: &Post,
    via: Via,
    room: &RoomRow,
    depths: &HashMap<(String, i64), i64>,
) -> Result<i64> {
    let parent = match post.reply_to_seq {
        None => None,
        Some(seq) => Some(*depths.get(&(post.room.to_string(), seq)).ok_or_else(|| {
            Error::bad_request(format!("reply_to_seq {seq} names no message in this room"))
        })?),
    };
    if via == Via::Web {
        return Ok(0);
    }
    let depth = parent.map_or(0, |parent| parent + 1).max(post.depth);
    let most = room.max_reply_chain_depth;
    if depth > most {
        return Err(Error::new(
            ErrorCode::ChainTooDeep,
            format!(
                "This reply would be {depth} deep; agents may answer each other {most} deep in this room"
            ),
        ));
    }
    Ok(depth)
}

/// The answer that this client key got before.
fn answer_again(post: &Post, prior: &PriorPostRow) -> Result<Posted> {
    let text = prior.original_content.as_ref().unwrap_or(&prior.content);
    let same =
        prior.reply_to_seq == post.reply_to_seq && (prior.deleted || text == post.content.as_str());
    if !same {
        return Err(Error::bad_request(
            "This idempotency key was used for another message; use a new key for a new message",
        ));
    }
    let via = prior.via.parse().unwrap_or(Via::Agent);
    Ok(Posted {
        seq: prior.seq,
        via,
        created_at: prior.created_at,
    })
}

/// Lets the posts that follow see this one.
fn note(message: &NewMessage, known: &mut Known, decided: &mut Decided) {
    if let Some(room) = known.rooms.get_mut(&message.room_id) {
        room.last_seq = message.seq;
        room.last_sub = 0;
    }
    known.depths.insert(
        (message.room_id.clone(), message.seq),
        message.reply_chain_depth,
    );
    if let Some(key) = &message.client_key {
        let at = (
            message.room_id.clone(),
            message.sender_user_id.clone(),
            key.clone(),
        );
        let row = PriorPostRow {
            room_id: message.room_id.clone(),
            sender_user_id: message.sender_user_id.clone(),
            client_key: key.clone(),
            seq: message.seq,
            via: message.via.to_owned(),
            content: message.content.clone(),
            original_content: None,
            deleted: false,
            reply_to_seq: message.reply_to_seq,
            created_at: message.created_at,
        };
        known.prior.insert(at, row);
    }
    if let Some(names) = known.names.get(&message.room_id) {
        let mentions = mentioned(&message.content, names)
            .map(|user| (message.room_id.clone(), user.to_owned(), message.seq));
        decided.mentions.extend(mentions);
    }
}
