//! What happened, told again from the journal. Nothing is run and nothing is sent.

use super::JournalError;
use super::log::{CURRENT, PREVIOUS, repeat_all};
use crate::core::{Effect, Overview, Time};
use crate::trace::Hop;
use std::fs::File;
use std::ops::ControlFlow;
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

/// Tells every hop that the journal in a folder still knows of, in order, until
/// `each` has had enough. The pump that writes it may be running. Gives the state
/// that the last input told of, and all that it was followed by, has led to.
pub fn replay(
    folder: &Path,
    mut each: impl FnMut(Replayed) -> ControlFlow<()>,
) -> Result<Overview, JournalError> {
    let previous = folder.join(PREVIOUS);
    if previous.exists()
        && let (overview, ControlFlow::Break(())) = replay_file(&previous, &mut each)?
    {
        return Ok(overview);
    }
    let (overview, _) = replay_file(&folder.join(CURRENT), &mut each)?;
    Ok(overview)
}

fn replay_file(
    path: &Path,
    each: &mut impl FnMut(Replayed) -> ControlFlow<()>,
) -> Result<(Overview, ControlFlow<()>), JournalError> {
    let file = File::open(path).map_err(JournalError::io(path))?;
    let size = file.metadata().map_err(JournalError::io(path))?.len();
    let mut told = ControlFlow::Continue(());
    let (core, _) = repeat_all(path, &file, size, |core, record| {
        if told.is_break() {
            return;
        }
        let at = record.at.since(Time::default());
        core.repeat(record);
        for effect in core.effects() {
            if let Effect::Hop(hop) = effect
                && told.is_continue()
            {
                told = each(Replayed { at, hop: *hop });
            }
        }
    })?;
    Ok((core.overview(), told))
}
