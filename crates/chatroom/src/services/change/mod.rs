//! Changing a room. Posts, agents' collected answers, edits, notices and changes of members all take
//! these steps:
//!
//! 1. [`admit`] says, without I/O, whether somebody's words may enter the room.
//! 2. [`message`] builds what is stored, with the room's next seq.
//! 3. A [`RoomLog`] adds it to the room's log, and makes the frames that readers get.
//! 4. A [`RoomTx`] commits, publishes, and rechecks readers, whoever hangs up.
//!
//! Posts take the last two steps in groups (`services/messages/posting`): many share one write to the disk.

mod addressed;
mod admit;
pub mod exchanges;
mod log;
pub mod message;
mod tx;

pub use addressed::addressed;
pub use admit::{Admission, Refusal, Words, admit};
pub use log::RoomLog;
pub use tx::RoomTx;
