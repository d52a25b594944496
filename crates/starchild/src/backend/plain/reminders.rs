//! Reminders, on the disk until they are given: a restart loses none.

use crate::{
    backend::Remark,
    home::{FileError, files},
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::sync::Notify;

/// The most reminders of one room.
const MAX_REMINDERS: usize = 100;
/// A clock that is set, and a machine that sleeps, are noticed after this long.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// One reminder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// The message that asked for it.
    pub seq: i64,
    /// When, in unix seconds.
    pub at: i64,
    /// Of what.
    pub of: String,
}

/// The reminders of an agent, a file for each room.
pub struct Reminders {
    folder: PathBuf,
    changed: Notify,
}

impl Reminders {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.join("reminders"),
            changed: Notify::new(),
        }
    }

    /// Keeps one; false where there are too many. Asked again for the same message, there is one.
    pub fn add(&self, room_name: &str, reminder: Reminder) -> Result<bool, FileError> {
        let mut all = self.read(room_name)?;
        all.retain(|kept| kept.seq != reminder.seq);
        if all.len() >= MAX_REMINDERS {
            return Ok(false);
        }
        all.push(reminder);
        self.write(room_name, &all)?;
        self.changed.notify_waiters();
        Ok(true)
    }

    /// Forgets one.
    pub fn remove(&self, room_name: &str, seq: i64) -> Result<(), FileError> {
        let mut all = self.read(room_name)?;
        all.retain(|kept| kept.seq != seq);
        self.write(room_name, &all)
    }

    /// Waits for the next that is due. It stays until it is removed.
    pub async fn next(&self, room_name: &str) -> Remark {
        loop {
            let changed = self.changed.notified();
            let all = self.read(room_name).unwrap_or_else(|error| {
                tracing::error!(%error, "the reminders cannot be read");
                Vec::new()
            });
            let now = jiff::Timestamp::now().as_second();
            let Some(first) = all.into_iter().min_by_key(|reminder| reminder.at) else {
                changed.await;
                continue;
            };
            if first.at <= now {
                return Remark {
                    reply_to_seq: Some(first.seq),
                    id: format!("reminder-{}", first.at),
                    text: format!("⏰ You wanted to be reminded: {}", first.of),
                };
            }
            let wait = Duration::from_secs(first.at.abs_diff(now)).min(LONGEST_SLEEP);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = changed => {}
            }
        }
    }

    fn read(&self, room_name: &str) -> Result<Vec<Reminder>, FileError> {
        Ok(files::read_json(&self.file(room_name))?.unwrap_or_default())
    }

    fn write(&self, room_name: &str, all: &Vec<Reminder>) -> Result<(), FileError> {
        files::make_folder(&self.folder)?;
        files::write_json(&self.file(room_name), all)
    }

    fn file(&self, room_name: &str) -> PathBuf {
        self.folder.join(format!("{room_name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reminder(seq: i64, at: i64) -> Reminder {
        let of = format!("number {seq}");
        Reminder { seq, at, of }
    }

    #[tokio::test]
    async fn a_reminder_outlives_its_process_and_is_given_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let reminders = Reminders::new(folder.path());
        assert!(reminders.add("rm_a", reminder(7, 10)).unwrap());
        assert!(reminders.add("rm_a", reminder(7, 10)).unwrap(), "once more");
        assert!(reminders.add("rm_a", reminder(8, 20)).unwrap());
        let again = Reminders::new(folder.path());
        assert_eq!(again.next("rm_a").await.reply_to_seq, Some(7));
        assert_eq!(again.next("rm_a").await.reply_to_seq, Some(7));
        again.remove("rm_a", 7).unwrap();
        assert_eq!(
            again.next("rm_a").await.text,
            "⏰ You wanted to be reminded: number 8"
        );
    }

    #[test]
    fn a_room_has_so_many_reminders_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let reminders = Reminders::new(folder.path());
        for seq in 0..100 {
            assert!(reminders.add("rm_a", reminder(seq, 10)).unwrap());
        }
        assert!(!reminders.add("rm_a", reminder(100, 10)).unwrap());
        assert!(reminders.add("rm_b", reminder(100, 10)).unwrap());
    }
}
