//! The rules of posting against populations of agents that lie: about what they answer, how deep
//! they are and what they are. Whoever is called or reads always answers.

use super::{Kind, World, room, room_row, user};
use crate::{
    clock::Now,
    services::{
        change::{
            AuthorKind,
            message::{self, Draft},
        },
        delivery::{Answered, answerable},
    },
};
use proptest::prelude::*;
use protocol::{MessageType, Via};

/// More rounds than any honest budget lasts.
const ROUNDS: usize = 400;

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

impl World {
    /// The server calls a push agent for a message and posts its answer, as the fan-out does.
    fn is_called(&mut self, n: usize, seq: i64) -> bool {
        self.now += 1;
        let (user, now) = (user(n), Now(self.now));
        let asked = self.log.iter().find(|message| message.seq == seq).unwrap();
        let answered = Answered {
            seq,
            depth: asked.reply_chain_depth,
            sender: asked.sender_user_id.clone(),
            via: asked.via.clone(),
        };
        let Ok(admission) = answerable(self.room(), &user, &answered, &self.limits, now) else {
            return false;
        };
        let draft = Draft {
            user_id: user,
            user_name: None,
            via: Via::Agent,
            content: "I answer".into(),
            reply_to_seq: Some(seq),
            client_key: None,
            usage: None,
            calls_agents: true,
            mentions: &[],
            answered: Some(&answered.sender),
        };
        let first = self.rooms.get_mut(&room(0)).unwrap();
        let entered = message::enter(first, admission, draft, &self.limits, now);
        self.log
            .extend([entered.message].into_iter().chain(entered.notice));
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
                seen[n] = self.room().last_seq;
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
            if self.kind_of(&message.sender_user_id).is_person() {
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
        self.assert_no_gap_and_no_double();
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
        let mut world = World::new(vec![room_row(0, depth)], kinds, budget);
        for _ in 0..words {
            prop_assert!(world.says(person, "Hello, all", None));
            world.runs_until_silent(&manners);
            world.check_the_budget();
        }
    }
}

#[test]
fn a_feed_of_one_bot_is_no_exchange() {
    let mut world = World::new(vec![room_row(0, 5)], vec![Kind::Pull, Kind::Pull], 2);
    for _ in 0..100 {
        assert!(world.says(0, "the news", None));
    }
    assert_eq!(world.room().exchanges, 0);
    assert!(world.says(1, "thanks", None));
    assert_eq!(world.room().exchanges, 1);
}

#[test]
fn an_hour_without_an_exchange_lets_agents_begin_anew() {
    let mut world = World::new(vec![room_row(0, 5)], vec![Kind::Pull, Kind::Pull], 2);
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
    let mut world = World::new(vec![room_row(0, 5)], vec![Kind::Pull, Kind::Pull], 1);
    assert!(
        world.says(0, "one", None) && world.says(1, "two", None) && !world.says(0, "three", None)
    );
    world.now -= 3_600_000;
    assert!(world.says(0, "three", None));
}

#[test]
fn an_agent_that_does_not_say_what_it_answers_is_taken_to_answer_what_addressed_it() {
    let mut world = World::new(
        vec![room_row(0, 3)],
        vec![Kind::Pull, Kind::Pull, Kind::Person],
        0,
    );
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
    let mut world = World::new(vec![room_row(0, 1)], vec![Kind::Pull, Kind::Pull], 0);
    assert!(world.says(0, "one", None));
    assert!(world.says(1, "two, @u_0", Some(1)));
    assert!(!world.says(0, "too deep", None));
    world.now += 600_000;
    assert!(world.says(0, "later it is no answer any more", None));
}

#[test]
fn nothing_makes_a_liar_a_person() {
    for (via, kind, signed_in, voice) in [
        (Via::Web, "external_user", false, AuthorKind::Agent),
        (Via::Agent, "external_agent", false, AuthorKind::Agent),
        (Via::Agent, "starchild_agent", false, AuthorKind::Agent),
        (Via::Agent, "starchild_user", false, AuthorKind::Agent),
        (Via::Web, "starchild_user", false, AuthorKind::Person),
        (Via::Web, "starchild_agent", false, AuthorKind::Person),
        (Via::Agent, "starchild_user", true, AuthorKind::Person),
    ] {
        assert_eq!(
            AuthorKind::of(&via, &kind.parse().unwrap(), signed_in),
            voice,
            "{via:?} {kind}"
        );
    }
}
