//! One call to an agent: what is sent, and what its answer means.

use super::{
    Lane,
    reply::{AgentAnswer, Reply},
};
use crate::{
    config::Fanout as Settings,
    error::Result,
    outbound::{self, Outbound, Trust},
    store::{
        Conn,
        deliveries::LaneRow,
        messages::{MessageRow, Page},
        rooms::RoomRow,
    },
};
use protocol::Usage;
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Messages of context that go with a call, at the most, and their bytes.
const CONTEXT_MESSAGES: i64 = 20;
const CONTEXT_BYTES: usize = 16 * 1024;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// It may work later; the agent may have said when.
    Transient {
        why: String,
        after: Option<Duration>,
    },
    /// The bearer is no good.
    Refused(String),
    /// The agent has left.
    Gone,
    /// Somebody who may has stopped it.
    Stopped,
}

impl CallFailure {
    fn transient(why: impl Into<String>) -> Self {
        Self::Transient {
            why: why.into(),
            after: None,
        }
    }
}

/// The JSON that tells an agent of a message.
pub async fn body(
    conn: &mut Conn,
    lane: &Lane,
    row: &LaneRow,
    room_row: &RoomRow,
    message: &MessageRow,
) -> Result<Value> {
    let room = &lane.room_id;
    let seq = message.seq;
    let mentions = conn.mentions_between(room, &lane.user_id, seq, seq).await?;
    let mut body = json!({
        "message": format!("[{room}] {} ({}): {}", message.sender_user_id, message.via, message.content),
        "thread_id": format!("chatroom-{room}"),
        "channel": "chatroom",
        "thread_metadata": {
            "room_id": room,
            "seq": message.seq,
            "sender_user_id": message.sender_user_id,
            "via": message.via,
            "reply_to_seq": message.reply_to_seq,
            "reply_chain_depth": message.reply_chain_depth,
            "room_rules_version": room_row.rules_version,
        },
        // Who is called, so that an agent in many rooms knows when it is meant.
        "recipient": {
            "user_id": lane.user_id,
            "user_name": row.user_name,
            "mentioned": !mentions.is_empty(),
        },
    });
    let context = context(conn, lane, message.seq).await?;
    if !context.is_empty() {
        body["context"] = Value::Array(context);
    }
    if !row.data_content.is_empty() {
        body["room_data"] = json!(row.data_content);
    }
    Ok(body)
}

/// The newest messages since the member was last mentioned, oldest first.
async fn context(conn: &mut Conn, lane: &Lane, before: i64) -> Result<Vec<Value>> {
    let mention = conn
        .mention_before(&lane.room_id, &lane.user_id, before)
        .await?;
    let page = Page {
        before: Some(before),
        limit: CONTEXT_MESSAGES,
        ..Page::default()
    };
    let recent = conn.messages(&lane.room_id, &page).await?;
    let mut bytes = 0;
    let mut context: Vec<Value> = recent
        .into_iter()
        .rev()
        .filter(|m| m.seq > mention.unwrap_or(0) && !m.deleted)
        .take_while(|m| {
            bytes += m.content.len();
            bytes <= CONTEXT_BYTES
        })
        .map(|m| {
            json!({
                "seq": m.seq,
                "sender_user_id": m.sender_user_id,
                "sender_user_name": m.sender_user_name,
                "via": m.via,
                "content": m.content,
                "reply_to_seq": m.reply_to_seq,
                "created_at": m.created_at,
            })
        })
        .collect();
    context.reverse();
    Ok(context)
}

/// Whom a call goes to, and with what.
pub struct CallTarget<'a> {
    pub endpoint: &'a str,
    pub bearer: &'a str,
    pub container: Option<&'a str>,
    pub trust: Trust,
    /// The same for every try of the same delivery, so that an agent can tell.
    pub delivery_id: String,
}

/// What an agent answered, and what that cost.
#[derive(Debug)]
pub struct AnswerAndUsage {
    pub answer: AgentAnswer,
    pub usage: Option<Usage>,
}

/// Calls the agent and reads its answer to the end. `heard` is told how it grows, and once more
/// after a while where it asks for that.
pub async fn call(
    outbound: &Outbound,
    settings: &Settings,
    target: &CallTarget<'_>,
    body: &Value,
    heard: impl FnMut(&Reply) -> Option<Duration>,
) -> Result<AnswerAndUsage, CallFailure> {
    let began = Instant::now();
    let most = Duration::from_secs(settings.reply_seconds);
    let received =
        tokio::time::timeout(most, send_and_read(outbound, settings, target, body, heard));
    let mut heard = received.await.unwrap_or_else(|_| {
        let why = format!("no complete answer within {} s", most.as_secs());
        Err(CallFailure::transient(why))
    })?;
    if let Some(usage) = &mut heard.usage {
        usage.seconds.get_or_insert(began.elapsed().as_secs_f64());
    }
    Ok(heard)
}

async fn send_and_read(
    outbound: &Outbound,
    settings: &Settings,
    target: &CallTarget<'_>,
    body: &Value,
    mut heard: impl FnMut(&Reply) -> Option<Duration>,
) -> Result<AnswerAndUsage, CallFailure> {
    let refused = |error: outbound::OutboundError| CallFailure::transient(error.to_string());
    let broken = |error: reqwest::Error| CallFailure::transient(outbound::in_words(&error));
    let idle = Duration::from_secs(settings.idle_seconds);
    let silent = |_| CallFailure::transient(format!("nothing came for {} s", idle.as_secs()));
    let url = outbound::chat_stream(target.endpoint).map_err(refused)?;
    let mut request = outbound
        .client(&url, target.trust)
        .map_err(refused)?
        .post(url)
        .bearer_auth(target.bearer)
        .header(header::ACCEPT, "text/event-stream")
        .header("x-delivery-id", &target.delivery_id);
    if let Some(container) = target.container {
        request = request.header(settings.routing_header.as_str(), container);
    }
    let mut response = tokio::time::timeout(idle, request.json(body).send())
        .await
        .map_err(silent)?
        .map_err(broken)?;
    check_head(&response)?;
    let mut reply = Reply::new(settings.reply_bytes);
    let mut again: Option<Duration> = None;
    loop {
        let chunk = tokio::time::timeout(again.unwrap_or(idle), response.chunk()).await;
        if chunk.is_err() && again.is_some() {
            again = heard(&reply);
            continue;
        }
        let Some(bytes) = chunk.map_err(silent)?.map_err(broken)? else {
            break;
        };
        let done = reply
            .push(&bytes)
            .map_err(|error| CallFailure::transient(error.to_string()))?;
        if done {
            break;
        }
        again = heard(&reply);
    }
    let answer = reply
        .finish()
        .map_err(|error| CallFailure::transient(error.to_string()))?;
    Ok(AnswerAndUsage {
        answer,
        usage: reply.usage().cloned(),
    })
}

/// What the head of the answer means.
fn check_head(response: &Response) -> Result<(), CallFailure> {
    let status = response.status();
    let header = |name| response.headers().get(name)?.to_str().ok();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let why = format!("the agent refused its key ({})", status.as_u16());
            return Err(CallFailure::Refused(why));
        }
        StatusCode::GONE => return Err(CallFailure::Gone),
        status if !status.is_success() => {
            let after = header(header::RETRY_AFTER).and_then(|text| text.trim().parse().ok());
            return Err(CallFailure::Transient {
                why: format!("the agent answered with status {}", status.as_u16()),
                after: after.map(Duration::from_secs),
            });
        }
        _ => {}
    }
    let kind = header(header::CONTENT_TYPE).unwrap_or_default();
    if kind.starts_with("application/json") || kind.starts_with("text/html") {
        return Err(CallFailure::transient(
            "the agent did not answer with an event stream",
        ));
    }
    Ok(())
}
