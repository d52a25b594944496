//! Pipes as the protocol's lines, none of them without end.

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// The most bytes of one message.
const MAX_LINE_BYTES: u64 = 8 << 20;
/// The most lines of one process that are no messages.
const MAX_NOISE_LINES: u32 = 1000;

/// Both directions.
pub fn transport(
    to: impl AsyncWrite + Send + Unpin + 'static,
    from: impl AsyncRead + Send + Unpin + 'static,
) -> Lines<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
> {
    Lines::new(Box::pin(outgoing(to)), Box::pin(incoming(from)))
}

fn outgoing(
    to: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<String, Error = io::Error> + Send {
    sink::unfold(to, |mut to, mut line: String| async move {
        line.push('\n');
        to.write_all(line.as_bytes()).await?;
        to.flush().await?;
        Ok(to)
    })
}

fn incoming(
    from: impl AsyncRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<String>> + Send {
    stream::try_unfold(Incoming::new(from), |mut incoming| async move {
        let line = incoming.next().await?;
        Ok(line.map(|line| (line, incoming)))
    })
}

struct Incoming<R> {
    from: BufReader<R>,
    noise: u32,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    fn new(from: R) -> Self {
        Self {
            from: BufReader::new(from),
            noise: 0,
        }
    }

    /// The next line that may be a message. Agents greet and warn on standard output too; one that
    /// does nothing else speaks another language.
    async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            // A flood of lines must not keep others from running.
            tokio::task::consume_budget().await;
            let mut line = Vec::new();
            let mut bounded = (&mut self.from).take(MAX_LINE_BYTES);
            let read = bounded.read_until(b'\n', &mut line).await?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
                let why = format!("a line of more than {MAX_LINE_BYTES} bytes");
                return Err(io::Error::other(why));
            }
            let line = line.trim_ascii();
            if line.starts_with(b"{") || line.starts_with(b"[") {
                return Ok(Some(String::from_utf8_lossy(line).into_owned()));
            }
            self.noise += 1;
            if self.noise > MAX_NOISE_LINES {
                return Err(io::Error::other("it prints what is no message"));
            }
        }
    }
}
