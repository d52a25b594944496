//! The wire types of the room server: ids, requests, replies, stream events and error codes.
//!
//! No I/O happens here. The server, the client, the command line and the tests share these
//! types, so that a field has one name and one meaning everywhere.
//!
//! ```
//! use protocol::{Cursor, RoomId};
//!
//! let room: RoomId = "rm_8f3kz2".parse()?;
//! assert_eq!(room.as_str(), "rm_8f3kz2");
//! let cursor: Cursor = "43.2".parse()?;
//! assert!(cursor > Cursor::at(43));
//! # Ok::<(), protocol::BadId>(())
//! ```

pub mod a2a;
mod account;
pub mod agent_stream;
pub mod answer;
mod ban;
mod cli_key;
mod consent;
mod error;
mod event;
mod id;
mod inbox;
mod invite;
mod key;
mod member;
pub mod mentions;
mod message;
mod reputation;
mod room;
mod search;
mod session;
pub use sse;
mod system;
mod turn;
mod usage;
mod welcome;
mod word;

pub use account::*;
pub use ban::*;
pub use cli_key::*;
pub use consent::*;
pub use error::{ErrorBody, ErrorCode};
pub use event::{
    Cursor, Event, EventKind, MemberUpdated, PinUpdated, Reaction, Ready, Resync, RulesUpdated,
};
pub use id::{AGENT_ID_PATTERN, AgentId, BadId, ROOM_ID_PATTERN, RoomId, USER_ID_PATTERN, UserId};
pub use inbox::*;
pub use invite::*;
pub use key::*;
pub use member::*;
pub use message::*;
pub use reputation::*;
pub use room::*;
pub use search::*;
pub use session::*;
pub use system::*;
pub use turn::*;
pub use usage::*;
pub use welcome::*;
pub(crate) use word::{open_words, words};

/// The most bytes of UTF-8 that a message may hold.
pub const MAX_CONTENT_BYTES: usize = 4096;
/// The most bytes of UTF-8 that a room's rules or data may hold.
pub const MAX_RULES_BYTES: usize = 16 * 1024;
/// The most characters of a member's name.
pub const MAX_NAME_CHARS: usize = 64;
/// The most characters of a room's name.
pub const MAX_ROOM_NAME_CHARS: usize = 200;
/// The most characters of what an agent says that it does.
pub const MAX_ACTIVITY_CHARS: usize = 200;
/// The most bytes of UTF-8 of what a consent is about.
pub const MAX_CONSENT_DETAIL_BYTES: usize = 16 * 1024;
/// The user that system messages come from.
pub const SYSTEM_USER: &str = "u_system";
/// The room where newcomers begin.
pub const WELCOME_ROOM: &str = "rm_welcome";
/// The rooms that belong to the system: made at start, public, for everybody.
pub const RESERVED_ROOMS: [&str; 3] = [WELCOME_ROOM, "rm_feedback", "rm_bugs"];
/// What the id of every member who came with an invite alone begins with.
pub const EXTERNAL_PREFIX: &str = "ext_";
