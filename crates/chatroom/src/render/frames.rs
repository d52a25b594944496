//! A stream's frames taken apart and put together again.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::{EventKind, Message};

/// One frame of a stream, without the empty line that ends it.
pub enum Frame<'a> {
    /// Passed on as it is.
    Other(&'a [u8]),
    /// A message, and what stands before it.
    Message(&'a [u8], Box<Message>),
}

const DATA: &[u8] = b"\ndata: ";
const END: &[u8] = b"\n\n";

/// Whether there is anything to render.
pub fn hold_messages(frames: &[u8]) -> bool {
    find(frames, b"event: message").is_some()
}

/// The frames in their order.
pub fn split(mut frames: &[u8]) -> Vec<Frame<'_>> {
    let mut split = Vec::new();
    while let Some(end) = find(frames, END) {
        split.push(frame(&frames[..end]));
        frames = &frames[end + END.len()..];
    }
    split
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    message(bytes).unwrap_or(Frame::Other(bytes))
}

fn message(bytes: &[u8]) -> Option<Frame<'_>> {
    let at = find(bytes, DATA)?;
    let head = &bytes[..at];
    let is = |kind: EventKind| head.ends_with(format!("event: {kind}").as_bytes());
    if !is(EventKind::Message) && !is(EventKind::MessageEdited) {
        return None;
    }
    let message = serde_json::from_slice(&bytes[at + DATA.len()..]).ok()?;
    Some(Frame::Message(head, message))
}

/// The frames as they travel.
pub fn join(frames: &[Frame<'_>]) -> Bytes {
    let mut buffer = BytesMut::new();
    for frame in frames {
        match frame {
            Frame::Other(bytes) => buffer.extend_from_slice(bytes),
            Frame::Message(head, message) => {
                buffer.extend_from_slice(head);
                buffer.extend_from_slice(DATA);
                // Plain data always serialises, and a buffer takes all of it.
                let _ = serde_json::to_writer((&mut buffer).writer(), message);
            }
        }
        buffer.extend_from_slice(END);
    }
    buffer.freeze()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
