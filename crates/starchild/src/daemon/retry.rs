//! What a refusal means for the daemon. A rule without I/O.

use super::credentials::key::KeyError;
use client::{ClientError, protocol::ErrorCode};
use std::time::Duration;

/// What to do about an error.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Wait, so long if it is known, and do the same again.
    Wait(Option<Duration>),
    /// The key does not open the room any more: get a new one.
    Renew,
    /// The message cannot be answered: go on with the next.
    Skip,
    /// The agent has no place in the room any more, in words.
    Leave(&'static str),
}

/// What to do about an error of a room's.
pub fn verdict(error: &ClientError) -> Verdict {
    if let ClientError::Api {
        status: 429,
        retry_after,
        ..
    } = error
    {
        return Verdict::Wait(*retry_after);
    }
    match error.code() {
        Some(ErrorCode::TokenInvalid | ErrorCode::KeyInvalid | ErrorCode::MissingBearer) => {
            Verdict::Renew
        }
        Some(ErrorCode::NotAMember) => {
            Verdict::Leave("the agent is no member of the room any more")
        }
        Some(ErrorCode::NotFound) => {
            Verdict::Leave("the room is gone, or the agent was removed from it")
        }
        Some(code) if code.status() < 500 => Verdict::Skip,
        // What is said by something in between, or makes no sense, may be mended by its owner.
        _ => Verdict::Wait(None),
    }
}

impl KeyError {
    /// What to do where a key is not to be had.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Client(error) => verdict(error),
            Self::File(_) => Verdict::Wait(None),
            Self::NoIdentity(_) => Verdict::Skip,
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
            assert_eq!(verdict(&refused(code, wait)), Verdict::Wait(wait));
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
        ] {
            assert_eq!(verdict(&refused(code, None)), Verdict::Skip, "{code:?}");
        }
    }

    #[test]
    fn a_server_in_trouble_and_a_gateway_are_waited_for() {
        for error in [
            refused(ErrorCode::Internal, None),
            refused(ErrorCode::Unavailable, None),
            ClientError::NoErrorBody(502),
            ClientError::NoErrorBody(404),
            ClientError::Silent(Duration::from_secs(60)),
            ClientError::Protocol("?".into()),
        ] {
            assert_eq!(verdict(&error), Verdict::Wait(None), "{error}");
        }
    }

    #[test]
    fn a_revoked_key_is_renewed_and_a_lost_place_is_left() {
        assert_eq!(
            verdict(&refused(ErrorCode::KeyInvalid, None)),
            Verdict::Renew
        );
        for code in [ErrorCode::NotFound, ErrorCode::NotAMember] {
            assert!(matches!(verdict(&refused(code, None)), Verdict::Leave(_)));
        }
    }
}
