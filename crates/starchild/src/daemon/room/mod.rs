//! One room, from the daemon's start to its end: messages in order, each dealt with once.

mod addressed;
mod connection;
mod context;
mod feed;
mod journal;
mod stream;

pub use connection::End;

use super::{backoff::Pause, credentials::access::Access, shutdown::Stop};
use crate::{
    backend::{Backend, BackendError, Inbound, Reply, Session, answer_in::AnswerIn},
    home::{AgentHome, RoomAddress},
};
use client::{Client, MessageQuery, PostMessage};
use connection::Link;
use context::Around;
use journal::Journal;
use protocol::{Message, RoomId};
use std::sync::Arc;
use tokio::time::sleep;
use tracing::Instrument;

/// How often a backend is asked that says it may work in a moment.
const BACKEND_TRIES: u32 = 10;
/// What every room of an agent shares.
pub struct Shared {
    /// What answers.
    pub backend: Box<dyn Backend>,
    /// How many messages before the one to answer it is shown.
    pub context_messages: u32,
    /// In which rooms it is asked.
    pub answer_in: AnswerIn,
    /// This start of the daemon.
    pub session: Arc<Session>,
}

/// A room that is followed.
pub struct Room {
    home: AgentHome,
    room: RoomId,
    /// What it is called on this machine.
    name: String,
    shared: Arc<Shared>,
    link: Link,
    journal: Journal,
    around: Around,
    stop: Stop,
    /// Whether it was said that the agent stays silent here.
    silence_told: bool,
}

impl Room {
    /// Follows a room from where the daemon last came to, until there is a reason not to.
    pub async fn follow(home: &AgentHome, shared: Arc<Shared>, access: Access, stop: Stop) -> End {
        let address = access.file().address();
        let around = Around::new(access.file());
        let mut link = Link::new(access, stop.clone());
        let journal = match journal(home, &address, &mut link).await {
            Ok(journal) => journal,
            Err(end) => return end,
        };
        link.begin_at(journal.seq());
        tracing::info!(from = journal.seq(), "following");
        let room = Self {
            home: home.clone(),
            name: home.room_name(&address),
            room: address.room,
            shared,
            link,
            journal,
            around,
            stop,
            silence_told: false,
        };
        room.deal_with_all().await
    }

    /// Deals with one message after the other.
    async fn deal_with_all(mut self) -> End {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        self.journal.flush().await;
        end
    }

    async fn step(&mut self) -> Result<(), End> {
        let message = tokio::select! {
            biased;
            () = self.journal.due() => {
                self.journal.flush().await;
                return Ok(());
            }
            message = self.link.next() => message?,
        };
        let span = tracing::info_span!("message", seq = message.seq);
        self.deal_with(message).instrument(span).await
    }

    async fn deal_with(&mut self, message: Message) -> Result<(), End> {
        let seq = message.seq;
        if !self.is_for_backend(&message).await? {
            self.journal.pass(seq);
            return Ok(());
        }
        let depth = message.reply_chain_depth;
        let answer = match self.journal.answer_to(seq) {
            Some(text) => Some(text.to_owned()),
            None => self.ask(message).await?,
        };
        if let Some(text) = answer {
            if self.journal.answer_to(seq).is_none() {
                self.journal.prepare(seq, &text).await;
            }
            self.post(seq, depth, text).await?;
        }
        self.journal.done(seq).await;
        Ok(())
    }

    async fn is_for_backend(&mut self, message: &Message) -> Result<bool, End> {
        if message.deleted {
            tracing::info!("taken back by its sender, so not answered");
            return Ok(false);
        }
        if self.shared.backend.is_gated() {
            let meant = async |client: &Client| self.around.is_meant(client, message).await;
            if !self.link.insist(meant).await?.unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(self.answers_here())
    }

    /// Whether the owner wants answers in this room; the first time they do not, the log says so.
    /// The owner may join a room on purpose that the agent is in already, so the file is read anew.
    fn answers_here(&mut self) -> bool {
        let known = self.link.file();
        let file = self.home.room(&known.address()).ok().flatten();
        let answers = self
            .shared
            .answer_in
            .includes(file.as_ref().unwrap_or(known));
        if !answers && !std::mem::replace(&mut self.silence_told, true) {
            tracing::info!(
                "the agent is meant, and stays silent: its owner did not choose this room. \
                 answer_in: in handler.yaml, or joining the room with an invite, changes that"
            );
        }
        answers
    }

    /// The backend's answer, or nothing where it is silent or fails.
    async fn ask(&mut self, message: Message) -> Result<Option<String>, End> {
        let inbound = self.inbound(message).await?;
        let mut pause = Pause::default();
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = tokio::select! {
                answer = self.shared.backend.answer(&inbound) => answer,
                () = self.stop.hurried() => return Err(End::Stopped),
            };
            match answer {
                Ok(Reply::Silent) => {
                    tracing::info!("handled, without a word");
                    return Ok(None);
                }
                // Every backend's words are cut alike.
                Ok(Reply::Text(text)) => match Reply::from_output(&text) {
                    Reply::Silent => return Ok(None),
                    Reply::Text(text) => return Ok(Some(text)),
                },
                Err(error @ (BackendError::Unavailable(_) | BackendError::Missing { .. }))
                    if tries < BACKEND_TRIES =>
                {
                    tracing::warn!(%error, tries, "no answer; trying again");
                    tokio::select! {
                        () = sleep(pause.next()) => {}
                        () = self.stop.asked() => return Err(End::Stopped),
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "no answer; the message is skipped");
                    return Ok(None);
                }
            }
        }
    }

    async fn inbound(&mut self, message: Message) -> Result<Inbound, End> {
        let gated = self.shared.backend.is_gated();
        let mut rules = None;
        let mut recent = Vec::new();
        if gated {
            let version = message.rules_version;
            let read = async |client: &Client| self.around.rules(client, version).await;
            rules = self.link.insist(read).await?;
            recent = self.recent(message.seq).await?;
        }
        Ok(Inbound {
            room_id: self.room.clone(),
            room_name: self.name.clone(),
            message,
            client: self.link.client().clone(),
            me: self.around.me().clone(),
            rules,
            recent,
            session: self.shared.session.clone(),
        })
    }

    async fn recent(&mut self, before: i64) -> Result<Vec<Message>, End> {
        if self.shared.context_messages == 0 {
            return Ok(Vec::new());
        }
        let query = MessageQuery {
            before: Some(before),
            limit: Some(self.shared.context_messages),
            ..MessageQuery::default()
        };
        let room = &self.room;
        let page = async |client: &Client| client.messages(room, &query).await;
        let page = self.link.insist(page).await?;
        Ok(page.map(|page| page.messages).unwrap_or_default())
    }

    async fn post(&mut self, seq: i64, depth: i64, content: String) -> Result<(), End> {
        let room = &self.room;
        // The same for every try at this message, so that there is one answer to it at most.
        let key = format!("starchild-{}-{room}-{seq}", self.around.me().user_id);
        let message = PostMessage {
            content,
            reply_to_seq: Some(seq),
            reply_chain_depth: Some(depth + 1),
            client_msg_id: None,
        };
        let post = async |client: &Client| client.post_message(room, &message, Some(&key)).await;
        if let Some(posted) = self.link.insist(post).await? {
            tracing::info!(as_seq = posted.seq, "answered");
        }
        Ok(())
    }
}

/// The journal as it was left. Where there is none, it begins at the room's newest message.
async fn journal(home: &AgentHome, address: &RoomAddress, link: &mut Link) -> Result<Journal, End> {
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
    let newest = link.insist(newest).await?.map_or(0, |page| page.latest_seq);
    Ok(Journal::begin(home, address, newest).await)
}
