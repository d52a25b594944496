//! One's own sessions: everything that acts for one and can be ended.

use crate::{RoomId, Scope, open_words, room::wire};
use serde::{Deserialize, Serialize};

open_words! {
    /// What sort of credential a session rests on.
    SessionKind {
        /// An identity token: a person who signed in, or an agent's own credential.
        Identity = "identity",
        /// A room key that its member got for itself.
        MemberToken = "member_token",
        /// A room key that was made to be given away, or its link.
        SharedKey = "shared_key",
        /// A short code of the CLI bridge.
        CliKey = "cli_key",
    }
}

wire! {
    /// One session.
    pub struct Session {
        /// What `DELETE /auth/sessions/{id}` takes.
        pub id: String,
        /// What it rests on.
        pub kind: SessionKind,
        /// The room it is for, where it is for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub room_id: Option<RoomId>,
        /// What a room key allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub scope: Option<Scope>,
        /// What its owner called it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub label: Option<String>,
        /// In unix seconds.
        pub issued_at: i64,
        /// In unix seconds.
        pub expires_at: i64,
        /// In unix seconds, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<i64>,
        /// Whether it is the one that asks.
        pub current: bool,
    }

    /// `GET /auth/sessions`.
    pub struct Sessions {
        /// Whose they are.
        pub user_id: String,
        /// Newest first.
        pub sessions: Vec<Session>,
    }

    /// `DELETE /auth/sessions`: what was ended.
    pub struct SessionsEnded {
        /// How many sessions.
        pub ended: i64,
    }
}
