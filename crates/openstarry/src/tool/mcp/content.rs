//! What an MCP tool gave, as segments.

use crate::segment::{ContentSegment, Media};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

pub(super) fn segments(answer: CallToolResult) -> Vec<ContentSegment> {
    let mut segments: Vec<ContentSegment> = answer.content.into_iter().map(segment).collect();
    // Structured content repeats the text as a rule; alone, it is the answer.
    if segments.is_empty()
        && let Some(structured) = answer.structured_content
    {
        segments.push(ContentSegment::text(structured.to_string()));
    }
    segments
}

pub(super) fn segment(block: ContentBlock) -> ContentSegment {
    match block {
        ContentBlock::Text(text) => ContentSegment::text(text.text),
        ContentBlock::Image(image) => {
            ContentSegment::Image(Media::base64(image.mime_type, image.data))
        }
        ContentBlock::Audio(audio) => {
            ContentSegment::Audio(Media::base64(audio.mime_type, audio.data))
        }
        ContentBlock::ResourceLink(link) => {
            ContentSegment::text(format!("[{}: {}]", link.name, link.uri))
        }
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        other => ContentSegment::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// What a resource holds.
pub(super) fn resource(contents: ResourceContents) -> ContentSegment {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            ContentSegment::text(format!("[{uri}]\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".into());
            let note = format!("[{uri}: {mime}, {} bytes in base64]", blob.len());
            ContentSegment::media(Media::base64(mime, blob))
                .unwrap_or_else(|| ContentSegment::text(note))
        }
        other => ContentSegment::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}
