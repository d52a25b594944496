//! Hooks: an owner's code before and after the model and the tools.

use crate::provider::Context;
use crate::segment::{ProviderResponse, ToolCall, ToolResult};
use futures_util::future::{BoxFuture, ready};

/// Code that runs around a session's steps. Every method does nothing unless it
/// is written; hooks run in their order, and the session waits for them.
pub trait Hook: Send + Sync {
    /// Before the model is asked. What is changed here is what it sees.
    fn before_model<'a>(
        &'a self,
        _session: &'a str,
        _context: &'a mut Context,
    ) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// After the model has answered.
    fn after_model<'a>(
        &'a self,
        _session: &'a str,
        _reply: &'a ProviderResponse,
    ) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Before an allowed call runs. An error keeps it from running, and is told
    /// to the model in its place.
    fn before_tool<'a>(
        &'a self,
        _session: &'a str,
        _call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(ready(Ok(())))
    }

    /// After a call has run. What is changed here is what the model sees.
    fn after_tool<'a>(
        &'a self,
        _session: &'a str,
        _call: &'a ToolCall,
        _result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }
}
