//! How much a room's agents may say to each other without a person's word, without I/O.
//!
//! A message of one agent after another's, or in answer to another's, is an exchange. So a loop ends
//! though every agent in it lies about what it answers.

use super::admit::{AuthorKind, Candidate};
use crate::{clock::Now, config::Limits, error::Error, store::rooms::RoomRow};
use protocol::{ErrorCode, UserId, Via};

/// So long without an exchange, and the agents may begin anew.
const QUIET_MS: i64 = 3_600_000;
/// A last exchange may lie so far in the future and still count: another clock told its time.
const SKEW_MS: i64 = 10_000;

/// Whoever is refused need not wait longer than this to ask again: a person may write at any time.
const LONGEST_WAIT_MS: i64 = 60_000;

impl Candidate<'_> {
    /// Whether it is said to another agent, or after one.
    fn is_exchange(&self, last_agent: Option<&UserId>) -> bool {
        let parent = self.parent.filter(|parent| *parent.via == Via::Agent);
        let others = parent
            .map(|parent| parent.user)
            .into_iter()
            .chain(last_agent);
        others.into_iter().any(|other| other != self.user)
    }
}

/// What a message does to the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A person spoke: the agents may begin anew.
    Refill,
    /// An agent went on, or was the first to speak.
    Free,
    /// An agent spoke after another; so many times by now.
    Exchange(i64),
    /// Nobody answers it.
    Ignored,
}

/// The exchanges that a room allows; 0 for any number.
pub fn allowed(room: &RoomRow, limits: &Limits) -> i64 {
    room.exchange_limit.unwrap_or(if room.is_reserved() {
        limits.reserved_agent_exchanges_without_person
    } else {
        limits.agent_exchanges_without_person
    })
}

/// The exchanges that are left, where they are counted.
pub fn left(room: &RoomRow, limits: &Limits, now: Now) -> Option<i64> {
    left_after(room, Effect::Free, limits, now)
}

/// The exchanges that are left once a message has done this, where they are counted.
pub fn left_after(room: &RoomRow, effect: Effect, limits: &Limits, now: Now) -> Option<i64> {
    let allowed = allowed(room, limits);
    let count = match effect {
        Effect::Refill => 0,
        Effect::Free | Effect::Ignored => so_far(room, now),
        Effect::Exchange(count) => count,
    };
    (allowed > 0).then(|| (allowed - count).max(0))
}

/// The agents may say no more to each other for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp {
    exchanges: i64,
    wait_ms: i64,
}

impl From<UsedUp> for Error {
    fn from(used_up: UsedUp) -> Self {
        let words = format!(
            "Agents have exchanged {} messages in this room without a person's word. They go on \
             when a person writes, when the owner sets agent_exchanges_without_person with PATCH \
             /rooms/{{id}}, or after an hour without an exchange",
            used_up.exchanges
        );
        Self::limited(ErrorCode::RateLimited, &words, used_up.wait_ms)
    }
}

/// What words would do, if the budget allows it.
pub fn effect_of(
    room: &RoomRow,
    words: Candidate<'_>,
    limits: &Limits,
    now: Now,
) -> Result<Effect, UsedUp> {
    if words.author == AuthorKind::Person {
        return Ok(Effect::Refill);
    }
    if !words.is_exchange(room.last_agent.as_ref()) {
        return Ok(Effect::Free);
    }
    let (count, allowed) = (so_far(room, now), allowed(room, limits));
    if allowed > 0 && count >= allowed {
        let quiet = room.exchanged_ms + QUIET_MS - now.millis();
        return Err(UsedUp {
            exchanges: count,
            wait_ms: quiet.min(LONGEST_WAIT_MS),
        });
    }
    Ok(Effect::Exchange(count + 1))
}

/// Lets the room know of a message. Gives what to tell the room where that was the last exchange.
pub fn apply(
    room: &mut RoomRow,
    effect: Effect,
    user: &UserId,
    limits: &Limits,
    now: Now,
) -> Option<String> {
    match effect {
        Effect::Refill => {
            room.exchanges = 0;
            room.last_agent = None;
            return None;
        }
        Effect::Ignored => return None,
        Effect::Free => {}
        Effect::Exchange(count) => {
            room.exchanges = count;
            room.exchanged_ms = now.millis();
        }
    }
    if room.last_agent.as_ref() != Some(user) {
        room.last_agent = Some(user.clone());
    }
    let last = effect == Effect::Exchange(allowed(room, limits));
    last.then(|| {
        format!(
            "Agents have exchanged {} messages without a person's word, so they pause. They go on when \
             a person writes, when the owner allows more, or after an hour.",
            room.exchanges
        )
    })
}

fn so_far(room: &RoomRow, now: Now) -> i64 {
    let counts = room.exchanged_ms - SKEW_MS..room.exchanged_ms + QUIET_MS;
    if counts.contains(&now.millis()) {
        room.exchanges
    } else {
        0
    }
}
