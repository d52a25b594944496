//! The daemon's way into one room: its key, and a new one when that ends.

use super::verdict::{Verdict, verdict};
use crate::{
    home::{AgentHome, RoomFile},
    rooms::key::{self, KeyError},
};
use client::{Client, ClientError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// After a renewal that failed for now.
const TRY_AGAIN: Duration = Duration::from_secs(300);

/// A key and the client that uses it.
pub struct Access {
    home: AgentHome,
    file: RoomFile,
    anonymous: Client,
    client: Client,
    renew_at: Instant,
}

/// Why there is no new key.
pub enum NoKey {
    /// It may work later.
    Later(Option<Duration>, KeyError),
    /// It never will, in words.
    Never(String),
}

impl Access {
    /// Access with the key in the room's file.
    pub fn new(home: &AgentHome, file: RoomFile, anonymous: Client) -> Result<Self, ClientError> {
        let client = anonymous.with_token(file.member_token.expose())?;
        let renew_at = Instant::now() + key::fresh_for(file.issued_at, file.expires_at);
        Ok(Self {
            home: home.clone(),
            file,
            anonymous,
            client,
            renew_at,
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

    /// Ends when the key should be replaced.
    pub async fn renewal_due(&self) {
        sleep_until(self.renew_at).await;
    }

    /// Replaces the key while it still holds: with itself, which no other room waits for.
    pub async fn renew_early(&mut self) {
        let (server, room) = (&self.file.server, &self.file.room_id);
        let renewed = match key::reissue(&self.home, &self.client, server, room).await {
            Ok(file) => Ok(file),
            Err(_) => key::recover(&self.home, &self.anonymous, server, room).await,
        };
        match renewed.map(|file| self.adopt(file)) {
            Ok(Ok(())) => tracing::info!("the room key is renewed"),
            Ok(Err(error)) => tracing::warn!(%error, "the new room key cannot be used"),
            Err(error) => {
                tracing::warn!(%error, "the room key is not renewed yet");
                self.renew_at = Instant::now() + TRY_AGAIN;
            }
        }
    }

    /// Gets another key for one that was refused.
    pub async fn renew(&mut self) -> Result<(), NoKey> {
        // Somebody may have joined anew meanwhile.
        if let Ok(Some(file)) = self.home.room(&self.file.room_id)
            && file.member_token != self.file.member_token
            && file.left.is_none()
        {
            return self.adopt(file).map_err(never);
        }
        let (server, room) = (&self.file.server, &self.file.room_id);
        match key::recover(&self.home, &self.anonymous, server, room).await {
            Ok(file) => {
                tracing::info!("the room key was refused; the identity token gave a new one");
                self.adopt(file).map_err(never)
            }
            Err(KeyError::Client(error)) => Err(match verdict(&error) {
                Verdict::Wait(asked) => NoKey::Later(asked, error.into()),
                Verdict::Leave(words) => NoKey::Never(words.to_owned()),
                Verdict::Renew | Verdict::Skip => never(error),
            }),
            Err(error @ KeyError::File(_)) => Err(NoKey::Later(None, error)),
            Err(error @ KeyError::NoIdentity(_)) => Err(never(error)),
        }
    }

    fn adopt(&mut self, file: RoomFile) -> Result<(), ClientError> {
        self.client = self.anonymous.with_token(file.member_token.expose())?;
        self.renew_at = Instant::now() + key::fresh_for(file.issued_at, file.expires_at);
        self.file = file;
        Ok(())
    }
}

fn never(error: impl std::fmt::Display) -> NoKey {
    NoKey::Never(format!(
        "the room key does not hold any more and there is no other: {error}"
    ))
}
