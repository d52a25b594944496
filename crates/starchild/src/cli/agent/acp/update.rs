//! What happens in a session, in the protocol's words. Pure.

use agent_client_protocol::v1::schema as acp;
use openstarry::segment::{ContentSegment, Media, MediaData, ToolCall, joined_text};
use openstarry::session::{EndReason, History, SessionEvent};

/// The most of a result that an editor is shown.
const MAX_SHOWN: usize = 16 << 10;

/// What an editor is told of an event.
pub fn of(event: &SessionEvent) -> Option<acp::SessionUpdate> {
    Some(match event {
        SessionEvent::Text { text } => said(text),
        SessionEvent::Reasoning { text } => acp::SessionUpdate::AgentThoughtChunk(chunk(text)),
        SessionEvent::Notice { text } => {
            acp::SessionUpdate::AgentThoughtChunk(chunk(&format!("{text}\n")))
        }
        SessionEvent::Waiting { why, seconds } => {
            let text = format!("{why}; trying again in {seconds:.0} s\n");
            acp::SessionUpdate::AgentThoughtChunk(chunk(&text))
        }
        SessionEvent::Segment { segment } => {
            let block = block(segment)?;
            acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(block))
        }
        SessionEvent::ToolStarted { call, .. } => acp::SessionUpdate::ToolCall(begun(call)),
        SessionEvent::ToolProgress { id, text } => {
            let fields = acp::ToolCallUpdateFields::new().content(vec![text_block(text).into()]);
            acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(id.clone(), fields))
        }
        SessionEvent::ToolFinished { result, .. } => {
            let status = match result.is_error {
                true => acp::ToolCallStatus::Failed,
                false => acp::ToolCallStatus::Completed,
            };
            let text = result.text();
            let shown = &text[..text.floor_char_boundary(MAX_SHOWN)];
            let fields = acp::ToolCallUpdateFields::new()
                .status(status)
                .content(vec![text_block(shown).into()]);
            acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(result.id.clone(), fields))
        }
        _ => return None,
    })
}

/// Why a turn ended early: the protocol has a word for each reason, and no place for more.
pub fn ended(end: &EndReason) -> Option<acp::SessionUpdate> {
    match end {
        EndReason::Incomplete(why) | EndReason::Refused(why) | EndReason::Rounds(why) => {
            let text = format!("{why}\n");
            Some(acp::SessionUpdate::AgentThoughtChunk(chunk(&text)))
        }
        _ => None,
    }
}

/// A conversation that is opened again.
pub fn replay(history: &History) -> Vec<acp::SessionUpdate> {
    let mut updates = Vec::new();
    for turn in &history.turns {
        let input = joined_text(&turn.input);
        updates.push(acp::SessionUpdate::UserMessageChunk(chunk(&input)));
        for round in &turn.rounds {
            let text = joined_text(round.reply());
            if !text.is_empty() {
                updates.push(said(&text));
            }
        }
    }
    updates
}

/// What the person at the editor said.
pub fn segment(block: acp::ContentBlock) -> ContentSegment {
    match block {
        acp::ContentBlock::Text(text) => ContentSegment::text(text.text),
        acp::ContentBlock::Image(image) => {
            ContentSegment::Image(Media::base64(image.mime_type, image.data))
        }
        acp::ContentBlock::Audio(audio) => {
            ContentSegment::Audio(Media::base64(audio.mime_type, audio.data))
        }
        acp::ContentBlock::ResourceLink(link) => {
            ContentSegment::text(format!("[{}: {}]", link.name, link.uri))
        }
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                ContentSegment::text(format!("[{}]\n{}", text.uri, text.text))
            }
            other => ContentSegment::text(serde_json::to_string(&other).unwrap_or_default()),
        },
        other => ContentSegment::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// A diff as a block of code that nothing in it can end: what follows would look like our words.
pub fn fenced(diff: &str) -> String {
    let runs = diff.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}diff\n{diff}\n{fence}")
}

/// What kind of tool an editor takes it for.
pub fn kind(tool: &str) -> acp::ToolKind {
    match tool {
        "fs.read" | "fs.list" => acp::ToolKind::Read,
        "fs.glob" | "fs.grep" | "search_tools" => acp::ToolKind::Search,
        "fs.write" | "fs.edit" | "fs.undo" => acp::ToolKind::Edit,
        "shell.run" => acp::ToolKind::Execute,
        "http.get" => acp::ToolKind::Fetch,
        "todo" => acp::ToolKind::Think,
        _ => acp::ToolKind::Other,
    }
}

fn begun(call: &ToolCall) -> acp::ToolCall {
    acp::ToolCall::new(call.id().to_owned(), call.name.clone())
        .kind(kind(&call.name))
        .status(acp::ToolCallStatus::InProgress)
        .raw_input(call.args.clone())
}

fn said(text: &str) -> acp::SessionUpdate {
    acp::SessionUpdate::AgentMessageChunk(chunk(text))
}

fn chunk(text: &str) -> acp::ContentChunk {
    acp::ContentChunk::new(text_block(text))
}

fn text_block(text: &str) -> acp::ContentBlock {
    acp::ContentBlock::Text(acp::TextContent::new(text))
}

fn block(segment: &ContentSegment) -> Option<acp::ContentBlock> {
    let (_, media) = segment.as_media()?;
    Some(match (&media.data, segment) {
        (MediaData::Base64(data), ContentSegment::Image(_)) => acp::ContentBlock::Image(
            acp::ImageContent::new(data.clone(), media.mime_type.clone()),
        ),
        (MediaData::Url(url), _) => text_block(url),
        _ => text_block(&format!("[{}]", media.mime_type)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_does_not_get_out_of_its_block() {
        assert_eq!(fenced("+a"), "```diff\n+a\n```");
        let sly = fenced("+x\n````\n**approved**");
        assert!(
            sly.starts_with("`````diff\n") && sly.ends_with("\n`````"),
            "{sly}"
        );
    }
}
