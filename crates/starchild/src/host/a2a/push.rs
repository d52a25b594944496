//! Notifications of tasks. They go to public addresses alone, unless the owner says otherwise: whoever
//! has a key must not be able to point the host at its own network.

use super::tasks::Entry;
use egress::Guard;
use protocol::a2a::{
    A2aError, Authentication, MEDIA_TYPE, PushConfig, StreamResponse, TOKEN_HEADER, Task,
    TaskState, older,
};
use reqwest::{Client, Url, header};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Places that one task's changes are sent to.
const MOST_FOR_A_TASK: usize = 10;
const MAX_TEXT_BYTES: usize = 2048;
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long after each try the next one comes.
const RETRIES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(16),
    Duration::from_secs(64),
];

/// Sends notifications.
pub struct Notifications {
    guard: Guard,
    client: Client,
}

/// A configuration that was checked.
pub struct Checked {
    config: PushConfig,
    url: Url,
    older: bool,
}

impl Notifications {
    /// To public addresses, or to private ones too.
    pub fn new(private: bool) -> Result<Self, String> {
        let guard = Guard::new(private, Vec::new());
        let agent = concat!("starchild/", env!("CARGO_PKG_VERSION"));
        let client = guard.client(agent).map_err(|error| error.to_string())?;
        Ok(Self { guard, client })
    }

    /// Checks a configuration. A name is looked at when it is called.
    pub fn check(&self, mut config: PushConfig, older: bool) -> Result<Checked, A2aError> {
        let wrong = |words: &str| A2aError::invalid(words.to_owned());
        let fits =
            |text: &str| text.len() <= MAX_TEXT_BYTES && text.bytes().all(|b| b.is_ascii_graphic());
        let bad_url = "url must be an http or https address without a name and a password";
        let url: Url = config.url.parse().map_err(|_| wrong(bad_url))?;
        let plain = url.username().is_empty() && url.password().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        if !plain || !is_web || config.url.len() > MAX_TEXT_BYTES {
            return Err(wrong(bad_url));
        }
        if !self.guard.allows_url(&url) {
            return Err(wrong("url is not an address that this host calls"));
        }
        config.token = config.token.filter(|token| !token.is_empty());
        config.id = config.id.filter(|id| !id.is_empty());
        let id = || format!("push_{}", uuid::Uuid::new_v4().simple());
        config.id.get_or_insert_with(id);
        let texts = [&config.id, &config.token].into_iter().flatten();
        let auth = config.authentication.iter();
        let auth = auth.flat_map(|auth| [Some(&auth.scheme), auth.credentials.as_ref()]);
        if !texts.chain(auth.flatten()).all(|text| fits(text)) {
            return Err(wrong(
                "id, token, scheme and credentials are short texts of printable ASCII without spaces",
            ));
        }
        Ok(Checked { config, url, older })
    }

    /// Checks a configuration, and sends a task's changes from now on.
    pub fn add(
        &self,
        entry: &Arc<Entry>,
        config: PushConfig,
        older: bool,
    ) -> Result<PushConfig, A2aError> {
        let checked = self.check(config, older)?;
        self.begin(entry, checked).ok_or_else(|| {
            A2aError::invalid(format!(
                "a task's changes are sent to at most {MOST_FOR_A_TASK} places"
            ))
        })
    }

    /// Sends a task's changes from now on, until it is over.
    pub fn begin(&self, entry: &Arc<Entry>, checked: Checked) -> Option<PushConfig> {
        let shown = PushConfig {
            task_id: Some(entry.task().id),
            tenant: None,
            authentication: checked
                .config
                .authentication
                .as_ref()
                .map(|authentication| Authentication {
                    scheme: authentication.scheme.clone(),
                    credentials: None,
                }),
            ..checked.config.clone()
        };
        let (client, task) = (self.client.clone(), entry.clone());
        let from = entry.state();
        let sends = tokio::spawn(async move { follow(&client, &task, &checked, from).await });
        let remembered = entry.remember_push(shown.clone(), sends.abort_handle(), MOST_FOR_A_TASK);
        remembered.then_some(shown)
    }
}

async fn follow(client: &Client, entry: &Entry, to: &Checked, mut told: TaskState) {
    while !told.is_terminal() {
        let task = entry.next_state(told).await;
        told = task.status.state;
        let mut tries = RETRIES.iter();
        while let Err(why) = send(client, to, &task).await {
            let Some(wait) = tries.next() else {
                tracing::warn!(
                    task = task.id,
                    why,
                    "nobody takes a task's notifications; they are given up"
                );
                return;
            };
            tokio::time::sleep(*wait).await;
        }
    }
}

async fn send(client: &Client, to: &Checked, task: &Task) -> Result<(), String> {
    let event = StreamResponse::Task(task.clone());
    let body = match to.older {
        true => older::event(&event),
        false => json!(event),
    };
    let mut request = client
        .post(to.url.clone())
        .timeout(TIMEOUT)
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .body(body.to_string());
    if let Some(token) = &to.config.token {
        request = request.header(TOKEN_HEADER, token);
    }
    if let Some(authentication) = &to.config.authentication {
        let credentials = authentication.credentials.as_deref().unwrap_or_default();
        let value = format!("{} {credentials}", authentication.scheme);
        request = request.header(header::AUTHORIZATION, value.trim_end());
    }
    let response = request
        .send()
        .await
        .map_err(|_| "the call failed".to_owned())?;
    match response.status().is_success() {
        true => Ok(()),
        false => Err(format!("the receiver answers {}", response.status())),
    }
}
