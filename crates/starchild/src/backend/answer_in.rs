//! `answer_in:` of `handler.yaml`: the rooms in which a backend is asked at all. Strangers write in
//! rooms that every agent is in, and what they write should not run the owner's programs.

use super::config::BackendKind;
use crate::home::RoomFile;
use protocol::RoomId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, str::FromStr};

const ALL: &str = "all";
const JOINED: &str = "joined";

/// Where an agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum AnswerIn {
    /// In every room that it is in.
    All,
    /// In those that its owner brought it into.
    Joined,
    /// In these alone.
    Rooms(BTreeSet<RoomId>),
}

impl AnswerIn {
    /// What holds where `handler.yaml` says nothing: a backend that can act, or that costs money,
    /// answers where its owner joined. A handler gets every message, as its contract says.
    pub fn usual(backend: BackendKind) -> Self {
        match backend {
            BackendKind::Codex
            | BackendKind::Claude
            | BackendKind::Acp
            | BackendKind::A2a
            | BackendKind::Agent
            | BackendKind::Organism
            | BackendKind::Custom
            | BackendKind::Openai
            | BackendKind::Starchild => Self::Joined,
            BackendKind::Handler | BackendKind::Plain => Self::All,
        }
    }

    /// Whether the agent answers in this room.
    pub fn includes(&self, room: &RoomFile) -> bool {
        match self {
            Self::All => true,
            Self::Joined => room.wants_answers(),
            Self::Rooms(rooms) => rooms.contains(&room.room_id),
        }
    }
}

impl FromStr for AnswerIn {
    type Err = String;
    /// Reads what is typed: a word, or ids with commas between them.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            ALL => Ok(Self::All),
            JOINED => Ok(Self::Joined),
            ids => Self::rooms(ids.split(',').map(str::trim)),
        }
    }
}

impl AnswerIn {
    fn rooms<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let rooms = ids.map(|id| {
            id.parse().map_err(|_| {
                format!("answer_in: {id:?} is no room; want joined, all, or ids such as rm_8f3kz2")
            })
        });
        Ok(Self::Rooms(rooms.collect::<Result<_, String>>()?))
    }
}

/// How it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum Written {
    Text(String),
    List(Vec<String>),
}

impl TryFrom<Written> for AnswerIn {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Text(text) => text.parse(),
            Written::List(ids) => Self::rooms(ids.iter().map(String::as_str)),
        }
    }
}

impl From<AnswerIn> for Written {
    fn from(answer_in: AnswerIn) -> Self {
        match answer_in {
            AnswerIn::All => Self::Text(ALL.into()),
            AnswerIn::Joined => Self::Text(JOINED.into()),
            AnswerIn::Rooms(rooms) => Self::List(rooms.iter().map(RoomId::to_string).collect()),
        }
    }
}
