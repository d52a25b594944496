//! The rules of posting, without I/O: what the store knows goes in, what to write comes out.
//!
//! A group of posts is decided in order, each seeing what the ones before it did: that is how a
//! seq has no gaps and no doubles, and how a limit holds within a group.

use crate::{
    auth::{self, Credential, TokenType},
    clock::Now,
    config::Limits,
    error::{Error, Result},
    services::{
        access::{Bearer, refuse_read_only},
        change::{
            AuthorKind, Candidate, Parent, Refusal, admit, answer_depth,
            message::{self, Draft, Entered},
        },
        checks::Content,
        limits::{Limit, Windows},
        members::names::skeletons_of_member,
        spending::{self, DayBudget},
    },
    store::{
        group::{NewMessage, NewName},
        posting::{Addressed, AddressedBy, ParentRow, PosterRow, PostingKeyRow, PriorPostRow},
        rooms::RoomRow,
        spending::SpendingRow,
    },
};
use protocol::{ErrorCode, MemberKind, Posted, RoomId, Usage, UserId, Via};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
};

/// What an agent says that long after it was addressed is no answer to that any more.
const ANSWERED_WITHIN_SECONDS: i64 = 600;

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
    pub mentions: Vec<UserId>,
    /// What it cost, as its agent says.
    pub usage: Option<Usage>,
    /// What fits several members, and mentions none.
    pub ambiguous: Vec<String>,
}

/// As what a post is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedAs {
    Agent,
    /// A person who signed in, with a key of their own.
    Person,
    /// A guest, or whoever was given a key.
    Guest,
}

impl CountedAs {
    /// A key that was made to be shared is nobody's own.
    pub fn of(via: &Via, key: Option<&PostingKeyRow>, member: &MemberKind) -> Self {
        match (via, key) {
            (Via::Web, Some(key)) if !key.shared && *member == MemberKind::StarchildUser => {
                Self::Person
            }
            (Via::Web, _) => Self::Guest,
            (Via::Agent | Via::System | Via::Webhook | Via::Import | Via::Other(_), _) => {
                Self::Agent
            }
        }
    }
}

impl Post {
    /// The user the credential is for.
    pub fn user(&self) -> Option<&UserId> {
        Bearer::from(&self.credential).user()
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
    pub fn limits(
        &self,
        counted_as: CountedAs,
        limits: &Limits,
        single_writer: bool,
    ) -> Vec<Limit> {
        let room = &self.room;
        let user = self.user().map_or("", UserId::as_str);
        let jti = self.jti().unwrap_or_default();
        let cooldown = i64::from(limits.agent_cooldown_seconds > 0);
        let a_minute = limits.agent_messages_per_minute;
        let by_key = limits.web_messages_per_hour_per_key;
        let by_ip = limits.web_messages_per_hour_per_ip;
        match counted_as {
            CountedAs::Person => vec![Limit {
                bucket: bucket(
                    limits.person_messages_per_hour,
                    format_args!("person {user}"),
                ),
                most: limits.person_messages_per_hour,
                window_ms: 3_600_000,
                code: ErrorCode::RateLimited,
                words: "You wrote as much as a person may in an hour",
                stored: true,
            }],
            CountedAs::Agent => vec![
                Limit {
                    bucket: bucket(cooldown, format_args!("cooldown {room} {user}")),
                    most: cooldown,
                    window_ms: limits.agent_cooldown_seconds * 1000,
                    code: ErrorCode::AgentCooldown,
                    words: "An agent waits between two messages in a room",
                    stored: !single_writer,
                },
                Limit {
                    bucket: bucket(a_minute, format_args!("agent {room} {user}")),
                    most: a_minute,
                    window_ms: 60_000,
                    code: ErrorCode::RateLimited,
                    words: "Too many messages a minute for an agent in this room",
                    stored: !single_writer,
                },
            ],
            CountedAs::Guest => vec![
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
pub struct PostingCache {
    pub rooms: HashMap<RoomId, CachedRoom>,
    pub keys: HashMap<String, PostingKeyRow>,
    pub windows: Windows,
    /// The messages that are answered, by room and seq.
    pub parents: HashMap<(RoomId, i64), ParentRow>,
    /// What was posted before under a client key, by room, sender and key.
    pub prior: HashMap<(RoomId, UserId, String), PriorPostRow>,
    /// The names of members whose token brought another than they have here, by room and user.
    pub new_names: HashMap<(RoomId, UserId), String>,
    /// What members with a budget spent on a day, by room, user and day.
    pub spent: HashMap<(RoomId, UserId, i64), SpendingRow>,
    as_of: Option<u64>,
}

/// A room, and what is known of its members.
#[derive(Debug)]
pub struct CachedRoom {
    pub row: RoomRow,
    pub authors: HashMap<UserId, PosterRow>,
}

/// More rooms and keys than this are forgotten.
const MOST_CACHED: usize = 20_000;

impl PostingCache {
    /// Forgets what may have changed since the last group.
    pub fn begin_group(&mut self, as_of: Option<u64>, now: Now) {
        let rows = self
            .rooms
            .values()
            .map(|room| room.authors.len())
            .sum::<usize>()
            + self.keys.len();
        if as_of.is_none() || as_of != self.as_of || rows > MOST_CACHED {
            self.rooms.clear();
            self.keys.clear();
            self.spent.clear();
        }
        if as_of.is_none() {
            self.windows = Windows::default();
        }
        if self.windows.len() > MOST_CACHED {
            self.windows.forget_ended(now);
        }
        self.windows.saved();
        self.parents.clear();
        self.prior.clear();
        self.new_names.clear();
        self.as_of = as_of;
    }
}

/// What is to be written, and what has been decided.
#[derive(Debug, Default)]
pub struct Decided {
    pub messages: Vec<NewMessage>,
    /// Room, user and seq of each mention.
    pub mentions: Vec<(RoomId, UserId, i64)>,
    /// Who, by room and user, is addressed by which message, or has now spoken.
    addressed: BTreeMap<(RoomId, UserId), Option<AddressedBy>>,
    pub names: Vec<NewName>,
    /// What is added to what agents spent.
    pub spending: Vec<SpendingRow>,
    pub answers: Vec<Result<Posted>>,
}

impl Decided {
    /// Who is addressed by which message, or has now spoken.
    pub fn addressed(&self) -> Vec<Addressed<'_>> {
        let rows = self.addressed.iter();
        rows.map(|((room, user), by)| Addressed {
            room,
            user,
            by: *by,
        })
        .collect()
    }
}

/// Decides a group of posts.
pub fn decide(
    posts: &[Post],
    cache: &mut PostingCache,
    limits: &Limits,
    single_writer: bool,
    now: Now,
) -> Decided {
    let mut decided = Decided::default();
    for post in posts {
        let answer = decide_one(post, cache, limits, single_writer, now, &mut decided);
        decided.answers.push(answer);
    }
    decided
}

fn decide_one(
    post: &Post,
    cache: &mut PostingCache,
    limits: &Limits,
    single_writer: bool,
    now: Now,
    decided: &mut Decided,
) -> Result<Posted> {
    let (via, author) = author_of(post, cache, now)?;
    if let Some(key) = &post.client_key
        && let Some(prior) =
            cache
                .prior
                .get(&(post.room.clone(), author.user_id.clone(), key.clone()))
    {
        return answer_again(post, prior);
    }
    let room = cache
        .rooms
        .get_mut(&post.room)
        .ok_or_else(Error::room_not_found)?;
    let parent = parent_of(post, &cache.parents)?;
    let inferred = inferred_parent(post, parent, &author, now);
    let words = Candidate {
        author: author_kind_of(post, &via, &author),
        user: &author.user_id,
        parent: parent.map(|parent| Parent {
            user: &parent.sender_user_id,
            via: &parent.via,
        }),
        depth: Some(depth_of(post, &via, parent, inferred)),
    };
    let admission = admit(&room.row, words, limits, now).map_err(|why| refused(why, inferred))?;
    let mut account = account_of(post, &via, &author, &cache.spent, now)?;
    let key = post.jti().and_then(|jti| cache.keys.get(jti));
    let counted_as = CountedAs::of(&via, key, &author.member_kind);
    cache
        .windows
        .count_against(&post.limits(counted_as, limits, single_writer), now)?;
    let author = keep_up_with_name(author, room, &cache.new_names, decided);

    let draft = Draft {
        user_id: author.user_id,
        user_name: author.user_name,
        via: via.clone(),
        content: post.content.as_str().to_owned(),
        reply_to_seq: post.reply_to_seq,
        client_key: post.client_key.clone(),
        usage: post.usage.clone(),
        calls_agents: true,
        mentions: &post.mentions,
        answered: parent.map(|parent| &parent.sender_user_id),
    };
    let entered = message::enter(&mut room.row, admission, draft, limits, now);
    note_addressed(&entered, room, decided);
    let seq = entered.message.seq;
    let used_up = account.as_mut().and_then(|account| {
        let (added, used_up) = account.spend(post.usage.as_ref());
        decided.spending.push(added);
        used_up
    });
    if let Some(account) = account {
        let spent = account.into_spent();
        let at = (spent.room_id.clone(), spent.user_id.clone(), spent.day);
        cache.spent.insert(at, spent);
    }
    let used_up = used_up.map(|words| message::notice(&mut room.row, words, now));
    let notices = entered.notice.into_iter().chain(used_up);
    for message in [entered.message].into_iter().chain(notices) {
        note(&message, cache);
        decided.messages.push(message);
    }
    Ok(Posted {
        seq,
        via,
        created_at: now.seconds(),
        ambiguous_mentions: post.ambiguous.clone(),
    })
}

/// What an agent with a budget, or with something to tell of what it spent, has spent today. One that
/// has spent all of it says nothing more until the day is over.
fn account_of(
    post: &Post,
    via: &Via,
    author: &PosterRow,
    spent: &HashMap<(RoomId, UserId, i64), SpendingRow>,
    now: Now,
) -> Result<Option<DayBudget>> {
    if *via == Via::Web {
        return match post.usage {
            None => Ok(None),
            Some(_) => Err(Error::bad_request(
                "usage comes with an agent's own credential; leave it out",
            )),
        };
    }
    let budget = author.budget();
    if post.usage.is_none() && budget.is_unlimited() {
        return Ok(None);
    }
    let at = (
        post.room.clone(),
        author.user_id.clone(),
        spending::day(now),
    );
    let spent = spent.get(&at).cloned();
    let account = DayBudget::new(&at.0, &at.1, budget, spent, now);
    account.refuse_used_up(now)?;
    Ok(Some(account))
}

/// Whose words they are. A person who signed in is one with whatever bearer.
fn author_kind_of(post: &Post, via: &Via, author: &PosterRow) -> AuthorKind {
    let signed_in = matches!(&post.credential,
        Credential::User(user) if user.token_type == TokenType::Access);
    AuthorKind::of(via, &author.member_kind, signed_in)
}

/// Notes whom a message mentions and addresses, and that an agent who speaks has answered what it was
/// told.
fn note_addressed(entered: &Entered<'_>, room: &mut CachedRoom, decided: &mut Decided) {
    let (room_id, seq) = (&entered.message.room_id, entered.message.seq);
    let mentions = entered.mentions.iter();
    decided
        .mentions
        .extend(mentions.map(|user| (room_id.clone(), user.clone(), seq)));
    for (user, by) in entered.addressed() {
        let author = room.authors.get_mut(user);
        let was_told = author.as_ref().is_some_and(|a| a.addressed_by().is_some());
        if by.is_none() && !was_told {
            continue;
        }
        if let Some(author) = author {
            author.set_addressed(by);
        }
        decided
            .addressed
            .insert((room_id.clone(), user.clone()), by);
    }
}

/// A user's name comes with the token, and the room keeps up with it.
fn keep_up_with_name(
    mut author: PosterRow,
    room: &mut CachedRoom,
    new_names: &HashMap<(RoomId, UserId), String>,
    decided: &mut Decided,
) -> PosterRow {
    if !new_names.is_empty()
        && let Some(name) = new_names.get(&(room.row.room_id.clone(), author.user_id.clone()))
        && author.user_name.as_ref() != Some(name)
    {
        decided.names.push(NewName {
            room_id: room.row.room_id.clone(),
            user_id: author.user_id.clone(),
            name: name.clone(),
            skeletons: skeletons_of_member(&author.user_id, Some(name)),
        });
        author.user_name = Some(name.clone());
        room.authors.insert(author.user_id.clone(), author.clone());
    }
    author
}

/// Who posts and as what, if the credential holds.
fn author_of(post: &Post, cache: &PostingCache, now: Now) -> Result<(Via, PosterRow)> {
    let bearer = Bearer::from(&post.credential);
    let key = match post.jti() {
        None => None,
        Some(jti) => {
            let held = cache
                .keys
                .get(jti)
                .filter(|key| !key.revoked && key.expires_at > now.seconds());
            Some(held.ok_or_else(auth::key_ended)?)
        }
    };
    let room = cache.rooms.get(&post.room);
    bearer.open(room.map(|room| &room.row))?;
    let found = room.zip(bearer.user());
    let found = found.and_then(|(room, user)| room.authors.get(user));
    let member = bearer.member(found)?.clone();
    let Some(key) = key else {
        return Ok((Via::Agent, member));
    };
    refuse_read_only(key.scope)?;
    let via = match key.posts_as {
        Via::Web => Via::Web,
        Via::Agent | Via::System | Via::Webhook | Via::Import | Via::Other(_) => Via::Agent,
    };
    Ok((via, member))
}

/// The message that the post says it answers.
fn parent_of<'a>(
    post: &Post,
    parents: &'a HashMap<(RoomId, i64), ParentRow>,
) -> Result<Option<&'a ParentRow>> {
    let Some(seq) = post.reply_to_seq else {
        return Ok(None);
    };
    let parent = parents.get(&(post.room.clone(), seq)).ok_or_else(|| {
        Error::bad_request(format!("reply_to_seq {seq} names no message in this room"))
    })?;
    Ok(Some(parent))
}

/// What an agent with a member token answers that does not say so: what last addressed it. What comes
/// with a user token may be a new question to those who answered.
fn inferred_parent(
    post: &Post,
    parent: Option<&ParentRow>,
    author: &PosterRow,
    now: Now,
) -> Option<AddressedBy> {
    author
        .addressed_by()
        .filter(|_| parent.is_none() && post.jti().is_some())
        .filter(|by| now.seconds() - by.at < ANSWERED_WITHIN_SECONDS)
}

/// The depth is the server's: an agent's reply stands one deeper than what it answers.
fn depth_of(
    post: &Post,
    via: &Via,
    parent: Option<&ParentRow>,
    inferred: Option<AddressedBy>,
) -> i64 {
    if *via == Via::Web {
        return 0;
    }
    let answered = parent
        .map(|parent| parent.reply_chain_depth)
        .or(inferred.map(|by| by.depth));
    answered.map_or(0, answer_depth).max(post.depth)
}

/// Why a post is refused, in words that say what it was taken to answer.
fn refused(why: Refusal, inferred: Option<AddressedBy>) -> Error {
    match (why, inferred) {
        (Refusal::TooDeep { depth, most }, Some(by)) => Error::new(
            ErrorCode::ChainTooDeep,
            format!(
                "This answers message {}, which addressed you, and would be {depth} deep; agents may \
                 answer each other {most} deep in this room",
                by.seq
            ),
        ),
        _ => why.into(),
    }
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
    Ok(Posted {
        seq: prior.seq,
        via: prior.via.clone(),
        created_at: prior.created_at,
        ambiguous_mentions: Vec::new(),
    })
}

/// Lets the posts that follow see this one.
fn note(message: &NewMessage, cache: &mut PostingCache) {
    let parent = ParentRow {
        room_id: message.room_id.clone(),
        seq: message.seq,
        sender_user_id: message.sender_user_id.clone(),
        via: message.via.clone(),
        reply_chain_depth: message.reply_chain_depth,
    };
    let at = (message.room_id.clone(), message.seq);
    cache.parents.insert(at, parent);
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
        via: message.via.clone(),
        content: message.content.clone(),
        original_content: None,
        deleted: false,
        reply_to_seq: message.reply_to_seq,
        created_at: message.created_at,
    };
    cache.prior.insert(at, row);
}
