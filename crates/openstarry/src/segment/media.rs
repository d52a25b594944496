//! Pictures, sound and video, as base64 or behind a URL.

use serde::{Deserialize, Serialize};

/// What a medium is to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
}

impl std::fmt::Display for MediaKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
        })
    }
}

/// Where the bytes of a medium are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MediaData {
    /// Here, in base64.
    Base64(String),
    /// Behind this URL.
    Url(String),
}

impl From<String> for MediaData {
    fn from(text: String) -> Self {
        // No base64 text holds a colon.
        if text.contains(':') {
            Self::Url(text)
        } else {
            Self::Base64(text)
        }
    }
}

impl From<MediaData> for String {
    fn from(data: MediaData) -> Self {
        match data {
            MediaData::Base64(text) | MediaData::Url(text) => text,
        }
    }
}

/// A medium with its MIME type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The bytes, or where they are.
    pub data: MediaData,
    /// For example `image/png`.
    #[serde(rename = "mimeType", default = "unknown_type")]
    pub mime_type: String,
}

fn unknown_type() -> String {
    "application/octet-stream".into()
}

impl Media {
    /// Bytes in base64.
    pub fn base64(mime_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            data: MediaData::Base64(data.into()),
            mime_type: mime_type.into(),
        }
    }

    /// A medium behind a URL. A `data:` URL in base64 is unpacked, and a missing
    /// MIME type is read off the end of the path.
    pub fn url(url: impl Into<String>, mime_type: Option<String>) -> Self {
        let url = url.into();
        if let Some((mime, data)) = url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"))
        {
            let mime = mime.split(';').next().unwrap_or_default();
            return Self::base64(mime, data);
        }
        let mime_type = mime_type.unwrap_or_else(|| type_of_path(&url).into());
        Self {
            data: MediaData::Url(url),
            mime_type,
        }
    }

    /// What the MIME type makes it.
    pub fn kind(&self) -> Option<MediaKind> {
        match self.mime_type.split('/').next()? {
            "image" => Some(MediaKind::Image),
            "audio" => Some(MediaKind::Audio),
            "video" => Some(MediaKind::Video),
            _ => None,
        }
    }

    /// The medium as a URL: its own, or a `data:` URL.
    pub fn as_url(&self) -> String {
        match &self.data {
            MediaData::Url(url) => url.clone(),
            MediaData::Base64(data) => format!("data:{};base64,{data}", self.mime_type),
        }
    }
}

/// The image type that bytes begin like.
pub(super) fn image_type_of_bytes(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

/// The image type that base64 bytes begin like.
pub(crate) fn image_type_of_base64(data: &str) -> &'static str {
    match data.as_bytes() {
        [b'/', b'9', b'j', ..] => "image/jpeg",
        [b'R', b'0', b'l', b'G', ..] => "image/gif",
        [b'U', b'k', b'l', b'G', ..] => "image/webp",
        _ => "image/png",
    }
}

fn type_of_path(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit('.').next().unwrap_or_default();
    match end.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    }
}
