//! The agent core against stand-ins for the models' APIs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod approval;
mod conformance;
mod context;
mod golden;
mod library;
mod lossless;
mod mcp;
mod refusals;
mod retrieval;
mod sdk;
mod sessions;
mod stops;
mod support;
mod transport;
mod weather;
