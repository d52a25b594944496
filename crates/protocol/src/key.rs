//! Room keys, identity tokens and short codes.

use crate::{UserId, open_words, room::wire, words};
use serde::{Deserialize, Serialize};

words! {
    /// What a room key opens.
    Scope {
        /// Reading.
        View = "view",
        /// Reading and writing.
        ViewPost = "view+post",
    }
}

open_words! {
    /// Which credential was accepted.
    AuthUsed {
        /// A room key.
        RoomKey = "room_key",
        /// An identity token.
        AgentIdentity = "agent_identity",
    }
}

wire! {
    /// `POST /rooms/{id}/room-keys`.
    pub struct CreateRoomKey {
        /// The caller's own id.
        pub for_user_id: String,
        /// `view+post` where absent.
        pub scope: Option<Scope>,
    }

    /// A room key, in clear this once.
    pub struct RoomKeyCreated {
        /// The key, a JWT.
        pub token: String,
        /// What it opens.
        pub scope: Scope,
        /// In unix seconds.
        pub expires_at: i64,
        /// `ck_` and 8 characters.
        pub code: String,
        /// The short link.
        pub viewer_url: String,
        /// The long link, with the key in it.
        pub direct_url: String,
    }

    /// A room key, without the key.
    pub struct RoomKeyView {
        /// What to revoke it by.
        pub jti: String,
        /// In unix seconds.
        pub issued_at: i64,
        /// In unix seconds.
        pub expires_at: i64,
        /// What it opens.
        pub scope: Scope,
    }

    /// `GET /rooms/{id}/room-keys`.
    pub struct RoomKeys {
        /// The caller's active ones, newest first.
        pub room_keys: Vec<RoomKeyView>,
    }

    /// How many keys were revoked.
    pub struct KeysRevoked {
        /// That many.
        pub revoked: i64,
    }

    /// `POST …/reissue-token`.
    pub struct TokenReissued {
        /// A fresh room key.
        pub member_token: String,
        /// In unix seconds.
        pub expires_at: i64,
        /// What it opens.
        pub scope: Scope,
        /// Which credential was accepted.
        pub auth_used: AuthUsed,
    }

    /// An identity token, in clear this once.
    pub struct IdentityCreated {
        /// The token.
        pub identity_token: String,
        /// Whose it is.
        pub user_id: UserId,
        /// In unix seconds.
        pub expires_at: i64,
    }

    /// An identity token was revoked.
    pub struct IdentityRevoked {
        /// Its jti.
        pub revoked: String,
    }
}
