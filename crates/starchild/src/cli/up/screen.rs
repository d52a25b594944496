//! What `starchild up` shows: a board that is drawn anew at a terminal, plain lines elsewhere.

use crate::{
    cli::show::terminal_columns,
    terminal::one_line,
    up::{board::SharedBoard, supervisor::ProgramState},
};
use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
};

const DEFAULT_WIDTH: usize = 100;

/// Standard output, as `up` writes to it.
pub struct Screen {
    at_terminal: bool,
    /// Lines of the board that are on the screen.
    drawn: usize,
}

impl Screen {
    /// The screen as it is.
    pub fn new() -> Self {
        Self {
            at_terminal: io::stdout().is_terminal(),
            drawn: 0,
        }
    }

    /// Says where the rooms are and how people get in. The links are for whoever took the team up.
    pub fn heading(&mut self, url: &str, links: &[(String, String)]) {
        let mut text = format!("Up: {url}\n");
        for (person, link) in links {
            text.push_str(&format!("{} signs in: {link}\n", one_line(person)));
        }
        if self.at_terminal {
            text.push_str("Ctrl-C takes it down.\n\n");
        }
        self.write(&text);
    }

    /// Tells what happened, above the board.
    pub fn tell(&mut self, news: Vec<String>) {
        if news.is_empty() {
            return;
        }
        let mut text = self.erase();
        for line in news {
            text.push_str(&one_line(&line));
            text.push('\n');
        }
        self.write(&text);
    }

    /// Draws the board, or prints what is new.
    pub fn draw(&mut self, board: &SharedBoard, states: &BTreeMap<String, ProgramState>) {
        let news = board.take_news();
        if !self.at_terminal {
            return self.tell(news);
        }
        let mut text = self.erase();
        let width = terminal_columns().unwrap_or(DEFAULT_WIDTH);
        let lines = board.lines(states, width);
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines.len();
        self.write(&text);
    }

    /// What takes the board off the screen.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            // What was typed meanwhile, a ^C for example, has moved the cursor.
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }

    fn write(&self, text: &str) {
        let mut out = io::stdout().lock();
        // A reader who has seen enough does not take the team down.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
