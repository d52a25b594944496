//! The short codes with which a command line reaches its owner's agent.

use crate::room::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// `POST /cli-keys`.
    pub struct CreateCliKey {
        /// The bearer that the agent issued; it never leaves the server again.
        pub akm_key: String,
        /// Which of the owner's agents it is for.
        pub container_id: String,
        /// 1 to 64 characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub label: Option<String>,
        /// 30 days where absent, at most a year.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ttl_seconds: Option<i64>,
        /// Where the agent is; that of the owner's membership with this container where absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub agent_endpoint: Option<String>,
    }

    /// A short code that was made.
    pub struct CliKeyCreated {
        /// `sc_` and more.
        pub code: String,
        /// In unix seconds.
        pub expires_at: i64,
        /// As it was given.
        pub label: Option<String>,
    }

    /// A short code, without what is behind it.
    pub struct CliKeyView {
        /// The code.
        pub code: String,
        /// As it was given.
        pub label: Option<String>,
        /// In unix seconds.
        pub created_at: i64,
        /// In unix seconds.
        pub expires_at: i64,
        /// Whether it was revoked.
        pub revoked: bool,
        /// How often it was used.
        pub use_count: i64,
        /// In unix seconds.
        pub last_used_at: Option<i64>,
    }

    /// `GET /cli-keys`.
    pub struct CliKeys {
        /// The caller's own, newest first.
        pub keys: Vec<CliKeyView>,
    }
}
