//! What a server that speaks like OpenAI's refuses of what OpenAI's own takes. Nobody can tell by
//! its address or by the name of its model, so it is learnt from its words: the request is sent once
//! more without it, and every later one too.

use crate::pain::AgentPain;
use std::sync::atomic::{AtomicBool, Ordering};

/// What this server was found to refuse.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    stream_options: AtomicBool,
    usual_ids: AtomicBool,
    max_tokens: AtomicBool,
}

impl Refusals {
    /// Whether the server takes no `stream_options`: Mistral's, and older ones.
    pub(super) fn stream_options(&self) -> bool {
        self.stream_options.load(Ordering::Relaxed)
    }

    /// Whether ids of calls have to be nine letters and digits: Mistral's models.
    pub(super) fn usual_ids(&self) -> bool {
        self.usual_ids.load(Ordering::Relaxed)
    }

    /// Whether the limit is to be called `max_completion_tokens`: OpenAI's models behind a gateway.
    pub(super) fn max_tokens(&self) -> bool {
        self.max_tokens.load(Ordering::Relaxed)
    }

    /// Learns from a failure. Tells whether that is news, so that the same question is worth
    /// another try.
    pub(super) fn learn(&self, failure: &AgentPain) -> bool {
        let (AgentPain::Refused { message, .. } | AgentPain::Unavailable { message, .. }) = failure
        else {
            return false;
        };
        let words = message.to_lowercase();
        let has = |part: &str| words.contains(part);
        let news = |known: &AtomicBool| !known.swap(true, Ordering::Relaxed);
        (has("stream_options") && news(&self.stream_options))
            || (has("tool call id") && has("9") && news(&self.usual_ids))
            || (has("max_tokens") && has("max_completion_tokens") && news(&self.max_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_learnt_once() {
        let refused = |message: &str| AgentPain::Refused {
            status: 400,
            message: message.into(),
        };
        for words in [
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            "Tool call IDs should be alphanumeric strings with length 9!",
        ] {
            let refusals = Refusals::default();
            assert!(refusals.learn(&refused(words)), "{words}");
            assert!(refusals.usual_ids() && !refusals.stream_options());
            assert!(!refusals.learn(&refused(words)), "twice: {words}");
        }
        let refusals = Refusals::default();
        assert!(!refusals.learn(&refused("Tool call id call_1 has no result")));
        assert!(!refusals.learn(&AgentPain::Key("stream_options".into())));
        assert!(refusals.learn(&refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )));
        assert!(refusals.max_tokens());
    }
}
