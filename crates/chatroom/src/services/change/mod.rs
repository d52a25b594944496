//! Changing a room. Posts, agents' collected answers, edits, notices and changes of members all take
//! these steps:
//!
//! 1. [`admit`] says, without I/O, whether somebody's words may enter the room.
//! 2. [`message`] builds what is stored, with the room's next seq, and whom it addresses.
//! 3. A [`RoomLog`] adds it to the room's log, and to the [`PendingCommit`] that readers are told of.
//! 4. A [`RoomTx`] commits, publishes, and rechecks readers, whoever hangs up.
//!
//! Posts take the last two steps in groups (`services/messages/posting`): many share one write to the disk.

mod admit;
mod commit;
pub mod exchanges;
mod log;
pub mod message;
mod tx;

pub use admit::{Admission, AuthorKind, Candidate, Parent, Refusal, admit, answer_depth};
pub use commit::PendingCommit;
pub use log::RoomLog;
pub use tx::RoomTx;
