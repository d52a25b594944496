//! A room's stream, for those who wait or have subscribed. It is the API's own: what ends a reader's
//! right there ends it here.

use super::api::{ApiCall, ApiRefusal, RoomApi};
use axum::body::BodyDataStream;
use futures_util::StreamExt;
use protocol::{
    Event, EventKind, RoomId,
    sse::{Frame, Parser},
};

/// A stream that is open.
pub struct Following {
    body: BodyDataStream,
    parser: Parser,
}

impl Following {
    /// Opens the room's stream from now on, perhaps with what agents have written so far.
    pub async fn open(api: &RoomApi, room: &RoomId, deltas: bool) -> Result<Self, ApiRefusal> {
        let path = match deltas {
            true => "/stream?deltas=1",
            false => "/stream",
        };
        let call = ApiCall {
            with_key: true,
            ..ApiCall::get(room, path)
        };
        let response = api.send(call).await?;
        Ok(Self {
            body: response.into_body().into_data_stream(),
            parser: Parser::new(),
        })
    }

    /// The next thing that happens in the room, or nothing once the stream has ended.
    pub async fn next(&mut self) -> Option<EventKind> {
        self.next_frame().await.map(|(kind, _)| kind)
    }

    /// The same with all that is told of it.
    pub async fn next_event(&mut self) -> Option<Event> {
        loop {
            let (kind, data) = self.next_frame().await?;
            // What cannot be read is of a later version.
            if let Ok(event) = Event::parse(kind.as_str(), &data) {
                return Some(event);
            }
        }
    }

    async fn next_frame(&mut self) -> Option<(EventKind, String)> {
        loop {
            while let Some(Frame { event, data, .. }) = self.parser.next_frame() {
                match event.and_then(|name| name.parse().ok()) {
                    None | Some(EventKind::Ready) => {}
                    Some(kind) => return Some((kind, data.unwrap_or_default())),
                }
            }
            let bytes = self.body.next().await?.ok()?;
            self.parser.push(&bytes).ok()?;
        }
    }
}
