//! A message's parts as the words that somebody reads.

use super::{A2aError, ErrorKind, Message, Part};

/// Parts that one message may have.
const MOST_PARTS: usize = 100;

impl Message {
    /// The words of a message. What a part points to is named and never fetched.
    pub fn to_text(&self) -> Result<String, A2aError> {
        if self.parts.len() > MOST_PARTS {
            return Err(A2aError::invalid(format!(
                "a message has at most {MOST_PARTS} parts"
            )));
        }
        let words: Result<Vec<String>, A2aError> = self.parts.iter().map(part).collect();
        Ok(words?.join("\n"))
    }
}

fn part(part: &Part) -> Result<String, A2aError> {
    if let Some(text) = &part.text {
        return Ok(text.clone());
    }
    if let Some(data) = &part.data {
        return Ok(format!("```json\n{data:#}\n```"));
    }
    if let Some(url) = &part.url {
        let name = part.filename.as_deref().filter(|name| !name.is_empty());
        return Ok(match name {
            Some(name) => format!("{name}: {url}"),
            None => url.clone(),
        });
    }
    Err(A2aError::new(
        ErrorKind::ContentTypeNotSupported,
        "Text, data and addresses of files are taken; send no file's bytes",
    ))
}
