//! Which parts of code are keywords, names, strings. What they look like is up
//! to whoever shows them: a page has classes, a terminal has colours.
//!
//! The grammars are loaded with the first code, not before. Some take long for
//! a strange line, and a line cannot be interrupted: longer ones than
//! [`LONGEST_LINE`] stay plain, and whoever has a limit on time asks no more.

use std::sync::LazyLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// A longer line stays plain, and all that follows it.
pub const LONGEST_LINE: usize = 200;

/// What a piece of code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A comment.
    Comment,
    /// A number, or another constant.
    Constant,
    /// A text in quotes.
    Text,
    /// A word of the language.
    Keyword,
    /// What something is called.
    Name,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

/// How grammars call the parts. The first that fits is taken.
const SCOPES: [(&str, Part); 13] = [
    ("comment", Part::Comment),
    ("constant", Part::Constant),
    ("string", Part::Text),
    ("keyword.operator", Part::Plain),
    ("keyword", Part::Keyword),
    ("storage", Part::Keyword),
    ("entity.name.tag", Part::Keyword),
    ("entity.name", Part::Name),
    ("entity.other.attribute-name", Part::Name),
    ("support", Part::Name),
    ("markup.inserted", Part::Added),
    ("markup.deleted", Part::Removed),
    ("markup.heading", Part::Keyword),
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
static PARTS: LazyLock<Vec<(Scope, Part)>> = LazyLock::new(|| {
    let scope = |(name, part): (&str, Part)| Some((Scope::new(name).ok()?, part));
    SCOPES.into_iter().filter_map(scope).collect()
});

/// Loads the grammars, which takes a while the first time.
pub fn load() {
    LazyLock::force(&SYNTAXES);
}

/// A block of code, line by line.
pub struct Block {
    state: ParseState,
    stack: ScopeStack,
    /// Nothing is told apart any more.
    plain: bool,
}

impl Block {
    /// A block in this language, by its name or its files' extension. `None`
    /// where no grammar knows it.
    pub fn new(language: &str) -> Option<Self> {
        Some(Self {
            state: ParseState::new(syntax(language)?),
            stack: ScopeStack::new(),
            plain: false,
        })
    }

    /// From here on all is plain.
    pub fn give_up(&mut self) {
        self.plain = true;
    }

    /// The pieces of the next line, which has its line feed.
    pub fn line<'a>(&mut self, line: &'a str) -> Vec<(&'a str, Part)> {
        self.plain |= line.len() > LONGEST_LINE;
        let parsed = match self.plain {
            true => None,
            false => self.state.parse_line(line, &SYNTAXES).ok(),
        };
        let mut pieces = Pieces::default();
        for (at, op) in parsed.unwrap_or_default() {
            pieces.end(at, part(&self.stack));
            // A stack that cannot follow only costs colours.
            let _ = self.stack.apply(&op);
        }
        let last = match self.plain {
            true => Part::Plain,
            false => part(&self.stack),
        };
        pieces.end(line.len(), last);
        pieces.of(line)
    }
}

/// Where pieces of a line end. Neighbours that are the same are one.
#[derive(Default)]
struct Pieces(Vec<(usize, Part)>);

impl Pieces {
    fn end(&mut self, at: usize, part: Part) {
        match self.0.last_mut() {
            Some((end, _)) if *end == at => {}
            Some((end, before)) if *before == part => *end = at,
            None if at == 0 => {}
            _ => self.0.push((at, part)),
        }
    }

    fn of(self, line: &str) -> Vec<(&str, Part)> {
        let mut from = 0;
        let piece = |(end, part): (usize, Part)| {
            let text = &line[from..end];
            from = end;
            (text, part)
        };
        self.0.into_iter().map(piece).collect()
    }
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

fn part(stack: &ScopeStack) -> Part {
    let scopes = stack.as_slice().iter().rev();
    scopes
        .filter_map(|scope| PARTS.iter().find(|(part, _)| part.is_prefix_of(*scope)))
        .map(|(_, part)| *part)
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line_are_told_apart_and_none_is_lost() {
        let mut block = Block::new("rust").unwrap();
        let line = "let x = \"a\"; // 天\n";
        let pieces = block.line(line);
        let whole: String = pieces.iter().map(|(text, _)| *text).collect();
        assert_eq!(whole, line);
        for (text, part) in [
            ("let", Part::Keyword),
            ("\"a\"", Part::Text),
            ("// 天\n", Part::Comment),
        ] {
            assert!(pieces.contains(&(text, part)), "{text}: {pieces:?}");
        }
        block.line("/* open\n");
        assert_eq!(block.line("still\n"), [("still\n", Part::Comment)]);
    }

    #[test]
    fn what_is_too_long_or_unknown_stays_plain() {
        assert!(Block::new("").is_none() && Block::new("no such language").is_none());
        assert!(Block::new("TypeScript").is_some());
        let mut block = Block::new("rust").unwrap();
        let long = format!("let {};\n", "x".repeat(LONGEST_LINE));
        assert_eq!(block.line(&long), [(long.as_str(), Part::Plain)]);
        assert_eq!(block.line("let x;\n"), [("let x;\n", Part::Plain)]);
    }
}
