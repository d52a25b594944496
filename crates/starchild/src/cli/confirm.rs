//! Asking the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

/// Asks yes or no; an empty answer is `usual`. Nothing where nobody is there to be asked.
pub fn confirm(question: &str, usual: bool) -> io::Result<Option<bool>> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    let choices = if usual { "[Y/n]" } else { "[y/N]" };
    let mut err = io::stderr();
    write!(err, "{} {choices} ", crate::terminal::printable(question))?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(Some(match answer.trim().to_lowercase().as_str() {
        "" => usual,
        answer => matches!(answer, "y" | "yes"),
    }))
}
