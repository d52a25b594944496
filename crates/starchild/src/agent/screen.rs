//! Shows a turn in a terminal.

use crate::terminal::printable;
use openstarry::segment::{ContentSegment, MediaData, ToolCall, ToolResult};
use openstarry::session::{EndReason, SessionEvent};
use openstarry::tool::Principal;
use std::io::{self, IsTerminal, Write};

/// The most of a call or a result that is shown in its line.
const LINE: usize = 160;

/// Where the answer goes, and where everything else does.
pub struct Screen {
    answer: Box<dyn Write + Send>,
    aside: Box<dyn Write + Send>,
    dim: bool,
    /// Whether the last thing written ended its line.
    fresh_line: bool,
    /// Whether the tool that runs is the person's: its result is the answer.
    own_tool: bool,
}

impl Screen {
    /// Everything on standard output: for a conversation.
    pub fn conversation() -> Self {
        Self::new(
            Box::new(io::stdout()),
            Box::new(io::stdout()),
            io::stdout().is_terminal(),
        )
    }

    /// The answer on standard output, the rest on standard error: for pipes.
    pub fn answer_alone() -> Self {
        Self::new(
            Box::new(io::stdout()),
            Box::new(io::stderr()),
            io::stderr().is_terminal(),
        )
    }

    fn new(answer: Box<dyn Write + Send>, aside: Box<dyn Write + Send>, color: bool) -> Self {
        Self {
            answer,
            aside,
            dim: color && std::env::var_os("NO_COLOR").is_none(),
            fresh_line: true,
            own_tool: false,
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &SessionEvent) -> io::Result<()> {
        match event {
            SessionEvent::Text { text } => self.say(text),
            SessionEvent::Reasoning { .. } | SessionEvent::Activity => Ok(()),
            SessionEvent::Waiting { why, seconds } => {
                self.aside(&format!("… {why}; trying again in {seconds:.0} s"))
            }
            SessionEvent::Segment { segment } => self.aside(&describe(segment)),
            SessionEvent::ToolStarted { call, principal } => match principal {
                Principal::Agent => self.aside(&format!("→ {}", call_line(call))),
                Principal::User => {
                    self.own_tool = true;
                    Ok(())
                }
            },
            SessionEvent::ToolFinished { result, .. } => {
                match std::mem::take(&mut self.own_tool) && !result.is_error {
                    true => self.whole(&result.content),
                    false => self.result(result),
                }
            }
            SessionEvent::Notice { text } => self.aside(&format!("! {text}")),
            SessionEvent::End(outcome) => {
                self.end_line()?;
                match &outcome.end {
                    EndReason::Answered if outcome.segments.is_empty() => {
                        self.aside("! the model said nothing")
                    }
                    EndReason::Answered | EndReason::Command => Ok(()),
                    EndReason::Cancelled => self.aside("! cancelled"),
                    EndReason::Stopped(why) => {
                        self.aside(&format!("! stopped: {why}. /reset starts again"))
                    }
                    EndReason::Incomplete(why)
                    | EndReason::Refused(why)
                    | EndReason::Rounds(why)
                    | EndReason::Budget(why)
                    | EndReason::Failed(why) => self.aside(&format!("! {why}")),
                }
            }
        }
    }

    /// A line that is no part of the answer.
    pub fn aside(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        let text = printable(text);
        match self.dim {
            true => writeln!(self.aside, "\x1b[2m{text}\x1b[0m")?,
            false => writeln!(self.aside, "{text}")?,
        }
        self.aside.flush()
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        let text = printable(text);
        if let Some(last) = text.chars().last() {
            self.fresh_line = last == '\n';
            self.answer.write_all(text.as_bytes())?;
            self.answer.flush()?;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.fresh_line, true) {
            self.answer.write_all(b"\n")?;
            self.answer.flush()?;
        }
        Ok(())
    }

    fn result(&mut self, result: &ToolResult) -> io::Result<()> {
        let mark = if result.is_error { "✗" } else { "←" };
        let texts = result.content.iter().map(|segment| match segment {
            ContentSegment::Text { text } => text.clone(),
            other => describe(other),
        });
        let text = texts.collect::<Vec<_>>().join(" ");
        self.aside(&format!("{mark} {}", one_line(&text)))
    }

    /// What a slash command gave, whole.
    fn whole(&mut self, segments: &[ContentSegment]) -> io::Result<()> {
        for segment in segments {
            match segment {
                ContentSegment::Text { text } => self.say(text)?,
                other => self.aside(&describe(other))?,
            }
            self.end_line()?;
        }
        Ok(())
    }
}

/// A call in one line.
fn call_line(call: &ToolCall) -> String {
    one_line(&format!("{} {}", call.name, call.args_text()))
}

/// The whole of a call whose line was cut.
pub fn cut_call(call: &ToolCall) -> Option<String> {
    let whole = serde_json::to_string_pretty(&call.args).unwrap_or_default();
    call_line(call)
        .ends_with('…')
        .then(|| format!("{} {whole}", call.name))
}

fn one_line(text: &str) -> String {
    let words = printable(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    match words.char_indices().nth(LINE) {
        Some((cut, _)) => format!("{}…", &words[..cut]),
        None => words,
    }
}

fn describe(segment: &ContentSegment) -> String {
    match segment.as_media() {
        Some((kind, media)) => match &media.data {
            MediaData::Url(url) => format!("[{kind} {url}]"),
            MediaData::Base64(data) => {
                format!("[{kind} {}, {} bytes]", media.mime_type, data.len() / 4 * 3)
            }
        },
        None => serde_json::to_string(segment).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_broken_lines_become_one_short_line() {
        let line = one_line(&format!("a\n  b\t{}", "天".repeat(500)));
        assert!(line.starts_with("a b 天") && line.ends_with('…'));
        assert_eq!(line.chars().count(), LINE + 1);
    }
}
