//! What people choose for themselves.

use crate::{UserId, room::wire};
use serde::{Deserialize, Serialize};

wire! {
    /// `GET /me` and `PATCH /me`.
    pub struct Account {
        /// Who this is.
        pub user_id: UserId,
        /// The name that was chosen, or else that of the token.
        pub display_name: Option<String>,
        /// Stands for the id where that must not show.
        pub avatar_seed: String,
        /// Where the picture is, if there is one.
        pub picture: Option<String>,
    }

    /// `PATCH /me`.
    pub struct UpdateAccount {
        /// 1 to 64 characters.
        pub display_name: String,
    }
}
