//! The bytes of a stream: each event is encoded once, whoever reads it.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::{Cursor, EventKind, Message};
use serde::Serialize;
use std::fmt::Write;

/// A sign of life.
pub const HEARTBEAT: &[u8] = b": still here\n\n";

/// Appends one event.
pub fn event(buffer: &mut BytesMut, at: Cursor, kind: EventKind, data: &impl Serialize) {
    head(buffer, at, kind);
    // Plain data always serialises, and a buffer takes all of it.
    let _ = serde_json::to_writer((&mut *buffer).writer(), data);
    buffer.put_slice(b"\n\n");
}

/// Appends one event whose data is JSON already.
pub fn raw_event(buffer: &mut BytesMut, at: Cursor, kind: &str, data: &str) {
    let _ = write!(buffer, "id: {at}\nevent: {kind}\ndata: {data}\n\n");
}

/// An event that is in no log and has no place.
pub fn ephemeral(kind: EventKind, data: &impl Serialize) -> Bytes {
    let mut buffer = BytesMut::new();
    let _ = write!(buffer, "event: {kind}\ndata: ");
    let _ = serde_json::to_writer((&mut buffer).writer(), data);
    buffer.put_slice(b"\n\n");
    buffer.freeze()
}

/// Appends a message as a new one.
pub fn message_frame(buffer: &mut BytesMut, message: &Message) {
    event(buffer, Cursor::at(message.seq), EventKind::Message, message);
}

/// A frame without an event: it tells a reader where it stands, so that it can resume from there
/// even if nothing happens before its connection breaks.
pub fn position(buffer: &mut BytesMut, at: Cursor) {
    let _ = write!(buffer, "retry: 2000\nid: {at}\n\n");
}

fn head(buffer: &mut BytesMut, at: Cursor, kind: EventKind) {
    let _ = write!(buffer, "id: {at}\nevent: {kind}\ndata: ");
}
