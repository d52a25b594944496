//! What the tests stand on: a real server for each test, callers of every kind, and streams.
//!
//! A test is a plain `async fn name(setup: Setup)`; [`both_engines!`] runs it on each engine,
//! [`one_engine!`] where no engine can make a difference.
//! Nothing here sleeps: what takes time is waited for, with a deadline.

mod agent_host;
mod caller;
mod database;
mod events;
mod proxy;
mod push;
mod server;
mod shared;
mod shell;
mod stand_in;
mod token;

pub use agent_host::AgentHost;
pub use caller::{Agent, Caller, Reply, Request, agent_id};
pub use events::Events;
pub use proxy::Proxy;
pub use push::{PushAgent, metric};
pub use server::{Engine, Setup, TestServer};
pub use shared::SharedServer;
pub use shell::{Home, Ran};
pub use stand_in::stand_in;
pub use token::{claims, forged, now, public_jwks, public_pem, with_claims};

use std::{future::Future, time::Duration};

/// How long anything may take before a test gives up on it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Makes a test for each engine from each of these functions.
macro_rules! both_engines {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test]
            async fn sqlite() {
                super::$name(crate::harness::Setup::new(crate::harness::Engine::Sqlite)).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$name(crate::harness::Setup::new(crate::harness::Engine::Postgres)).await;
            }
        })+
    };
}
pub(crate) use both_engines;

/// Makes a test from each of these functions, on the embedded engine alone: what they look at is
/// decided before anything is stored, or after it was read.
macro_rules! one_engine {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test]
            async fn sqlite() {
                super::$name(crate::harness::Setup::new(crate::harness::Engine::Sqlite)).await;
            }
        })+
    };
}
pub(crate) use one_engine;

/// Asks until the answer is there, less and less often: whoever asks takes time from whoever works.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let asking = async {
        let mut pause = Duration::from_millis(10);
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f32(1.3).min(Duration::from_millis(120));
        }
    };
    match tokio::time::timeout(DEADLINE, asking).await {
        Ok(answer) => answer,
        Err(_) => panic!("not in time: {what}"),
    }
}

/// Where the clients are that others made.
pub fn clients() -> std::path::PathBuf {
    let folder = std::env::var_os("SC_TEST_CLIENTS").unwrap_or_else(|| {
        panic!("run crates/chatroom/tests/clients/install.sh FOLDER and set SC_TEST_CLIENTS=FOLDER")
    });
    folder.into()
}
