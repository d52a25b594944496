//! What is said: segments, tool calls, messages and replies. The JSON of the
//! first three is the protocol document's, field for field.

mod media;
mod reply;

pub(crate) use media::image_type_of_base64;
pub use media::{Media, MediaData, MediaKind};
pub use reply::{Metadata, ProviderResponse, StopReason, Usage};

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The wish to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Matches a result to its call. A provider whose API gives none makes a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name of a registered tool.
    pub name: String,
    /// The arguments, as the model gave them; null when they were no JSON.
    #[serde(default)]
    pub args: Value,
    /// Set when the arguments were no JSON. Such a call never runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenArgs>,
}

impl ToolCall {
    /// A call with arguments that parsed.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        Self {
            id: Some(id.into()),
            name: name.into(),
            args,
            broken: None,
        }
    }

    /// The id, or an empty text for a call that was never given one.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// The arguments as the text the model wrote, broken or not.
    pub fn args_text(&self) -> String {
        match &self.broken {
            Some(broken) => broken.raw.clone(),
            None => self.args.to_string(),
        }
    }

    /// The arguments as an object, for APIs that take nothing else.
    pub fn args_object(&self) -> Value {
        match (&self.broken, &self.args) {
            (Some(broken), _) => serde_json::json!({ "broken_arguments": broken.raw }),
            (None, Value::Object(_)) => self.args.clone(),
            (None, Value::Null) => Value::Object(Default::default()),
            (None, other) => serde_json::json!({ "arguments": other }),
        }
    }
}

/// Arguments that were no JSON: what came, and why it could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrokenArgs {
    /// The text the model wrote.
    pub raw: String,
    /// What is wrong with it.
    pub error: String,
}

/// What a call gave. Every call in a history has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The name the call used.
    pub name: String,
    /// What the tool gave, or what went wrong.
    pub content: Vec<ContentSegment>,
    /// Whether the call failed, was denied or never ran.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// The text segments, joined by line breaks.
    pub fn text(&self) -> String {
        joined_text(&self.content)
    }
}

/// One piece of what was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentSegment {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// Moving pictures.
    Video(Media),
    /// Components for a front end to draw.
    Ui {
        /// What to draw.
        ui: Value,
    },
    /// The wish to run a tool.
    ToolCall {
        /// The call.
        #[serde(rename = "toolCall")]
        tool_call: ToolCall,
    },
    /// What a tool gave.
    ToolResult {
        /// The result.
        #[serde(rename = "toolResult")]
        tool_result: ToolResult,
    },
    /// What the model thought before it spoke.
    Reasoning {
        /// The thought, where the API shows it.
        text: String,
    },
    /// Something only the provider that sent it understands. It is kept, and
    /// goes back to that provider alone.
    Provider {
        /// The provider's name.
        provider: String,
        /// The item, untouched.
        item: Value,
    },
}

impl ContentSegment {
    /// A text segment.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A picture, where the bytes are one that models take.
    pub fn picture(bytes: &[u8]) -> Option<Self> {
        let mime = media::image_type_of_bytes(bytes)?;
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        Some(Self::Image(Media::base64(mime, data)))
    }

    /// A media segment of the kind its MIME type tells; `None` for other types.
    pub fn media(media: Media) -> Option<Self> {
        Some(match media.kind()? {
            MediaKind::Image => Self::Image(media),
            MediaKind::Audio => Self::Audio(media),
            MediaKind::Video => Self::Video(media),
        })
    }

    /// The media of an image, audio or video segment.
    pub fn as_media(&self) -> Option<(MediaKind, &Media)> {
        match self {
            Self::Image(media) => Some((MediaKind::Image, media)),
            Self::Audio(media) => Some((MediaKind::Audio, media)),
            Self::Video(media) => Some((MediaKind::Video, media)),
            _ => None,
        }
    }

    /// The call of a tool-call segment.
    pub fn as_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall { tool_call } => Some(tool_call),
            _ => None,
        }
    }
}

/// The text segments of `segments`, joined by line breaks.
pub fn joined_text(segments: &[ContentSegment]) -> String {
    let mut joined = String::new();
    for segment in segments {
        if let ContentSegment::Text { text } = segment {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(text);
        }
    }
    joined
}

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Tools: the message holds results alone.
    Tool,
    /// The core itself, telling the model what it observed.
    System,
}

/// One message of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub segments: Vec<ContentSegment>,
}

impl Message {
    /// A message of one text segment.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            segments: vec![ContentSegment::text(text)],
        }
    }
}

#[cfg(test)]
mod tests;
