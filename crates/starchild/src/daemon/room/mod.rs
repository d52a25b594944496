//! One room, from the daemon's start to its end: messages in order, each dealt with once.
//!
//! A message comes over the [`stream`], or from a page where the stream fails, into the [`feed`],
//! which gives each message once. [`addressed`] says whether it is for the agent, [`context`] what
//! the backend is told besides, [`backend_call`] asks the backend, [`journal`] writes the answer
//! down, [`post`] posts it, and the journal's cursor moves on. Calls to the room are retried by the
//! [`connection`].

mod addressed;
mod backend_call;
mod connection;
mod context;
mod feed;
mod journal;
mod post;
mod stream;

pub use connection::End;

use super::credentials::access::Access;
use crate::{
    backend::{Backend, DaemonSession, answer_in::AnswerIn},
    home::{AgentHome, RoomAddress},
};
use client::{Client, MessageQuery};
use connection::Connection;
use context::RoomContext;
use journal::Journal;
use protocol::{Message, RoomId};
use runtime::Shutdown;
use std::sync::Arc;
use tracing::Instrument;

/// What every room of an agent shares.
pub struct Shared {
    /// What answers.
    pub backend: Box<dyn Backend>,
    /// How many messages before the one to answer it is shown.
    pub context_messages: u32,
    /// In which rooms it is asked.
    pub answer_in: AnswerIn,
    /// This start of the daemon.
    pub session: Arc<DaemonSession>,
}

/// A room that is followed.
pub struct Room {
    home: AgentHome,
    room: RoomId,
    /// What it is called on this machine.
    name: String,
    shared: Arc<Shared>,
    connection: Connection,
    journal: Journal,
    context: RoomContext,
    shutdown: Shutdown,
    /// Whether it was said that the agent stays silent here.
    silence_announced: bool,
}

impl Room {
    /// Follows a room from where the daemon last came to, until there is a reason not to.
    pub async fn follow(
        home: &AgentHome,
        shared: Arc<Shared>,
        access: Access,
        shutdown: Shutdown,
    ) -> End {
        let address = access.file().address();
        let context = RoomContext::new(access.file());
        let mut connection = Connection::new(access, shutdown.clone());
        let journal = match open_journal(home, &address, &mut connection).await {
            Ok(journal) => journal,
            Err(end) => return end,
        };
        connection.follow_from(journal.seq());
        tracing::info!(from = journal.seq(), "following");
        let room = Self {
            home: home.clone(),
            name: home.room_name(&address),
            room: address.room,
            shared,
            connection,
            journal,
            context,
            shutdown,
            silence_announced: false,
        };
        room.run().await
    }

    /// Deals with one message after the other.
    async fn run(mut self) -> End {
        let end = loop {
            if let Err(end) = self.next_step().await {
                break end;
            }
        };
        self.journal.flush().await;
        end
    }

    async fn next_step(&mut self) -> Result<(), End> {
        let message = tokio::select! {
            biased;
            () = self.journal.flush_due() => {
                self.journal.flush().await;
                return Ok(());
            }
            message = self.connection.next() => message?,
        };
        let span = tracing::info_span!("message", seq = message.seq);
        self.handle(message).instrument(span).await
    }

    async fn handle(&mut self, message: Message) -> Result<(), End> {
        let seq = message.seq;
        if !self.is_for_backend(&message).await? {
            self.journal.skip(seq);
            return Ok(());
        }
        let depth = message.reply_chain_depth;
        let answer = match self.journal.answer_to(seq) {
            Some(text) => Some(text.to_owned()),
            None => self.call_backend(message).await?,
        };
        if let Some(text) = answer {
            if self.journal.answer_to(seq).is_none() {
                self.journal.record_answer(seq, &text).await;
            }
            self.post_answer(seq, depth, text).await?;
        }
        self.journal.complete(seq).await;
        Ok(())
    }

    async fn is_for_backend(&mut self, message: &Message) -> Result<bool, End> {
        if message.deleted {
            tracing::info!("taken back by its sender, so not answered");
            return Ok(false);
        }
        if self.shared.backend.answers_only_addressed() {
            let addressed =
                async |client: &Client| self.context.is_addressed(client, message).await;
            if !self.connection.retry(addressed).await?.unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(self.answers_here())
    }

    /// Whether the owner wants answers in this room; the first time they do not, the log says so.
    /// The owner may join a room on purpose that the agent is in already, so the file is read anew.
    fn answers_here(&mut self) -> bool {
        let known = self.connection.file();
        let file = self.home.room(&known.address()).ok().flatten();
        let answers = self
            .shared
            .answer_in
            .includes(file.as_ref().unwrap_or(known));
        if !answers && !std::mem::replace(&mut self.silence_announced, true) {
            tracing::info!(
                "the agent is meant, and stays silent: its owner did not choose this room. \
                 answer_in: in handler.yaml, or joining the room with an invite, changes that"
            );
        }
        answers
    }
}

/// The journal as it was left. Where there is none, it begins at the room's newest message.
async fn open_journal(
    home: &AgentHome,
    address: &RoomAddress,
    connection: &mut Connection,
) -> Result<Journal, End> {
    match Journal::open(home, address) {
        Ok(Some(journal)) => return Ok(journal),
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%error, "how far the daemon came is lost; it goes on from now")
        }
    }
    let query = MessageQuery {
        limit: Some(1),
        ..MessageQuery::default()
    };
    let newest = async |client: &Client| client.messages(&address.room, &query).await;
    let newest = connection
        .retry(newest)
        .await?
        .map_or(0, |page| page.latest_seq);
    Ok(Journal::create(home, address, newest).await)
}
