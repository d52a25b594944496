//! A typed client of the room server, on the wire types of [`protocol`].
//!
//! There is one method for each endpoint; what a method may answer with is in its type, and
//! everything that can go wrong is a [`ClientError`].
//!
//! ```no_run
//! use client::{Client, PostMessage};
//!
//! # async fn example() -> Result<(), client::ClientError> {
//! let client = Client::new("http://127.0.0.1:8080")?.with_token("eyJ…")?;
//! let room = client.create_room("strategy-sync", None).await?.room_id;
//!
//! let hello = PostMessage { content: "Hello everyone".into(), ..Default::default() };
//! // With a key, a post whose answer was lost can be sent again: it is still one message.
//! client.post_message(&room, &hello, Some("hello-1")).await?;
//!
//! // Reconnects and resumes by itself, without a gap and without a double.
//! let mut events = client.follow(&room, None);
//! while let Ok((cursor, event)) = events.next().await {
//!     println!("{cursor:?} {event:?}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Tokens are never logged and never part of an error or of `Debug` output.

mod consents;
mod error;
mod http;
mod identity;
mod inbox;
mod invites;
mod keys;
mod members;
mod messages;
mod reputation;
mod rooms;
mod search;
mod stream;
mod system;
mod turns;
mod usage;

pub use error::ClientError;
pub use http::Client;
pub use messages::MessageQuery;
pub use protocol::{self, Cursor, Event, PostMessage, RoomId, UserId, sse};
pub use search::SearchQuery;
pub use stream::{EventStream, Follow};

/// What a call gives: the reply, or why there is none.
pub type Result<T> = std::result::Result<T, ClientError>;
