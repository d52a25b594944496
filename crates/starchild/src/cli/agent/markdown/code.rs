//! A block of code in the colours of a terminal.

use super::{CODE, DIM, RESET};
use highlight::{Block, Part};
use std::time::{Duration, Instant};

/// What colours may cost in one block. Some grammars are slow with strange code,
/// and a model may have been told to write some.
const BUDGET: Duration = Duration::from_millis(500);

/// A block that is open.
pub struct Code {
    block: Option<Block>,
    spent: Duration,
}

impl Code {
    /// A block in this language, which nobody has to know.
    pub fn new(language: &str) -> Self {
        let started = Instant::now();
        let block = Block::new(language);
        Self {
            block,
            // The first block of all loads the grammars.
            spent: started.elapsed().min(BUDGET / 2),
        }
    }

    /// Whether lines are drawn when they are whole, and not as they come.
    pub fn waits_for_lines(&self) -> bool {
        self.block.is_some()
    }

    /// Draws a whole line, which comes without its line feed.
    pub fn line(&mut self, line: &str, out: &mut String) {
        let Some(block) = &mut self.block else {
            out.push_str(&format!("{CODE}{line}{RESET}"));
            return;
        };
        if self.spent >= BUDGET {
            block.give_up();
        }
        let started = Instant::now();
        let whole = format!("{line}\n");
        for (piece, part) in block.line(&whole) {
            let piece = piece.trim_end_matches('\n');
            match colour(part) {
                _ if piece.is_empty() => {}
                "" => out.push_str(piece),
                colour => out.push_str(&format!("{colour}{piece}{RESET}")),
            }
        }
        self.spent += started.elapsed();
    }
}

fn colour(part: Part) -> &'static str {
    match part {
        Part::Plain => "",
        Part::Comment => DIM,
        Part::Constant => "\x1b[33m",
        Part::Text | Part::Added => "\x1b[32m",
        Part::Keyword => "\x1b[35m",
        Part::Name => "\x1b[34m",
        Part::Removed => "\x1b[31m",
    }
}
