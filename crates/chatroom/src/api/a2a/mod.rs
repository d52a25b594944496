//! The rooms for A2A clients: `/a2a/{room}` for one room, `/a2a` for all that a credential opens. JSON-RPC
//! and HTTP+JSON at the same address; what they mean is [`protocol::a2a`]'s.
//!
//! What a client does in a room, a request to the API does, as for MCP: [`RoomApi`] sends it through the
//! same routes with the caller's own credential. What a task is, `services::a2a` reads from the log.

mod endpoint;
mod failure;
mod operations;
mod watch;

pub use endpoint::A2aEndpoint;
