//! What Alertmanager sends, version 4.

use super::{MOST_LINES, text};
use crate::render::untrusted::{link, plain};
use serde_json::Value;

/// Whether a payload is Alertmanager's.
pub fn is_one(payload: &Value) -> bool {
    let status = text(payload, "/status");
    text(payload, "/version") == "4"
        && matches!(status, "firing" | "resolved")
        && payload.pointer("/alerts").is_some_and(Value::is_array)
}

/// What the alerts say: the group in one line, then each of them.
pub fn render(payload: &Value) -> String {
    let none = Vec::new();
    let alerts = payload
        .pointer("/alerts")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    let firing = alerts
        .iter()
        .filter(|alert| text(alert, "/status") == "firing")
        .count();
    let head = match text(payload, "/status") {
        "firing" => format!("🔥 **Firing ({firing})**"),
        _ => format!("✅ **Resolved ({})**", alerts.len()),
    };
    let name = match text(payload, "/commonLabels/alertname") {
        "" => text(payload, "/groupLabels/alertname"),
        name => name,
    };
    let name = if name.is_empty() { "alerts" } else { name };
    let mut said = format!(
        "{head} {}",
        link(&plain(name), text(payload, "/externalURL"))
    );
    let severity = text(payload, "/commonLabels/severity");
    if !severity.is_empty() {
        said.push_str(&format!(" · {}", plain(severity)));
    }
    for alert in alerts.iter().take(MOST_LINES) {
        said.push_str(&format!("\n- {}", line(payload, alert)));
    }
    if alerts.len() > MOST_LINES {
        said.push_str(&format!("\n- … and {} more", alerts.len() - MOST_LINES));
    }
    said
}

/// An alert: what it says of itself, or what tells it from the others.
fn line(payload: &Value, alert: &Value) -> String {
    let summary = [
        "/annotations/summary",
        "/annotations/description",
        "/annotations/message",
    ]
    .into_iter()
    .map(|at| text(alert, at))
    .find(|words| !words.is_empty());
    let labels = alert.pointer("/labels").and_then(Value::as_object);
    let own: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter(|(label, value)| {
            payload
                .pointer("/commonLabels")
                .and_then(|all| all.get(label))
                != Some(value)
        })
        .filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)))
        .take(6)
        .collect();
    let words = match (summary, own.is_empty()) {
        (Some(summary), true) => plain(summary),
        (Some(summary), false) => format!("{} ({})", plain(summary), plain(&own.join(", "))),
        (None, false) => plain(&own.join(", ")),
        (None, true) => plain(text(alert, "/labels/alertname")),
    };
    let words = if words.is_empty() {
        "an alert".to_owned()
    } else {
        words
    };
    let words = link(&words, text(alert, "/generatorURL"));
    match text(alert, "/status") {
        "resolved" => format!("resolved: {words}"),
        _ => words,
    }
}
