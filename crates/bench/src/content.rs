//! What the posters say: 128 bytes that tell when they were sent.

use std::time::{Duration, Instant};

use crate::sse::number;

/// The size of a message.
pub const BYTES: usize = 128;

const MARK: &[u8] = b"sent:";
const DIGITS: usize = 16;

/// One message's content.
pub struct Content([u8; BYTES]);

impl Content {
    /// Content that was sent so long after the clock's start.
    pub fn new(sent: Duration) -> Self {
        let mut bytes = [b'x'; BYTES];
        let stamp = format!("{:0DIGITS$} ", sent.as_nanos());
        bytes[..MARK.len()].copy_from_slice(MARK);
        bytes[MARK.len()..][..stamp.len()].copy_from_slice(stamp.as_bytes());
        Self(bytes)
    }

    /// Content that is sent now.
    pub fn now(clock: Instant) -> Self {
        Self::new(clock.elapsed())
    }

    /// The content itself.
    pub fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

/// When the content that is somewhere in these bytes was sent.
pub fn sent(data: &[u8]) -> Option<Duration> {
    let at = memchr::memmem::find(data, MARK)? + MARK.len();
    number(&data[at..]).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_when_it_was_sent() {
        let content = Content::new(Duration::from_millis(1500));
        let frame = [b"{\"content\":\"", &content.bytes()[..], b"\"}"].concat();
        assert_eq!(sent(&frame), Some(Duration::from_millis(1500)));
    }
}
