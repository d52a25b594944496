//! The daemon's way into one room: its key, and a new one when that ends.

use super::{
    key::{self, KeyError},
    queue::{KeyQueue, KeyTurn},
};
use crate::{
    daemon::retry::{ErrorAction, action_for},
    home::{AgentHome, RoomFile},
};
use client::{Client, ClientError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// After a renewal that failed for now.
const RETRY_AFTER: Duration = Duration::from_secs(300);
/// How often the time is looked at: a machine that sleeps counts no seconds meanwhile.
const CHECK_EVERY: Duration = Duration::from_secs(600);

/// A key and the client that uses it.
pub struct Access {
    home: AgentHome,
    file: RoomFile,
    anonymous: Client,
    client: Client,
    queue: KeyQueue,
    /// A renewal that failed is not tried before.
    renew_after: Instant,
}

/// Why there is no new key.
pub enum RenewError {
    /// It may work later; the next turn comes when it is time.
    Transient(KeyError),
    /// It never will, in words.
    Permanent(String),
}

impl Access {
    /// Access with the key in the room's file.
    pub fn new(
        home: &AgentHome,
        file: RoomFile,
        anonymous: Client,
        queue: KeyQueue,
    ) -> Result<Self, ClientError> {
        let client = anonymous.with_token(file.member_token.expose())?;
        Ok(Self {
            home: home.clone(),
            file,
            anonymous,
            client,
            queue,
            renew_after: Instant::now(),
        })
    }

    /// The client with the key that holds now.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What is known of the room.
    pub fn file(&self) -> &RoomFile {
        &self.file
    }

    /// Ends when the key should be replaced and it is this room's turn.
    pub async fn renewal_due(&self) -> KeyTurn {
        sleep_until(self.renew_after).await;
        loop {
            let fresh_for = key::fresh_for(self.file.issued_at, self.file.expires_at);
            if fresh_for.is_zero() {
                return self.queue.turn().await;
            }
            sleep(fresh_for.min(CHECK_EVERY)).await;
        }
    }

    /// Replaces the key while it still holds: with itself, which no other room waits for. Whether
    /// there is a new one.
    pub async fn renew_early(&mut self, turn: KeyTurn) -> bool {
        let address = self.file.address();
        let renewed = match key::reissue(&self.home, &self.client, &address).await {
            Err(KeyError::Client(error)) if action_for(&error) == ErrorAction::RenewKey => {
                key::recover(&self.home, &self.anonymous, &address).await
            }
            renewed => renewed,
        };
        turn.succeeded();
        let renewed = match renewed {
            Ok(file) => self.use_key(file).map_err(KeyError::from),
            Err(error) => Err(error),
        };
        match renewed {
            Ok(()) => tracing::info!("the room key is renewed"),
            Err(error) => {
                tracing::warn!(%error, "the room key is not renewed yet");
                let retry_after = match error.action() {
                    ErrorAction::Retry(retry_after) => retry_after,
                    _ => None,
                };
                self.renew_after = Instant::now() + retry_after.unwrap_or(RETRY_AFTER);
                return false;
            }
        }
        true
    }

    /// Gets another key for one that was refused, when it is this room's turn.
    pub async fn renew(&mut self) -> Result<(), RenewError> {
        let turn = self.queue.turn().await;
        // Somebody may have joined anew meanwhile.
        if let Ok(Some(file)) = self.home.room(&self.file.address())
            && file.member_token != self.file.member_token
            && file.left.is_none()
        {
            return self.use_key(file).map_err(permanent);
        }
        match key::recover(&self.home, &self.anonymous, &self.file.address()).await {
            Ok(file) => {
                turn.succeeded();
                tracing::info!("the room key was refused; the identity token gave a new one");
                self.use_key(file).map_err(permanent)
            }
            Err(error) => Err(match error.action() {
                ErrorAction::Retry(retry_after) => {
                    turn.postpone(retry_after);
                    RenewError::Transient(error)
                }
                ErrorAction::LeaveRoom(words) => RenewError::Permanent(words.to_owned()),
                ErrorAction::RenewKey | ErrorAction::SkipMessage => permanent(error),
            }),
        }
    }

    fn use_key(&mut self, file: RoomFile) -> Result<(), ClientError> {
        self.client = self.anonymous.with_token(file.member_token.expose())?;
        self.renew_after = Instant::now();
        self.file = file;
        Ok(())
    }
}

fn permanent(error: impl std::fmt::Display) -> RenewError {
    RenewError::Permanent(format!(
        "the room key does not hold any more and there is no other: {error}; \
         join again with a recovery invite from the room's owner"
    ))
}
