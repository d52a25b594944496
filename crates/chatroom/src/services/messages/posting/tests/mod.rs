//! The rules of posting, without a store: [`World`] stands in for it.

mod groups;
mod liars;

use super::rules::{CachedRoom, Decided, Post, PostingCache, decide};
use crate::{
    auth::{Credential, TokenType, User},
    clock::Now,
    config::Limits,
    services::checks::Content,
    store::{
        group::NewMessage,
        limits::WindowRow,
        posting::{ParentRow, PosterRow, PostingKeyRow, PriorPostRow},
        rooms::RoomRow,
        spending::SpendingRow,
    },
};
use protocol::{ErrorCode, RoomId, Scope, UserId, Via, Visibility};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

/// What a member is, and what it pretends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Posts with a member token.
    Pull,
    /// Came with `client_kind: human`.
    ClaimsToBeHuman,
    /// Posts with its user's container token.
    Container,
    /// Is called by the server.
    Push,
    /// Signed in, and posts with a room key.
    Person,
    /// Signed in, and posts with the token itself.
    SignedIn,
}

impl Kind {
    fn is_person(self) -> bool {
        matches!(self, Self::Person | Self::SignedIn)
    }

    /// Whether it posts with a key for the web.
    fn is_web(self) -> bool {
        matches!(self, Self::Person | Self::ClaimsToBeHuman)
    }

    fn member_kind(self) -> &'static str {
        match self {
            Self::Pull => "external_agent",
            Self::ClaimsToBeHuman => "external_user",
            Self::Container | Self::Push => "starchild_agent",
            Self::Person | Self::SignedIn => "starchild_user",
        }
    }
}

/// Rooms in a store that is nothing but this. Everybody is a member of each.
#[derive(Debug, Clone)]
struct World {
    rooms: BTreeMap<RoomId, RoomRow>,
    posters: HashMap<(RoomId, UserId), PosterRow>,
    kinds: Vec<Kind>,
    log: Vec<NewMessage>,
    windows: HashMap<String, WindowRow>,
    spent: HashMap<(RoomId, UserId, i64), SpendingRow>,
    limits: Limits,
    now: i64,
}

fn user(n: usize) -> UserId {
    format!("u_{n}").parse().unwrap()
}

fn room(n: usize) -> RoomId {
    format!("rm_abcde{n}").parse().unwrap()
}

/// A room whose agents may answer each other this deep.
fn room_row(n: usize, depth: i64) -> RoomRow {
    RoomRow {
        room_id: room(n),
        name: "room".into(),
        owner_user_id: user(0),
        visibility: Visibility::Private,
        archived: false,
        created_at: 0,
        max_reply_chain_depth: depth,
        last_seq: 0,
        last_sub: 0,
        pruned_seq: 0,
        pruned_sub: 0,
        rules_version: 0,
        exchange_limit: None,
        exchanges: 0,
        last_agent: None,
        exchanged_ms: 0,
        topic: String::new(),
    }
}

fn poster_row(room: &RoomId, n: usize, kind: Kind) -> PosterRow {
    PosterRow {
        room_id: room.clone(),
        user_id: user(n),
        user_name: None,
        member_kind: kind.member_kind().parse().unwrap(),
        addressed_seq: None,
        addressed_depth: None,
        addressed_at: None,
        own_turns: None,
        own_tokens: None,
        own_cost_usd: None,
        room_turns: None,
        room_tokens: None,
        room_cost_usd: None,
    }
}

impl World {
    /// Nothing is limited but what agents say to each other.
    fn new(rooms: Vec<RoomRow>, kinds: Vec<Kind>, exchanges: i64) -> Self {
        let members = |room: &RoomRow| {
            let room = room.room_id.clone();
            let kinds = kinds.iter().enumerate();
            kinds
                .map(|(n, kind)| ((room.clone(), user(n)), poster_row(&room, n, *kind)))
                .collect::<Vec<_>>()
        };
        Self {
            posters: rooms.iter().flat_map(members).collect(),
            rooms: rooms
                .into_iter()
                .map(|room| (room.room_id.clone(), room))
                .collect(),
            kinds,
            log: Vec::new(),
            windows: HashMap::new(),
            spent: HashMap::new(),
            limits: Limits {
                agent_messages_per_minute: 0,
                agent_cooldown_seconds: 0,
                web_messages_per_hour_per_key: 0,
                web_messages_per_hour_per_ip: 0,
                person_messages_per_hour: 0,
                agent_exchanges_without_person: exchanges,
                ..Limits::default()
            },
            now: 1_800_000_000_000,
        }
    }

    /// Asks for what a group depends on, as `load.rs` does.
    fn load(&self, cache: &mut PostingCache) {
        for (id, row) in &self.rooms {
            cache.rooms.entry(id.clone()).or_insert_with(|| CachedRoom {
                row: row.clone(),
                authors: self
                    .posters
                    .iter()
                    .filter(|((room, _), _)| room == id)
                    .map(|((_, user), poster)| (user.clone(), poster.clone()))
                    .collect(),
            });
        }
        for (n, kind) in self.kinds.iter().enumerate() {
            for id in self.rooms.keys() {
                let key = PostingKeyRow {
                    jti: key_name(id, n),
                    scope: Scope::ViewPost,
                    posts_as: if kind.is_web() { Via::Web } else { Via::Agent },
                    shared: false,
                    expires_at: i64::MAX,
                    revoked: false,
                };
                cache.keys.insert(key.jti.clone(), key);
            }
        }
        for message in &self.log {
            let row = ParentRow {
                room_id: message.room_id.clone(),
                seq: message.seq,
                sender_user_id: message.sender_user_id.clone(),
                via: message.via.clone(),
                reply_chain_depth: message.reply_chain_depth,
            };
            let at = (message.room_id.clone(), message.seq);
            cache.parents.insert(at, row);
            if let Some(key) = &message.client_key {
                let at = (
                    message.room_id.clone(),
                    message.sender_user_id.clone(),
                    key.clone(),
                );
                cache.prior.insert(at, prior_row(message, key));
            }
        }
        let windows = self.windows.values();
        let unknown = windows.filter(|window| !cache.windows.has(&window.bucket));
        let unknown = unknown.cloned().collect();
        cache.windows.add(unknown);
        for (at, spent) in &self.spent {
            cache.spent.entry(at.clone()).or_insert(spent.clone());
        }
    }

    /// Writes what was decided.
    fn store(&mut self, cache: &PostingCache, decided: &Decided) {
        for (id, room) in &cache.rooms {
            self.rooms.insert(id.clone(), room.row.clone());
        }
        for addressed in decided.addressed() {
            let at = (addressed.room.clone(), addressed.user.clone());
            let poster = self.posters.get_mut(&at).unwrap();
            poster.set_addressed(addressed.by);
        }
        for window in cache.windows.changed() {
            self.windows.insert(window.bucket.clone(), window.clone());
        }
        for added in &decided.spending {
            let at = (added.room_id.clone(), added.user_id.clone(), added.day);
            let spent = self.spent.entry(at).or_insert(SpendingRow {
                turns: 0,
                input_tokens: 0,
                output_tokens: 0,
                told: false,
                ..added.clone()
            });
            spent.turns += added.turns;
            spent.input_tokens += added.input_tokens;
            spent.output_tokens += added.output_tokens;
            spent.told |= added.told;
        }
        self.log.extend(decided.messages.iter().cloned());
    }

    /// Decides a group where other nodes write too: each group asks the store.
    fn decides_by_asking(&mut self, posts: &[Post]) -> Decided {
        let now = Now(self.now);
        let mut cache = PostingCache::default();
        cache.begin_group(None, now);
        self.load(&mut cache);
        let decided = decide(posts, &mut cache, &self.limits, false, now);
        self.store(&cache, &decided);
        decided
    }

    /// Decides a group where this process alone writes: it remembers.
    fn decides_from_memory(&mut self, posts: &[Post], cache: &mut PostingCache) -> Decided {
        let now = Now(self.now);
        cache.begin_group(Some(1), now);
        self.load(cache);
        let decided = decide(posts, cache, &self.limits, true, now);
        self.store(cache, &decided);
        decided
    }

    fn post(&self, to: usize, n: usize, content: &str, reply_to_seq: Option<i64>) -> Post {
        let to = room(to);
        let credential = match self.kinds[n] {
            Kind::Container | Kind::SignedIn | Kind::Push => Credential::User(User {
                id: user(n),
                name: None,
                token_type: match self.kinds[n] {
                    Kind::SignedIn => TokenType::Access,
                    _ => TokenType::Container,
                },
                identity: None,
                issued_at: None,
                internal: true,
            }),
            Kind::Pull | Kind::ClaimsToBeHuman | Kind::Person => {
                let claims = json!({"kind": "room_key", "jti": key_name(&to, n), "room_id": to,
                    "user_id": user(n), "scope": "view+post", "iat": 0, "exp": i64::MAX});
                Credential::RoomKey(Arc::new(serde_json::from_value(claims).unwrap()))
            }
        };
        let users = (0..self.kinds.len()).map(user);
        let mentions = users.filter(|user| content.contains(&format!("@{user}")));
        Post {
            room: to,
            credential,
            mentions: mentions.collect(),
            ambiguous: Vec::new(),
            ip: IpAddr::from([127, 0, 0, 1]),
            content: Content::new(content.to_owned()).unwrap(),
            reply_to_seq,
            depth: 0,
            client_key: None,
            usage: None,
        }
    }

    /// Posts to the first room; whether that was accepted.
    fn says(&mut self, n: usize, content: &str, reply_to_seq: Option<i64>) -> bool {
        self.now += 1;
        let post = self.post(0, n, content, reply_to_seq);
        match &self.decides_by_asking(&[post]).answers[0] {
            Ok(_) => true,
            Err(error) => {
                let code = error.code();
                assert!(
                    [ErrorCode::RateLimited, ErrorCode::ChainTooDeep].contains(&code),
                    "{error}"
                );
                false
            }
        }
    }

    /// The first room.
    fn room(&self) -> &RoomRow {
        &self.rooms[&room(0)]
    }

    fn kind_of(&self, sender: &UserId) -> Kind {
        let n = (0..self.kinds.len()).find(|n| user(*n) == *sender);
        self.kinds[n.unwrap()]
    }

    fn messages_of(&self, room: &RoomId) -> impl Iterator<Item = &NewMessage> {
        self.log
            .iter()
            .filter(move |message| message.room_id == *room)
    }

    fn assert_no_gap_and_no_double(&self) {
        for room in self.rooms.values() {
            let seqs = self.messages_of(&room.room_id).map(|message| message.seq);
            let seqs: Vec<i64> = seqs.collect();
            let all: Vec<i64> = (1..=room.last_seq).collect();
            assert_eq!(seqs, all, "no gap and no double");
        }
    }
}

fn key_name(room: &RoomId, n: usize) -> String {
    format!("k_{room}_{n}")
}

fn prior_row(message: &NewMessage, key: &str) -> PriorPostRow {
    PriorPostRow {
        room_id: message.room_id.clone(),
        sender_user_id: message.sender_user_id.clone(),
        client_key: key.to_owned(),
        seq: message.seq,
        via: message.via.clone(),
        content: message.content.clone(),
        original_content: None,
        deleted: false,
        reply_to_seq: message.reply_to_seq,
        created_at: message.created_at,
    }
}
