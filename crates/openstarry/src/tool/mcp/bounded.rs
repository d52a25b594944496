//! A reader that refuses a line without end, which the MCP library would store.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

pub(super) struct BoundedLines<R> {
    inner: R,
    limit: usize,
    line: usize,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(inner: R, limit: usize) -> Self {
        Self {
            inner,
            limit,
            line: 0,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let fresh = &buf.filled()[before..];
        self.line = match fresh.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => fresh.len() - end - 1,
            None => self.line + fresh.len(),
        };
        if self.line > self.limit {
            // A reader that fails may not have given bytes.
            buf.set_filled(before);
            return Poll::Ready(Err(Error::new(
                ErrorKind::InvalidData,
                "the line is too long",
            )));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_line_without_end_is_refused_and_many_lines_are_not() {
        let many = b"0123456789\n".repeat(1000);
        let mut text = Vec::new();
        let mut lines = BoundedLines::new(many.as_slice(), 64);
        lines.read_to_end(&mut text).await.unwrap();
        assert_eq!(text, many);
        let long = vec![b'x'; 10_000];
        let mut lines = BoundedLines::new(long.as_slice(), 64);
        assert!(lines.read_to_end(&mut text).await.is_err());
    }
}
