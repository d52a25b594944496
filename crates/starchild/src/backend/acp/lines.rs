//! The pipes to an agent's process as the protocol's lines, none of them without end.

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use std::io;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
};

/// The most bytes of one message.
const MAX_LINE_BYTES: u64 = 8 << 20;
/// The most lines of one process that are no messages.
const MAX_NOISE_LINES: u32 = 1000;

/// Both directions.
pub fn transport(
    stdin: ChildStdin,
    stdout: ChildStdout,
) -> Lines<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
> {
    Lines::new(Box::pin(outgoing(stdin)), Box::pin(incoming(stdout)))
}

fn outgoing(stdin: ChildStdin) -> impl Sink<String, Error = io::Error> + Send {
    sink::unfold(stdin, async |mut stdin: ChildStdin, mut line: String| {
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
        Ok(stdin)
    })
}

fn incoming(stdout: ChildStdout) -> impl Stream<Item = io::Result<String>> + Send {
    stream::try_unfold(Incoming::new(stdout), async |mut incoming| {
        let line = incoming.next().await?;
        Ok(line.map(|line| (line, incoming)))
    })
}

struct Incoming {
    stdout: BufReader<ChildStdout>,
    noise: u32,
}

impl Incoming {
    fn new(stdout: ChildStdout) -> Self {
        Self {
            stdout: BufReader::new(stdout),
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
            let mut bounded = (&mut self.stdout).take(MAX_LINE_BYTES);
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
