//! Requests that may come again because their answer was lost: the same key with the same request
//! gives the same answer, tokens included, and does nothing a second time.
//!
//! The answer is written in the transaction of what was done. It is encrypted, and found only by
//! the same caller with the same key.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    store::Tx,
};
use serde::{Serialize, de::DeserializeOwned};

/// How long an answer is kept, in seconds.
pub const KEPT_SECONDS: i64 = 24 * 3600;
/// How many answers are kept for one caller.
const MOST_KEPT: i64 = 100;
/// Whoever has no token is known by the key alone, which must not be guessed.
const SHORTEST_SECRET: usize = 16;

/// A request, by which its answer is found again; or one that nobody will repeat.
pub struct IdempotentRequest(Option<HashedRequest>);

/// Whose request it is and what it asks for, all of it hashed.
struct HashedRequest {
    id: String,
    caller: String,
    request: String,
}

impl IdempotentRequest {
    /// A request that nobody will repeat.
    pub fn never() -> Self {
        Self(None)
    }

    /// `route` is what is asked of the server, method and path. Whoever has no token is known by
    /// the invite that they bring.
    pub fn new(
        app: &App,
        caller: &Caller,
        invite: Option<&str>,
        key: Option<&str>,
        route: &str,
        request: &impl Serialize,
    ) -> Result<Self> {
        let Some(key) = key else {
            return Ok(Self(None));
        };
        let caller = match (caller, invite) {
            (Caller::User(user), _) => format!("user {}", user.id),
            (Caller::RoomKey(key), _) => format!("key {}", key.jti),
            (Caller::Identity(identity), _) => format!("identity {}", identity.row.jti),
            (Caller::Anonymous, Some(_)) if key.len() < SHORTEST_SECRET => {
                return Err(Error::bad_request(format!(
                    "Without a token the Idempotency-Key must be a secret of at least {SHORTEST_SECRET} characters, such as a random UUID"
                )));
            }
            (Caller::Anonymous, Some(invite)) => format!("invite {invite}"),
            (Caller::Anonymous, None) => return Ok(Self(None)),
        };
        let request = serde_json::to_string(request).map_err(Error::internal)?;
        let hash = |what: &str, text: &str| app.secrets.hash_code(&format!("{what} {text}"));
        Ok(Self(Some(HashedRequest {
            id: hash("reply", &format!("{caller}\n{route}\n{key}")),
            caller: hash("caller", &caller),
            request: hash("request", &request),
        })))
    }

    /// The answer that was given before. Where there is none, others who ask the same wait until
    /// the transaction ends.
    pub async fn answered<T: DeserializeOwned>(&self, app: &App, tx: &mut Tx) -> Result<Option<T>> {
        let Some(hashed) = &self.0 else {
            return Ok(None);
        };
        let (id, now) = (&hashed.id, Now::get().seconds());
        if tx
            .reserve_reply(id, &hashed.caller, &hashed.request, now)
            .await?
        {
            return Ok(None);
        }
        let unreadable = || Error::internal("a kept answer cannot be read");
        let kept = tx.kept_reply(id).await?.ok_or_else(unreadable)?;
        if kept.request != hashed.request {
            return Err(Error::bad_request(
                "This Idempotency-Key was used for another request; use a new key for a new request",
            ));
        }
        let reply = app.secrets.unseal(&kept.reply).ok_or_else(unreadable)?;
        serde_json::from_str(&reply).map_err(Error::internal)
    }

    /// Keeps the answer for the next time.
    pub async fn keep(&self, app: &App, tx: &mut Tx, reply: &impl Serialize) -> Result<()> {
        let Some(hashed) = &self.0 else {
            return Ok(());
        };
        let reply = serde_json::to_string(reply).map_err(Error::internal)?;
        let sealed = app.secrets.seal(&reply).map_err(Error::internal)?;
        tx.keep_reply(&hashed.id, &sealed).await?;
        tx.forget_replies_beyond(&hashed.caller, MOST_KEPT).await?;
        Ok(())
    }
}
