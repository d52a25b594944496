//! The rules of posting, without I/O: what the store knows goes in, what to write comes out.
//!
//! A group of posts is decided in order, each seeing what the ones before it did: that is how a
//! seq has no gaps and no doubles, and how a limit holds within a group.

use super::super::{
    access::{foreign_key, refuse_archived, scope_insufficient},
    checks::Content,
    limits::{Limit, Windows},
};
use crate::{
    auth::{self, Credential},
    clock::Now,
    config::Limits,
    error::{Error, Result},
    store::{
        group::NewMessage,
        posting::{AuthorRow, PostingKeyRow, PriorPostRow},
        rooms::RoomRow,
    },
};
use protocol::{ErrorCode, MessageType, Posted, RoomId, Scope, Via};
use std::{collections::HashMap, fmt, net::IpAddr};

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
    /// The members that it mentions.
    pub mentions: Vec<String>,
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

    /// The limits it is under when it is posted this way. What is counted by the hour is stored;
    /// what is counted by the minute is stored only where other processes count too.
    pub fn limits(&self, via: Via, limits: &Limits, alone: bool) -> [Limit; 2] {
        let (room, user) = (self.room.as_str(), self.user().unwrap_or_default());
        let jti = self.jti().unwrap_or_default();
        let cooldown = i64::from(limits.agent_cooldown_seconds > 0);
        let a_minute = limits.agent_messages_per_minute;
        let by_key = limits.web_messages_per_hour_per_key;
        let by_ip = limits.web_messages_per_hour_per_ip;
        match via {
            Via::Agent | Via::System | Via::Other(_) => [
                Limit {
                    bucket: bucket(cooldown, format_args!("cooldown {room} {user}")),
                    most: cooldown,
                    window_ms: limits.agent_cooldown_seconds * 1000,
                    code: ErrorCode::AgentCooldown,
                    words: "An agent waits between two messages in a room",
                    stored: !alone,
                },
                Limit {
                    bucket: bucket(a_minute, format_args!("agent {room} {user}")),
                    most: a_minute,
                    window_ms: 60_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages a minute for an agent in this room",
                    stored: !alone,
                },
            ],
            Via::Web => [
                Limit {
                    bucket: bucket(by_key, format_args!("web-key {jti}")),
                    most: by_key,
                    window_ms: 3_600_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages an hour with this room key",
                    stored: true,
                },
                Limit {
                    bucket: bucket(by_ip, format_args!("web-ip {}", self.ip)),
                    most: by_ip,
                    window_ms: 3_600_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages an hour from your address",
                    stored: true,
                },
            ],
        }
    }
}

/// The name of what is counted. Where nothing is, none is made: this runs for every post.
fn bucket(most: i64, name: fmt::Arguments<'_>) -> String {
    if most > 0 {
        name.to_string()
    } else {
        String::new()
    }
}

/// What the store knows that a group of posts depends on.
///
/// Where this process alone writes, it is kept from group to group for as long as nobody else has
/// written in between.
#[derive(Debug, Default)]
pub struct Known {
    pub rooms: HashMap<String, KnownRoom>,
    pub keys: HashMap<String, PostingKeyRow>,
    pub windows: Windows,
    /// The depth of the messages that are answered, by room and seq.
    pub depths: HashMap<(String, i64), i64>,
    /// What was posted before under a client key, by room, sender and key.
    pub prior: HashMap<(String, String, String), PriorPostRow>,
    as_of: Option<u64>,
}

/// A room, and what is known of its members.
#[derive(Debug)]
pub struct KnownRoom {
    pub row: RoomRow,
    pub authors: HashMap<String, AuthorRow>,
}

/// More rooms and keys than this are forgotten.
const MOST_KNOWN: usize = 20_000;

impl Known {
    /// Forgets what may have changed since the last group.
    pub fn begin_group(&mut self, as_of: Option<u64>, now: Now) {
        let known = self
            .rooms
            .values()
            .map(|room| room.authors.len())
            .sum::<usize>()
            + self.keys.len();
        if as_of.is_none() || as_of != self.as_of || known > MOST_KNOWN {
            self.rooms.clear();
            self.keys.clear();
        }
        if as_of.is_none() {
            self.windows = Windows::default();
        }
        if self.windows.len() > MOST_KNOWN {
            self.windows.forget_ended(now);
        }
        self.windows.saved();
        self.depths.clear();
        self.prior.clear();
        self.as_of = as_of;
    }
}

/// What is to be written, and what has been decided.
#[derive(Debug, Default)]
pub struct Decided {
    pub messages: Vec<NewMessage>,
    /// Room, user and seq of each mention.
    pub mentions: Vec<(String, String, i64)>,
    /// Room, user and name of members whose token brought a new name.
    pub names: Vec<(String, String, String)>,
    pub answers: Vec<Result<Posted>>,
}

/// Decides a group of posts.
pub fn decide(
    posts: &[Post],
    known: &mut Known,
    limits: &Limits,
    alone: bool,
    now: Now,
) -> Decided {
    let mut decided = Decided::default();
    for post in posts {
        let answer = decide_one(post, known, limits, alone, now, &mut decided);
        decided.answers.push(answer);
    }
    decided
}

fn decide_one(
    post: &Post,
    known: &mut Known,
    limits: &Limits,
    alone: bool,
    now: Now,
    decided: &mut Decided,
) -> Result<Posted> {
    let (via, author) = author_of(post, known, now)?;
    if let Some(key) = &post.client_key
        && let Some(prior) =
            known
                .prior
                .get(&(post.room.to_string(), author.user_id.clone(), key.clone()))
    {
        return answer_again(post, prior);
    }
    let room = known
        .rooms
        .get_mut(post.room.as_str())
        .ok_or_else(Error::room_not_found)?;
    refuse_archived(&room.row)?;
    let depth = depth_of(post, via, &room.row, &known.depths)?;
    known.windows.take(&post.limits(via, limits, alone), now)?;
    let author = keep_up_with_name(post, author, room, decided);

    let seq = room.row.last_seq + 1;
    room.row.last_seq = seq;
    room.row.last_sub = 0;
    let message = NewMessage {
        room_id: post.room.as_str().to_owned(),
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
    let mentions = post.mentions.iter();
    decided
        .mentions
        .extend(mentions.map(|user| (message.room_id.clone(), user.clone(), seq)));
    note(&message, known);
    decided.messages.push(message);
    Ok(Posted {
        seq,
        via,
        created_at: now.seconds(),
    })
}

/// A user's name comes with the token, and the room keeps up with it.
fn keep_up_with_name(
    post: &Post,
    mut author: AuthorRow,
    room: &mut KnownRoom,
    decided: &mut Decided,
) -> AuthorRow {
    if let Credential::User(user) = &post.credential
        && let Some(name) = &user.name
        && author.user_name.as_ref() != Some(name)
    {
        decided.names.push((
            room.row.room_id.clone(),
            author.user_id.clone(),
            name.clone(),
        ));
        author.user_name = Some(name.clone());
        room.authors.insert(author.user_id.clone(), author.clone());
    }
    author
}

/// Who posts and as what, if the credential holds.
fn author_of(post: &Post, known: &Known, now: Now) -> Result<(Via, AuthorRow)> {
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
        return Err(foreign_key(&room.row));
    }
    let member = room.authors.get(user).cloned();
    let Some(key) = key else {
        let member = member.ok_or_else(|| {
            Error::new(
                ErrorCode::NotAMember,
                "You are not a member of this room; join it first",
            )
        })?;
        return Ok((Via::Agent, member));
    };
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
    Ok((via, member))
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
fn note(message: &NewMessage, known: &mut Known) {
    known.depths.insert(
        (message.room_id.clone(), message.seq),
        message.reply_chain_depth,
    );
    let Some(key) = &message.client_key else {
        return;
    };
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
