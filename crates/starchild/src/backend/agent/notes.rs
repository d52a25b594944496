//! What an agent wrote down about a room. It outlives what its session forgets.

use crate::home::{FileError, files};
use std::{io::Read, path::PathBuf};

/// All notes of a room together; the oldest go.
const MAX_BYTES: usize = 8 << 10;
const MAX_NOTE_BYTES: usize = 1000;

/// The notes about one room, in a file.
pub struct Notes(PathBuf);

impl Notes {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// All of them, one on each line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Ok(file) = std::fs::File::open(&self.0) {
            // What is no text, or was made too long by hand, is no note.
            let _ = file.take(MAX_BYTES as u64).read_to_string(&mut text);
        }
        text
    }

    /// Adds one.
    pub fn add(&self, note: &str) -> Result<(), FileError> {
        let words: Vec<_> = note.split_whitespace().collect();
        let line = words.join(" ");
        let line = &line[..line.floor_char_boundary(MAX_NOTE_BYTES)];
        let mut text = format!("{}- {line}\n", self.text());
        while text.len() > MAX_BYTES {
            let end = text.find('\n').map_or(text.len(), |end| end + 1);
            text.drain(..end);
        }
        if let Some(folder) = self.0.parent() {
            files::make_folder(folder)?;
        }
        files::write(&self.0, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_stay_on_their_line_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path().join("notes/room.md"));
        assert_eq!(notes.text(), "");
        notes.add("Bob likes\n\n> tea").unwrap();
        assert_eq!(notes.text(), "- Bob likes > tea\n");
        for n in 0..200 {
            notes.add(&format!("{n} {}", "x".repeat(100))).unwrap();
        }
        let text = notes.text();
        assert!(text.len() <= MAX_BYTES && !text.contains("tea"));
        assert!(text.lines().last().unwrap().starts_with("- 199 "));
        notes.add(&"é".repeat(3 * MAX_BYTES)).unwrap();
        assert_eq!(notes.text().lines().last().unwrap().len(), 1002);
    }
}
