//! How commands show what they found: tables and colour for a person, plain lines for a pipe.

use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::mpsc,
    thread::JoinHandle,
    time::Duration,
};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_EVERY: Duration = Duration::from_millis(80);

/// A table: its columns, and rows of cells.
pub struct Table<const N: usize> {
    /// What the columns are called.
    pub columns: [&'static str; N],
    /// The cells.
    pub rows: Vec<[String; N]>,
    /// What to say where there are no rows.
    pub empty: &'static str,
}

impl<const N: usize> Table<N> {
    /// Shows it: aligned at a terminal; in a pipe, cells with tabs between them.
    pub fn show(&self) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            let lines = self.rows.iter().map(|row| {
                let cells = row.each_ref().map(|cell| one_line(cell));
                format!("{}\n", cells.join("\t"))
            });
            return print(&lines.collect::<String>());
        }
        if self.rows.is_empty() {
            return print(&format!("{}\n", self.empty));
        }
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.columns[column].len())
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let line = |cells: [&str; N]| {
            let padded = cells.iter().zip(widths).map(|(cell, width)| {
                let padding = width.saturating_sub(cell.chars().count());
                format!("{cell}{}", " ".repeat(padding))
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head = bold(&line(self.columns));
        let rows = self.rows.iter();
        let rows = rows.map(|row| line(row.each_ref().map(String::as_str)));
        let lines = std::iter::once(head).chain(rows);
        print(&lines.map(|line| line + "\n").collect::<String>())
    }
}

/// Prints a value as JSON.
pub fn json(value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Prints a result. A reader who has seen enough, such as `head`, is no failure.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints a command's result and ends it.
pub fn print_and_end(text: &str) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Tells a person what was done. It goes to standard error, so that pipes get results alone.
pub fn note(text: &str) {
    let dim = has_colour(&io::stderr());
    let _ = match dim {
        true => writeln!(io::stderr(), "\x1b[2m{text}\x1b[0m"),
        false => writeln!(io::stderr(), "{text}"),
    };
}

/// Tells a person at a terminal what comes next. A script that takes the result knows by itself.
pub fn next(text: &str) {
    if io::stdout().is_terminal() {
        note(&format!("Next: {text}"));
    }
}

fn bold(text: &str) -> String {
    match has_colour(&io::stdout()) {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Whether what is printed there may have colour.
pub fn has_colour(to: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    to.is_terminal() && !refused
}

/// A cell that stays a cell.
fn one_line(cell: &str) -> String {
    cell.replace(['\t', '\n', '\r'], " ")
}

/// Shows that something is being waited for, at a terminal alone, until it is dropped.
pub struct Spinner(Option<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Spinner {
    /// Starts to turn.
    pub fn new(text: &str) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let text = text.to_owned();
        let (stop, stopped) = mpsc::channel();
        let turning = std::thread::spawn(move || {
            let mut err = io::stderr();
            for frame in FRAMES.iter().cycle() {
                let _ = write!(err, "\r{frame} {text}");
                let _ = err.flush();
                if stopped.recv_timeout(FRAME_EVERY) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
            let _ = write!(err, "\r\x1b[K");
            let _ = err.flush();
        });
        Self(Some((stop, turning)))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((stop, turning)) = self.0.take() {
            drop(stop);
            let _ = turning.join();
        }
    }
}
