//! An organism from a file: many listeners around one pump.

pub mod check;
pub mod config;
pub mod gateway;
pub mod graph;
pub mod kinds;
mod model;
pub mod observe;
mod original;
pub mod ui;
