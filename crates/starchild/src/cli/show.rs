//! How commands show what they found: tables and colour for a person, plain lines for a pipe.

use crate::terminal::{one_line, printable};
use serde::Serialize;
use std::{
    fmt,
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
        let rows: Vec<[String; N]> = self.rows.iter().map(one_line_each).collect();
        if !io::stdout().is_terminal() {
            let lines = rows.iter().map(|row| format!("{}\n", row.join("\t")));
            return print(&lines.collect::<String>());
        }
        if rows.is_empty() {
            return print(&format!("{}\n", self.empty));
        }
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
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
        let rows = rows
            .iter()
            .map(|row| line(row.each_ref().map(String::as_str)));
        let lines = std::iter::once(head).chain(rows);
        print_styled(&lines.map(|line| line + "\n").collect::<String>())
    }
}

/// How wide the terminal is that standard output goes to.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(20))
}

/// Cells that stay cells.
fn one_line_each<const N: usize>(row: &[String; N]) -> [String; N] {
    row.each_ref().map(|cell| one_line(cell))
}

/// Prints a value as JSON.
pub fn json(value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Prints a result: as it is into a pipe, without what could steer it at a terminal.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => print_styled(&printable(text)),
        false => print_styled(text),
    }
}

/// Prints what was made printable before it got its colours. A reader who has seen enough, such as
/// `head`, is no failure.
pub fn print_styled(text: &str) -> io::Result<()> {
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
    let text = printable(text);
    let dim = has_colour(&io::stderr());
    let _ = match dim {
        true => writeln!(io::stderr(), "\x1b[2m{text}\x1b[0m"),
        false => writeln!(io::stderr(), "{text}"),
    };
}

/// Says why a command failed.
pub fn failure(error: &impl fmt::Display) {
    let error = error.to_string();
    eprintln!("starchild: {}", printable(&error));
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
