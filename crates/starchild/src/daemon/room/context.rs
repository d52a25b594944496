//! The context of a message, for a backend that is asked only when the agent is addressed: who the
//! agent is in the room, the room's rules by version, and which messages are its own.

use super::{
    addressed::{Addressed, addressed_to, may_mention, mentions},
    wake::Relation,
};
use crate::{backend::Me, home::RoomFile};
use client::{Client, ClientError, MessageQuery};
use protocol::{Message, RoomId, RoomText, Via};
use std::{collections::VecDeque, sync::Arc};

/// How many of the agent's own messages are remembered.
const MAX_OWN: usize = 200;
/// How far back a thread is looked at for the agent's part in it.
const MAX_THREAD: usize = 50;

/// What is known of the room so far.
pub struct RoomContext {
    room: RoomId,
    me: Me,
    /// Whether `me` is what the server says now.
    me_is_fresh: bool,
    rules: Option<Arc<RoomText>>,
    own: VecDeque<i64>,
}

impl RoomContext {
    /// What the room's file tells.
    pub fn new(file: &RoomFile) -> Self {
        let user_id = file.user_id.to_string();
        let name = file.user_name.as_deref().unwrap_or(&user_id);
        let me = Me {
            mention_key: format!("@{name}"),
            user_name: file.user_name.clone(),
            user_id,
            owner_user_id: None,
        };
        Self {
            room: file.room_id.clone(),
            me,
            me_is_fresh: false,
            rules: None,
            own: VecDeque::new(),
        }
    }

    /// Who the agent is in the room.
    pub fn me(&self) -> &Me {
        &self.me
    }

    /// How a message concerns the agent; nothing where it is its own, or the system's.
    pub async fn relation(
        &mut self,
        client: &Client,
        message: &Message,
    ) -> Result<Option<Relation>, ClientError> {
        if message.sender_user_id == self.me.user_id {
            self.own.push_front(message.seq);
            self.own.truncate(MAX_OWN);
            return Ok(None);
        }
        if message.via == Via::System {
            // Somebody joined, left or was renamed: the agent, perhaps.
            self.me_is_fresh = false;
            return Ok(None);
        }
        self.refresh_me(client).await?;
        let addressed = addressed_to(message, &self.me);
        if matches!(addressed, Addressed::No | Addressed::IfMine(_))
            && self.is_called_by_a_part(client, message).await?
        {
            return Ok(Some(Relation::Mention));
        }
        Ok(match addressed {
            Addressed::Yes => Some(Relation::Mention),
            Addressed::Never => None,
            Addressed::No => Some(Relation::Other),
            Addressed::IfMine(seq) => Some(match self.is_mine(client, seq).await? {
                true => Relation::Answer,
                false => Relation::Other,
            }),
        })
    }

    /// Whether the agent spoke in the message's thread, or was named in it; as the server looks at it.
    pub async fn has_part_in_thread(
        &self,
        client: &Client,
        message: &Message,
    ) -> Result<bool, ClientError> {
        let thread = client.thread(&self.room, message.seq).await?.thread;
        let mut newest = thread.iter().rev().take(MAX_THREAD);
        Ok(newest.any(|said| {
            let is_mine = said.sender_user_id == self.me.user_id && said.via == Via::Agent;
            is_mine || said.mentions_me == Some(true) || mentions(&said.content, &self.me)
        }))
    }

    /// The room's rules of this version, or the newest there are.
    pub async fn rules(
        &mut self,
        client: &Client,
        version: i64,
    ) -> Result<Arc<RoomText>, ClientError> {
        if let Some(rules) = self.rules.as_ref().filter(|rules| rules.version >= version) {
            return Ok(rules.clone());
        }
        let rules = Arc::new(client.rules(&self.room).await?);
        self.rules = Some(rules.clone());
        Ok(rules)
    }

    async fn refresh_me(&mut self, client: &Client) -> Result<(), ClientError> {
        if !self.me_is_fresh {
            let me = client.me(&self.room).await?;
            self.me = Me {
                user_id: me.user_id.to_string(),
                user_name: me.user_name,
                mention_key: me.mention_key,
                owner_user_id: me.owner_user_id,
            };
            self.me_is_fresh = true;
        }
        Ok(())
    }

    /// Whether a part of the agent's name calls it, and nobody else. A stream does not tell: it is the
    /// same for all who read it.
    async fn is_called_by_a_part(
        &self,
        client: &Client,
        message: &Message,
    ) -> Result<bool, ClientError> {
        if message.mentions_me.is_some() || !may_mention(&message.content, &self.me) {
            return Ok(false);
        }
        let found = self.message(client, message.seq).await?;
        Ok(found.is_some_and(|message| message.mentions_me == Some(true)))
    }

    async fn is_mine(&self, client: &Client, seq: i64) -> Result<bool, ClientError> {
        if self.own.contains(&seq) {
            return Ok(true);
        }
        let found = self.message(client, seq).await?;
        Ok(found.is_some_and(|message| message.sender_user_id == self.me.user_id))
    }

    /// One message of the room.
    async fn message(&self, client: &Client, seq: i64) -> Result<Option<Message>, ClientError> {
        let query = MessageQuery {
            since: Some(seq - 1),
            limit: Some(1),
            ..MessageQuery::default()
        };
        let page = client.messages(&self.room, &query).await?;
        let found = page.messages.into_iter().next();
        Ok(found.filter(|message| message.seq == seq))
    }
}
