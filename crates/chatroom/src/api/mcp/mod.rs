//! The rooms for MCP clients, at `/mcp`: streamable HTTP, with `rmcp`.
//!
//! What a tool does, a request to the API does: [`api::RoomApi`] sends it through the same routes, with the
//! caller's own credential and from the caller's own address. So whatever refuses, limits or counts
//! there does so here, and nothing can be reached here that is out of reach there.

mod api;
mod caller;
mod endpoint;
mod follow;
mod handler;
mod prompts;
mod resources;
mod resume;
mod sessions;
mod tools;
mod wait;

pub use api::{ApiCall, ApiRefusal, RoomApi};
pub use caller::McpCaller;
pub use endpoint::McpEndpoint;
pub use follow::Following;
