//! What operators run beside the server.

pub mod backup;
pub mod users;
