//! One backend that speaks the OpenAI chat interface.

use super::ModelError;
use futures_util::StreamExt;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// What is read of an answer.
const ANSWER: usize = 4 << 20;

/// A backend.
pub struct Backend {
    client: Client,
    url: String,
    /// The environment variable that holds the key.
    key_env: Option<String>,
    model: String,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

impl Backend {
    /// A backend at a base URL such as `http://127.0.0.1:8000/v1`.
    pub fn new(
        base_url: &str,
        key_env: Option<String>,
        model: &str,
        timeout: Duration,
    ) -> Result<Self, String> {
        let url = format!("{}/chat/completions", base_url.trim_end_matches('/'));
        reqwest::Url::parse(&url).map_err(|error| format!("{base_url}: {error}"))?;
        let client = Client::builder()
            .timeout(timeout)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            client,
            url,
            key_env,
            model: model.to_owned(),
        })
    }

    /// Asks once.
    pub async fn ask(&self, system: &str, user: &str) -> Result<String, ModelError> {
        let body = json!({
            "model": self.model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
        });
        let mut request = self.client.post(&self.url).json(&body);
        if let Some(variable) = &self.key_env {
            let key = std::env::var(variable).map_err(|_| ModelError::Unauthorized)?;
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(unavailable)?;
        match response.status() {
            status if status.is_success() => read(response).await,
            StatusCode::UNAUTHORIZED => Err(ModelError::Unauthorized),
            status if is_passing(status) => Err(ModelError::Unavailable {
                reason: format!("status {status}"),
                retry_after: retry_after(response.headers(), SystemTime::now()),
            }),
            status => Err(ModelError::Refused(status.as_u16())),
        }
    }
}

/// Whether a status may be another one later.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

async fn read(response: Response) -> Result<String, ModelError> {
    let mut bytes = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk.map_err(unavailable)?);
        if bytes.len() > ANSWER {
            return Err(ModelError::Garbled(format!("over {ANSWER} bytes")));
        }
    }
    let completion: Completion =
        serde_json::from_slice(&bytes).map_err(|error| ModelError::Garbled(error.to_string()))?;
    let content = completion
        .choices
        .into_iter()
        .next()
        .and_then(|choice| choice.message.content);
    content.ok_or_else(|| ModelError::Garbled("no content".to_owned()))
}

/// The address may hold a secret, so it is left out.
fn unavailable(error: reqwest::Error) -> ModelError {
    ModelError::Unavailable {
        reason: error.without_url().to_string(),
        retry_after: None,
    }
}

/// `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(now)
            .ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers, SystemTime::now()), None);
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        assert_eq!(
            retry_after(&headers, SystemTime::now()),
            Some(Duration::from_secs(7))
        );
        let then = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        headers.insert(
            RETRY_AFTER,
            "Sun, 06 Nov 1994 08:49:47 GMT".parse().unwrap(),
        );
        assert_eq!(retry_after(&headers, then), Some(Duration::from_secs(10)));
    }
}
