//! The way from a command line, anywhere on the internet, to its owner's agent.

use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    outbound::{self, Trust},
    services::{
        checks,
        credentials::cli_keys,
        limits::{self, Limit},
        visitors,
    },
    store::Tx,
};
use bytes::Bytes;
use protocol::ErrorCode;
use reqwest::{Response, header};
use serde::Deserialize;
use std::{net::IpAddr, time::Duration};

/// The most bytes of a message.
const MAX_MESSAGE: usize = 128 * 1024;

/// Whom the call goes to, and with what.
struct BridgeTarget {
    endpoint: String,
    bearer: String,
    container: String,
    trust: Trust,
}

/// Passes a call on. What the agent answers is given as it arrives.
pub async fn pass_on(
    app: &App,
    bearer: &str,
    container: Option<&str>,
    ip: IpAddr,
    body: Bytes,
) -> Result<Response> {
    check_body(&body)?;
    let target = match bearer.starts_with(cli_keys::PREFIX) {
        true => by_code(app, bearer, ip).await?,
        false => directly(app, bearer, container).await?,
    };
    let unreachable = |why: &str| {
        tracing::info!(why, "a call over the bridge failed");
        Error::unavailable("Your agent cannot be reached. Is it running?")
    };
    let url =
        outbound::chat_stream(&target.endpoint).map_err(|error| unreachable(&error.to_string()))?;
    let call = app
        .outbound
        .client(&url, target.trust)
        .map_err(|error| unreachable(&error.to_string()))?
        .post(url)
        .bearer_auth(&target.bearer)
        .header(app.config.fanout.routing_header.as_str(), &target.container)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "text/event-stream")
        .body(body)
        .send();
    let idle = Duration::from_secs(app.config.bridge.idle_seconds);
    let response = tokio::time::timeout(idle, call)
        .await
        .map_err(|_| unreachable("it took too long"))?
        .map_err(|error| unreachable(&outbound::in_words(&error)))?;
    if response.status().is_redirection() {
        return Err(unreachable("it redirects to another host"));
    }
    Ok(response)
}

/// What the agent takes. The rest of the body is its own business, and passed on as it is.
fn check_body(body: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Question<'a> {
        #[serde(borrow)]
        message: std::borrow::Cow<'a, str>,
    }
    let question: Question<'_> = serde_json::from_slice(body)
        .map_err(|error| Error::bad_request(format!("The body does not fit: {error}")))?;
    if question.message.len() > MAX_MESSAGE {
        return Err(Error::new(
            ErrorCode::MessageTooLarge,
            format!("message has more than {MAX_MESSAGE} bytes"),
        ));
    }
    Ok(())
}

async fn by_code(app: &App, code: &str, ip: IpAddr) -> Result<BridgeTarget> {
    let now = Now::get();
    let hash = app.secrets.hash_code(code);
    let mut tx = app.db.begin_keeping_cache().await?;
    let row = tx
        .cli_key(&hash)
        .await?
        .filter(|row| !row.revoked && row.expires_at > now.seconds());
    let Some(row) = row else {
        // Whoever guesses does not guess often.
        drop(tx);
        visitors::count_read(app, ip, "/agent/chat/stream").await?;
        return Err(Error::new(
            ErrorCode::AkmInvalid,
            "This short code does not exist, has expired or was revoked; log in again",
        ));
    };
    let bearer = app
        .secrets
        .unseal(&row.sealed_key)
        .ok_or_else(|| Error::internal("the key behind a short code cannot be read"))?;
    let named = match row.agent_endpoint {
        Some(endpoint) => Some((endpoint, row.endpoint_trusted)),
        None => {
            let joined = tx
                .endpoint_of_container(&row.user_id, &row.container_id)
                .await?;
            if let Some((endpoint, trusted)) = &joined {
                tx.fix_cli_key_endpoint(&hash, endpoint, *trusted).await?;
            }
            joined
        }
    };
    let (endpoint, trust) = match named {
        Some((endpoint, trusted)) => (endpoint, Trust::of(trusted)),
        None => (configured(app)?, Trust::Operator),
    };
    count_call(app, &mut tx, format!("bridge {}", row.container_id), now).await?;
    tx.count_cli_key_use(&hash, now.seconds()).await?;
    tx.commit().await?;
    Ok(BridgeTarget {
        endpoint,
        bearer,
        container: row.container_id,
        trust,
    })
}

/// With the agent's own bearer, which only the agent can check.
async fn directly(app: &App, bearer: &str, container: Option<&str>) -> Result<BridgeTarget> {
    let container = container.ok_or_else(|| {
        Error::bad_request(
            "Send an sc_ short code as bearer, or name the agent in X-Starchild-Container",
        )
    })?;
    let container = checks::opaque("X-Starchild-Container", container)?;
    let bearer = checks::opaque("The bearer", bearer)?;
    let endpoint = configured(app)?;
    let mut tx = app.db.begin_keeping_cache().await?;
    // Counted apart: anybody can name a container.
    let bucket = format!("bridge-direct {container}");
    count_call(app, &mut tx, bucket, Now::get()).await?;
    tx.commit().await?;
    Ok(BridgeTarget {
        endpoint,
        bearer,
        container,
        trust: Trust::Operator,
    })
}

fn configured(app: &App) -> Result<String> {
    app.config.bridge.agent_url.clone().ok_or_else(|| {
        Error::not_found(
            "This server does not know where that agent is: make a short code with agent_endpoint, \
             join a room with this container_id, or let the operator set bridge.agent_url",
        )
    })
}

async fn count_call(app: &App, tx: &mut Tx, bucket: String, now: Now) -> Result<()> {
    let limit = Limit {
        bucket,
        most: app.config.limits.bridge_per_minute,
        window_ms: 60_000,
        code: ErrorCode::RateLimited,
        words: "Too many calls a minute to this agent",
        stored: true,
    };
    limits::count_against(tx, &[limit], now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_a_message_of_bounded_length() {
        assert!(
            check_body(br#"{"message":"hi","thread_id":"t","channel":"starchild-cli"}"#).is_ok()
        );
        for bad in ["", "{}", "[]", "{\"message\":7}", "not json"] {
            let error = check_body(bad.as_bytes()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadRequest, "{bad}");
        }
        let long = serde_json::json!({"message": "x".repeat(MAX_MESSAGE + 1)}).to_string();
        let error = check_body(long.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MessageTooLarge);
        assert_eq!(error.code().status(), 400);
    }
}
