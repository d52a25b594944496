//! The error table: one code for each row, and the body every error has.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $code:literal, $status:literal;)+) => {
        /// What went wrong, as programs read it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$meta])* $variant),+ }

        impl ErrorCode {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word in the body's `error` field.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The HTTP status it travels with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    /// The request's body, path or query is wrong.
    BadRequest = "bad_request", 400;
    /// A message of more than 4 KB.
    TooLarge = "too_large", 400;
    /// A reply chain deeper than the room allows.
    ChainTooDeep = "chain_too_deep", 400;
    /// An invite that is forged, expired, used up, revoked or for another room.
    InviteInvalid = "invite_invalid", 400;
    /// An external agent's id that is not `<prefix>-<hex8>`.
    InvalidAgentId = "invalid_agent_id", 400;
    /// A message of more bytes than the CLI bridge takes.
    MessageTooLarge = "payload_too_large", 400;
    /// A token that is forged, expired or of the wrong kind.
    TokenInvalid = "token_invalid", 401;
    /// A room key that is revoked or expired.
    KeyInvalid = "key_invalid", 401;
    /// An identity token that is revoked, expired or unknown.
    IdentityInvalid = "identity_invalid", 401;
    /// A CLI short code that does not exist, is expired or revoked.
    AkmInvalid = "akm_invalid", 401;
    /// No bearer where one is needed.
    MissingBearer = "missing_bearer", 401;
    /// A user token from outside the internal networks.
    InternalOnly = "internal_only", 403;
    /// The role does not allow it.
    Forbidden = "forbidden", 403;
    /// The room is the system's.
    ForbiddenSystemRoom = "forbidden_system_room", 403;
    /// The caller is no member of the room.
    NotAMember = "not_a_member", 403;
    /// The room key does not reach this far.
    KeyScopeInsufficient = "key_scope_insufficient", 403;
    /// No such thing, or none that the caller may know of.
    NotFound = "not_found", 404;
    /// The route exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The user is in the room already.
    AlreadyMember = "already_member", 409;
    /// The room is archived, so read-only.
    Archived = "archived", 409;
    /// The room has no place left.
    RoomFull = "room_full", 409;
    /// The user has as many room keys for the room as there may be.
    TooManyKeys = "too_many_keys", 409;
    /// The request for consent was decided, withdrawn or has expired.
    AlreadyDecided = "already_decided", 409;
    /// The agent has as many requests for consent open as there may be.
    TooManyConsents = "too_many_consents", 409;
    /// The agent is asked to answer a message anew already.
    RetryPending = "retry_pending", 409;
    /// The short code has expired.
    Gone = "gone", 410;
    /// What was to be changed is not what the caller has seen.
    PreconditionFailed = "precondition_failed", 412;
    /// The body is larger than the server reads.
    PayloadTooLarge = "payload_too_large", 413;
    /// A rate limit was hit.
    RateLimited = "rate_limited", 429;
    /// Too little time since the agent's last message.
    AgentCooldown = "agent_cooldown", 429;
    /// The agent has spent what it may spend in a day.
    BudgetUsedUp = "budget_used_up", 429;
    /// The server failed.
    Internal = "internal", 500;
    /// The server cannot answer now.
    Unavailable = "unavailable", 503;
}

impl std::str::FromStr for ErrorCode {
    type Err = crate::BadId;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            // The one word that stands for two statuses is read as the more general one.
            .filter(|code| *code != Self::MessageTooLarge)
            .find(|code| code.as_str() == word)
            .ok_or(crate::BadId("unknown error code"))
    }
}

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The code, for programs.
    pub error: String,
    /// What happened and what to do next, for people.
    pub message: String,
}
