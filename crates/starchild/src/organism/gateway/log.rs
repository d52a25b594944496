//! Where the answers of gateways go that nobody listens at: the log.

use agentserver::gateway::{Answer, DeliveryError, Outlet};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// Writes answers to the log; faults as warnings.
pub struct ToLog {
    pub gateway: String,
}

impl Outlet for ToLog {
    fn deliver<'a>(&'a self, answer: &'a Answer) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let (gateway, correlation) = (&self.gateway, &answer.correlation);
        let (from, payload) = (&answer.message.from, answer.message.payload.xml());
        match &**from == agentserver::system::NAME {
            true => tracing::warn!(gateway, %correlation, %from, payload, "answer"),
            false => tracing::info!(gateway, %correlation, %from, payload, "answer"),
        }
        std::future::ready(Ok(())).boxed()
    }
}
