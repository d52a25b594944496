//! The call of the backend: what it is told, and retries while it says that it may work in a moment.

use super::{End, Room, typing::Typing, usage};
use crate::{
    backend::{BackendError, Call, Inbound, Reply},
    daemon::retry,
    home::PreparedAnswer,
};
use client::{Client, MessageQuery};
use protocol::{AgentStop, Event, Message, Usage};
use std::time::Instant;
use tokio::time::sleep;

/// How often a backend is asked that says it may work in a moment.
const MAX_BACKEND_TRIES: u32 = 10;

/// How a call of the backend came to its end.
enum Ended {
    Answered(Result<Reply, BackendError>),
    /// Somebody stopped it.
    Stopped,
}

impl Room {
    /// The backend's answer, or nothing where it is silent, fails, is stopped or may spend no more.
    pub(super) async fn call_backend(
        &mut self,
        message: Message,
    ) -> Result<Option<PreparedAnswer>, End> {
        let now = jiff::Timestamp::now().as_second();
        if self.limits.is_used_up(self.connection.client(), now).await {
            return Ok(None);
        }
        let seq = message.seq;
        let inbound = self.build_inbound(message).await?;
        let mut backoff = retry::backoff();
        let mut tries = 0;
        loop {
            tries += 1;
            let call = Call::new(self.shared.show_arguments);
            let started = Instant::now();
            let ended = self.watch_call(&inbound, &call).await?;
            let usage = usage::of_call(call.progress().usage, started.elapsed());
            let now = jiff::Timestamp::now().as_second();
            let Ended::Answered(answer) = ended else {
                self.limits.count(usage.as_ref(), now).await;
                return Ok(None);
            };
            match answer {
                Ok(reply) => {
                    self.limits.count(usage.as_ref(), now).await;
                    return Ok(prepared(seq, reply, usage));
                }
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
                    self.limits.count(usage.as_ref(), now).await;
                    return Ok(None);
                }
            }
        }
    }

    /// Calls the backend, shows the room how it comes along, and ends it when somebody stops it.
    async fn watch_call(&mut self, inbound: &Inbound, call: &Call) -> Result<Ended, End> {
        let shared = self.shared.clone();
        let (room, seq) = (self.room.clone(), inbound.message.seq);
        let mut typing = Typing::new(self.connection.client().clone(), room, seq);
        let ended = {
            let answer = shared.backend.answer(inbound, call);
            // A handler looks at every message, mostly to say nothing.
            let typing = async {
                match shared.backend.answers_only_addressed() {
                    true => typing.run(call.watch()).await,
                    false => std::future::pending().await,
                }
            };
            // An answer that waits for a person's yes is not waited for: it goes on after a restart.
            let shutdown = async {
                self.shutdown.begun().await;
                call.is_asking().await;
            };
            tokio::pin!(answer, typing, shutdown);
            loop {
                tokio::select! {
                    answer = &mut answer => break Ended::Answered(answer),
                    by = &mut typing => {
                        tracing::info!(by, "stopped");
                        call.stop();
                        break Ended::Stopped;
                    }
                    event = self.connection.next_event() => match event {
                        Ok(Event::AgentStop(stop)) if concerns(&stop, inbound) => {
                            tracing::info!(by = stop.by_user_id, "stopped");
                            call.stop();
                            break Ended::Stopped;
                        }
                        Ok(Event::ConsentUpdated(_)) => call.notify_consent_change(),
                        Ok(_) => {}
                        Err(end) => return Err(end),
                    },
                    () = self.shutdown.forced() => {
                        call.begin_shutdown();
                        return Err(End::Stopped);
                    }
                    () = &mut shutdown => {
                        call.begin_shutdown();
                        return Err(End::Stopped);
                    }
                }
            }
        };
        match &ended {
            // Its message ends the typing.
            Ended::Answered(Ok(Reply::Text(_))) => {}
            _ => typing.end(),
        }
        Ok(ended)
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

/// Whether somebody stopped the answer to this message.
fn concerns(stop: &AgentStop, inbound: &Inbound) -> bool {
    let seq = inbound.message.seq;
    stop.user_id == inbound.me.user_id && stop.reply_to_seq.is_none_or(|stopped| stopped == seq)
}

/// What is posted of a reply, if anything is. Every backend's words are cut alike.
fn prepared(seq: i64, reply: Reply, usage: Option<Usage>) -> Option<PreparedAnswer> {
    let reply = match reply {
        Reply::Text(text) => Reply::from_output(&text),
        Reply::Silent => Reply::Silent,
    };
    match reply {
        Reply::Text(text) => Some(PreparedAnswer { seq, text, usage }),
        Reply::Silent => {
            tracing::info!("handled, without a word");
            None
        }
    }
}
