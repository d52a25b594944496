//! What an organism's gateways are connected to: standard input, HTTP, a
//! schedule, webhooks.

mod http;
mod log;
pub mod room;
mod schedule;
mod webhook;

use super::config::File;
use crate::http_server as server;
use agentserver::Pump;
use agentserver::gateway::Outlet;
use agentserver::xml::Limits;
use serde::Deserialize;
use std::time::Duration;
use tokio::task::JoinSet;

/// A gateway's `kind`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewayKind {
    /// Standard input and output.
    #[default]
    Stdin,
    /// Programs that speak HTTP.
    Http(http::HttpFile),
    /// The clock.
    Schedule(schedule::ScheduleFile),
    /// Services that call when something has happened.
    Webhook(webhook::WebhookFile),
    /// A room of people and agents; the daemon connects it.
    Room(room::RoomGatewayFile),
}

/// What a gateway needs to begin.
struct Outside {
    pump: Pump,
    gateway: String,
    limits: Limits,
}

/// How long a client may take for a request.
const REQUEST: Duration = Duration::from_secs(30);

/// The gateways that are connected. Dropping it disconnects them.
pub struct Connected(JoinSet<()>);

impl Connected {
    /// Connects every gateway but standard input and rooms. Says where it listens.
    pub async fn start(file: &File, pump: &Pump, limits: Limits) -> Result<Self, String> {
        let mut tasks = JoinSet::new();
        for gateway in &file.gateways {
            let name = &gateway.name.value;
            let outside = Outside {
                pump: pump.clone(),
                gateway: name.clone(),
                limits,
            };
            let started = match &gateway.kind {
                GatewayKind::Stdin | GatewayKind::Room(_) => continue,
                GatewayKind::Http(http) => http.start(outside, &mut tasks).await,
                GatewayKind::Schedule(schedule) => {
                    let gateway = name.clone();
                    schedule.start(outside, log::ToLog { gateway }, &mut tasks)
                }
                GatewayKind::Webhook(webhook) => webhook.start(outside, &mut tasks).await,
            };
            started.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(Self(tasks))
    }

    /// Connects the schedules alone. What comes of them goes to `outlet`.
    pub fn schedules(
        file: &File,
        pump: &Pump,
        limits: Limits,
        outlet: impl Outlet + Clone,
    ) -> Result<Self, String> {
        let mut tasks = JoinSet::new();
        for gateway in &file.gateways {
            let name = &gateway.name.value;
            if let GatewayKind::Schedule(schedule) = &gateway.kind {
                let outside = Outside {
                    pump: pump.clone(),
                    gateway: name.clone(),
                    limits,
                };
                let started = schedule.start(outside, outlet.clone(), &mut tasks);
                started.map_err(|error| format!("{name}: {error}"))?;
            }
        }
        Ok(Self(tasks))
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
