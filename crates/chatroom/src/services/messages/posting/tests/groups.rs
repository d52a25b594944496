//! Random rooms, members, limits and groups of posts: seqs have no gap and no double, no limit is
//! exceeded, a dedup key posts once, and a group is decided as its posts would be one by one. What was
//! posted is counted again here, from the log alone.

use super::{Kind, World, room_row};
use crate::{
    config::Limits,
    error::Error,
    services::messages::posting::rules::{Decided, Post, PostingCache},
    store::group::NewMessage,
};
use proptest::prelude::*;
use protocol::{ErrorCode, MessageType, Posted, Usage, Via};
use std::{collections::HashMap, net::IpAddr};

const KINDS: [Kind; 6] = [
    Kind::Pull,
    Kind::ClaimsToBeHuman,
    Kind::Container,
    Kind::Pull,
    Kind::Person,
    Kind::SignedIn,
];
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// A post that somebody makes.
#[derive(Debug, Clone)]
struct Spec {
    room: usize,
    user: usize,
    mentions: usize,
    reply_to_seq: Option<i64>,
    /// How deep it claims to be.
    depth: i64,
    key: Option<u8>,
    /// What it says that it cost.
    tokens: Option<i64>,
    ip: u8,
}

/// Posts that come together, so long after the last ones.
#[derive(Debug, Clone)]
struct Arrival {
    after_ms: i64,
    posts: Vec<Spec>,
}

/// A message, and when it was posted.
type Logged = (i64, NewMessage);

fn worlds() -> impl Strategy<Value = World> {
    let room = (
        0..4i64,
        prop::bool::weighted(0.1),
        prop::option::of(0..4i64),
    );
    let rooms = prop::collection::vec(room, 1..4);
    // 0 is no limit.
    let limits = (0..4i64, 0..3i64, 0..4i64, 0..6i64, 0..5i64, 0..5i64);
    let budgets = prop::collection::vec(
        (prop::option::of(0..5i64), prop::option::of(0..100i64)),
        KINDS.len(),
    );
    (rooms, limits, budgets).prop_map(|(rooms, limits, budgets)| {
        let (a_minute, cooldown, by_key, by_ip, person, exchanges) = limits;
        let rooms = rooms.into_iter().enumerate();
        let rooms = rooms.map(|(n, (depth, archived, exchange_limit))| {
            let mut room = room_row(n, depth);
            (room.archived, room.exchange_limit) = (archived, exchange_limit);
            room
        });
        let mut world = World::new(rooms.collect(), KINDS.to_vec(), exchanges);
        world.limits = Limits {
            agent_messages_per_minute: a_minute,
            agent_cooldown_seconds: cooldown,
            web_messages_per_hour_per_key: by_key,
            web_messages_per_hour_per_ip: by_ip,
            person_messages_per_hour: person,
            ..world.limits
        };
        for (n, (turns, tokens)) in budgets.into_iter().enumerate() {
            for poster in world.posters.values_mut() {
                if poster.user_id == super::user(n) {
                    (poster.own_turns, poster.room_tokens) = (turns, tokens);
                }
            }
        }
        world
    })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let spec = (
        (0..3usize, 0..KINDS.len(), 0..KINDS.len()),
        (prop::option::weighted(0.4, 1..8i64), 0..3i64),
        prop::option::weighted(0.3, 0..3u8),
        prop::option::weighted(0.3, 0..60i64),
        0..2u8,
    );
    let spec = spec.prop_map(
        |((room, user, mentions), (reply_to_seq, depth), key, tokens, ip)| Spec {
            room,
            user,
            mentions,
            reply_to_seq,
            depth,
            key,
            tokens,
            ip,
        },
    );
    let posts = prop::collection::vec(spec, 1..10);
    let arrival = (0..20_000i64, posts).prop_map(|(after_ms, posts)| Arrival { after_ms, posts });
    prop::collection::vec(arrival, 1..12)
}

impl Spec {
    fn to_post(&self, world: &World) -> Post {
        let words = format!("I say, @{}", super::user(self.mentions));
        let to = self.room % world.rooms.len();
        let post = world.post(to, self.user, &words, self.reply_to_seq);
        let usage = |tokens| Usage {
            input_tokens: Some(tokens),
            ..Usage::default()
        };
        Post {
            depth: self.depth,
            client_key: self.key.map(|key| format!("key {key}")),
            usage: self.tokens.map(usage),
            ip: IpAddr::from([10, 0, 0, self.ip]),
            ..post
        }
    }
}

/// What may be said to a post that is refused here.
fn is_expected(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::RateLimited
            | ErrorCode::AgentCooldown
            | ErrorCode::ChainTooDeep
            | ErrorCode::BudgetUsedUp
            | ErrorCode::Archived
            | ErrorCode::BadRequest
    )
}

/// Answers and log as text, to be compared.
fn shown(decided: &Decided) -> String {
    format!("{:?} {:?}", decided.answers, decided.messages)
}

/// Windows as they should be: one opens with the first thing it counts.
#[derive(Default)]
struct Recount(HashMap<String, (i64, i64)>);

impl Recount {
    fn count(&mut self, bucket: String, at: i64, window_ms: i64, most: i64) {
        if most == 0 {
            return;
        }
        let (start, count) = self.0.entry(bucket).or_insert((at, 0));
        if at >= *start + window_ms {
            (*start, *count) = (at, 0);
        }
        *count += 1;
        assert!(*count <= most, "{count} of {most} in {window_ms} ms");
    }
}

fn check_windows(world: &World, log: &[(Logged, IpAddr)]) {
    let (limits, mut windows) = (&world.limits, Recount::default());
    for ((at, message), ip) in log {
        let (room, sender) = (&message.room_id, &message.sender_user_id);
        match world.kind_of(sender) {
            Kind::Person => {
                let most = limits.person_messages_per_hour;
                windows.count(format!("person {sender}"), *at, HOUR, most);
            }
            Kind::ClaimsToBeHuman => {
                let (by_key, by_ip) = (
                    limits.web_messages_per_hour_per_key,
                    limits.web_messages_per_hour_per_ip,
                );
                windows.count(format!("key {room} {sender}"), *at, HOUR, by_key);
                windows.count(format!("ip {ip}"), *at, HOUR, by_ip);
            }
            _ => {
                let minute = limits.agent_messages_per_minute;
                windows.count(format!("agent {room} {sender}"), *at, MINUTE, minute);
                let cooldown = limits.agent_cooldown_seconds * 1000;
                let most = i64::from(cooldown > 0);
                windows.count(format!("cooldown {room} {sender}"), *at, cooldown, most);
            }
        }
    }
}

fn check_depths(world: &World) {
    for room in world.rooms.values() {
        for message in world.messages_of(&room.room_id) {
            let depth = message.reply_chain_depth;
            assert!(depth <= room.max_reply_chain_depth, "{depth} deep");
            let parent = message.reply_to_seq.filter(|_| message.via == Via::Agent);
            if let Some(seq) = parent {
                let mut messages = world.messages_of(&room.room_id);
                let parent = messages.find(|other| other.seq == seq).unwrap();
                assert!(depth > parent.reply_chain_depth, "an answer is deeper");
            }
        }
        let said = world.messages_of(&room.room_id).count();
        assert!(!room.archived || said == 0, "an archived room is silent");
    }
}

fn check_budgets(world: &World) {
    let mut spent: HashMap<_, (i64, i64)> = HashMap::new();
    for message in &world.log {
        if message.via != Via::Agent {
            continue;
        }
        let at = (message.room_id.clone(), message.sender_user_id.clone());
        let poster = &world.posters[&at];
        let (turns, tokens) = spent.entry(at).or_default();
        assert!(poster.own_turns.is_none_or(|most| *turns < most), "turns");
        assert!(
            poster.room_tokens.is_none_or(|most| *tokens < most),
            "tokens"
        );
        *turns += 1;
        let usage = message.usage.as_ref();
        *tokens += usage.and_then(|usage| usage.input_tokens).unwrap_or(0);
    }
}

fn check_exchanges(world: &World) {
    for room in world.rooms.values() {
        let general = world.limits.agent_exchanges_without_person;
        let most = room.exchange_limit.unwrap_or(general);
        let (mut exchanges, mut last) = (0, None);
        let said = world.messages_of(&room.room_id);
        for message in said.filter(|message| message.r#type == MessageType::Chat) {
            let sender = &message.sender_user_id;
            if world.kind_of(sender).is_person() {
                (exchanges, last) = (0, None);
                continue;
            }
            let mut others = world.messages_of(&room.room_id);
            let parent = others
                .find(|other| Some(other.seq) == message.reply_to_seq && other.via == Via::Agent);
            let to = parent.map(|parent| &parent.sender_user_id);
            let is_exchange = to.into_iter().chain(last).any(|other| other != sender);
            exchanges += i64::from(is_exchange);
            last = Some(sender);
            assert!(most == 0 || exchanges <= most, "{exchanges} of {most}");
        }
    }
}

/// Each key posted once, and whoever came with it again for the same was told the same.
fn check_dedup_keys(answers: &[(Post, Result<Posted, Error>)]) {
    let mut first: HashMap<_, (i64, Option<i64>)> = HashMap::new();
    for (post, answer) in answers {
        let (Some(key), Some(user), Ok(posted)) = (&post.client_key, post.user(), answer) else {
            continue;
        };
        let at = (post.room.clone(), user.clone(), key.clone());
        let (seq, reply_to_seq) = first.entry(at).or_insert((posted.seq, post.reply_to_seq));
        assert_eq!((*seq, *reply_to_seq), (posted.seq, post.reply_to_seq));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn seqs_limits_and_keys_hold_in_any_group(start in worlds(), arrivals in arrivals()) {
        let mut world = start.clone();
        let (mut cache, mut log, mut answers) = (PostingCache::default(), Vec::new(), Vec::new());
        for arrival in &arrivals {
            world.now += arrival.after_ms;
            let posts: Vec<Post> = arrival.posts.iter().map(|spec| spec.to_post(&world)).collect();
            let decided = world.decides_from_memory(&posts, &mut cache);
            let chats = decided.messages.iter().filter(|said| said.r#type == MessageType::Chat);
            let mut chats = chats.cloned();
            for (post, answer) in posts.into_iter().zip(decided.answers) {
                match &answer {
                    Err(error) => prop_assert!(is_expected(error), "{error}"),
                    // Who came with a key again was answered, and nothing was posted.
                    Ok(posted) if log.iter().any(|((_, said), _): &(Logged, IpAddr)| {
                        said.room_id == post.room && said.seq == posted.seq
                    }) => {}
                    Ok(_) => log.push(((world.now, chats.next().unwrap()), post.ip)),
                }
                answers.push((post, answer));
            }
            prop_assert!(chats.next().is_none(), "whatever was posted was answered");
        }
        world.assert_no_gap_and_no_double();
        check_windows(&world, &log);
        check_depths(&world);
        check_budgets(&world);
        check_exchanges(&world);
        check_dedup_keys(&answers);
    }

    #[test]
    fn a_group_is_decided_as_its_posts_would_be_one_by_one(
        start in worlds(),
        arrivals in arrivals(),
    ) {
        let [mut asking, mut asking_singly, mut remembering, mut remembering_singly] =
            [(); 4].map(|()| start.clone());
        let (mut cache, mut cache_singly) = (PostingCache::default(), PostingCache::default());
        for arrival in &arrivals {
            for world in [
                &mut asking,
                &mut asking_singly,
                &mut remembering,
                &mut remembering_singly,
            ] {
                world.now += arrival.after_ms;
            }
            let posts: Vec<Post> = arrival.posts.iter().map(|spec| spec.to_post(&start)).collect();
            let together = asking.decides_by_asking(&posts);
            let remembered = remembering.decides_from_memory(&posts, &mut cache);
            prop_assert_eq!(shown(&together), shown(&remembered));
            for (post, answer) in posts.iter().zip(&together.answers) {
                let post = std::slice::from_ref(post);
                let one = asking_singly.decides_by_asking(post);
                let other = remembering_singly.decides_from_memory(post, &mut cache_singly);
                for one in [one, other] {
                    prop_assert_eq!(format!("{answer:?}"), format!("{:?}", one.answers[0]));
                }
            }
        }
        for other in [&asking_singly, &remembering, &remembering_singly] {
            prop_assert_eq!(format!("{:?}", &asking.log), format!("{:?}", &other.log));
            prop_assert_eq!(format!("{:?}", &asking.rooms), format!("{:?}", &other.rooms));
            prop_assert_eq!(&asking.spent, &other.spent);
            for (at, poster) in &asking.posters {
                prop_assert_eq!(poster.addressed_by(), other.posters[at].addressed_by());
            }
        }
    }
}
