//! The clock as a gateway: a payload is sent whenever a cron expression says so.

use super::Outside;
use agentserver::gateway::{CorrelationId, GatewayConversations, Idle, Outlet};
use croner::Cron;
use jiff::Zoned;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::str::FromStr;
use std::time::Duration;
use tokio::task::JoinSet;

/// The file's words for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFile {
    /// Minute, hour, day of the month, month, day of the week; with seconds
    /// before them where there are six.
    cron: String,
    /// Whose clock.
    #[serde(default = "utc")]
    timezone: String,
    /// The payload, as JSON has it: its name and its fields.
    send: Map<String, Value>,
    /// Whom to send it to, where its type does not say.
    #[serde(default)]
    to: Option<String>,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// The clock may be set meanwhile: no sleep is longer.
const NAP: Duration = Duration::from_secs(60);

impl ScheduleFile {
    pub(super) fn start(
        &self,
        outside: Outside,
        outlet: impl Outlet,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), String> {
        let cron =
            Cron::from_str(&self.cron).map_err(|error| format!("{:?}: {error}", self.cron))?;
        let zone = TimeZone::get(&self.timezone).map_err(|error| error.to_string())?;
        let (Some((name, fields)), true) = (self.send.iter().next(), self.send.len() == 1) else {
            return Err("`send` has one payload".to_owned());
        };
        let offers = outside.pump.organism().offers(&outside.gateway);
        let offer = offers.iter().find(|offer| offer.schema.name == *name);
        let offer = offer.ok_or_else(|| format!("no peer accepts {name:?}"))?;
        let xml = offer
            .schema
            .json_to_xml(fields)
            .map_err(|error| error.to_string())?;
        let to = self.to.clone();
        let Outside { pump, gateway, .. } = outside;
        let conversations = GatewayConversations::new(pump, &gateway, outlet, Idle(NAP));
        tasks.spawn(run(conversations, gateway, cron, zone, to, xml));
        Ok(())
    }
}

async fn run(
    conversations: GatewayConversations<impl Outlet>,
    gateway: String,
    cron: Cron,
    zone: TimeZone,
    to: Option<String>,
    xml: String,
) {
    let mut last = Zoned::now().with_time_zone(zone.clone());
    loop {
        let next = match cron.find_next_occurrence(&last, false) {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(gateway, %error, "the schedule has no next time");
                return;
            }
        };
        until(&next).await;
        let correlation =
            CorrelationId::parse(&format!("schedule-{}", next.timestamp().as_second()));
        if let Ok(correlation) = correlation
            && let Err(error) = conversations.send(&correlation, to.as_deref(), &xml).await
        {
            tracing::warn!(gateway, %error, "what was scheduled was not sent");
        }
        // What was missed while the machine slept is not made up for.
        last = next.max(Zoned::now().with_time_zone(zone.clone()));
    }
}

async fn until(next: &Zoned) {
    loop {
        let left = next.timestamp().duration_since(jiff::Timestamp::now());
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => tokio::time::sleep(left.min(NAP)).await,
            _ => return,
        }
    }
}
