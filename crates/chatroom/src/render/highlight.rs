//! Highlighted code as HTML.

use super::budget::Budget;
use highlight::{Block, Part};
use std::collections::HashSet;

pub use highlight::load;

const PARTS: [Part; 8] = [
    Part::Plain,
    Part::Comment,
    Part::Constant,
    Part::Text,
    Part::Keyword,
    Part::Name,
    Part::Added,
    Part::Removed,
];

fn class(part: Part) -> &'static str {
    match part {
        Part::Plain => "",
        Part::Comment => "hl-comment",
        Part::Constant => "hl-number",
        Part::Text => "hl-string",
        Part::Keyword => "hl-keyword",
        Part::Name => "hl-name",
        Part::Added => "hl-added",
        Part::Removed => "hl-removed",
    }
}

/// Every class that code may have.
pub fn classes() -> HashSet<&'static str> {
    let classes = PARTS.into_iter().map(class);
    classes.filter(|class| !class.is_empty()).collect()
}

/// A block of code, highlighted as far as the budget goes.
pub fn block(language: &str, text: &str, budget: &mut Budget) -> String {
    let mut html = Spans::default();
    match Block::new(language) {
        Some(mut block) => {
            for line in text.split_inclusive('\n') {
                if budget.is_spent() {
                    block.give_up();
                }
                for (piece, part) in block.line(line) {
                    html.push(piece, class(part));
                }
            }
        }
        None => html.push(text, ""),
    }
    format!("<pre><code>{}</code></pre>\n", html.finish())
}

/// Pieces of text, neighbours of one class in one span.
#[derive(Default)]
struct Spans {
    html: String,
    piece: String,
    class: &'static str,
}

impl Spans {
    fn push(&mut self, text: &str, class: &'static str) {
        if class != self.class {
            self.close();
            self.class = class;
        }
        self.piece.push_str(text);
    }

    fn close(&mut self) {
        let mut text = String::with_capacity(self.piece.len());
        for c in self.piece.drain(..) {
            match c {
                '<' => text.push_str("&lt;"),
                '>' => text.push_str("&gt;"),
                '&' => text.push_str("&amp;"),
                other => text.push(other),
            }
        }
        match (text.as_str(), self.class) {
            ("", _) => {}
            (text, "") => self.html.push_str(text),
            (text, class) => {
                self.html.push_str("<span class=\"");
                self.html.push_str(class);
                self.html.push_str("\">");
                self.html.push_str(text);
                self.html.push_str("</span>");
            }
        }
    }

    fn finish(mut self) -> String {
        self.close();
        self.html
    }
}
