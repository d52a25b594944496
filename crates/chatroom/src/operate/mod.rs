//! What operators run beside the server.

pub mod backup;
pub mod calls;
pub mod users;
