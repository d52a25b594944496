//! An agent asks its owner in the room whether it may do something.
//!
//! The question is kept by the server, under a key that the same question has after a restart. So it
//! outlives both sides, and is answered once.

use super::{Call, Inbound};
use client::{Client, ClientError};
use protocol::{AskConsent, Consent, ConsentState, MAX_CONSENT_DETAIL_BYTES, RoomId};
use runtime::Backoff;
use std::time::Duration;
use tokio::time::sleep;

/// How often the server is asked for an answer that no event told of.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
const MAX_TOOL_CHARS: usize = 64;
const MAX_SUMMARY_CHARS: usize = 500;

/// Whom to ask, for one message.
#[derive(Clone, Debug)]
pub struct Asker {
    client: Client,
    room: RoomId,
    user_id: String,
    seq: i64,
    call: Call,
}

/// What may be done or not.
#[derive(Clone, Debug)]
pub struct ConsentQuestion {
    /// The same for the same question of the same message, also after a restart.
    pub id: String,
    /// The tool, which everybody in the room sees.
    pub tool: String,
    /// What it would do, for the owner.
    pub summary: String,
    /// The particulars, e.g. a diff.
    pub detail: Option<String>,
}

/// What the owner says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// Yes, this once.
    Once,
    /// Yes, and to the same from now on.
    Always,
    /// No, and why.
    No(String),
}

impl Asker {
    /// Asks in the room that the message came from.
    pub fn new(inbound: &Inbound, call: &Call) -> Self {
        Self {
            client: inbound.client.clone(),
            room: inbound.room_id.clone(),
            user_id: inbound.me.user_id.clone(),
            seq: inbound.message.seq,
            call: call.clone(),
        }
    }

    /// Asks, and waits for the answer. A question that is dropped is taken back, unless it is dropped
    /// because the program ends: then it waits for the next start.
    pub async fn ask(&self, question: &ConsentQuestion) -> ConsentAnswer {
        let _asking = self.call.report_question(&question.tool);
        let mut consent = match self.open(question).await {
            Ok(consent) => consent,
            Err(error) => {
                tracing::warn!(%error, tool = question.tool, "nobody can be asked");
                return ConsentAnswer::No(format!("nobody can be asked in this room: {error}"));
            }
        };
        tracing::info!(
            tool = question.tool,
            consent = consent.consent_id,
            "asked in the room"
        );
        let mut open = OpenQuestion {
            asker: self,
            consent_id: Some(consent.consent_id.clone()),
        };
        loop {
            if let Some(answer) = answer(&consent) {
                open.consent_id = None;
                tracing::info!(tool = question.tool, ?answer, "answered in the room");
                return answer;
            }
            tokio::select! {
                () = self.call.wait_for_consent_change() => {}
                () = sleep(LOOK_EVERY) => {}
            }
            match self.client.consent(&self.room, &consent.consent_id).await {
                Ok(now) => consent = now,
                Err(error) if is_transient(&error) => {}
                Err(error) => return ConsentAnswer::No(format!("the question is lost: {error}")),
            }
        }
    }

    async fn open(&self, question: &ConsentQuestion) -> Result<Consent, ClientError> {
        let cut = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
        let detail = question.detail.as_deref().map(|detail| {
            let end = detail.floor_char_boundary(MAX_CONSENT_DETAIL_BYTES);
            detail[..end].to_owned()
        });
        let ask = AskConsent {
            tool: cut(&one_line(&question.tool), MAX_TOOL_CHARS),
            summary: cut(&one_line(&question.summary), MAX_SUMMARY_CHARS),
            detail,
            reply_to_seq: Some(self.seq),
            ttl_seconds: None,
        };
        let key = format!("starchild-{}-{}-{}", self.user_id, self.seq, question.id);
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        loop {
            match self.client.ask_consent(&self.room, &ask, Some(&key)).await {
                Err(error) if is_transient(&error) => sleep(backoff.next_delay()).await,
                asked => return asked,
            }
        }
    }
}

/// A question that waits.
struct OpenQuestion<'a> {
    asker: &'a Asker,
    /// Nothing once it is answered.
    consent_id: Option<String>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(consent_id) = self.consent_id.take() else {
            return;
        };
        if self.asker.call.is_shutting_down() {
            return;
        }
        let (client, room) = (self.asker.client.clone(), self.asker.room.clone());
        tokio::spawn(async move {
            if let Err(error) = client.withdraw_consent(&room, &consent_id).await {
                tracing::warn!(%error, "a question that is not asked any more stays until it expires");
            }
        });
    }
}

/// What was said, if anything was.
fn answer(consent: &Consent) -> Option<ConsentAnswer> {
    let why = consent.reason.as_deref();
    Some(match consent.state {
        ConsentState::Open => return None,
        ConsentState::Allowed => ConsentAnswer::Once,
        ConsentState::Always => ConsentAnswer::Always,
        ConsentState::Denied => ConsentAnswer::No(why.unwrap_or("the owner said no").to_owned()),
        ConsentState::Expired => ConsentAnswer::No("nobody answered in time".into()),
        // What is not known is no yes.
        _ => ConsentAnswer::No("the question was taken back".into()),
    })
}

/// Whether the same may work later.
fn is_transient(error: &ClientError) -> bool {
    error.is_transient() || error.is_connect()
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}
