//! Whether an agent's answer could be posted. Asked before the agent is called, since nobody should
//! work for nothing, and again before its answer is posted.

use super::settle::Settled;
use crate::{
    clock::Now,
    config::Limits,
    metrics::Delivered,
    services::change::{Admission, AuthorKind, Candidate, Parent, Refusal, admit, answer_depth},
    store::rooms::RoomRow,
};
use protocol::{UserId, Via};

impl From<Refusal> for Settled {
    fn from(why: Refusal) -> Self {
        match why {
            // The lane waits until messages can be posted again.
            Refusal::Archived => Self::Lost,
            Refusal::TooDeep { .. } => Self::TooDeep,
            Refusal::UsedUp(_) => Self::UsedUp,
        }
    }
}

impl From<Refusal> for Delivered {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::Archived => Self::Lost,
            Refusal::TooDeep { .. } => Self::TooDeep,
            Refusal::UsedUp(_) => Self::UsedUp,
        }
    }
}

/// A message that an agent is to answer, or has.
#[derive(Debug, Clone)]
pub struct Answered {
    pub seq: i64,
    pub depth: i64,
    pub sender: UserId,
    pub via: Via,
}

/// Whether an agent's answer to a message may enter the room.
pub fn answerable(
    room: &RoomRow,
    user: &UserId,
    answered: &Answered,
    limits: &Limits,
    now: Now,
) -> Result<Admission, Refusal> {
    let words = Candidate {
        author: AuthorKind::Agent,
        user,
        parent: Some(Parent {
            user: &answered.sender,
            via: &answered.via,
        }),
        depth: Some(answer_depth(answered.depth)),
    };
    admit(room, words, limits, now)
}
