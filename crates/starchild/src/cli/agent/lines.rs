//! Reads lines from the person, with completion at a terminal.

use super::Failure;
use openstarry::session::slash;
use openstarry::tool::Registry;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::IsTerminal;
use std::path::Path;

/// Commands of the terminal itself, beside those of a session.
const OWN: [&str; 4] = ["/prompt", "/thoughts", "/quit", "/exit"];

/// What came of reading a line.
pub enum Read {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// The person's lines.
pub struct Lines {
    editor: Option<Editor<Slashes, FileHistory>>,
    /// Whether a person sits there; else it is a pipe.
    pub at_terminal: bool,
}

impl Lines {
    /// Lines with the commands of these tools, and those typed before.
    pub fn new(registry: Registry, typed_before: &Path) -> Result<Self, Failure> {
        let list = Config::builder().completion_type(CompletionType::List);
        let mut editor = Editor::with_config(list.build())?;
        editor.set_helper(Some(Slashes(registry)));
        let _ = editor.load_history(typed_before);
        Ok(Self {
            editor: Some(editor),
            at_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Keeps a line for the arrow keys, also of the next time.
    pub fn remember(&mut self, line: &str, file: &Path) {
        if let Some(editor) = &mut self.editor
            && self.at_terminal
        {
            let _ = editor.add_history_entry(line);
            let _ = editor.save_history(file);
        }
    }

    /// The next line.
    pub async fn read(&mut self, prompt: &str) -> Result<Read, Failure> {
        let prompt = prompt.to_owned();
        let mut editor = self.editor.take().ok_or("the terminal is gone")?;
        // The editor waits for keys, so it waits elsewhere.
        let read = tokio::task::spawn_blocking(move || (editor.readline(&prompt), editor));
        let (line, editor) = read.await?;
        self.editor = Some(editor);
        match line {
            Ok(line) => Ok(Read::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Read::Interrupted),
            Err(ReadlineError::Eof) => Ok(Read::End),
            Err(error) => Err(error.into()),
        }
    }
}

/// Completes slash commands.
struct Slashes(Registry);

impl Completer for Slashes {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
            return Ok((at, Vec::new()));
        }
        let mut all = slash::commands(&self.0.snapshot());
        all.extend(OWN.map(String::from));
        all.retain(|command| command.starts_with(typed));
        all.sort_unstable();
        if let [only] = all.as_mut_slice() {
            only.push(' ');
        }
        Ok((0, all))
    }
}

impl Helper for Slashes {}
impl Hinter for Slashes {
    type Hint = String;
}
impl Highlighter for Slashes {}
impl Validator for Slashes {}
