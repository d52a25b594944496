//! What operators measure, in Prometheus's text format at `/metrics`.

use crate::store::reading;
use axum::http::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    outcome: &'static str,
}

/// What the call for a message came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    Answered,
    Silent,
    TooDeep,
    UsedUp,
    Failed,
    Stopped,
    Stale,
    Left,
    Lost,
}

impl Delivered {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Silent => "silent",
            Self::TooDeep => "too_deep",
            Self::UsedUp => "exchanges_used_up",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Stale => "stale",
            Self::Left => "left",
            Self::Lost => "lost",
        }
    }
}

/// The server's counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Histogram,
    messages: Counter,
    group_size: Histogram,
    streams: Gauge,
    deliveries: Family<DeliveryLabels, Counter>,
    call_delay: Histogram,
    lanes: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("sc_chatroom");
        let requests = Family::default();
        let seconds = Histogram::new(exponential_buckets(0.0005, 2.0, 14));
        let messages = Counter::default();
        let group_size = Histogram::new(exponential_buckets(1.0, 2.0, 9));
        let streams = Gauge::default();
        let deliveries = Family::default();
        let call_delay = Histogram::new(exponential_buckets(0.001, 2.0, 18));
        let lanes = Gauge::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register(
            "http_request_seconds",
            "Time to the head of the answer",
            seconds.clone(),
        );
        registry.register(
            "messages_posted",
            "Messages posted by members",
            messages.clone(),
        );
        registry.register(
            "commit_messages",
            "Messages in one commit",
            group_size.clone(),
        );
        registry.register("streams_open", "Open streams", streams.clone());
        registry.register(
            "queries_timed_out",
            "Queries that were ended because they took too long",
            reading::TIMED_OUT.clone(),
        );
        registry.register(
            "fanout_deliveries",
            "Calls to agents, by what they came to",
            deliveries.clone(),
        );
        registry.register(
            "fanout_call_delay_seconds",
            "Time from a message's commit to the call that tells an agent of it",
            call_delay.clone(),
        );
        registry.register(
            "fanout_lanes_busy",
            "Agents in rooms that are being called or wait to be called again",
            lanes.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            messages,
            group_size,
            streams,
            deliveries,
            call_delay,
            lanes,
        }
    }
}

impl Metrics {
    /// A request was answered.
    pub fn answered(&self, method: &Method, route: &str, status: u16, took: Duration) {
        // Anybody can invent methods; each would be kept for ever.
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        let request = Request {
            method,
            route: route.to_owned(),
            status,
        };
        self.requests.get_or_create(&request).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// A group of messages was committed.
    pub fn committed(&self, messages: usize) {
        self.messages.inc_by(messages as u64);
        self.group_size.observe(messages as f64);
    }

    /// A message waited this long for its call.
    pub fn call_begins(&self, waited: Duration) {
        self.call_delay.observe(waited.as_secs_f64());
    }

    /// A call came to this.
    pub fn delivered(&self, outcome: Delivered) {
        let labels = DeliveryLabels {
            outcome: outcome.as_str(),
        };
        self.deliveries.get_or_create(&labels).inc();
    }

    /// Everything, as text.
    pub fn render(&self, streams: usize, lanes: usize) -> String {
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        self.lanes.set(i64::try_from(lanes).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
