//! The line that says what is going on while nothing else is said. It is drawn
//! over itself and wiped before anything else is written.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// What is waited for, and since when.
pub struct Status {
    /// Whether it goes to a terminal; elsewhere it is not drawn.
    live: bool,
    doing: Option<Doing>,
    thinking_since: Option<Instant>,
    drawn: bool,
}

struct Doing {
    what: String,
    since: Instant,
    /// For a wait whose end is known.
    until: Option<Instant>,
}

/// What is over sooner needs no word.
const QUIET: Duration = Duration::from_millis(800);

impl Status {
    /// A status, drawn where `live`.
    pub fn new(live: bool) -> Self {
        Self {
            live,
            doing: None,
            thinking_since: None,
            drawn: false,
        }
    }

    /// Something begins.
    pub fn begin(&mut self, what: &str) {
        self.doing = Some(Doing {
            what: what.into(),
            since: Instant::now(),
            until: None,
        });
    }

    /// Something is waited for until a known time.
    pub fn wait(&mut self, what: &str, seconds: f64) {
        let now = Instant::now();
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.doing = Some(Doing {
            what: what.into(),
            since: now,
            until: now.checked_add(time),
        });
    }

    /// The model thinks.
    pub fn thinks(&mut self) {
        if self.thinking_since.is_none() {
            self.thinking_since = Some(Instant::now());
            self.begin("thinking");
        }
    }

    /// How long the model has thought, if it just did.
    pub fn thought_for(&mut self) -> Option<Duration> {
        Some(self.thinking_since.take()?.elapsed())
    }

    /// Draws the line.
    pub fn draw(&mut self, to: &mut impl Write) -> io::Result<()> {
        let Some(doing) = self.doing.as_ref().filter(|_| self.live) else {
            return Ok(());
        };
        let now = Instant::now();
        let time = match doing.until {
            Some(until) => format!("in {} s", until.duration_since(now).as_secs_f32().ceil()),
            None if doing.since.elapsed() < QUIET => return Ok(()),
            None => format!("{} s", doing.since.elapsed().as_secs()),
        };
        self.drawn = true;
        write!(to, "\r\x1b[2K\x1b[2m· {} {time}\x1b[0m", doing.what)?;
        to.flush()
    }

    /// Wipes the line; nothing is waited for any more.
    pub fn clear(&mut self, to: &mut impl Write) -> io::Result<()> {
        self.doing = None;
        if std::mem::take(&mut self.drawn) {
            write!(to, "\r\x1b[2K")?;
            to.flush()?;
        }
        Ok(())
    }
}
