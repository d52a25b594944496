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
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
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

/// What sending an event to a webhook's address came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookSent {
    Delivered,
    /// It is tried again.
    Failed,
    /// Events were no longer kept when their turn came; the address was told so.
    Dropped,
    /// The address has failed for too long, or says that nobody is there.
    SwitchedOff,
}

impl WebhookSent {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::SwitchedOff => "switched_off",
        }
    }
}

/// What became of a payload that came in through a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookTaken {
    Posted,
    /// It was posted before.
    Repeated,
    /// There is nothing to say of it.
    Ignored,
    Limited,
    Refused,
}

impl WebhookTaken {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Posted => "posted",
            Self::Repeated => "repeated",
            Self::Ignored => "ignored",
            Self::Limited => "limited",
            Self::Refused => "refused",
        }
    }
}

/// The server's counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
    messages: Counter,
    group_size: Histogram,
    streams: Gauge,
    deliveries: Family<OutcomeLabel, Counter>,
    webhook_deliveries: Family<OutcomeLabel, Counter>,
    webhook_posts: Family<OutcomeLabel, Counter>,
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
        let webhook_deliveries = Family::default();
        let webhook_posts = Family::default();
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
        registry.register(
            "webhook_deliveries",
            "Events sent to webhooks' addresses, by what each attempt came to",
            webhook_deliveries.clone(),
        );
        registry.register(
            "webhook_posts",
            "Payloads that came in through webhooks, by what became of them",
            webhook_posts.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            messages,
            group_size,
            streams,
            deliveries,
            webhook_deliveries,
            webhook_posts,
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
        let request = RequestLabels {
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
        count_outcome(&self.deliveries, outcome.as_str());
    }

    /// An event was sent to a webhook's address, or was not.
    pub fn sent_to_webhook(&self, outcome: WebhookSent) {
        count_outcome(&self.webhook_deliveries, outcome.as_str());
    }

    /// A payload came in through a webhook.
    pub fn taken_from_webhook(&self, outcome: WebhookTaken) {
        count_outcome(&self.webhook_posts, outcome.as_str());
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

fn count_outcome(family: &Family<OutcomeLabel, Counter>, outcome: &'static str) {
    family.get_or_create(&OutcomeLabel { outcome }).inc();
}
