//! Waiting for a mention.

use super::{
    api::{ApiCall, ApiRefusal, RoomApi},
    follow::Following,
    tools::query,
};
use futures_util::future::select_all;
use protocol::{EventKind, Messages, RoomId};
use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// The longest that somebody may wait at once.
pub const LONGEST_SECONDS: u64 = 300;
const DEFAULT_SECONDS: u64 = 60;
/// How often those who wait hear that they still do. Clients give up after a minute without a word.
const PROGRESS: Duration = Duration::from_secs(5);
/// The rooms that are listened to at once. Each is a stream.
const MOST_ROOMS: usize = 10;
/// Mentions that are given at once.
const MOST_MENTIONS: i64 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitArguments {
    room_id: Option<RoomId>,
    since: Option<i64>,
    timeout_seconds: Option<u64>,
}

/// One room that is listened to.
struct Listening {
    room: RoomId,
    since: i64,
    stream: Following,
}

/// Waits until the caller is mentioned, the time is over, or nobody wants to know any more.
pub async fn for_mention(
    api: &RoomApi,
    wanted: WaitArguments,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ApiRefusal> {
    let seconds = wanted.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
    if !(1..=LONGEST_SECONDS).contains(&seconds) {
        return Err(ApiRefusal(format!(
            "bad_request: timeout_seconds must be from 1 to {LONGEST_SECONDS}"
        )));
    }
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut listening = Vec::new();
    for room in rooms(api, &wanted).await? {
        let stream = Following::open(api, &room, false).await?;
        // The stream is open first, so nothing falls between the two.
        let since = match wanted.since {
            Some(since) => since,
            None => latest(api, &room).await?,
        };
        listening.push(Listening {
            room,
            since,
            stream,
        });
    }
    let mut found = Vec::new();
    if wanted.since.is_some() {
        for one in &mut listening {
            found.extend(one.mentions(api).await?);
        }
    }
    let mut progress = tokio::time::interval(PROGRESS);
    progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    while found.is_empty() && !listening.is_empty() {
        let rooms = listening.len();
        let next = select_all(listening.iter_mut().map(|one| Box::pin(one.stream.next())));
        let (event, at) = tokio::select! {
            biased;
            () = context.ct.cancelled() => break,
            () = tokio::time::sleep_until(deadline) => break,
            (event, at, _) = next => (event, at),
            _ = progress.tick() => {
                if !still_wanted(context, began.elapsed(), seconds, rooms).await {
                    break;
                }
                continue;
            }
        };
        match event {
            Some(EventKind::Message | EventKind::MessageEdited) => {
                found = listening[at].mentions(api).await?;
            }
            Some(_) => {}
            // Cut off, or the right to read has ended: the next call says which.
            None => {
                let ended = listening.swap_remove(at);
                ended.mentions_left(api).await?;
            }
        }
    }
    Ok(json!({"mentions": found, "timed_out": found.is_empty()}))
}

async fn rooms(api: &RoomApi, wanted: &WaitArguments) -> Result<Vec<RoomId>, ApiRefusal> {
    if let Some(room) = &wanted.room_id {
        return Ok(vec![room.clone()]);
    }
    if wanted.since.is_some() {
        return Err(ApiRefusal(
            "bad_request: since goes with a room_id".to_owned(),
        ));
    }
    let rooms = api.caller.rooms(&api.app).await?.into_iter();
    let open: Vec<RoomId> = rooms
        .filter(|room| !room.archived)
        .map(|room| room.room_id)
        .collect();
    match open.len() {
        0 => Err(ApiRefusal(
            "not_found: you are in no room; join one first".to_owned(),
        )),
        n if n > MOST_ROOMS => Err(ApiRefusal(format!(
            "bad_request: you are in {n} rooms, and at most {MOST_ROOMS} can be waited for; give a room_id"
        ))),
        _ => Ok(open),
    }
}

async fn latest(api: &RoomApi, room: &RoomId) -> Result<i64, ApiRefusal> {
    let page = api.call(ApiCall::get(room, "/messages?limit=1")).await?;
    Ok(page["latest_seq"].as_i64().unwrap_or(0))
}

/// Tells whoever waits that nothing has come yet; false once nobody hears it.
async fn still_wanted(
    context: &RequestContext<RoleServer>,
    waited: Duration,
    seconds: u64,
    rooms: usize,
) -> bool {
    let Some(token) = context.meta.get_progress_token() else {
        return !context.peer.is_transport_closed();
    };
    let progress = ProgressNotificationParam::new(token, waited.as_secs_f64())
        .with_total(seconds as f64)
        .with_message(format!("no mention yet; listening to {rooms} room(s)"));
    context.peer.notify_progress(progress).await.is_ok()
}

impl Listening {
    /// Mentions since the last look, of others than the caller.
    async fn mentions(&mut self, api: &RoomApi) -> Result<Vec<Value>, ApiRefusal> {
        let query = query(&[
            ("mentions", Some("me".to_owned())),
            ("since", Some(self.since.to_string())),
            ("limit", Some(MOST_MENTIONS.to_string())),
        ]);
        let page = api
            .call(ApiCall::get(&self.room, &format!("/messages{query}")))
            .await?;
        let page: Messages = serde_json::from_value(page)
            .map_err(|error| ApiRefusal(format!("internal: {error}")))?;
        let me = api.caller.user();
        if let Some(last) = page.messages.last() {
            self.since = last.seq;
        }
        let others = page
            .messages
            .into_iter()
            .filter(|message| message.sender_user_id != me);
        Ok(others
            .map(|message| json!({"room_id": self.room, "message": message}))
            .collect())
    }

    /// Fails where the caller may not read the room any more.
    async fn mentions_left(mut self, api: &RoomApi) -> Result<(), ApiRefusal> {
        self.mentions(api).await.map(drop)
    }
}
