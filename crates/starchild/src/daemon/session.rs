//! One start of the daemon: its id, and a folder that backends may log into.

use crate::{
    backend::DaemonSession,
    home::{AgentHome, FileError, files},
};
use jiff::{Span, Timestamp, tz::TimeZone};
use std::fs;

/// How many starts of one second there may be.
const TRIES: i64 = 60;

/// A session of its own for this start. Folders of earlier starts that nobody wrote into go.
pub fn create(home: &AgentHome) -> Result<DaemonSession, FileError> {
    let sessions = home.sessions();
    files::make_folder(&sessions)?;
    for name in files::names(&sessions)? {
        // This fails, as it should, for a folder with something in it.
        let _ = fs::remove_dir(sessions.join(name));
    }
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let mut id = String::new();
    for later in 0..TRIES {
        let then = now.checked_add(Span::new().seconds(later));
        let then = then.unwrap_or_else(|_| now.clone());
        id = then.strftime("%Y%m%d-%H%M%S").to_string();
        if !sessions.join(&id).exists() {
            break;
        }
    }
    let log_dir = sessions.join(&id);
    files::make_folder(&log_dir)?;
    Ok(DaemonSession { id, log_dir })
}
