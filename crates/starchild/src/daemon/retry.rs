//! Retries: what an error means for the daemon, a rule without I/O, and how long to back off.

use super::credentials::key::KeyError;
use client::{ClientError, protocol::ErrorCode};
use runtime::Backoff;
use std::time::Duration;

/// The first and the longest delay between two tries.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// The delays between tries of whatever the daemon retries.
pub fn backoff() -> Backoff {
    Backoff::new(FIRST_DELAY, LONGEST_DELAY)
}

/// What to do about an error.
#[derive(Debug, PartialEq, Eq)]
pub enum ErrorAction {
    /// Do the same again: after so long if the server says so, else after a backoff.
    Retry(Option<Duration>),
    /// The key does not open the room any more: get a new one.
    RenewKey,
    /// The message cannot be answered: go on with the next.
    SkipMessage,
    /// The agent has no place in the room any more, in words.
    LeaveRoom(&'static str),
}

/// What to do about an error of a room's.
pub fn action_for(error: &ClientError) -> ErrorAction {
    // Until tomorrow nothing is to be had; the room has been told.
    if error.code() == Some(ErrorCode::BudgetUsedUp) {
        return ErrorAction::SkipMessage;
    }
    if let ClientError::Api {
        status: 429,
        retry_after,
        ..
    } = error
    {
        return ErrorAction::Retry(*retry_after);
    }
    match error.code() {
        Some(ErrorCode::TokenInvalid | ErrorCode::KeyInvalid | ErrorCode::MissingBearer) => {
            ErrorAction::RenewKey
        }
        Some(ErrorCode::NotAMember) => {
            ErrorAction::LeaveRoom("the agent is no member of the room any more")
        }
        Some(ErrorCode::NotFound) => {
            ErrorAction::LeaveRoom("the room is gone, or the agent was removed from it")
        }
        Some(code) if code.status() < 500 => ErrorAction::SkipMessage,
        // What is said by something in between, or makes no sense, may be mended by its owner.
        _ => ErrorAction::Retry(None),
    }
}

impl KeyError {
    /// What to do where a key is not to be had.
    pub fn action(&self) -> ErrorAction {
        match self {
            Self::Client(error) => action_for(error),
            Self::File(_) => ErrorAction::Retry(None),
            Self::NoIdentity(_) => ErrorAction::SkipMessage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode, retry_after: Option<Duration>) -> ClientError {
        ClientError::Api {
            status: code.status(),
            code: code.as_str().into(),
            message: String::new(),
            retry_after,
        }
    }

    #[test]
    fn a_limit_is_waited_out_for_as_long_as_the_server_says() {
        let wait = Some(Duration::from_secs(15));
        for code in [ErrorCode::AgentCooldown, ErrorCode::RateLimited] {
            assert_eq!(action_for(&refused(code, wait)), ErrorAction::Retry(wait));
        }
    }

    #[test]
    fn a_message_that_cannot_be_answered_is_skipped() {
        for code in [
            ErrorCode::ChainTooDeep,
            ErrorCode::Archived,
            ErrorCode::BadRequest,
            ErrorCode::TooLarge,
            ErrorCode::KeyScopeInsufficient,
            ErrorCode::Forbidden,
            ErrorCode::BudgetUsedUp,
        ] {
            assert_eq!(
                action_for(&refused(code, None)),
                ErrorAction::SkipMessage,
                "{code:?}"
            );
        }
    }

    #[test]
    fn a_failing_server_and_a_gateway_are_retried() {
        for error in [
            refused(ErrorCode::Internal, None),
            refused(ErrorCode::Unavailable, None),
            ClientError::NoErrorBody(502),
            ClientError::NoErrorBody(404),
            ClientError::Silent(Duration::from_secs(60)),
            ClientError::Protocol("?".into()),
        ] {
            assert_eq!(action_for(&error), ErrorAction::Retry(None), "{error}");
        }
    }

    #[test]
    fn a_revoked_key_is_renewed_and_a_lost_place_is_left() {
        assert_eq!(
            action_for(&refused(ErrorCode::KeyInvalid, None)),
            ErrorAction::RenewKey
        );
        for code in [ErrorCode::NotFound, ErrorCode::NotAMember] {
            assert!(matches!(
                action_for(&refused(code, None)),
                ErrorAction::LeaveRoom(_)
            ));
        }
    }
}
