//! The real `starchild`, as its users meet it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod a2a;
mod agent;
mod agent_at_work;
mod agent_in_room;
mod attacks;
mod backends;
mod bridge;
mod coding_agents;
mod completions;
mod daemon;
mod examples;
mod harness;
mod host;
mod mcp;
mod one_liner;
mod organism;
mod organism_durable;
mod organism_gateways;
mod organism_http_durable;
mod organism_in_room;
mod organism_models;
mod organism_observed;
mod personal;
mod plain;
mod proxy;
mod seen_at_work;
mod shortcuts;
mod stand_in;
mod stand_in_models;
mod story;
#[path = "../../../openstarry/tests/integration/support/mod.rs"]
mod support;
mod traces;
mod up;
