//! Whether words may enter a room, without I/O: the one rule for posts, for agents' answers that the
//! server collects, asked before an agent is called too, and for edits.

use super::exchanges::{self, Effect, UsedUp};
use crate::{
    clock::Now, config::Limits, error::Error, services::access::archived, store::rooms::RoomRow,
};
use protocol::{ErrorCode, MemberKind, UserId, Via};

/// Words that somebody wants to bring into a room.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub author: AuthorKind,
    pub user: &'a UserId,
    /// The message that they answer, where they say so.
    pub parent: Option<Parent<'a>>,
    /// How deep in a chain of answers they would stand; none for words that stand there already.
    pub depth: Option<i64>,
}

/// Whom words answer, and how that was posted.
#[derive(Debug, Clone, Copy)]
pub struct Parent<'a> {
    pub user: &'a UserId,
    pub via: &'a Via,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorKind {
    /// Somebody who signed in.
    Person,
    /// Anything else, whatever it calls itself.
    Agent,
}

impl AuthorKind {
    /// The kind of a member who posts this way. An external member proves nothing about itself:
    /// `client_kind: human` is a claim. `signed_in` is whether the bearer is a person's own token.
    pub fn of(via: &Via, member_kind: &MemberKind, signed_in: bool) -> Self {
        let external = match member_kind {
            MemberKind::StarchildAgent | MemberKind::StarchildUser => false,
            MemberKind::ExternalAgent | MemberKind::ExternalUser | MemberKind::Other(_) => true,
        };
        match (via, external) {
            (Via::Web, false) => Self::Person,
            _ if signed_in => Self::Person,
            _ => Self::Agent,
        }
    }
}

/// How deep an answer stands in the chain, by the depth of what it answers.
pub fn answer_depth(parent: i64) -> i64 {
    parent + 1
}

/// Why they may not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The room takes no changes.
    Archived,
    /// They would stand deeper in a chain of answers than the room allows.
    TooDeep { depth: i64, most: i64 },
    /// The agents may say no more to each other for now.
    UsedUp(UsedUp),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Archived => archived(),
            Refusal::TooDeep { depth, most } => Self::new(
                ErrorCode::ChainTooDeep,
                format!(
                    "This reply would be {depth} deep; agents may answer each other {most} deep in this room"
                ),
            ),
            Refusal::UsedUp(used_up) => used_up.into(),
        }
    }
}

/// The right to enter, and what entering does to the room.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Admission {
    effect: Effect,
    pub(super) depth: i64,
}

/// Whether these words may enter the room.
pub fn admit(
    room: &RoomRow,
    words: Candidate<'_>,
    limits: &Limits,
    now: Now,
) -> Result<Admission, Refusal> {
    if room.archived {
        return Err(Refusal::Archived);
    }
    let most = room.max_reply_chain_depth;
    if let Some(depth) = words.depth.filter(|depth| *depth > most) {
        return Err(Refusal::TooDeep { depth, most });
    }
    let effect = exchanges::effect_of(room, words, limits, now).map_err(Refusal::UsedUp)?;
    Ok(Admission {
        effect,
        depth: words.depth.unwrap_or_default(),
    })
}

impl Admission {
    /// For an alert that is shown though the agents may say no more: it changes nothing for them.
    pub fn shown_only() -> Self {
        Self {
            effect: Effect::Ignored,
            depth: 0,
        }
    }

    /// The exchanges that are left to the agents after these words, where they are counted.
    pub fn exchanges_left(self, room: &RoomRow, limits: &Limits, now: Now) -> Option<i64> {
        exchanges::left_after(room, self.effect, limits, now)
    }

    /// Lets the room know of the words. Gives what the room is to be told, where it is.
    pub(super) fn enter(
        self,
        room: &mut RoomRow,
        user: &UserId,
        limits: &Limits,
        now: Now,
    ) -> Option<String> {
        exchanges::apply(room, self.effect, user, limits, now)
    }
}
