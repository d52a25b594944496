//! The call of the backend: what it is told, and retries while it says that it may work in a moment.

use super::{End, Room};
use crate::{
    backend::{BackendError, Inbound, Reply},
    daemon::retry,
};
use client::{Client, MessageQuery};
use protocol::Message;
use tokio::time::sleep;

/// How often a backend is asked that says it may work in a moment.
const MAX_BACKEND_TRIES: u32 = 10;

impl Room {
    /// The backend's answer, or nothing where it is silent or fails.
    pub(super) async fn call_backend(&mut self, message: Message) -> Result<Option<String>, End> {
        let inbound = self.build_inbound(message).await?;
        let mut backoff = retry::backoff();
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = tokio::select! {
                answer = self.shared.backend.answer(&inbound) => answer,
                () = self.shutdown.forced() => return Err(End::Stopped),
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
                    if tries < MAX_BACKEND_TRIES =>
                {
                    tracing::warn!(%error, tries, "no answer; trying again");
                    tokio::select! {
                        () = sleep(backoff.next_delay()) => {}
                        () = self.shutdown.begun() => return Err(End::Stopped),
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "no answer; the message is skipped");
                    return Ok(None);
                }
            }
        }
    }

    async fn build_inbound(&mut self, message: Message) -> Result<Inbound, End> {
        let only_addressed = self.shared.backend.answers_only_addressed();
        let mut rules = None;
        let mut recent = Vec::new();
        if only_addressed {
            let version = message.rules_version;
            let read = async |client: &Client| self.context.rules(client, version).await;
            rules = self.connection.retry(read).await?;
            recent = self.recent(message.seq).await?;
        }
        Ok(Inbound {
            room_id: self.room.clone(),
            room_name: self.name.clone(),
            message,
            client: self.connection.client().clone(),
            me: self.context.me().clone(),
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
        let page = self.connection.retry(page).await?;
        Ok(page.map(|page| page.messages).unwrap_or_default())
    }
}
