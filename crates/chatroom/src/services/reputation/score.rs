//! What moves a score, and by how much. Pure: no clock, no store.
//!
//! [`candidates`] finds what may count among new messages, [`Ledger::apply_caps`] applies the caps and
//! the newcomer's boost, and [`Sums`] gives a score at any moment.

use protocol::{RoomId, ScoreKind, ScoringRules, UserId};
use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
};

/// Grows when anything below changes.
pub const VERSION: i64 = 1;
pub const DAY: i64 = 86_400;
pub const DECAY_DAYS: i64 = 30;
pub const NEWCOMER_DAYS: i64 = 7;
pub const NEWCOMER_BOOST: f64 = 1.5;
/// Direct replies that make a thread count.
pub const THREAD_REPLIES: i64 = 3;

const KINDS: [ScoreKind; 6] = [
    ScoreKind::ReactionReceived,
    ScoreKind::MentionReceived,
    ScoreKind::ThreadStartedReplies,
    ScoreKind::PostAuthored,
    ScoreKind::PenaltyMessageDeletedByOwner,
    ScoreKind::PenaltyKick,
];

/// What an event is worth when it is new.
pub const fn points(kind: ScoreKind) -> f64 {
    match kind {
        ScoreKind::ReactionReceived => 3.0,
        ScoreKind::MentionReceived => 2.0,
        ScoreKind::ThreadStartedReplies => 5.0,
        ScoreKind::PostAuthored => 0.5,
        ScoreKind::PenaltyMessageDeletedByOwner => -10.0,
        ScoreKind::PenaltyKick => -25.0,
    }
}

/// How often a day it counts, for each pair of whose doing it was and whose score it is.
pub const fn daily_cap(kind: ScoreKind) -> Option<i64> {
    match kind {
        ScoreKind::ReactionReceived => Some(3),
        ScoreKind::MentionReceived => Some(5),
        ScoreKind::PostAuthored => Some(20),
        ScoreKind::ThreadStartedReplies
        | ScoreKind::PenaltyMessageDeletedByOwner
        | ScoreKind::PenaltyKick => None,
    }
}

/// The UTC day of a moment, counted from 1970.
pub const fn day_of(at: i64) -> i64 {
    at.div_euclid(DAY)
}

/// The oldest day whose events count.
pub const fn first_day_that_counts(now: i64) -> i64 {
    day_of(now) - (DECAY_DAYS - 1)
}

/// What is left of an event's points after so many seconds.
pub fn decay(age: i64) -> f64 {
    (1.0 - age as f64 / (DECAY_DAYS * DAY) as f64).clamp(0.0, 1.0)
}

/// By how much an event counts more, given the user's first event ever. Penalties never do.
pub fn boost(kind: ScoreKind, at: i64, first: i64) -> f64 {
    match points(kind) > 0.0 && at < first + NEWCOMER_DAYS * DAY {
        true => NEWCOMER_BOOST,
        false => 1.0,
    }
}

/// The rules as they are told to everybody.
pub fn rules() -> ScoringRules {
    let pairs = [ScoreKind::ReactionReceived, ScoreKind::MentionReceived];
    ScoringRules {
        version: VERSION,
        decay_days: DECAY_DAYS,
        newcomer_boost_days: NEWCOMER_DAYS,
        newcomer_boost_mult: NEWCOMER_BOOST,
        weights: KINDS.map(|kind| (kind, points(kind))).into(),
        per_day_caps: pairs
            .iter()
            .filter_map(|kind| Some((*kind, daily_cap(*kind)?)))
            .collect(),
        post_authored_daily_cap: daily_cap(ScoreKind::PostAuthored).unwrap_or_default(),
        formula: "score = sum over events in window of (points × decay × newcomer_boost). \
            decay = 1 − age / 30 days, by the second, never below 0; it applies to penalties too. \
            newcomer_boost = 1.5 for events less than 7 days after the user's first event ever, else 1; \
            penalties are never boosted. The window is the given number of UTC days, today included. \
            Caps count by UTC day over all rooms: reactions and mentions for each pair of users, posts for \
            each user. A reaction counts once ever for its reactor, emoji and message, also when it is taken \
            back. A message counts as it was first posted: editing or deleting it changes nothing. A thread \
            counts once, when its first message has 3 direct replies of others. Nothing that users do to \
            themselves counts, except posting."
            .to_owned(),
    }
}

/// Something that happened and may count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreEvent {
    pub room_id: RoomId,
    /// Whose score it moves.
    pub user_id: UserId,
    pub kind: ScoreKind,
    /// Whose doing it was.
    pub source_user_id: UserId,
    pub source_seq: i64,
    pub source_emoji: Option<String>,
    /// In unix seconds.
    pub at: i64,
}

/// An event that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    pub event: ScoreEvent,
    pub points: f64,
    pub boost: f64,
}

/// A message, as scoring sees it.
#[derive(Debug, Clone)]
pub struct ChatPost {
    pub seq: i64,
    pub author: UserId,
    pub reply_to_seq: Option<i64>,
    pub at: i64,
    /// Whom it mentioned when it was posted.
    pub mentions: Vec<UserId>,
}

/// What may count among these messages, in order. `roots` tells who began the threads that are
/// replied to; `replies` counts the replies that each has from others.
pub fn candidates(
    room: &RoomId,
    posts: &[ChatPost],
    roots: &HashMap<i64, UserId>,
    replies: &mut BTreeMap<i64, i64>,
) -> Vec<ScoreEvent> {
    let mut found = Vec::new();
    for post in posts {
        let event = |user: &UserId, kind, seq| ScoreEvent {
            room_id: room.clone(),
            user_id: user.clone(),
            kind,
            source_user_id: post.author.clone(),
            source_seq: seq,
            source_emoji: None,
            at: post.at,
        };
        found.push(event(&post.author, ScoreKind::PostAuthored, post.seq));
        for user in post.mentions.iter().filter(|user| **user != post.author) {
            found.push(event(user, ScoreKind::MentionReceived, post.seq));
        }
        if let Some(root) = post.reply_to_seq
            && let Some(author) = roots.get(&root).filter(|author| **author != post.author)
        {
            let count = replies.entry(root).or_default();
            *count += 1;
            if *count == THREAD_REPLIES {
                found.push(event(author, ScoreKind::ThreadStartedReplies, root));
            }
        }
    }
    found
}

/// What the caps count: whose score, what, whose doing, on which day.
pub type Pair = (UserId, ScoreKind, UserId, i64);

impl ScoreEvent {
    /// What the caps count it under.
    pub fn pair(&self) -> Pair {
        let (user, source) = (self.user_id.clone(), self.source_user_id.clone());
        (user, self.kind, source, day_of(self.at))
    }

    /// Whether it would be users' own doing for themselves.
    fn is_self_credit(&self) -> bool {
        self.user_id == self.source_user_id && self.kind != ScoreKind::PostAuthored
    }
}

/// What is known of the users concerned: how much was counted, and since when.
#[derive(Debug, Default)]
pub struct Ledger {
    pub counts: HashMap<Pair, i64>,
    /// Each user's first event ever.
    pub first: BTreeMap<UserId, i64>,
}

impl Ledger {
    /// Those of the events that count, each seeing what the ones before it did.
    pub fn apply_caps(&mut self, events: Vec<ScoreEvent>) -> Vec<Scored> {
        let mut counted = Vec::new();
        for event in events {
            let count = self.counts.entry(event.pair()).or_default();
            let full = daily_cap(event.kind).is_some_and(|cap| *count >= cap);
            if full || event.is_self_credit() {
                continue;
            }
            *count += 1;
            let first = self.first.entry(event.user_id.clone()).or_insert(event.at);
            *first = event.at.min(*first);
            counted.push(Scored {
                points: points(event.kind),
                boost: boost(event.kind, event.at, *first),
                event,
            });
        }
        counted
    }
}

/// Events summed: decay is linear, so a score at any moment follows from these.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    pub events: i64,
    /// Boosted points.
    pub points: f64,
    /// Boosted points times the event's time in unix seconds. Points are quarters, so this is
    /// exact up to some millions of them.
    pub moment: f64,
}

impl Sums {
    /// Adds an event.
    pub fn add(&mut self, scored: &Scored) {
        let points = scored.points * scored.boost;
        *self += Self {
            events: 1,
            points,
            moment: points * scored.event.at as f64,
        };
    }
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, more: Self) {
        self.events += more.events;
        self.points += more.points;
        self.moment += more.moment;
    }
}

/// A user's sums of all time. Beside them it is kept what they were when days began, for every day
/// after the first with events and up to the newest; before the first they were nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    pub sums: Sums,
    /// The newest day with events.
    pub last_day: Option<i64>,
}

impl Totals {
    /// Adds what came about on a day. The days whose beginning this changes, as far back as
    /// anything counts, and what is to be added to what the totals were then.
    pub fn add(&mut self, day: i64, sums: Sums) -> (RangeInclusive<i64>, Sums) {
        let last = self.last_day.unwrap_or(day);
        let changed = match day > last {
            // These days begin only now: with what there was.
            true => ((last + 1).max(day - DECAY_DAYS + 1)..=day, self.sums),
            // These began without what is found now. There are none if it is the newest day.
            false => ((day + 1).max(last - DECAY_DAYS + 1)..=last, sums),
        };
        self.sums += sums;
        self.last_day = Some(last.max(day));
        changed
    }
}

/// The days that count now, and how.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The first day that counts.
    pub first_day: i64,
    /// What points are multiplied by.
    pub of_points: f64,
    /// What the moment is multiplied by.
    pub of_moment: f64,
}

impl Window {
    /// So many days, today included. Days beyond decay are worth nothing.
    pub fn new(days: i64, now: i64) -> Self {
        let first_day = day_of(now) - (days.min(DECAY_DAYS) - 1);
        let whole = (DECAY_DAYS * DAY) as f64;
        Self {
            first_day,
            of_points: 1.0 - now as f64 / whole,
            of_moment: 1.0 / whole,
        }
    }

    /// When the window begins, in unix seconds.
    pub fn begin(&self) -> i64 {
        self.first_day * DAY
    }

    /// The score, in hundredths.
    pub fn score(&self, sums: Sums) -> f64 {
        let exact = sums.points * self.of_points + sums.moment * self.of_moment;
        // Adding zero turns a negative zero into zero.
        (exact * 100.0).round() / 100.0 + 0.0
    }
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
