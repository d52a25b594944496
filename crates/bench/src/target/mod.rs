//! What can be put under load, and what the load needs of it: posters and subscribers.

pub mod http;
pub mod jetstream;

use std::future::Future;

use clap::ValueEnum;

use crate::Result;
use crate::content::Content;
use crate::process::Process;
use crate::sse::Message;

/// The programs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The bare program of this crate.
    Ceiling,
    /// The room server.
    Server,
    /// NATS JetStream that syncs every message.
    JetstreamAlways,
    /// NATS JetStream that syncs every two minutes.
    JetstreamDefault,
}

impl Kind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::Server => "sc-chatroom",
            Self::JetstreamAlways => "JetStream, sync always",
            Self::JetstreamDefault => "JetStream, default",
        }
    }

    /// Why this cannot be measured here, if it cannot.
    pub fn obstacle(self) -> Option<String> {
        match self {
            Self::Ceiling | Self::Server => None,
            Self::JetstreamAlways => jetstream::obstacle(true),
            Self::JetstreamDefault => jetstream::obstacle(false),
        }
    }
}

/// A running program with one room in it.
pub trait Target {
    /// Who posts to it.
    type Poster: Poster;
    /// Who listens to it.
    type Subscriber: Subscriber;

    /// The program itself.
    fn process(&self) -> &Process;

    /// Opens the connection of the poster with this number.
    fn poster(&self, number: usize) -> impl Future<Output = Result<Self::Poster>>;

    /// Opens a stream that is in place when this returns.
    fn subscriber(&self) -> impl Future<Output = Result<Self::Subscriber>>;
}

/// One connection that posts, one message at a time.
pub trait Poster: Send + 'static {
    /// Posts and waits until the message is confirmed; gives its number.
    fn post(&mut self, content: &Content) -> impl Future<Output = Result<u64>> + Send;
}

/// One connection that receives every message.
pub trait Subscriber: Send + 'static {
    /// Waits for messages and hands over those that have come.
    fn receive(
        &mut self,
        each: &mut (impl FnMut(Message<'_>) -> Result<()> + Send),
    ) -> impl Future<Output = Result<()>> + Send;
}
