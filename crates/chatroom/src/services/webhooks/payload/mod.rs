//! What other systems send, as messages that read well, without I/O. Who wrote what is in there is not
//! known: names, titles and comments become plain text, which links nowhere and mentions nobody.

mod alertmanager;
mod github;

use crate::{
    render::{
        slack,
        untrusted::{code_block, cut},
    },
    services::checks::Content,
};
use protocol::MAX_CONTENT_BYTES;
use serde_json::Value;

/// Lines of a list that are shown.
const MOST_LINES: usize = 8;

/// A message, and whether the names behind its `@` count.
#[derive(Debug, PartialEq, Eq)]
pub struct Rendered {
    pub content: Content,
    /// Whoever holds the address wrote the text as it stands, and may mention members.
    pub mentions: bool,
}

/// What a payload says; nothing where there is nothing to say. `event` is GitHub's word for it.
pub fn render(event: Option<&str>, payload: &Value) -> Option<Rendered> {
    let (text, mentions) = match event {
        Some(event) => (github::render(event, payload)?, false),
        None if alertmanager::is_one(payload) => (alertmanager::render(payload), false),
        None => match slack::message(payload) {
            Some(text) => (text, true),
            None => (code_block(payload), false),
        },
    };
    let text = cut(&text.replace('\0', ""), MAX_CONTENT_BYTES);
    let content = Content::new(text).ok()?;
    Some(Rendered { content, mentions })
}

/// A text in a payload; nothing where it is none.
fn text<'a>(payload: &'a Value, pointer: &str) -> &'a str {
    payload
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
