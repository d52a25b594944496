//! The daemon's way into one room: its key, and a new one when that ends.

use super::{
    key::{self, KeyError},
    queue::{Mint, Turn},
};
use crate::{
    daemon::retry::{Verdict, verdict},
    home::{AgentHome, RoomFile},
};
use client::{Client, ClientError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// After a renewal that failed for now.
const TRY_AGAIN: Duration = Duration::from_secs(300);
/// How often the time is looked at: a machine that sleeps counts no seconds meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// A key and the client that uses it.
pub struct Access {
    home: AgentHome,
    file: RoomFile,
    anonymous: Client,
    client: Client,
    mint: Mint,
    /// A renewal that failed is not tried before.
    renew_after: Instant,
}

/// Why there is no new key.
pub enum NoKey {
    /// It may work later; the next turn comes when it is time.
    Later(KeyError),
    /// It never will, in words.
    Never(String),
}

impl Access {
    /// Access with the key in the room's file.
    pub fn new(
        home: &AgentHome,
        file: RoomFile,
        anonymous: Client,
        mint: Mint,
    ) -> Result<Self, ClientError> {
        let client = anonymous.with_token(file.member_token.expose())?;
        Ok(Self {
            home: home.clone(),
            file,
            anonymous,
            client,
            mint,
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
    pub async fn renewal_due(&self) -> Turn {
        sleep_until(self.renew_after).await;
        loop {
            let fresh_for = key::fresh_for(self.file.issued_at, self.file.expires_at);
            if fresh_for.is_zero() {
                return self.mint.turn().await;
            }
            sleep(fresh_for.min(LOOK_EVERY)).await;
        }
    }

    /// Replaces the key while it still holds: with itself, which no other room waits for. Whether
    /// there is a new one.
    pub async fn renew_early(&mut self, turn: Turn) -> bool {
        let address = self.file.address();
        let renewed = match key::reissue(&self.home, &self.client, &address).await {
            Err(KeyError::Client(error)) if verdict(&error) == Verdict::Renew => {
                key::recover(&self.home, &self.anonymous, &address).await
            }
            renewed => renewed,
        };
        turn.done();
        let adopted = match renewed {
            Ok(file) => self.adopt(file).map_err(KeyError::from),
            Err(error) => Err(error),
        };
        match adopted {
            Ok(()) => tracing::info!("the room key is renewed"),
            Err(error) => {
                tracing::warn!(%error, "the room key is not renewed yet");
                let asked = match error.verdict() {
                    Verdict::Wait(asked) => asked,
                    _ => None,
                };
                self.renew_after = Instant::now() + asked.unwrap_or(TRY_AGAIN);
                return false;
            }
        }
        true
    }

    /// Gets another key for one that was refused, when it is this room's turn.
    pub async fn renew(&mut self) -> Result<(), NoKey> {
        let turn = self.mint.turn().await;
        // Somebody may have joined anew meanwhile.
        if let Ok(Some(file)) = self.home.room(&self.file.address())
            && file.member_token != self.file.member_token
            && file.left.is_none()
        {
            return self.adopt(file).map_err(never);
        }
        match key::recover(&self.home, &self.anonymous, &self.file.address()).await {
            Ok(file) => {
                turn.done();
                tracing::info!("the room key was refused; the identity token gave a new one");
                self.adopt(file).map_err(never)
            }
            Err(error) => Err(match error.verdict() {
                Verdict::Wait(asked) => {
                    turn.put_off(asked);
                    NoKey::Later(error)
                }
                Verdict::Leave(words) => NoKey::Never(words.to_owned()),
                Verdict::Renew | Verdict::Skip => never(error),
            }),
        }
    }

    fn adopt(&mut self, file: RoomFile) -> Result<(), ClientError> {
        self.client = self.anonymous.with_token(file.member_token.expose())?;
        self.renew_after = Instant::now();
        self.file = file;
        Ok(())
    }
}

fn never(error: impl std::fmt::Display) -> NoKey {
    NoKey::Never(format!(
        "the room key does not hold any more and there is no other: {error}; \
         join again with a recovery invite from the room's owner"
    ))
}
