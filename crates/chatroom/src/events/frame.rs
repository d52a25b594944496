//! The bytes of a stream: each event is encoded once, whoever reads it.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::{Cursor, EventKind, Message, Ready};
use serde::Serialize;
use std::{fmt::Write, ops::Range, sync::Arc};

/// A sign of life. A line, not a frame: readers that take every frame for an event get none.
pub const HEARTBEAT: &[u8] = b": still here\n";

/// What a reader wants of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The bytes as they are.
    Plain,
    /// The messages as well, to put them into another form.
    WithMessages,
}

/// Events as they travel, with the messages among them beside.
#[derive(Debug, Clone)]
pub struct Frames {
    bytes: Bytes,
    messages: Option<Arc<[MessageFrame]>>,
}

/// A message, and where its data stands among the bytes.
#[derive(Debug, Clone)]
struct MessageFrame {
    data: Range<usize>,
    message: Message,
}

impl From<Bytes> for Frames {
    /// Events without a message.
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            messages: None,
        }
    }
}

impl Frames {
    /// How many bytes they are.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// What a reader gets who wants them in this form.
    pub fn in_form(&self, form: Form) -> Self {
        match form {
            Form::Plain => self.bytes.clone().into(),
            Form::WithMessages => self.clone(),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The messages in their order.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        let frames = self.messages.iter().flat_map(|frames| frames.iter());
        frames.map(|frame| &frame.message)
    }

    /// The same events with these messages in the places of their own.
    pub fn with_messages(&self, messages: &[Message]) -> Bytes {
        let mut buffer = BytesMut::with_capacity(2 * self.bytes.len());
        let mut copied = 0;
        let frames = self.messages.iter().flat_map(|frames| frames.iter());
        for (frame, message) in frames.zip(messages) {
            buffer.put_slice(&self.bytes[copied..frame.data.start]);
            put_json(&mut buffer, message);
            copied = frame.data.end;
        }
        buffer.put_slice(&self.bytes[copied..]);
        buffer.freeze()
    }
}

/// Frames in the making.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: BytesMut,
    messages: Vec<MessageFrame>,
}

impl FrameBuffer {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds an event.
    pub fn event(&mut self, at: Cursor, kind: EventKind, data: &impl Serialize) {
        self.data(at, kind, data);
    }

    /// Adds an event whose data is JSON already.
    pub fn raw_event(&mut self, at: Cursor, kind: &str, data: &str) {
        let _ = write!(self.bytes, "id: {at}\nevent: {kind}\ndata: {data}\n\n");
    }

    /// Adds a new message.
    pub fn message(&mut self, message: Message) {
        self.message_event(Cursor::at(message.seq), EventKind::Message, message);
    }

    /// Adds an event that tells of a message.
    pub fn message_event(&mut self, at: Cursor, kind: EventKind, message: Message) {
        let data = self.data(at, kind, &message);
        self.messages.push(MessageFrame { data, message });
    }

    /// Adds the frame that a stream opens with: it tells a reader where it stands, so that it can
    /// resume from there even if nothing happens before its connection breaks.
    pub fn ready(&mut self, at: Cursor) {
        self.bytes.put_slice(b"retry: 2000\n");
        self.event(
            at,
            EventKind::Ready,
            &Ready {
                cursor: at.to_string(),
            },
        );
    }

    /// Adds what was encoded before, for a reader who wants it in this form.
    pub fn append(&mut self, frames: &Frames, form: Form) {
        let offset = self.bytes.len();
        self.bytes.put_slice(&frames.bytes);
        if form == Form::Plain {
            return;
        }
        let messages = frames.messages.iter().flat_map(|frames| frames.iter());
        self.messages.extend(messages.map(|frame| MessageFrame {
            data: frame.data.start + offset..frame.data.end + offset,
            message: frame.message.clone(),
        }));
    }

    pub fn finish(self) -> Frames {
        Frames {
            bytes: self.bytes.freeze(),
            messages: (!self.messages.is_empty()).then(|| self.messages.into()),
        }
    }

    /// Adds an event, and tells where its data stands.
    fn data(&mut self, at: Cursor, kind: EventKind, data: &impl Serialize) -> Range<usize> {
        let _ = write!(self.bytes, "id: {at}\nevent: {kind}\ndata: ");
        let start = self.bytes.len();
        put_json(&mut self.bytes, data);
        let end = self.bytes.len();
        self.bytes.put_slice(b"\n\n");
        start..end
    }
}

/// An event that is in no log and has no cursor.
pub fn ephemeral(kind: EventKind, data: &impl Serialize) -> Bytes {
    let mut buffer = BytesMut::new();
    let _ = write!(buffer, "event: {kind}\ndata: ");
    put_json(&mut buffer, data);
    buffer.put_slice(b"\n\n");
    buffer.freeze()
}

fn put_json(buffer: &mut BytesMut, data: &impl Serialize) {
    // Plain data always serialises, and a buffer takes all of it.
    let _ = serde_json::to_writer(buffer.writer(), data);
}
