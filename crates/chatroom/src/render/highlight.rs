//! Highlighted code. The grammars are loaded when the first code is shown, not before.

use super::budget::Budget;
use std::{collections::HashSet, sync::LazyLock};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// A longer line stays plain: some grammars take very long for one, and it cannot be interrupted.
const LONGEST_LINE: usize = 200;

/// Which parts of code are coloured, and the class they get. The first that fits is taken.
const PARTS: [(&str, &str); 13] = [
    ("comment", "hl-comment"),
    ("constant", "hl-number"),
    ("string", "hl-string"),
    ("keyword.operator", ""),
    ("keyword", "hl-keyword"),
    ("storage", "hl-keyword"),
    ("entity.name.tag", "hl-keyword"),
    ("entity.name", "hl-name"),
    ("entity.other.attribute-name", "hl-name"),
    ("support", "hl-name"),
    ("markup.inserted", "hl-added"),
    ("markup.deleted", "hl-removed"),
    ("markup.heading", "hl-keyword"),
];

/// Languages that the grammars know under another name.
const ALIASES: [(&str, &str); 7] = [
    ("typescript", "js"),
    ("ts", "js"),
    ("jsx", "js"),
    ("tsx", "js"),
    ("shell", "sh"),
    ("console", "sh"),
    ("golang", "go"),
];

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
static SCOPES: LazyLock<Vec<(Scope, &str)>> = LazyLock::new(|| {
    let scope = |(name, class): (&str, &'static str)| Some((Scope::new(name).ok()?, class));
    PARTS.into_iter().filter_map(scope).collect()
});

/// Loads the grammars, which takes a while the first time.
pub fn load() {
    LazyLock::force(&SYNTAXES);
}

/// Every class that code may have.
pub fn classes() -> HashSet<&'static str> {
    let classes = PARTS.into_iter().map(|(_, class)| class);
    classes.filter(|class| !class.is_empty()).collect()
}

/// A block of code, highlighted as far as the budget goes.
pub fn block(language: &str, text: &str, budget: &mut Budget) -> String {
    let mut html = Spans::default();
    match syntax(language) {
        Some(syntax) => highlight(syntax, text, budget, &mut html),
        None => html.push(text, ""),
    }
    format!("<pre><code>{}</code></pre>\n", html.finish())
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    if language.is_empty() {
        return None;
    }
    let alias = ALIASES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(language));
    SYNTAXES.find_syntax_by_token(alias.map_or(language, |(_, known)| known))
}

fn highlight(syntax: &SyntaxReference, text: &str, budget: &mut Budget, html: &mut Spans) {
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut plain = false;
    for line in text.split_inclusive('\n') {
        plain |= line.len() > LONGEST_LINE || budget.is_spent();
        let parsed = match plain {
            true => None,
            false => state.parse_line(line, &SYNTAXES).ok(),
        };
        let mut from = 0;
        for (at, op) in parsed.unwrap_or_default() {
            html.push(&line[from..at], class(&stack));
            from = at;
            // A stack that cannot follow only costs colours.
            let _ = stack.apply(&op);
        }
        let class = if plain { "" } else { class(&stack) };
        html.push(&line[from..], class);
    }
}

fn class(stack: &ScopeStack) -> &'static str {
    let scopes = stack.as_slice().iter().rev();
    scopes
        .filter_map(|scope| SCOPES.iter().find(|(part, _)| part.is_prefix_of(*scope)))
        .map(|(_, class)| *class)
        .next()
        .unwrap_or_default()
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
