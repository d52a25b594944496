//! What operators run beside the server.

pub mod admin;
pub mod backup;
pub mod calls;
pub mod import;
pub mod table;
pub mod users;
