//! Makes documents of what a model wrote, where only one reading is possible:
//! the text is elements and nothing else, or one fenced block of them. What could
//! be read in two ways is refused, what is quoted in prose is not taken for meant,
//! and what was cut off is not completed. Whatever comes out still has to pass
//! the door like any other document.

use super::{Limits, XmlError, over};
use std::fmt;

/// One thing that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A Markdown code fence was dropped.
    CodeFence,
    /// A `&` that begins no reference became `&amp;`.
    BareAmpersand,
    /// A `<` that begins no tag became `&lt;`.
    BareLessThan,
    /// An element was closed where its parent was, or in its own cut end tag.
    Unclosed(String),
    /// There were several root elements; each is a document.
    SeveralRoots(usize),
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CodeFence => f.write_str("dropped a code fence"),
            Self::BareAmpersand => f.write_str("escaped a bare &"),
            Self::BareLessThan => f.write_str("escaped a bare <"),
            Self::Unclosed(name) => write!(f, "closed <{name}>"),
            Self::SeveralRoots(count) => write!(f, "found {count} documents"),
        }
    }
}

/// Documents in one text.
const DOCUMENTS: usize = 64;
/// Bytes of one tag, so that no input makes the scan quadratic.
const TAG: usize = 4096;
const FENCE: &str = "```";

/// The documents in a text, and what was mended to find them.
pub fn repair(text: &str, limits: &Limits) -> Result<(Vec<String>, Vec<Repair>), XmlError> {
    if text.len() > limits.bytes {
        return Err(over("bytes", limits.bytes));
    }
    let (text, is_fenced) = unfenced(text);
    let mut repairer = Repairer::new(text, limits);
    if is_fenced {
        repairer.note(Repair::CodeFence);
    }
    repairer.run()?;
    Ok((repairer.documents, repairer.repairs))
}

/// Whether a text is words and not an attempt at elements, fenced or bare.
pub fn is_prose(text: &str) -> bool {
    let (text, _) = unfenced(text);
    let begins_element =
        |after: &str| after.starts_with(begins_name) || after.starts_with(['!', '?', '/']);
    !text.strip_prefix('<').is_some_and(begins_element)
}

/// What stands in the one fence that is all of a text; else the text.
fn unfenced(text: &str) -> (&str, bool) {
    let text = text.trim();
    let inside = text
        .strip_prefix(FENCE)
        .and_then(|text| text.strip_suffix(FENCE))
        .filter(|inside| !inside.contains(FENCE))
        .and_then(|inside| inside.split_once('\n'))
        .filter(|(language, _)| language.trim().chars().all(char::is_alphanumeric));
    match inside {
        Some((_, inside)) => (inside.trim(), true),
        None => (text, false),
    }
}

struct Repairer<'a> {
    rest: &'a str,
    limits: &'a Limits,
    open: Vec<&'a str>,
    out: String,
    documents: Vec<String>,
    repairs: Vec<Repair>,
}

impl<'a> Repairer<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Self {
        Self {
            rest: text,
            limits,
            open: Vec::new(),
            out: String::new(),
            documents: Vec::new(),
            repairs: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), XmlError> {
        while !self.rest.is_empty() {
            match self.open.is_empty() {
                true => self.outside()?,
                false => self.inside()?,
            }
        }
        if !self.open.is_empty() {
            return Err(XmlError::Malformed(
                "the text ends within an element".to_owned(),
            ));
        }
        match self.documents.len() {
            0 => Err(XmlError::Empty),
            1 => Ok(()),
            several => {
                self.note(Repair::SeveralRoots(several));
                Ok(())
            }
        }
    }

    /// Each kind of repair is recorded once; which elements were closed, each.
    fn note(&mut self, repair: Repair) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Between documents: nothing but space and comments.
    fn outside(&mut self) -> Result<(), XmlError> {
        let at = self.rest.find('<').unwrap_or(self.rest.len());
        if !self.take(at).trim().is_empty() {
            return Err(XmlError::Prose);
        }
        if self.rest.is_empty() {
            return Ok(());
        }
        if self.rest.starts_with("<!--") {
            let end = self.rest.find("-->").map_or(self.rest.len(), |end| end + 3);
            self.take(end);
        } else if self.rest.starts_with("<?xml ") {
            let end = self.rest.find("?>").map_or(self.rest.len(), |end| end + 2);
            self.take(end);
        } else if self.rest.starts_with("<?") {
            return Err(XmlError::Instruction);
        } else if is_doctype(self.rest) {
            return Err(XmlError::Doctype);
        } else if self.rest.starts_with("</") {
            return Err(XmlError::Malformed(
                "an end tag without its start".to_owned(),
            ));
        } else if let Some(tag) = Tag::read(self.rest) {
            self.start(tag)?;
        } else {
            return Err(XmlError::Prose);
        }
        Ok(())
    }

    /// Within a document: text and references are kept, tags are balanced.
    fn inside(&mut self) -> Result<(), XmlError> {
        let at = self.rest.find(['<', '&']).unwrap_or(self.rest.len());
        let text = self.take(at);
        self.out.push_str(text);
        if self.rest.starts_with('&') {
            self.reference();
        } else if self.rest.starts_with("<!--") {
            let end = self.rest.find("-->").ok_or_else(|| open_ended("comment"))?;
            self.take(end + 3);
        } else if self.rest.starts_with("<![CDATA[") {
            let end = self
                .rest
                .find("]]>")
                .ok_or_else(|| open_ended("CDATA section"))?;
            let section = self.take(end + 3);
            self.out.push_str(section);
        } else if is_doctype(self.rest) {
            return Err(XmlError::Doctype);
        } else if self.rest.starts_with("<?") {
            return Err(XmlError::Instruction);
        } else if self.rest.starts_with("</") {
            self.end()?;
        } else if let Some(tag) = Tag::read(self.rest) {
            self.start(tag)?;
        } else if let Some(after) = self.rest.strip_prefix('<') {
            if after.starts_with(begins_name) || after.starts_with('!') {
                return Err(open_ended("tag"));
            }
            self.take(1);
            self.out.push_str("&lt;");
            self.note(Repair::BareLessThan);
        }
        Ok(())
    }

    fn reference(&mut self) {
        match reference_length(self.rest) {
            Some(length) => {
                let reference = self.take(length);
                self.out.push_str(reference);
            }
            None => {
                self.take(1);
                self.out.push_str("&amp;");
                self.note(Repair::BareAmpersand);
            }
        }
    }

    fn start(&mut self, tag: Tag<'a>) -> Result<(), XmlError> {
        if self.open.len() >= self.limits.depth as usize {
            return Err(over("levels", self.limits.depth as usize));
        }
        // References in attribute values are mended like those in text.
        let end = self.rest.len() - tag.length;
        while self.rest.len() > end {
            let inside = &self.rest[..self.rest.len() - end];
            let at = inside.find('&').unwrap_or(inside.len());
            let text = self.take(at);
            self.out.push_str(text);
            if self.rest.len() > end {
                self.reference();
            }
        }
        match tag.is_empty {
            false => self.open.push(tag.name),
            true if self.open.is_empty() => self.finish()?,
            true => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), XmlError> {
        let Some(end) = self.rest.find('>') else {
            return self.end_cut_off();
        };
        let name = self.take(end + 1)[2..end].trim_end();
        if !self.open.contains(&name) {
            return Err(XmlError::Malformed(
                "an end tag without its start".to_owned(),
            ));
        }
        while let Some(open) = self.open.pop() {
            self.push_end(open);
            if open == name {
                break;
            }
            self.note(Repair::Unclosed(open.to_owned()));
        }
        match self.open.is_empty() {
            true => self.finish(),
            false => Ok(()),
        }
    }

    /// The text ends within an end tag. Only that of the root is completed:
    /// nothing can have stood after it.
    fn end_cut_off(&mut self) -> Result<(), XmlError> {
        let name = self.take(self.rest.len())[2..].trim_end();
        match self.open[..] {
            [root] if root.starts_with(name) => {
                self.open.clear();
                self.push_end(root);
                self.note(Repair::Unclosed(root.to_owned()));
                self.finish()
            }
            _ => Err(open_ended("tag")),
        }
    }

    fn push_end(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn finish(&mut self) -> Result<(), XmlError> {
        if self.documents.len() == DOCUMENTS {
            return Err(over("documents in one text", DOCUMENTS));
        }
        self.documents.push(std::mem::take(&mut self.out));
        Ok(())
    }
}

/// A start tag at the beginning of a text.
struct Tag<'a> {
    name: &'a str,
    length: usize,
    is_empty: bool,
}

impl<'a> Tag<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let body = text.strip_prefix('<')?;
        if !body.starts_with(begins_name) {
            return None;
        }
        let name = &body[..body.find(|c| !in_name(c))?];
        let mut quote = None;
        for (index, byte) in text.bytes().enumerate().take(TAG).skip(1 + name.len()) {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'<') => return None,
                (None, b'>') => {
                    let is_empty = text[..index].ends_with('/');
                    return Some(Self {
                        name,
                        length: index + 1,
                        is_empty,
                    });
                }
                (Some(open), _) if open == byte => quote = None,
                _ => {}
            }
        }
        None
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.:".contains(c)
}

fn is_doctype(text: &str) -> bool {
    let word = b"<!DOCTYPE";
    text.as_bytes()
        .get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn open_ended(what: &str) -> XmlError {
    XmlError::Malformed(format!("a {what} that does not end"))
}

/// The length of a reference that XML knows without a DOCTYPE.
fn reference_length(text: &str) -> Option<usize> {
    let end = text
        .as_bytes()
        .iter()
        .take(12)
        .position(|byte| *byte == b';')?;
    let name = &text[1..end];
    let known = match name.strip_prefix('#') {
        None => matches!(name, "amp" | "lt" | "gt" | "quot" | "apos"),
        Some(number) => match number.strip_prefix('x') {
            Some(hex) => !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()),
            None => !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()),
        },
    };
    known.then_some(end + 1)
}
