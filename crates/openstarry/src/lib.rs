//! The agent core: what stands between a person and a model that can act.
//!
//! A [`provider`] turns what was said into an API's request and the API's stream
//! into [`segment`]s; nothing a model says is dropped on the way. [`tool`]s are
//! what an agent can do. A [`session`] asks the model, runs the calls it makes
//! and asks again, until it has answered or a limit is reached. The core knows
//! nothing of rooms.
//!
//! ```no_run
//! use openstarry::config::{AgentConfig, Surroundings};
//! use openstarry::session::SessionState;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = AgentConfig::parse("provider: { kind: ollama, model: qwen3 }")?;
//! let built = config.build(Surroundings::default()).await?;
//! let session = built.agent.session(SessionState::new("first"), None);
//! let outcome = session.say("Query weather in Taipei")?.outcome().await;
//! println!("{}", outcome.text());
//! # Ok(())
//! # }
//! ```

pub mod config;
mod hash;
pub mod pain;
pub mod provider;
pub mod segment;
pub mod session;
pub mod tool;
