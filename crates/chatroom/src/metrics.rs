//! What operators measure, in Prometheus's text format at `/metrics`.

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

/// The server's counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Histogram,
    messages: Counter,
    group_size: Histogram,
    streams: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("sc_chatroom");
        let requests = Family::default();
        let seconds = Histogram::new(exponential_buckets(0.0005, 2.0, 14));
        let messages = Counter::default();
        let group_size = Histogram::new(exponential_buckets(1.0, 2.0, 9));
        let streams = Gauge::default();
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
        Self {
            registry,
            requests,
            seconds,
            messages,
            group_size,
            streams,
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

    /// Everything, as text.
    pub fn render(&self, streams: usize) -> String {
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
