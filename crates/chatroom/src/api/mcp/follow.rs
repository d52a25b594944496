//! A room's stream, for those who wait or have subscribed. It is the API's own: what ends a reader's
//! right there ends it here.

use super::api::{Call, Refused, RoomApi};
use axum::body::BodyDataStream;
use futures_util::StreamExt;
use protocol::{
    EventKind, RoomId,
    sse::{Frame, Parser},
};

/// A stream that is open.
pub struct Following {
    body: BodyDataStream,
    parser: Parser,
}

impl Following {
    /// Opens the room's stream from now on.
    pub async fn open(api: &RoomApi, room: &RoomId) -> Result<Self, Refused> {
        let call = Call {
            with_key: true,
            ..Call::get(room, "/stream")
        };
        let response = api.send(call).await?;
        Ok(Self {
            body: response.into_body().into_data_stream(),
            parser: Parser::new(),
        })
    }

    /// The next thing that happens in the room, or nothing once the stream has ended.
    pub async fn next(&mut self) -> Option<EventKind> {
        loop {
            while let Some(Frame { event, .. }) = self.parser.next_frame() {
                match event.and_then(|name| name.parse().ok()) {
                    None | Some(EventKind::Ready) => {}
                    Some(kind) => return Some(kind),
                }
            }
            let bytes = self.body.next().await?.ok()?;
            self.parser.push(&bytes).ok()?;
        }
    }
}
