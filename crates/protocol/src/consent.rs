//! Consents: an agent asks for a yes, and its owner gives it or does not.

use crate::{open_words, room::wire, words};
use serde::{Deserialize, Serialize};

open_words! {
    /// What became of a request for consent.
    ConsentState {
        /// It waits for an answer.
        Open = "open",
        /// Yes, this once.
        Allowed = "allowed",
        /// Yes, and from now on whenever this tool is asked for.
        Always = "always",
        /// No.
        Denied = "denied",
        /// Nobody answered in time, which is a no.
        Expired = "expired",
        /// The agent no longer asks.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// What the agent's owner says.
    ConsentDecision {
        /// Yes, this once.
        Allow = "allow",
        /// Yes, and from now on whenever this tool is asked for.
        Always = "always",
        /// No.
        Deny = "deny",
    }
}

impl From<ConsentDecision> for ConsentState {
    fn from(decision: ConsentDecision) -> Self {
        match decision {
            ConsentDecision::Allow => Self::Allowed,
            ConsentDecision::Always => Self::Always,
            ConsentDecision::Deny => Self::Denied,
        }
    }
}

wire! {
    /// `POST /rooms/{id}/consents`, by the agent itself.
    #[derive(Default)]
    pub struct AskConsent {
        /// The tool, in a line of at most 64 characters. Everybody in the room sees it.
        #[cfg_attr(feature = "openapi", schema(max_length = 64))]
        pub tool: String,
        /// What it would do, in a line of at most 500 characters.
        #[cfg_attr(feature = "openapi", schema(max_length = 500))]
        pub summary: String,
        /// The particulars, e.g. a diff: at most 16 KB of UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 16384))]
        pub detail: Option<String>,
        /// The message that the agent works on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub reply_to_seq: Option<i64>,
        /// How long it waits for an answer: an hour where absent, at most a week.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 10, maximum = 604800))]
        pub ttl_seconds: Option<i64>,
    }

    /// `POST /rooms/{id}/consents/{consent_id}`, by the agent's owner.
    pub struct DecideConsent {
        /// Yes or no.
        pub decision: ConsentDecision,
        /// Why, in a line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 200))]
        pub reason: Option<String>,
    }

    /// A request for consent, as one may see it. `summary` and `detail` are for the agent and for
    /// whoever decides; others see which tool it is about and that it waits. It is also the data of
    /// the event `consent_updated`, always without these two.
    pub struct Consent {
        /// Its id.
        pub consent_id: String,
        /// The agent that asks.
        pub user_id: String,
        /// The agent's owner, who decides.
        pub owner_user_id: String,
        /// What became of it.
        pub state: ConsentState,
        /// The tool.
        pub tool: String,
        /// What it would do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub summary: Option<String>,
        /// The particulars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub detail: Option<String>,
        /// The message that the agent works on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reply_to_seq: Option<i64>,
        /// When it was asked, in unix seconds.
        pub created_at: i64,
        /// When it is no longer waited for, in unix seconds.
        pub expires_at: i64,
        /// When it was decided or withdrawn, in unix seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub closed_at: Option<i64>,
        /// Who decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub decided_by: Option<String>,
        /// Why, as the one who decided says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// Whether the caller may decide it.
        #[serde(default)]
        pub mine_to_decide: bool,
    }

    /// `GET /rooms/{id}/consents`.
    pub struct Consents {
        /// Newest first, at most 100.
        pub consents: Vec<Consent>,
    }
}
