//! An organism's counts, as Prometheus reads them.

use agentserver::{ListenerStats, Stats};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

type Labels = [(&'static str, String); 1];

/// The counts as a response.
pub fn response(stats: &Stats) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text(stats)).into_response()
}

fn text(stats: &Stats) -> String {
    let mut registry = Registry::with_prefix("organism");
    for (name, help, counts, label) in [
        (
            "hops",
            "Messages by what became of them",
            &stats.hops,
            "kind",
        ),
        (
            "errors",
            "Refusals and failures by code",
            &stats.errors,
            "code",
        ),
        (
            "budget_ends",
            "Work that a budget has ended, by budget",
            &stats.budget_ends,
            "budget",
        ),
    ] {
        let family = Family::<Labels, Counter>::default();
        for (value, count) in counts {
            let labels = [(label, (*value).to_owned())];
            family.get_or_create(&labels).inc_by(*count);
        }
        registry.register(name, help, family);
    }
    for (name, help, value) in [
        (
            "conversations",
            "Conversations that are kept",
            stats.conversations,
        ),
        ("threads", "Threads that are kept", stats.threads),
        ("todos", "To-dos that are open", stats.todos),
    ] {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        registry.register(name, help, gauge);
    }
    put_listeners(stats, &mut registry);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        // Writing to a `String` cannot fail.
        Err(error) => format!("# {error}\n"),
    }
}

fn put_listeners(stats: &Stats, registry: &mut Registry) {
    type Gauged = fn(&ListenerStats) -> usize;
    let gauges: [(&str, &str, Gauged); 2] = [
        ("waiting", "Messages that wait for a listener", |l| {
            l.waiting
        }),
        ("running", "Messages that a handler works on", |l| l.running),
    ];
    for (name, help, value) in gauges {
        let family = Family::<Labels, Gauge>::default();
        for (listener, stats) in &stats.listeners {
            family
                .get_or_create(&label(listener))
                .set(signed(value(stats)));
        }
        registry.register(name, help, family);
    }
    type Counted = fn(&ListenerStats) -> u64;
    let counters: [(&str, &str, Counted); 3] = [
        ("handled", "Messages that a handler is done with", |l| {
            l.handled
        }),
        ("model_calls", "Calls of models", |l| l.model_calls),
        ("model_tokens", "Tokens that models read and wrote", |l| {
            l.tokens
        }),
    ];
    for (name, help, value) in counters {
        let family = Family::<Labels, Counter>::default();
        for (listener, stats) in &stats.listeners {
            family.get_or_create(&label(listener)).inc_by(value(stats));
        }
        registry.register(name, help, family);
    }
    type Summed = fn(&ListenerStats) -> f64;
    let sums: [(&str, &str, Option<Unit>, Summed); 3] = [
        (
            "model_money",
            "What models cost, in the currency of the prices",
            None,
            |l| l.money as f64 / 1e6,
        ),
        (
            "handling",
            "Time that handlers took",
            Some(Unit::Seconds),
            |l| l.took.as_secs_f64(),
        ),
        (
            "waited",
            "Time that messages waited for their turn",
            Some(Unit::Seconds),
            |l| l.waited.as_secs_f64(),
        ),
    ];
    for (name, help, unit, value) in sums {
        let family = Family::<Labels, Counter<f64, AtomicU64>>::default();
        for (listener, stats) in &stats.listeners {
            family.get_or_create(&label(listener)).inc_by(value(stats));
        }
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, family),
            None => registry.register(name, help, family),
        }
    }
}

fn label(listener: &str) -> Labels {
    [("listener", listener.to_owned())]
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
