//! The rules of posting against populations of agents that lie: about what they answer, how deep
//! they are and what they are. Whoever is called or reads always answers.

use super::rules::{Decided, Known, KnownRoom, Post, decide};
use crate::{
    auth::{Credential, TokenType, User},
    clock::Now,
    config::Limits,
    services::{
        change::exchanges::Voice,
        checks::Content,
        delivery::{Answered, answerable},
    },
    store::{
        group::NewMessage,
        posting::{ParentRow, PosterRow, PostingKeyRow},
        rooms::RoomRow,
    },
};
use proptest::prelude::*;
use protocol::{ErrorCode, MessageType, Scope, UserId, Via, Visibility};
use serde_json::json;
use std::{collections::HashMap, net::IpAddr, sync::Arc};

const ROOM: &str = "rm_abcdef";
/// More rounds than any honest budget lasts.
const ROUNDS: usize = 400;

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

    fn member_kind(self) -> &'static str {
        match self {
            Self::Pull => "external_agent",
            Self::ClaimsToBeHuman => "external_user",
            Self::Container | Self::Push | Self::Person => "starchild_agent",
            Self::SignedIn => "starchild_user",
        }
    }
}

/// What a liar says that it answers.
#[derive(Debug, Clone, Copy)]
enum Claim {
    Nothing,
    TheFirstMessage,
    TheNewest,
}

/// How a member answers.
#[derive(Debug, Clone, Copy)]
struct Manner {
    kind: Kind,
    claim: Claim,
    mentions: bool,
    /// Messages for each one it reads.
    words: usize,
}

/// A room in a store that is nothing but this.
#[derive(Clone)]
struct World {
    room: RoomRow,
    posters: HashMap<UserId, PosterRow>,
    kinds: Vec<Kind>,
    log: Vec<NewMessage>,
    limits: Limits,
    now: i64,
}

fn user(n: usize) -> UserId {
    format!("u_{n}").parse().unwrap()
}

impl World {
    fn new(kinds: Vec<Kind>, budget: i64, depth: i64) -> Self {
        let posters = kinds.iter().enumerate().map(|(n, kind)| {
            let row = PosterRow {
                room_id: ROOM.parse().unwrap(),
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
            };
            (user(n), row)
        });
        Self {
            room: RoomRow {
                room_id: ROOM.parse().unwrap(),
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
            },
            posters: posters.collect(),
            kinds,
            log: Vec::new(),
            limits: Limits {
                agent_messages_per_minute: 0,
                agent_cooldown_seconds: 0,
                web_messages_per_hour_per_key: 0,
                web_messages_per_hour_per_ip: 0,
                agent_exchanges_without_person: budget,
                ..Limits::default()
            },
            now: 1_800_000_000_000,
        }
    }

    /// What the store knows, as if it had just been asked.
    fn load(&self) -> Known {
        let room = KnownRoom {
            row: self.room.clone(),
            authors: self.posters.clone(),
        };
        let mut known = Known::default();
        known.begin_group(Some(1), Now(self.now));
        known.rooms.insert(ROOM.parse().unwrap(), room);
        for n in 0..self.kinds.len() {
            let web = matches!(self.kinds[n], Kind::ClaimsToBeHuman | Kind::Person);
            let key = PostingKeyRow {
                jti: format!("k_{n}"),
                scope: Scope::ViewPost,
                posts_as: if web { Via::Web } else { Via::Agent },
                shared: false,
                expires_at: i64::MAX,
                revoked: false,
            };
            known.keys.insert(key.jti.clone(), key);
        }
        self.load_parents(&mut known);
        known
    }

    fn load_parents(&self, known: &mut Known) {
        for message in &self.log {
            let row = ParentRow {
                room_id: ROOM.parse().unwrap(),
                seq: message.seq,
                sender_user_id: message.sender_user_id.clone(),
                via: message.via.clone(),
                reply_chain_depth: message.reply_chain_depth,
            };
            known
                .parents
                .insert((ROOM.parse().unwrap(), message.seq), row);
        }
    }

    /// Writes what was decided.
    fn store(&mut self, known: &Known, decided: &Decided) {
        self.room = known.rooms[ROOM].row.clone();
        for addressed in decided.addressed() {
            let poster = self.posters.get_mut(addressed.user).unwrap();
            poster.set_addressed(addressed.by);
        }
        self.log.extend(decided.messages.iter().cloned());
    }

    fn post(&self, n: usize, content: &str, reply_to_seq: Option<i64>) -> Post {
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
                let claims = json!({"kind": "room_key", "jti": format!("k_{n}"), "room_id": ROOM,
                    "user_id": user(n), "scope": "view+post", "iat": 0, "exp": i64::MAX});
                Credential::RoomKey(Arc::new(serde_json::from_value(claims).unwrap()))
            }
        };
        let mentioned = |user: &&UserId| content.contains(&format!("@{user}"));
        let mut mentions: Vec<UserId> = self.posters.keys().filter(mentioned).cloned().collect();
        mentions.sort();
        Post {
            room: ROOM.parse().unwrap(),
            credential,
            mentions,
            ambiguous: Vec::new(),
            ip: IpAddr::from([127, 0, 0, 1]),
            content: Content::new(content.to_owned()).unwrap(),
            reply_to_seq,
            depth: 0,
            client_key: None,
            usage: None,
        }
    }

    /// Posts; whether that was accepted.
    fn says(&mut self, n: usize, content: &str, reply_to_seq: Option<i64>) -> bool {
        self.now += 1;
        let post = self.post(n, content, reply_to_seq);
        let mut known = self.load();
        let decided = decide(&[post], &mut known, &self.limits, true, Now(self.now));
        self.store(&known, &decided);
        match &decided.answers[0] {
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

    /// The server calls a push agent for a message and posts its answer, as the fan-out does.
    fn is_called(&mut self, n: usize, seq: i64) -> bool {
        self.now += 1;
        let (user, now) = (user(n), Now(self.now));
        let asked = self.log.iter().find(|message| message.seq == seq).unwrap();
        let depth = asked.reply_chain_depth;
        let answered = Answered {
            seq,
            depth,
            sender: asked.sender_user_id.clone(),
            via: asked.via.clone(),
        };
        let Ok(admission) = answerable(&self.room, &user, &answered, &self.limits, now) else {
            return false;
        };
        let mut message = NewMessage {
            seq: self.room.last_seq + 1,
            sender_user_id: user.clone(),
            via: Via::Agent,
            r#type: MessageType::Chat,
            reply_to_seq: Some(seq),
            reply_chain_depth: depth + 1,
            ..asked.clone()
        };
        self.log.push(message.clone());
        let notice = admission.enter(&mut self.room, &user, &self.limits, now);
        if let Some(words) = notice {
            message.seq += 1;
            message.r#type = MessageType::System;
            message.content = words;
            message.calls_agents = false;
            self.log.push(message.clone());
        }
        self.room.last_seq = message.seq;
        true
    }

    /// Lets everybody answer whatever others said, until a round brings nothing new.
    fn runs_until_silent(&mut self, manners: &[Manner]) {
        let mut seen = vec![0; manners.len()];
        for _ in 0..ROUNDS {
            let before = self.log.len();
            for (n, manner) in manners.iter().enumerate() {
                let me = user(n);
                let news: Vec<i64> = self
                    .log
                    .iter()
                    .filter(|message| message.seq > seen[n] && message.calls_agents)
                    .filter(|message| message.sender_user_id != me)
                    .map(|message| message.seq)
                    .collect();
                seen[n] = self.room.last_seq;
                if manner.kind.is_person() {
                    continue;
                }
                let Some(newest) = news.last() else { continue };
                let next = user((n + 1) % manners.len());
                let content = match manner.mentions {
                    true => format!("I say, @{next}"),
                    false => "I say".to_owned(),
                };
                let claim = match manner.claim {
                    Claim::Nothing => None,
                    Claim::TheFirstMessage => Some(1),
                    Claim::TheNewest => Some(*newest),
                };
                for _ in 0..manner.words {
                    match manner.kind {
                        Kind::Push => news.iter().for_each(|seq| {
                            self.is_called(n, *seq);
                        }),
                        _ => {
                            self.says(n, &content, claim);
                        }
                    }
                }
            }
            if self.log.len() == before {
                return;
            }
        }
        panic!("the room does not fall silent: {} messages", self.log.len());
    }

    /// Counts again, by another way: the exchanges after each person's word, and the notices.
    fn check_the_budget(&self) {
        let budget = self.limits.agent_exchanges_without_person;
        let (mut exchanges, mut last, mut used_up, mut notices) = (0, None, 0, 0);
        for message in &self.log {
            if message.r#type == MessageType::System {
                notices += 1;
                continue;
            }
            let n = (0..self.kinds.len()).find(|n| user(*n) == message.sender_user_id);
            if self.kinds[n.unwrap()].is_person() {
                (exchanges, last) = (0, None);
                continue;
            }
            let answered = message.reply_to_seq.and_then(|seq| {
                let mut log = self.log.iter();
                log.find(|other| other.seq == seq && other.via == Via::Agent)
            });
            let others = answered.map(|other| &other.sender_user_id);
            if others
                .into_iter()
                .chain(last)
                .any(|other| other != &message.sender_user_id)
            {
                exchanges += 1;
                used_up += i64::from(exchanges == budget);
            }
            last = Some(&message.sender_user_id);
            assert!(exchanges <= budget, "{exchanges} of {budget}");
        }
        assert_eq!(
            notices, used_up,
            "one notice each time the budget is used up"
        );
        let seqs: Vec<i64> = self.log.iter().map(|message| message.seq).collect();
        let all: Vec<i64> = (1..=self.room.last_seq).collect();
        assert_eq!(seqs, all, "no gap and no double");
    }
}

fn manners() -> impl Strategy<Value = Vec<Manner>> {
    let kind = prop_oneof![
        Just(Kind::Pull),
        Just(Kind::ClaimsToBeHuman),
        Just(Kind::Container),
        Just(Kind::Push),
    ];
    let claim = prop_oneof![
        Just(Claim::Nothing),
        Just(Claim::TheFirstMessage),
        Just(Claim::TheNewest)
    ];
    let manner =
        (kind, claim, any::<bool>(), 1..3usize).prop_map(|(kind, claim, mentions, words)| Manner {
            kind,
            claim,
            mentions,
            words,
        });
    prop::collection::vec(manner, 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_room_of_liars_falls_silent_and_a_person_is_always_heard(
        mut manners in manners(),
        budget in 1..8i64,
        depth in 1..50i64,
        signed_in in any::<bool>(),
        words in 1..3usize,
    ) {
        let kind = if signed_in { Kind::SignedIn } else { Kind::Person };
        manners.push(Manner { kind, claim: Claim::Nothing, mentions: false, words: 0 });
        let kinds: Vec<Kind> = manners.iter().map(|manner| manner.kind).collect();
        let person = kinds.len() - 1;
        let mut world = World::new(kinds, budget, depth);
        for _ in 0..words {
            prop_assert!(world.says(person, "Hello, all", None));
            world.runs_until_silent(&manners);
            world.check_the_budget();
        }
    }

    #[test]
    fn a_group_is_decided_as_its_posts_would_be_one_by_one(
        posts in prop::collection::vec((0..5usize, 0..4usize, prop::option::of(1..6i64)), 1..20),
        budget in 0..6i64,
    ) {
        let kinds = [Kind::Pull, Kind::ClaimsToBeHuman, Kind::Container, Kind::Pull, Kind::Person];
        let start = World::new(kinds.to_vec(), budget, 3);
        let posts: Vec<Post> = posts
            .iter()
            .map(|(n, to, reply)| start.post(*n, &format!("I say, @{}", user(*to)), *reply))
            .collect();
        let now = Now(start.now);
        let mut together = start.clone();
        let mut known = together.load();
        let decided = decide(&posts, &mut known, &start.limits, true, now);
        together.store(&known, &decided);
        // As on PostgreSQL, where each group asks the store; and as on SQLite, which remembers.
        let (mut asking, mut remembering) = (start.clone(), start.clone());
        let mut memory = remembering.load();
        for (post, answer) in posts.iter().zip(&decided.answers) {
            let post = std::slice::from_ref(post);
            let mut known = asking.load();
            let one = decide(post, &mut known, &start.limits, true, now);
            asking.store(&known, &one);
            memory.begin_group(Some(1), now);
            remembering.load_parents(&mut memory);
            let remembered = decide(post, &mut memory, &start.limits, true, now);
            remembering.store(&memory, &remembered);
            for other in [&one.answers[0], &remembered.answers[0]] {
                prop_assert_eq!(format!("{answer:?}"), format!("{other:?}"));
            }
        }
        for other in [&asking, &remembering] {
            prop_assert_eq!(format!("{:?}", &together.log), format!("{:?}", &other.log));
            prop_assert_eq!(format!("{:?}", &together.room), format!("{:?}", &other.room));
            for (user, poster) in &together.posters {
                prop_assert_eq!(poster.addressed_by(), other.posters[user].addressed_by());
            }
        }
    }
}

#[test]
fn a_feed_of_one_bot_is_no_exchange() {
    let mut world = World::new(vec![Kind::Pull, Kind::Pull], 2, 5);
    for _ in 0..100 {
        assert!(world.says(0, "the news", None));
    }
    assert_eq!(world.room.exchanges, 0);
    assert!(world.says(1, "thanks", None));
    assert_eq!(world.room.exchanges, 1);
}

#[test]
fn an_hour_without_an_exchange_lets_agents_begin_anew() {
    let mut world = World::new(vec![Kind::Pull, Kind::Pull], 2, 5);
    assert!(
        world.says(0, "one", None) && world.says(1, "two", None) && world.says(0, "three", None)
    );
    assert!(!world.says(1, "four", None));
    world.now += 3_599_000;
    assert!(!world.says(1, "four", None));
    assert!(world.says(0, "a bot may go on with its feed", None));
    world.now += 2_000;
    assert!(world.says(1, "four", None));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_the_wait() {
    let mut world = World::new(vec![Kind::Pull, Kind::Pull], 1, 5);
    assert!(
        world.says(0, "one", None) && world.says(1, "two", None) && !world.says(0, "three", None)
    );
    world.now -= 3_600_000;
    assert!(world.says(0, "three", None));
}

#[test]
fn an_agent_that_does_not_say_what_it_answers_is_taken_to_answer_what_addressed_it() {
    let mut world = World::new(vec![Kind::Pull, Kind::Pull, Kind::Person], 0, 3);
    assert!(world.says(2, "@u_0, begin", None));
    let (mut said, mut who) = (0, 0);
    while world.says(who, &format!("your turn, @u_{}", 1 - who), None) {
        said += 1;
        who = 1 - who;
    }
    assert_eq!(said, 3, "as deep as the room allows");
    // Whoever answers one of its messages addresses an agent, too.
    assert!(world.says(2, "I ask that", Some(2)));
    assert!(world.says(0, "so?", None));
    assert_eq!(world.log.last().unwrap().reply_chain_depth, 1);
    // What nobody asked for stands at the top.
    assert!(world.says(0, "by the way", None));
    assert_eq!(world.log.last().unwrap().reply_chain_depth, 0);
}

#[test]
fn nobody_is_kept_quiet_by_being_addressed_from_the_depth() {
    let mut world = World::new(vec![Kind::Pull, Kind::Pull], 0, 1);
    assert!(world.says(0, "one", None));
    assert!(world.says(1, "two, @u_0", Some(1)));
    assert!(!world.says(0, "too deep", None));
    world.now += 600_000;
    assert!(world.says(0, "later it is no answer any more", None));
}

#[test]
fn nothing_makes_a_liar_a_person() {
    for (via, kind, signed_in, voice) in [
        (Via::Web, "external_user", false, Voice::Agent),
        (Via::Agent, "external_agent", false, Voice::Agent),
        (Via::Agent, "starchild_agent", false, Voice::Agent),
        (Via::Agent, "starchild_user", false, Voice::Agent),
        (Via::Web, "starchild_user", false, Voice::Person),
        (Via::Web, "starchild_agent", false, Voice::Person),
        (Via::Agent, "starchild_user", true, Voice::Person),
    ] {
        assert_eq!(
            Voice::of(&via, &kind.parse().unwrap(), signed_in),
            voice,
            "{via:?} {kind}"
        );
    }
}
