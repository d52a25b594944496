//! Keeping people out: of a room by its owner, of the server by its operator.

use crate::room::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// `POST /rooms/{id}/bans`.
    pub struct BanMember {
        /// Whom.
        pub user_id: String,
        /// Why, for the owner to remember.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// Somebody was banned from the room.
    pub struct MemberBanned {
        /// Always true.
        pub ok: bool,
        /// Whether they were a member and were removed.
        pub removed: bool,
        /// Whether the invite that they came with was still open, and is no longer.
        pub invite_revoked: bool,
    }

    /// A ban from a room.
    pub struct RoomBan {
        /// Whom.
        pub user_id: String,
        /// The name they had.
        pub user_name: Option<String>,
        /// Why.
        pub reason: Option<String>,
        /// Who banned them.
        pub banned_by: String,
        /// In unix seconds.
        pub banned_at: i64,
    }

    /// `GET /rooms/{id}/bans`.
    pub struct RoomBans {
        /// In the order of the ids.
        pub bans: Vec<RoomBan>,
    }

    /// `POST /internal/admin/bans`.
    pub struct Ban {
        /// A user's id, an address or a network such as `203.0.113.0/24`. An IPv6 address stands
        /// for its /64.
        pub subject: String,
        /// Why, for the operator to remember.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// A ban from the server.
    pub struct ServerBan {
        /// The user's id or the network.
        pub subject: String,
        /// Why.
        pub reason: Option<String>,
        /// In unix seconds.
        pub banned_at: i64,
    }

    /// `GET /internal/admin/bans`.
    pub struct ServerBans {
        /// In the order of their subjects.
        pub bans: Vec<ServerBan>,
    }

    /// A user as operators see one.
    pub struct AdminUser {
        /// The user's id.
        pub user_id: String,
        /// A name they have in a room.
        pub user_name: Option<String>,
        /// In how many rooms they are.
        pub rooms: i64,
        /// How many keys and identity tokens of theirs hold.
        pub sessions: i64,
        /// Whether they are banned.
        pub banned: bool,
    }

    /// `GET /internal/admin/users`.
    pub struct AdminUsers {
        /// In the order of their ids.
        pub users: Vec<AdminUser>,
        /// Send it as `after` for more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}
