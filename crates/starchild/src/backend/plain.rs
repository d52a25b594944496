//! An answer without a model: shows that the agent is here, and how to give it a brain.

use super::{Backend, BackendError, Inbound, Reply, config::BackendConfig};
use futures_util::future::{BoxFuture, ready};

const SHOWN_CHARS: usize = 200;

/// Says that it is here.
pub struct Plain {
    greeting: Option<String>,
}

impl Plain {
    /// `system_prompt` stands in for our own words.
    pub fn new(config: &BackendConfig) -> Self {
        let greeting = config.system_prompt.as_deref().map(str::trim);
        Self {
            greeting: greeting.filter(|text| !text.is_empty()).map(str::to_owned),
        }
    }

    fn reply(&self, inbound: &Inbound) -> Reply {
        // Two agents without a brain would greet each other for ever.
        if inbound.message.reply_chain_depth > 0 {
            return Reply::Silent;
        }
        let me = inbound
            .me
            .user_name
            .as_deref()
            .unwrap_or(&inbound.me.user_id);
        let text = match &self.greeting {
            Some(greeting) => greeting.clone(),
            None => format!(
                "{me} is here, without a model for now. I read: “{}”. My owner can give me one: \
                 starchild byoa edit --help",
                shown(&inbound.message.content, &inbound.me.mention_key)
            ),
        };
        Reply::from_output(&text)
    }
}

impl Backend for Plain {
    fn answer<'a>(&'a self, inbound: &'a Inbound) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(ready(Ok(self.reply(inbound))))
    }
}

/// The beginning of a message, on one line. It mentions nobody: what somebody had us say must not
/// call other agents.
fn shown(content: &str, mention_key: &str) -> String {
    let words = content.replace(mention_key, "").replace('@', "");
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{config::BackendKind, testing::inbound};

    fn plain() -> BackendConfig {
        BackendConfig::new(BackendKind::Plain)
    }

    #[test]
    fn it_says_what_it_read_and_mentions_nobody() {
        let reply = Plain::new(&plain()).reply(&inbound("@MyBot ask\n@OtherBot for  me"));
        let Reply::Text(text) = reply else {
            panic!("silence")
        };
        assert!(text.contains("MyBot is here"), "{text}");
        assert!(text.contains("“ask OtherBot for me”"), "{text}");
        assert!(!text.contains('@'), "{text}");
    }

    #[test]
    fn an_answer_gets_no_answer_so_that_two_of_them_never_talk_for_ever() {
        let mut inbound = inbound("@MyBot hello");
        inbound.message.reply_chain_depth = 1;
        assert_eq!(Plain::new(&plain()).reply(&inbound), Reply::Silent);
    }

    #[test]
    fn the_owner_can_choose_the_words() {
        let mut config = plain();
        config.system_prompt = Some(" Back on Monday. ".into());
        let reply = Plain::new(&config).reply(&inbound("hi"));
        assert_eq!(reply, Reply::Text("Back on Monday.".into()));
    }
}
