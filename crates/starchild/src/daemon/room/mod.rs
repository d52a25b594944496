//! One room, from the daemon's start to its end: messages in order, each dealt with once.
//!
//! A message comes over the [`stream`], or from a page where the stream fails, into the [`feed`],
//! which gives each message once. [`addressed`] says whether it is for the agent, [`context`] what
//! the backend is told besides, [`backend_call`] asks the backend, [`journal`] writes the answer
//! down, [`post`] posts it, and the journal's cursor moves on. Calls to the room are retried by the
//! [`connection`].

pub mod addressed;
mod backend_call;
mod connection;
mod context;
mod feed;
mod journal;
mod post;
mod stream;
mod typing;
mod usage;
mod wake;

pub use connection::End;

use super::credentials::access::Access;
use crate::{
    backend::{Backend, DaemonSession, answer_in::AnswerIn},
    home::{AgentHome, RoomAddress},
    telemetry,
};
use client::{Client, MessageQuery};
use connection::Connection;
use context::RoomContext;
use feed::Received;
use journal::Journal;
use protocol::{Event, Message, RoomId, Wake, WakePolicy};
use runtime::Shutdown;
use std::sync::Arc;
use tracing::Instrument;
use wake::WakeLimits;

/// What every room of an agent shares.
pub struct AgentContext {
    /// What answers.
    pub backend: Box<dyn Backend>,
    /// How many messages before the one to answer it is shown.
    pub context_messages: u32,
    /// In which rooms it is asked.
    pub answer_in: AnswerIn,
    /// What wakes it and what it may spend, as its owner wants.
    pub wake_policy: WakePolicy,
    /// Whether it is woken by all that is said in a thread that it has a part in.
    pub follows_threads: bool,
    /// Whether rooms see the arguments of its tools.
    pub show_arguments: bool,
    /// This start of the daemon.
    pub session: Arc<DaemonSession>,
}

/// A room that is followed.
pub struct Room {
    home: AgentHome,
    room: RoomId,
    /// What it is called on this machine.
    name: String,
    shared: Arc<AgentContext>,
    connection: Connection,
    journal: Journal,
    context: RoomContext,
    limits: WakeLimits,
    shutdown: Shutdown,
    /// Whether it was said that the agent stays silent here.
    silence_announced: bool,
}

impl Room {
    /// Follows a room from where the daemon last came to, until there is a reason not to.
    pub async fn follow(
        home: &AgentHome,
        shared: Arc<AgentContext>,
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
        let user = connection.file().user_id.clone();
        let mut limits = WakeLimits::new(home, &address, user, shared.wake_policy.clone());
        tracing::info!(from = journal.seq(), "following");
        limits.report(connection.client()).await;
        let room = Self {
            home: home.clone(),
            name: home.room_name(&address),
            room: address.room,
            shared,
            connection,
            journal,
            context,
            limits,
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
        let shared = self.shared.clone();
        let received = tokio::select! {
            biased;
            () = self.journal.flush_due() => {
                self.journal.flush().await;
                return Ok(());
            }
            received = self.connection.next() => received?,
            remark = shared.backend.next_remark(&self.name) => {
                if self.answers_here() {
                    self.post_remark(&remark).await?;
                }
                shared.backend.remark_is_dealt_with(&self.name, &remark);
                return Ok(());
            }
        };
        match received {
            Received::Message(message) => {
                let span = telemetry::message(&self.room, message.seq);
                self.handle(*message).instrument(span).await
            }
            Received::Event(event) => match *event {
                Event::AgentRetry(retry) if retry.user_id == self.context.me().user_id => {
                    let span = telemetry::message(&self.room, retry.seq);
                    self.answer_anew(retry.seq).instrument(span).await
                }
                // It concerned an answer that is there by now.
                _ => Ok(()),
            },
        }
    }

    async fn handle(&mut self, message: Message) -> Result<(), End> {
        let seq = message.seq;
        if !self.is_for_backend(&message).await? {
            self.journal.skip(seq);
            return Ok(());
        }
        let depth = message.reply_chain_depth;
        let answer = match self.journal.answer_to(seq) {
            Some(answer) => Some(answer.clone()),
            None => self.call_backend(message).await?,
        };
        if let Some(answer) = answer {
            if self.journal.answer_to(seq).is_none() {
                self.journal.record_answer(&answer).await;
            }
            self.post_answer(answer, depth, "").await?;
        }
        self.journal.complete(seq).await;
        Ok(())
    }

    /// Answers a message once more because somebody wants another answer.
    async fn answer_anew(&mut self, seq: i64) -> Result<(), End> {
        let query = MessageQuery {
            since: Some(seq - 1),
            limit: Some(1),
            ..MessageQuery::default()
        };
        let room = self.room.clone();
        let page = async |client: &Client| client.messages(&room, &query).await;
        let page = self.connection.retry(page).await?;
        let messages = page.map(|page| page.messages).unwrap_or_default();
        let message = messages.into_iter().find(|message| message.seq == seq);
        let Some(message) = message.filter(|message| !message.deleted) else {
            return Ok(());
        };
        if message.sender_user_id == self.context.me().user_id || !self.answers_here() {
            return Ok(());
        }
        tracing::info!("asked to answer anew");
        let depth = message.reply_chain_depth;
        if let Some(answer) = self.call_backend(message).await? {
            let attempt = uuid::Uuid::new_v4().to_string();
            self.post_answer(answer, depth, &attempt).await?;
        }
        Ok(())
    }

    async fn is_for_backend(&mut self, message: &Message) -> Result<bool, End> {
        if message.deleted {
            tracing::info!("taken back by its sender, so not answered");
            return Ok(false);
        }
        if !self.is_woken_by(message).await? {
            return Ok(false);
        }
        Ok(self.answers_here())
    }

    /// Whether the message is one that the agent is woken by. A handler decides for itself, unless its
    /// owner or the room's has set something tighter.
    async fn is_woken_by(&mut self, message: &Message) -> Result<bool, End> {
        let own = self.shared.wake_policy.wake;
        let decides_itself =
            own == Wake::Everything && !self.shared.backend.answers_only_addressed();
        if decides_itself && self.limits.wake(self.connection.client()).await == own {
            return Ok(true);
        }
        let relation = async |client: &Client| self.context.relation(client, message).await;
        let relation = self.connection.retry(relation).await?.flatten();
        let Some(relation) = relation else {
            return Ok(false);
        };
        let may_be_of_thread = self.shared.follows_threads && message.reply_to_seq.is_some();
        let may_wake = relation.wakes(own) || (own == Wake::Threads && may_be_of_thread);
        // The server is asked only about what would wake the agent.
        if !may_wake {
            return Ok(false);
        }
        let wake = self.limits.wake(self.connection.client()).await;
        if relation.wakes(wake) || wake != Wake::Threads || !may_be_of_thread {
            return Ok(relation.wakes(wake));
        }
        let part = async |client: &Client| self.context.has_part_in_thread(client, message).await;
        Ok(self.connection.retry(part).await?.unwrap_or(false))
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
