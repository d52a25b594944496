//! The journal's file: opened, appended to, and replaced by a shorter one.

use super::{JournalError, frame};
use crate::core::{Core, Record, Snapshot};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The file that is written.
pub const CURRENT: &str = "journal";
/// The one before it.
pub const PREVIOUS: &str = "journal.previous";
/// What a crash had torn off.
const TORN: &str = "journal.torn";
const NEXT: &str = "journal.next";
const LOCK: &str = "lock";
/// How long whoever holds the lock has to let go of it.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// A journal that is open for writing.
pub(crate) struct Log {
    folder: PathBuf,
    file: File,
    /// Held for as long as this is open.
    _lock: File,
}

impl Log {
    /// Opens the journal in a folder, which is made if need be. Gives the rules in
    /// the state that it leads to; as `new` makes them, for a new journal.
    pub fn open(folder: &Path, new: impl FnOnce() -> Core) -> Result<(Self, Core), JournalError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(JournalError::io(folder))?;
        let lock = lock(&folder.join(LOCK))?;
        let path = folder.join(CURRENT);
        let (file, core) = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => recover(folder, file)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut core = new();
                core.keep_records();
                let snapshot = core.snapshot();
                let snapshot = snapshot.map_err(|error| JournalError::unreadable(&path, error))?;
                let file = begin(folder, &snapshot).map_err(JournalError::io(&path))?;
                (file, core)
            }
            Err(error) => return Err(JournalError::io(&path)(error)),
        };
        let log = Self {
            folder: folder.to_owned(),
            file,
            _lock: lock,
        };
        Ok((log, core))
    }

    /// Appends inputs; they are safe after [`Log::sync`].
    pub fn append(&mut self, records: &[u8]) -> std::io::Result<()> {
        frame::write(&mut self.file, records).map(drop)
    }

    /// Waits until the disk has all that was appended.
    pub fn sync(&mut self) -> std::io::Result<()> {
        self.file.sync_data()
    }

    /// Goes on in a new file that begins with this state. The old one stays until
    /// the next time.
    pub fn compact(&mut self, snapshot: &[u8]) -> std::io::Result<()> {
        self.sync()?;
        let previous = self.folder.join(PREVIOUS);
        match fs::remove_file(&previous) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => fs::hard_link(self.folder.join(CURRENT), previous)?,
        }
        self.file = begin(&self.folder, snapshot)?;
        Ok(())
    }
}

/// Takes the lock. One who was killed while it started a program leaves it to that for a moment.
fn lock(path: &Path) -> Result<File, JournalError> {
    let file = private().create(true).truncate(false).open(path);
    let file = file.map_err(JournalError::io(path))?;
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(JournalError::io(path)(error)),
        }
    }
}

/// Writes a journal that holds a snapshot, and puts it in its place whole.
fn begin(folder: &Path, snapshot: &[u8]) -> std::io::Result<File> {
    let next = folder.join(NEXT);
    let mut file = private().create(true).truncate(true).open(&next)?;
    file.write_all(frame::MAGIC)?;
    frame::write(&mut file, snapshot)?;
    file.sync_all()?;
    fs::rename(&next, folder.join(CURRENT))?;
    File::open(folder)?.sync_all()?;
    Ok(file)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn recover(folder: &Path, mut file: File) -> Result<(File, Core), JournalError> {
    let path = folder.join(CURRENT);
    let size = file.metadata().map_err(JournalError::io(&path))?.len();
    let (mut core, end) = repeat_all(&path, &file, size, |core, record| {
        core.repeat(record);
        // They were carried out, or will be when their work resumes.
        core.effects();
    })?;
    core.keep_records();
    cut(folder, &mut file, end, size).map_err(JournalError::io(&path))?;
    Ok((file, core))
}

/// Reads a journal from its beginning; `repeat` puts in each input. Gives the rules
/// in the state that it leads to, and where its last whole frame ends.
pub(super) fn repeat_all(
    path: &Path,
    file: &File,
    size: u64,
    mut repeat: impl FnMut(&mut Core, Record<'_>),
) -> Result<(Core, u64), JournalError> {
    let mut restored = None;
    let end = frame::read_all(path, file, size, |body| {
        let unreadable = |error| JournalError::unreadable(path, error);
        let Some(core) = &mut restored else {
            let snapshot: Snapshot = serde_json::from_slice(body).map_err(unreadable)?;
            restored = Some(Core::restore(snapshot));
            return Ok(());
        };
        let lines = body.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            repeat(core, serde_json::from_slice(line).map_err(unreadable)?);
        }
        Ok(())
    })?;
    let core = restored.ok_or_else(|| JournalError::Damaged {
        path: path.to_owned(),
        at: 0,
    })?;
    Ok((core, end))
}

/// Cuts off what a crash has torn, and keeps it beside, in case someone asks.
fn cut(folder: &Path, file: &mut File, end: u64, size: u64) -> std::io::Result<()> {
    if end < size {
        tracing::warn!(
            bytes = size - end,
            "the journal's last write was torn by a crash; nothing had followed from it"
        );
        let mut torn = private()
            .create(true)
            .truncate(true)
            .open(folder.join(TORN))?;
        file.seek(SeekFrom::Start(end))?;
        std::io::copy(&mut file.take(size - end), &mut torn)?;
        file.set_len(end)?;
        file.sync_all()?;
    }
    file.seek(SeekFrom::Start(end)).map(drop)
}
