//! `time.now`.

use crate::segment::ContentSegment;
use crate::tool::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use futures_util::future::BoxFuture;
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Tells the time.
pub struct TimeNow {
    spec: ToolSpec,
    clock: fn() -> Timestamp,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A time zone such as `Asia/Taipei`; UTC when left out.
    #[serde(default)]
    zone: Option<String>,
}

impl TimeNow {
    /// The tool on this clock.
    pub fn new(clock: fn() -> Timestamp) -> Self {
        let spec = ToolSpec::of::<Args>("time.now", "Tell the date and the time.", Risk::Safe);
        Self { spec, clock }
    }
}

impl Tool for TimeNow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let args: Args = parse(args)?;
            let zone = match args.zone.as_deref() {
                None | Some("UTC") => TimeZone::UTC,
                Some(name) => TimeZone::get(name)
                    .map_err(|_| ToolError(format!("there is no time zone {name:?}")))?,
            };
            let now = (self.clock)().to_zoned(zone);
            let text = now.strftime("%A %Y-%m-%d %H:%M:%S %:z (%Q)").to_string();
            Ok(vec![ContentSegment::text(text)])
        })
    }
}
