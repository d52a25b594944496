//! Hops as OpenTelemetry spans. A conversation is a trace; a message that a handler
//! worked on is a span, below the one that it followed from. Ids are those of the
//! pump, so that work which goes on after a crash stays in its trace.

use crate::telemetry;
use agentserver::trace::{Handling, Hop, HopKind};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::SystemTime;

/// Sends a hop that was handled; what it carried stays here.
pub fn export(hop: &Hop) {
    if let (HopKind::Handled(handling), Some(id), true) = (&hop.kind, hop.id, telemetry::is_on()) {
        telemetry::export(span(hop, id.number(), handling, SystemTime::now()));
    }
}

fn span(hop: &Hop, id: u64, handling: &Handling, end: SystemTime) -> SpanData {
    let trace = TraceId::from_bytes(hop.conversation.number().to_be_bytes());
    let parent = hop.parent.map_or(0, |parent| parent.number());
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let payload = hop.payload.root();
    SpanData {
        span_context: SpanContext::new(
            trace,
            SpanId::from_bytes(id.to_be_bytes()),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: SpanId::from_bytes(parent.to_be_bytes()),
        parent_span_is_remote: false,
        span_kind: SpanKind::Consumer,
        name: format!("handle {payload}").into(),
        start_time: end.checked_sub(handling.took).unwrap_or(end),
        end_time: end,
        attributes: vec![
            KeyValue::new("organism.hop", count(id)),
            KeyValue::new("organism.listener", hop.to.to_string()),
            KeyValue::new("organism.from", hop.from.to_string()),
            KeyValue::new("organism.payload", payload.to_owned()),
            KeyValue::new("organism.waited_seconds", handling.waited.as_secs_f64()),
            KeyValue::new("organism.model_calls", count(handling.model_calls)),
            KeyValue::new("organism.tokens", count(handling.tokens)),
            KeyValue::new("organism.money", handling.money as f64 / 1e6),
        ],
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match handling.fault {
            None => Status::Unset,
            Some(fault) => Status::error(fault.code()),
        },
        instrumentation_scope: InstrumentationScope::builder("agentserver").build(),
    }
}
