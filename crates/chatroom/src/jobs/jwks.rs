//! The keys of an identity provider, which change them now and then.

use crate::{app::App, serve::ServeError};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(600);

/// Reads the keys anew.
pub async fn read(app: &App, url: &str) -> Result<(), ServeError> {
    let failed = |error| ServeError::Jwks(url.to_owned(), error);
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
