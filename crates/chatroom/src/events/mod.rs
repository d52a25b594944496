//! A room's events, published to its readers once they are in its log.
//!
//! The log in the store is the truth. What is published only wakes readers and saves them a
//! read: whoever has missed anything reads the log, and [`reconcile`] finds out who has.

mod at_work;
mod bus;
mod dirty_rooms;
mod frame;
mod hub;
mod live;
mod reconcile;
mod replay;
mod ring;
mod stream;
mod users;

pub use at_work::{AtWork, CallGuard};
pub use bus::{AWAY as BUS_AWAY, Bus, BusError};
pub use dirty_rooms::DirtyRooms;
pub use frame::{Form, FrameBuffer, Frames, ephemeral as ephemeral_frame};
pub use hub::{Commit, ConnectionCut, Hub};
pub use live::Live;
pub use reconcile::reconcile;
pub use stream::{Reader, StreamSettings, open};
pub use users::UserEvent;
