//! The keys of an identity provider, which change them now and then.

use crate::{app::App, auth::user::UserKeysError};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(600);

/// Why there are no new keys.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    #[error("cannot read the JWKS from {0}: {1}")]
    Unreachable(String, reqwest::Error),
    #[error(transparent)]
    Keys(#[from] UserKeysError),
}

/// Reads the keys anew.
pub async fn read(app: &App, url: &str) -> Result<(), JwksError> {
    let failed = |error| JwksError::Unreachable(url.to_owned(), error);
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .map_err(failed)?;
    let reply = client
        .get(url)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(failed)?;
    let text = reply.text().await.map_err(failed)?;
    app.users.replace_with_jwks(url, &text)?;
    Ok(())
}

/// Reads them now and then.
pub async fn run(app: App, url: String) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = read(&app, &url).await {
            tracing::warn!(%error, "the keys from before stay in use");
        }
    }
}
