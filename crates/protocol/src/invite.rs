//! Invites.

use crate::{RoomId, UserId, room::wire};
use serde::{Deserialize, Serialize};

wire! {
    /// `POST /rooms/{id}/invites`.
    #[derive(Default)]
    pub struct CreateInvite {
        /// 1 where absent, 20 at most.
        pub max_uses: Option<i64>,
        /// 3600 where absent; at most what the operator allows (`limits.invite_ttl_seconds`, a day).
        pub ttl_seconds: Option<i64>,
        /// The name the invitee gets, at most 64 characters.
        pub display_name: Option<String>,
    }

    /// An invite, in clear this once.
    pub struct InviteCreated {
        /// `inv_` and a JWT.
        pub invite_code: String,
        /// In unix seconds.
        pub expires_at: i64,
        /// How many may join with it.
        pub max_uses: i64,
        /// How many have.
        pub uses: i64,
        /// `i_` and 8 characters, for `/i/{code}` and `/install/{code}`.
        pub short_code: String,
        /// The installer with this invite in it.
        pub install_url: String,
    }

    /// An active invite, without its code.
    pub struct InviteView {
        /// What to revoke it by.
        pub code_jti: String,
        /// How many have joined with it.
        pub uses: i64,
        /// How many may.
        pub max_uses: i64,
        /// In unix seconds.
        pub expires_at: i64,
        /// Who issued it.
        pub created_by_user_id: UserId,
    }

    /// `GET /rooms/{id}/invites`.
    pub struct Invites {
        /// The active ones, newest first.
        pub invites: Vec<InviteView>,
    }

    /// `GET /i/{short_code}/summary`: what whoever holds an invite may know before joining.
    pub struct InviteSummary {
        /// Where the invite leads.
        pub room_id: RoomId,
        /// Its name.
        pub room_name: String,
        /// The name of whoever issued the invite; null where that is no member with a name.
        pub invited_by: Option<String>,
        /// How many members the room has.
        pub member_count: i64,
        /// The names of the first 100 who have one.
        pub member_names: Vec<String>,
        /// In unix seconds.
        pub expires_at: i64,
    }

    /// `POST /rooms/{id}/auto-invite`.
    pub struct AutoInvite {
        /// `inv_` and a JWT.
        pub invite_code: String,
        /// In unix seconds.
        pub expires_at: i64,
        /// Always 1.
        pub max_uses: i64,
        /// Always 3600.
        pub ttl_seconds: i64,
        /// `i_` and 8 characters.
        pub short_code: String,
        /// The installer with this invite in it.
        pub install_url: String,
    }
}
