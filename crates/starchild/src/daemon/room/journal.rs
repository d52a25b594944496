//! How far the daemon has come in a room, kept so that a kill at any moment loses nothing.

use crate::home::{AgentHome, CursorFile, FileError, PreparedAnswer, RoomAddress};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Messages that need no answer are written down no more often.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// The cursor of one room.
#[derive(Debug)]
pub struct Journal {
    home: AgentHome,
    room: RoomAddress,
    now: CursorFile,
    unsaved_since: Option<Instant>,
}

impl Journal {
    /// The journal as it was left, or nothing where there is none.
    pub fn open(home: &AgentHome, room: &RoomAddress) -> Result<Option<Self>, FileError> {
        Ok(home.cursor(room)?.map(|now| Self::at(home, room, now)))
    }

    /// A journal that begins here.
    pub async fn create(home: &AgentHome, room: &RoomAddress, seq: i64) -> Self {
        let now = CursorFile { seq, answer: None };
        let mut journal = Self::at(home, room, now);
        journal.save().await;
        journal
    }

    fn at(home: &AgentHome, room: &RoomAddress, now: CursorFile) -> Self {
        Self {
            home: home.clone(),
            room: room.clone(),
            now,
            unsaved_since: None,
        }
    }

    /// Everything up to here is dealt with.
    pub fn seq(&self) -> i64 {
        self.now.seq
    }

    /// The answer that was given to this message before the daemon last ended.
    pub fn answer_to(&self, seq: i64) -> Option<&PreparedAnswer> {
        self.now.answer.as_ref().filter(|answer| answer.seq == seq)
    }

    /// Keeps an answer before it is posted, so that a second try posts the same.
    pub async fn record_answer(&mut self, answer: &PreparedAnswer) {
        self.now.answer = Some(answer.clone());
        self.save().await;
    }

    /// A message is dealt with.
    pub async fn complete(&mut self, seq: i64) {
        self.now = CursorFile { seq, answer: None };
        self.save().await;
    }

    /// A message was none of the agent's business. Seeing it again would do no harm, so it is
    /// written down with the next one, or a little later.
    pub fn skip(&mut self, seq: i64) {
        self.now = CursorFile { seq, answer: None };
        self.unsaved_since.get_or_insert_with(Instant::now);
    }

    /// Ends when there is something to save.
    pub async fn flush_due(&self) {
        match self.unsaved_since {
            Some(since) => sleep_until(since + SAVE_EVERY).await,
            None => std::future::pending().await,
        }
    }

    /// Saves what is unsaved.
    pub async fn flush(&mut self) {
        if self.unsaved_since.is_some() {
            self.save().await;
        }
    }

    async fn save(&mut self) {
        self.unsaved_since = None;
        let (home, room, now) = (self.home.clone(), self.room.clone(), self.now.clone());
        // Disks take their time, and other rooms should not wait for it.
        let saved = tokio::task::spawn_blocking(move || home.save_cursor(&room, &now)).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the cursor is not saved"),
            Err(error) => tracing::error!(%error, "the cursor is not saved"),
        }
    }
}
