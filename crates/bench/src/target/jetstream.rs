//! NATS JetStream: a stream in a file, posters that wait for its confirmation, and ordered
//! consumers, which like our streams receive what is stored, in order and without a gap.

use std::net::SocketAddr;

use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{self, StorageType};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use tempfile::TempDir;

use super::{Poster, Subscriber, Target};
use crate::Result;
use crate::content::Content;
use crate::process::{Process, build_folder, command, find_command, free_address};
use crate::sse::Message;

const STREAM: &str = "bench";
const SUBJECT: &str = "bench.room";

/// The version that learned to sync every message.
const SYNCS_SINCE: (u32, u32) = (2, 10);

/// Why JetStream cannot be measured here, if it cannot.
pub fn obstacle(sync_always: bool) -> Option<String> {
    let version = match version() {
        Ok(version) => version,
        Err(error) => return Some(error.to_string()),
    };
    let (major, minor) = SYNCS_SINCE;
    (sync_always && version < SYNCS_SINCE).then(|| {
        let (old_major, old_minor) = version;
        format!(
            "nats-server {old_major}.{old_minor} knows no sync_interval, {major}.{minor} does; \
             name another in NATS_SERVER"
        )
    })
}

/// The major and the minor number of nats-server's version.
fn version() -> Result<(u32, u32)> {
    let program = find_command("nats-server", "NATS_SERVER")?;
    let output = command(&program, ["--version"]).output()?;
    let said = String::from_utf8(output.stdout)?;
    let mut numbers = said
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok());
    numbers
        .next()
        .zip(numbers.next())
        .ok_or_else(|| format!("nats-server gave its version as {said:?}").into())
}

/// A running nats-server with one stream.
pub struct JetStream {
    address: SocketAddr,
    process: Process,
    _data: TempDir,
}

impl JetStream {
    /// Starts a server that syncs every message, or one that keeps its default.
    pub async fn start(sync_always: bool) -> Result<Self> {
        let data = tempfile::tempdir_in(build_folder()?)?;
        let address = free_address()?;
        let sync = if sync_always {
            "sync_interval: always"
        } else {
            ""
        };
        let config = format!(
            "listen: \"{address}\"\njetstream {{\n  store_dir: {:?}\n  {sync}\n}}\n",
            data.path()
        );
        let file = data.path().join("nats.conf");
        std::fs::write(&file, config)?;

        let mut command = command(&find_command("nats-server", "NATS_SERVER")?, ["--config"]);
        let mut process = Process::start(command.arg(file), data.path().join("bench.log"))?;
        process.listening(address).await?;
        let server = Self {
            address,
            process,
            _data: data,
        };
        let config = stream::Config {
            name: STREAM.into(),
            subjects: vec![SUBJECT.into()],
            storage: StorageType::File,
            ..Default::default()
        };
        server.connect().await?.create_stream(config).await?;
        Ok(server)
    }

    /// Opens a connection of its own, as each HTTP poster and subscriber has one.
    async fn connect(&self) -> Result<Context> {
        let client = async_nats::ConnectOptions::new()
            .subscription_capacity(1 << 16)
            .connect(self.address.to_string())
            .await?;
        Ok(jetstream::new(client))
    }
}

impl Target for JetStream {
    type Poster = Context;
    type Subscriber = Consumer;

    fn process(&self) -> &Process {
        &self.process
    }

    async fn poster(&self, _number: usize) -> Result<Context> {
        self.connect().await
    }

    async fn subscriber(&self) -> Result<Consumer> {
        let context = self.connect().await?;
        let config = OrderedConfig {
            deliver_subject: context.client().new_inbox(),
            deliver_policy: jetstream::consumer::DeliverPolicy::New,
            ..Default::default()
        };
        let stream = context.get_stream(STREAM).await?;
        let consumer = stream.create_consumer(config).await?;
        Ok(Consumer(consumer.messages().await?))
    }
}

impl Poster for Context {
    async fn post(&mut self, content: &Content) -> Result<u64> {
        let payload = content.bytes().to_vec();
        let confirmation = self.publish(SUBJECT, payload.into()).await?;
        Ok(confirmation.await?.sequence)
    }
}

/// An ordered consumer.
pub struct Consumer(Ordered);

impl Subscriber for Consumer {
    async fn receive(
        &mut self,
        each: &mut (impl FnMut(Message<'_>) -> Result<()> + Send),
    ) -> Result<()> {
        let message = self.0.next().await.ok_or("the consumer ended")??;
        let seq = message.info()?.stream_sequence;
        each(Message {
            seq,
            data: &message.payload,
        })
    }
}
