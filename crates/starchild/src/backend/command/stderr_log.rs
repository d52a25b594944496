//! What a program says on its standard error: logged line by line, and not without end.

use crate::terminal::printable;

/// The most bytes of one logged line.
const LINE_BYTES: usize = 1024;
/// The most bytes logged of one run.
const TOTAL_BYTES: usize = 64 << 10;

/// Collects bytes, logs lines.
#[derive(Debug, Default)]
pub struct StderrLog {
    line: Vec<u8>,
    /// Set while the rest of a line that was too long goes by.
    skipping: bool,
    taken: usize,
    last: Option<String>,
}

impl StderrLog {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let before = self.taken;
        self.taken = self.taken.saturating_add(bytes.len());
        if before >= TOTAL_BYTES {
            return;
        }
        for byte in bytes {
            match byte {
                b'\n' => self.log_line(),
                _ if self.skipping => {}
                byte => {
                    self.line.push(*byte);
                    if self.line.len() == LINE_BYTES {
                        self.log_line();
                        self.skipping = true;
                    }
                }
            }
        }
        if self.taken >= TOTAL_BYTES {
            self.log_line();
            tracing::info!("stderr: (more than {TOTAL_BYTES} bytes; the rest is left out)");
        }
    }

    /// Whether what comes next would still be logged.
    pub fn wants_more(&self) -> bool {
        self.taken < TOTAL_BYTES
    }

    /// Logs a last line that has no end.
    pub fn finish(&mut self) {
        self.log_line();
    }

    /// The last line with something in it.
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    fn log_line(&mut self) {
        self.skipping = false;
        let line = String::from_utf8_lossy(&self.line);
        let line = printable(line.trim()).into_owned();
        self.line.clear();
        if !line.is_empty() {
            tracing::info!("stderr: {line}");
            self.last = Some(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_kept() {
        let mut stderr_log = StderrLog::default();
        stderr_log.push(&vec![b'x'; 5000]);
        stderr_log.push(b"\nthe next\r\n");
        assert_eq!(stderr_log.last(), Some("the next"));
        assert!(stderr_log.line.is_empty());
    }

    #[test]
    fn nothing_is_kept_once_there_was_too_much() {
        let mut stderr_log = StderrLog::default();
        for _ in 0..100 {
            stderr_log.push(&vec![b'y'; 8192]);
        }
        stderr_log.push(b"\nlate\n");
        assert!(!stderr_log.wants_more());
        assert!(stderr_log.line.len() <= LINE_BYTES);
        assert_ne!(stderr_log.last(), Some("late"));
    }

    #[test]
    fn a_terminal_is_not_played_tricks_on() {
        let mut stderr_log = StderrLog::default();
        stderr_log.push(b"\x1b[2Jred\x07\n");
        assert_eq!(stderr_log.last(), Some("[2Jred"));
    }
}
