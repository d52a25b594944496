//! Invites.

use crate::{UserId, room::wire};
use serde::{Deserialize, Serialize};

wire! {
    /// `POST /rooms/{id}/invites`.
    #[derive(Default)]
    pub struct CreateInvite {
        /// 1 where absent, 20 at most.
        pub max_uses: Option<i64>,
        /// 3600 where absent, 86400 at most.
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
