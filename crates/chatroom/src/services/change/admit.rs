//! Whether words may enter a room, without I/O: the one rule for posts, for agents' answers that the
//! server collects, asked before an agent is called too, and for edits.

use super::exchanges::{self, Answers, Effect, UsedUp, Voice, Word};
use crate::{
    clock::Now, config::Limits, error::Error, services::access::archived, store::rooms::RoomRow,
};
use protocol::{ErrorCode, UserId};

/// Words that somebody wants to bring into a room.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub voice: Voice,
    pub user: &'a UserId,
    /// The message that they answer, where they say so.
    pub answers: Option<Answers<'a>>,
    /// How deep in a chain of answers they would stand; none for words that stand there already.
    pub depth: Option<i64>,
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
pub struct Admission(Effect);

/// Whether these words may enter the room.
pub fn admit(
    room: &RoomRow,
    words: Words<'_>,
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
    let word = Word {
        voice: words.voice,
        user: words.user,
        answers: words.answers,
    };
    let effect = exchanges::weigh(room, word, limits, now).map_err(Refusal::UsedUp)?;
    Ok(Admission(effect))
}

impl Admission {
    /// Lets the room know of the words. Gives what the room is to be told, where it is.
    pub fn enter(
        self,
        room: &mut RoomRow,
        user: &UserId,
        limits: &Limits,
        now: Now,
    ) -> Option<String> {
        exchanges::apply(room, self.0, user, limits, now)
    }
}
