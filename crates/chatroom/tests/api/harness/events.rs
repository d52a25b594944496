//! A room's stream, as raw frames.

use super::{DEADLINE, caller::Request};
use client::sse::{Frame, Parser};
use reqwest::Response;
use serde_json::Value;

/// An open stream.
pub struct Events {
    reply: Response,
    parser: Parser,
}

impl Events {
    /// Sends the request and checks that the answer is a stream.
    pub async fn open(request: Request) -> Self {
        match Self::try_open(request).await {
            Ok(events) => events,
            Err(refused) => panic!("{}: {}", refused.status(), refused.text().await.unwrap()),
        }
    }

    /// Sends the request, which may be refused.
    pub async fn try_open(request: Request) -> Result<Self, Response> {
        let reply = request.0.send();
        let reply = tokio::time::timeout(DEADLINE, reply)
            .await
            .unwrap()
            .unwrap();
        if reply.status() != 200 {
            return Err(reply);
        }
        assert_eq!(reply.headers()["content-type"], "text/event-stream");
        let parser = Parser::new();
        Ok(Self { reply, parser })
    }

    /// The next frame.
    pub async fn next(&mut self) -> Frame {
        match self.next_or_end().await {
            Some(frame) => frame,
            None => panic!("the stream has ended"),
        }
    }

    /// The next event of the log after the one that opens a stream: its name, its id and its data. What
    /// has no place in the log is passed over.
    pub async fn event(&mut self) -> (String, String, Value) {
        loop {
            let frame = self.next().await;
            if frame.event.as_deref() == Some("ready") {
                continue;
            }
            if let (Some(data), Some(id)) = (frame.data, frame.id) {
                let data = serde_json::from_str(&data).unwrap();
                return (frame.event.unwrap(), id, data);
            }
        }
    }

    /// The data of the next event of this name that is in no log; all else is passed over.
    pub async fn ephemeral(&mut self, name: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame.event.as_deref() == Some(name) {
                assert_eq!(frame.id, None, "it has no place in the log");
                return serde_json::from_str(&frame.data.unwrap()).unwrap();
            }
        }
    }

    /// The next event's data, after checking its name.
    #[track_caller]
    pub fn expect(&mut self, name: &'static str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let (event, id, data) = self.event().await;
            assert_eq!(event, name, "{id} {data}, at {caller}");
            data
        }
    }

    /// Waits until the server has closed the stream; what came before is passed over.
    pub async fn ended(mut self) {
        while self.next_or_end().await.is_some() {}
    }

    /// The bytes that come next, comments included.
    pub async fn bytes(&mut self) -> Vec<u8> {
        let chunk = tokio::time::timeout(DEADLINE, self.reply.chunk());
        chunk.await.expect("bytes in time").unwrap().unwrap().into()
    }

    /// The next frame, or nothing if the stream is over or was cut.
    pub async fn next_or_end(&mut self) -> Option<Frame> {
        let reading = async {
            loop {
                if let Some(frame) = self.parser.next_frame() {
                    return Some(frame);
                }
                match self.reply.chunk().await {
                    Ok(Some(bytes)) => self.parser.push(&bytes).unwrap(),
                    Ok(None) | Err(_) => return None,
                }
            }
        };
        let frame = tokio::time::timeout(DEADLINE, reading);
        frame.await.expect("an event in time")
    }
}
