//! Listeners compiled into this program.

use super::accept_all;
use crate::terminal::printable;
use agentserver::payload::Schema;
use agentserver::{Listener, Reply};
use serde::Deserialize;

/// Which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    /// Prints what it is sent on standard error, and ends the chain.
    Print,
    /// Sends back what it is sent.
    Echo,
}

impl Name {
    pub fn attach(self, accepts: Vec<Schema>, listener: Listener) -> Listener {
        accept_all(accepts, listener, move |payload, metadata| async move {
            Ok(match self {
                Self::Print => {
                    let said = format!("[{}] {}", metadata.from_id, payload.xml());
                    eprintln!("{}", printable(&said));
                    Reply::from(())
                }
                Self::Echo => Reply::Text(payload.xml().as_bytes().to_vec()),
            })
        })
    }
}
