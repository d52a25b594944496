//! Shows a turn in a terminal.

use super::markdown::Markdown;
use super::status::Status;
use crate::cli::show::{has_colour, terminal_columns};
use crate::terminal::printable;
use openstarry::segment::{ContentSegment, MediaData, ToolCall, ToolResult};
use openstarry::session::{EndReason, SessionEvent};
use openstarry::tool::Principal;
use std::io::{self, IsTerminal, Write};

/// The most of a call or a result that is shown in its line.
const LINE: usize = 160;
/// The most of a diff that is shown.
const DIFF_LINES: usize = 200;
/// The most of its thoughts that is kept for a look.
const MAX_THOUGHTS: usize = 256 << 10;

/// Where the answer goes, and where everything else does.
pub struct Screen {
    answer: Box<dyn Write + Send>,
    aside: Box<dyn Write + Send>,
    colour: bool,
    /// Draws the answer, where it goes to a terminal.
    markdown: Option<Markdown>,
    /// Whether the last thing written ended its line.
    fresh_line: bool,
    /// Whether the tool that runs is the person's: its result is the answer.
    own_tool: bool,
    /// The line that says what is going on.
    status: Status,
    /// What the model thought last.
    thoughts: String,
}

impl Screen {
    /// Everything on standard output: for a conversation.
    pub fn conversation() -> Self {
        let out = io::stdout();
        let colour = has_colour(&out);
        let status = Status::new(out.is_terminal());
        Self::new(
            Box::new(io::stdout()),
            Box::new(out),
            colour,
            colour,
            status,
        )
    }

    /// The answer on standard output, the rest on standard error: for pipes.
    pub fn answer_alone() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let drawn = has_colour(&out);
        let colour = has_colour(&err);
        let status = Status::new(err.is_terminal());
        Self::new(Box::new(out), Box::new(err), colour, drawn, status)
    }

    fn new(
        answer: Box<dyn Write + Send>,
        aside: Box<dyn Write + Send>,
        colour: bool,
        drawn: bool,
        status: Status,
    ) -> Self {
        Self {
            answer,
            aside,
            colour,
            markdown: drawn.then(Markdown::default),
            fresh_line: true,
            own_tool: false,
            status,
            thoughts: String::new(),
        }
    }

    /// A question was sent: the model is waited for.
    pub fn begin(&mut self) {
        self.thoughts.clear();
        self.status.begin("waiting for the model");
    }

    /// Time has passed.
    pub fn tick(&mut self) -> io::Result<()> {
        match self.fresh_line {
            true => self.status.draw(&mut self.aside),
            false => Ok(()),
        }
    }

    /// What the model thought last.
    pub fn thoughts(&mut self) -> io::Result<()> {
        let text = match self.thoughts.is_empty() {
            true => "The model has shown no thoughts.".to_owned(),
            false => self.thoughts.clone(),
        };
        self.aside(&text)
    }

    /// Shows one event.
    pub fn show(&mut self, event: &SessionEvent) -> io::Result<()> {
        if let SessionEvent::Reasoning { text } = event {
            if self.thoughts.len() < MAX_THOUGHTS {
                self.thoughts.push_str(text);
            }
            self.status.thinks();
            return Ok(());
        }
        self.fold_thoughts()?;
        match event {
            SessionEvent::Text { text } => self.say(text),
            SessionEvent::Reasoning { .. }
            | SessionEvent::Activity
            | SessionEvent::ConsentAsked { .. } => Ok(()),
            SessionEvent::Waiting { why, seconds } => {
                self.aside(&format!("… {why}; trying again in {seconds:.0} s"))?;
                self.status.wait("trying again", *seconds);
                Ok(())
            }
            SessionEvent::Segment { segment } => self.aside(&describe(segment)),
            SessionEvent::ToolProgress { text, .. } => {
                self.status.begin(&one_line(text));
                Ok(())
            }
            SessionEvent::ToolStarted { call, principal } => match principal {
                Principal::Agent => {
                    self.call(call)?;
                    self.status.begin(&call.name);
                    Ok(())
                }
                Principal::User => {
                    self.own_tool = true;
                    Ok(())
                }
            },
            SessionEvent::ToolFinished { result, .. } => {
                match std::mem::take(&mut self.own_tool) && !result.is_error {
                    true => self.whole(&result.content),
                    false => self.result(result),
                }?;
                self.status.begin("waiting for the model");
                Ok(())
            }
            SessionEvent::Notice { text } => self.aside(&format!("! {text}")),
            SessionEvent::End(outcome) => {
                self.end_line()?;
                self.status.clear(&mut self.aside)?;
                match &outcome.end {
                    EndReason::Answered if outcome.segments.is_empty() => {
                        self.aside("! the model said nothing")
                    }
                    EndReason::Answered | EndReason::Command => Ok(()),
                    EndReason::Cancelled => self.cancelled(),
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

    /// The turn was cancelled; thoughts that were cut off are not the next turn's.
    pub fn cancelled(&mut self) -> io::Result<()> {
        self.fold_thoughts()?;
        self.aside("! cancelled")
    }

    /// A line that is no part of the answer.
    pub fn aside(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.status.clear(&mut self.aside)?;
        let text = printable(text);
        match self.colour {
            true => writeln!(self.aside, "\x1b[2m{text}\x1b[0m")?,
            false => writeln!(self.aside, "{text}")?,
        }
        self.aside.flush()
    }

    /// A call that is about to run, or that is asked about.
    pub fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.aside(&format!("→ {}", call_line(call)))
    }

    /// A change that is asked about.
    pub fn diff(&mut self, diff: &str) -> io::Result<()> {
        self.end_line()?;
        self.status.clear(&mut self.aside)?;
        let lines = diff.lines().count();
        for line in diff.lines().take(DIFF_LINES) {
            let line = printable(line);
            let style = match line.chars().next() {
                Some('+') => "\x1b[32m",
                Some('-') => "\x1b[31m",
                Some('@') => "\x1b[36m",
                _ => "\x1b[2m",
            };
            match self.colour {
                true => writeln!(self.aside, "  {style}{line}\x1b[0m")?,
                false => writeln!(self.aside, "  {line}")?,
            }
        }
        match lines.saturating_sub(DIFF_LINES) {
            0 => self.aside.flush(),
            more => self.aside(&format!("  … {more} more lines")),
        }
    }

    /// Says how long the model thought, in place of the thoughts.
    fn fold_thoughts(&mut self) -> io::Result<()> {
        match self.status.thought_for() {
            Some(time) => {
                let seconds = time.as_secs_f32();
                self.aside(&format!("· thought for {seconds:.1} s"))
            }
            None => Ok(()),
        }
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.status.clear(&mut self.aside)?;
        let text = printable(text);
        let Some(last) = text.chars().last() else {
            return Ok(());
        };
        self.fresh_line = last == '\n';
        match &mut self.markdown {
            Some(markdown) => {
                markdown.set_columns(terminal_columns());
                self.answer.write_all(markdown.push(&text).as_bytes())?;
            }
            None => self.answer.write_all(text.as_bytes())?,
        }
        self.answer.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if let Some(markdown) = &mut self.markdown {
            self.answer.write_all(markdown.end().as_bytes())?;
        }
        if !std::mem::replace(&mut self.fresh_line, true) {
            self.answer.write_all(b"\n")?;
        }
        self.answer.flush()
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

    /// What a slash command gave, whole and as it is.
    fn whole(&mut self, segments: &[ContentSegment]) -> io::Result<()> {
        self.end_line()?;
        self.status.clear(&mut self.aside)?;
        for segment in segments {
            match segment {
                ContentSegment::Text { text } => {
                    let text = printable(text);
                    self.answer.write_all(text.as_bytes())?;
                    self.fresh_line = text.is_empty() || text.ends_with('\n');
                }
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
        .then(|| format!("→ {} {whole}", call.name))
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
