//! What happened, told again from the journal. Nothing is run and nothing is sent.

use super::JournalError;
use super::log::{CURRENT, PREVIOUS, repeat_all};
use crate::core::{Effect, Time};
use crate::trace::Hop;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// A hop of a run that was kept.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// For how long the pump had run, over all its starts.
    pub at: Duration,
    /// What happened.
    pub hop: Hop,
}

/// Tells every hop that the journal in a folder still knows of, in order. The pump
/// that writes it may be running.
pub fn replay(folder: &Path, mut each: impl FnMut(Replayed)) -> Result<(), JournalError> {
    let previous = folder.join(PREVIOUS);
    if previous.exists() {
        replay_file(&previous, &mut each)?;
    }
    replay_file(&folder.join(CURRENT), &mut each)
}

fn replay_file(path: &Path, each: &mut impl FnMut(Replayed)) -> Result<(), JournalError> {
    let file = File::open(path).map_err(JournalError::io(path))?;
    let size = file.metadata().map_err(JournalError::io(path))?.len();
    let read = repeat_all(path, &file, size, |core, record| {
        let at = record.at.since(Time::default());
        core.repeat(record);
        for effect in core.effects() {
            if let Effect::Hop(hop) = effect {
                each(Replayed { at, hop });
            }
        }
    });
    read.map(drop)
}
