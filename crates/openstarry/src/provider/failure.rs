//! Reads failures: a status and its body, an error within a stream, a
//! connection that broke.

use super::decode;
use super::http::read_bounded;
use crate::pain::{AgentPain, excerpt};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::time::Duration;

/// A server that asks for more gets this: it can be added to a clock.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(86_400);
const MAX_ERROR_BODY: usize = 64 << 10;

/// A connection that could not be made, or broke.
pub(super) fn network(error: reqwest::Error) -> AgentPain {
    let place = error.url().map(|url| url.origin().ascii_serialization());
    // The innermost cause is the one that says something ("connection refused").
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    AgentPain::Network(match place {
        Some(place) => format!("{cause} ({place})"),
        None => cause.to_string(),
    })
}

/// Whether a browser is meant, and no program.
pub(super) fn is_web_page(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// What an answer that is none says.
pub(super) async fn of_response(response: Response) -> AgentPain {
    let status = response.status();
    let header = response
        .headers()
        .get("retry-after-ms")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_millis)
        .or_else(|| retry_after(response.headers().get(RETRY_AFTER)?.to_str().ok()?));
    let page = is_web_page(&response);
    let place = response.url().origin().ascii_serialization();
    let text = read_bounded(response, MAX_ERROR_BODY)
        .await
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let retry_after = header
        .or_else(|| retry_delay(&body))
        .map(|wait| wait.min(MAX_RETRY_AFTER));
    let message = match page || text.trim_start().starts_with('<') {
        true => web_page(&text, &place),
        false => decode::error_message(&body).unwrap_or_else(|| excerpt(text.trim(), 300).into()),
    };
    let message = match message.is_empty() {
        true => status.to_string(),
        false => message,
    };
    match is_block(&body, &message) {
        true => AgentPain::Blocked(message),
        false => of_status(status, message, retry_after),
    }
}

/// Whether it was the content of the request that the API would not have. Each says so in a way of
/// its own, and with a status that others use for something else.
fn is_block(body: &Value, message: &str) -> bool {
    let error = body.get("error").unwrap_or(body);
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    let words = [
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "data_inspection_failed",
    ];
    let named = ["code", "type"].into_iter().filter_map(word);
    // OpenRouter tells why it was flagged; DeepSeek has these words and nothing else.
    let flagged = error.pointer("/metadata/reasons").is_some();
    flagged
        || named.into_iter().any(|name| words.contains(&name))
        || message == "Content Exists Risk"
}

/// A failure with this status.
fn of_status(status: StatusCode, message: String, retry_after: Option<Duration>) -> AgentPain {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AgentPain::Key(message),
        StatusCode::TOO_MANY_REQUESTS => AgentPain::RateLimited {
            message,
            retry_after,
        },
        status if status == StatusCode::REQUEST_TIMEOUT || status.is_server_error() => {
            AgentPain::Unavailable {
                message,
                retry_after,
            }
        }
        status => AgentPain::Refused {
            status: status.as_u16(),
            message,
        },
    }
}

/// A failure that comes as an event of a stream, which has begun with 200. The
/// APIs tell a status, or a word that stands for one.
pub(super) fn of_event(event: &Value) -> AgentPain {
    let message = decode::error_message(event).unwrap_or_else(|| event.to_string());
    if is_block(event, &message) {
        return AgentPain::Blocked(message);
    }
    let error = event.get("error").unwrap_or(event);
    let field = |key: &str| error.get(key).or_else(|| event.get(key));
    let number = field("code")
        .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
        .and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok())
        .filter(|status| status.is_client_error() || status.is_server_error());
    let status = number.unwrap_or_else(|| {
        let words = ["type", "code", "status"].map(|key| field(key).and_then(Value::as_str));
        let is = |known: &[&str]| words.iter().flatten().any(|word| known.contains(word));
        let begins = |with: &str| words.iter().flatten().any(|word| word.starts_with(with));
        if is(&[
            "rate_limit_error",
            "rate_limit_exceeded",
            "RESOURCE_EXHAUSTED",
        ]) {
            StatusCode::TOO_MANY_REQUESTS
        } else if is(&[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
        ]) {
            StatusCode::UNAUTHORIZED
        } else if begins("invalid_")
            || is(&[
                "INVALID_ARGUMENT",
                "not_found_error",
                "request_too_large",
                "billing_error",
                "context_length_exceeded",
            ])
        {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        }
    });
    of_status(status, message, retry_delay(event))
}

/// What a page for people says in a few words.
fn web_page(html: &str, place: &str) -> String {
    let title = html
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"))
        .map(|(title, _)| excerpt(title.trim(), 100))
        .filter(|title| !title.is_empty());
    let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
    format!("{place} answers with a web page{title} and not as an API does: is base_url right?")
}

/// Seconds, or a date.
fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    let now = jiff::Timestamp::now();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Google says the wait in the body: `error.details[].retryDelay = "34s"`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let body = body.get(0).unwrap_or(body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wait_is_read_from_seconds_dates_and_bodies() {
        assert_eq!(retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(
            retry_after("Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("-1"), None);
        let body = json!({"error": {"details": [{"a": 1}, {"retryDelay": "34.5s"}]}});
        assert_eq!(retry_delay(&body), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn an_error_within_a_stream_is_told_apart_as_a_status_is() {
        let error = |error: Value| of_event(&json!({ "type": "error", "error": error }));
        assert!(matches!(
            error(json!({ "type": "overloaded_error", "message": "x" })),
            AgentPain::Unavailable { .. }
        ));
        assert!(matches!(
            error(json!({ "type": "rate_limit_error", "message": "x" })),
            AgentPain::RateLimited { .. }
        ));
        assert!(matches!(
            error(json!({ "code": 400, "status": "INVALID_ARGUMENT", "message": "x" })),
            AgentPain::Refused { status: 400, .. }
        ));
        assert!(matches!(
            error(json!({ "code": "401", "message": "x" })),
            AgentPain::Key(_)
        ));
        assert!(matches!(
            of_event(&json!({ "error": "boom" })),
            AgentPain::Unavailable { .. }
        ));
    }

    #[test]
    fn a_block_is_told_apart_from_a_wrong_request_and_a_wrong_key() {
        for error in [
            json!({ "code": "content_filter", "message": "filtered", "status": 400 }),
            json!({ "code": "invalid_prompt", "message": "flagged" }),
            json!({ "type": "content_filter", "message": "high risk" }),
            json!({ "code": 403, "message": "flagged", "metadata": { "reasons": ["violence"] } }),
            json!({ "message": "Content Exists Risk", "code": "invalid_request_error" }),
        ] {
            let failure = of_event(&json!({ "error": error }));
            assert!(matches!(failure, AgentPain::Blocked(_)), "{failure:?}");
        }
    }

    #[test]
    fn a_web_page_becomes_a_few_words() {
        let page = "<!doctype html><html><head><title> 404 Not Found </title></head>";
        let words = web_page(page, "http://x");
        assert!(
            words.contains("(404 Not Found)") && words.contains("base_url"),
            "{words}"
        );
    }
}
