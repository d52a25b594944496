//! A table, drawn when its last line has come: only then it is known how wide
//! its columns are. Columns that do not fit the terminal are wrapped.

use super::{BOLD, DIM, RESET};
use unicode_width::UnicodeWidthChar;

/// A longer table is drawn as far as it has come.
const MAX_BYTES: usize = 64 << 10;
/// A column is wrapped to no less than this.
const NARROWEST: usize = 6;
/// Between two columns.
const BETWEEN: &str = " │ ";

/// The lines of a table, as they come.
#[derive(Default)]
pub struct Table {
    lines: Vec<String>,
    bytes: usize,
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Middle,
    Right,
}

/// A piece of a cell that is not broken, with the styles it begins with.
struct Word {
    before: String,
    drawn: String,
    width: usize,
}

impl Table {
    /// Takes a line. Gives whether the table is too long to wait for more.
    pub fn push(&mut self, line: String) -> bool {
        self.bytes += line.len();
        self.lines.push(line);
        self.bytes > MAX_BYTES
    }

    /// Lines that began like a table and are none.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// The table, each line ended; nothing where the lines are no table. `inline`
    /// draws the marks within a cell.
    pub fn draw(&self, columns: usize, inline: impl Fn(&str) -> String) -> Option<String> {
        let (head, rest) = self.lines.split_first()?;
        let (marks, rows) = rest.split_first()?;
        let marks = cells(marks).into_iter();
        let aligns: Vec<Align> = marks.map(|cell| align(&cell)).collect::<Option<_>>()?;
        let count = aligns.len();
        let words = |line: &String| -> Vec<Vec<Word>> {
            let mut cells = cells(line);
            cells.resize(count, String::new());
            cells.iter().map(|cell| split(&inline(cell))).collect()
        };
        if cells(head).len() != count {
            return None;
        }
        let (head, rows) = (words(head), rows.iter().map(words).collect::<Vec<_>>());
        let natural = |at: usize| {
            let cells = rows.iter().chain([&head]).map(|row| line_width(&row[at]));
            cells.max().unwrap_or(0).max(1)
        };
        let widths = fit((0..count).map(natural).collect(), columns);
        let mut out = String::new();
        row(&head, &widths, &aligns, BOLD, &mut out);
        let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        out.push_str(&format!("{DIM}{}{RESET}\n", rules.join("─┼─")));
        for cells in &rows {
            row(cells, &widths, &aligns, "", &mut out);
        }
        Some(out)
    }
}

/// The cells of a line. A bar after a backslash is a part of its cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = cells.len() - 1;
        match c {
            '\\' if chars.peek() == Some(&'|') => cells[last].extend(chars.next()),
            '|' if chars.peek().is_none() => break,
            '|' => cells.push(String::new()),
            c => cells[last].push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// What `---`, `:--`, `--:` and `:-:` ask for.
fn align(cell: &str) -> Option<Align> {
    let line = cell.trim_start_matches(':').trim_end_matches(':');
    if line.is_empty() || !line.chars().all(|c| c == '-') {
        return None;
    }
    Some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Align::Middle,
        (false, true) => Align::Right,
        _ => Align::Left,
    })
}

/// The widest columns give way until all fit.
fn fit(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
    let between = BETWEEN.chars().count() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + between > columns {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// The words of a cell that is drawn, styles and all.
fn split(drawn: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut style = String::new();
    let mut word: Option<Word> = None;
    let mut chars = drawn.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            let mark: String = chars.by_ref().take_while(|c| *c != 'm').collect();
            let mark = format!("\x1b{mark}m");
            match mark == RESET {
                true => style.clear(),
                false => style.push_str(&mark),
            }
            if let Some(word) = &mut word {
                word.drawn.push_str(&mark);
            }
        } else if c.is_whitespace() {
            words.extend(word.take());
        } else {
            let word = word.get_or_insert_with(|| Word {
                before: style.clone(),
                drawn: String::new(),
                width: 0,
            });
            word.drawn.push(c);
            word.width += c.width().unwrap_or(0);
        }
    }
    words.extend(word);
    words
}

fn line_width(words: &[Word]) -> usize {
    let spaces = words.len().saturating_sub(1);
    words.iter().map(|word| word.width).sum::<usize>() + spaces
}

/// The words of a cell in lines that are no wider than this, with their widths.
/// A word that is wider has a line of its own, in pieces.
fn wrap(words: &[Word], width: usize, style: &str) -> Vec<(String, usize)> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for word in words {
        let drawn = format!("{style}{}{}{RESET}", word.before, word.drawn);
        match lines.last_mut() {
            Some((line, used)) if *used + 1 + word.width <= width => {
                line.push(' ');
                line.push_str(&drawn);
                *used += 1 + word.width;
            }
            _ if word.width <= width => lines.push((drawn, word.width)),
            _ => lines.extend(pieces(word, width, style)),
        }
    }
    lines
}

/// A word that fits no line, without the styles within it.
fn pieces(word: &Word, width: usize, style: &str) -> Vec<(String, usize)> {
    let mut pieces = vec![(String::new(), 0)];
    let mut in_mark = false;
    for c in word.drawn.chars() {
        in_mark |= c == '\x1b';
        if in_mark {
            in_mark = c != 'm';
            continue;
        }
        let wide = c.width().unwrap_or(0);
        if pieces.last().is_some_and(|(_, used)| used + wide > width) {
            pieces.push((String::new(), 0));
        }
        if let Some((piece, used)) = pieces.last_mut() {
            piece.push(c);
            *used += wide;
        }
    }
    let styled = |(piece, used)| (format!("{style}{}{piece}{RESET}", word.before), used);
    pieces.into_iter().map(styled).collect()
}

fn row(cells: &[Vec<Word>], widths: &[usize], aligns: &[Align], style: &str, out: &mut String) {
    let wrapped = cells.iter().zip(widths);
    let wrapped: Vec<_> = wrapped
        .map(|(cell, width)| wrap(cell, *width, style))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
    for at in 0..height {
        let mut line = String::new();
        for (n, (lines, width)) in wrapped.iter().zip(widths).enumerate() {
            let empty = (String::new(), 0);
            let (drawn, used) = lines.get(at).unwrap_or(&empty);
            let free = width.saturating_sub(*used);
            let left = match aligns[n] {
                Align::Left => 0,
                Align::Middle => free / 2,
                Align::Right => free,
            };
            if n > 0 {
                line.push_str(&format!("{DIM}{BETWEEN}{RESET}"));
            }
            line.push_str(&" ".repeat(left));
            line.push_str(drawn);
            line.push_str(&" ".repeat(free - left));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
