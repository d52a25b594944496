//! The pump, its payloads and its XML, from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod asks;
mod budgets;
mod common;
mod config;
mod contract;
mod durable;
mod enforcement;
mod flow;
mod fuzz;
mod gateways;
mod observed;
mod oracle;
mod payload;
mod pump;
mod shapes;
mod todos;
mod words;
mod xml;
