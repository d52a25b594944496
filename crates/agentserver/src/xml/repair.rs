//! Makes documents of what a model wrote, where only one reading is possible.
//! What could be read in two ways is refused. Whatever comes out still has to
//! pass the door like any other document.

use super::{Limits, XmlError, over};
use std::fmt;

/// One thing that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A Markdown code fence was dropped.
    CodeFence,
    /// Text before, between or after the elements was dropped.
    Prose,
    /// A `&` that begins no reference became `&amp;`.
    BareAmpersand,
    /// A `<` that begins no tag became `&lt;`.
    BareLessThan,
    /// An element was closed where its parent, or the text, ended.
    Unclosed(String),
    /// There were several root elements; each is a document.
    SeveralRoots(usize),
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CodeFence => f.write_str("dropped a code fence"),
            Self::Prose => f.write_str("dropped text around the elements"),
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
    let mut repairer = Repairer::new(text, limits);
    repairer.run()?;
    Ok((repairer.documents, repairer.repairs))
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
            self.close_at_end()?;
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

    /// Between documents: everything but an element is dropped.
    fn outside(&mut self) -> Result<(), XmlError> {
        let at = self.rest.find('<').unwrap_or(self.rest.len());
        let prose = self.take(at);
        self.note_prose(prose);
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
            self.take(1);
            self.note(Repair::Prose);
        }
        Ok(())
    }

    fn note_prose(&mut self, prose: &str) {
        for line in prose.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.note(match line.starts_with(FENCE) {
                true => Repair::CodeFence,
                false => Repair::Prose,
            });
        }
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
            // Cut off in the middle of an end tag: nothing of the text is lost.
            self.rest = "";
            return Ok(());
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

    fn close_at_end(&mut self) -> Result<(), XmlError> {
        // Nobody meant the line's end, or the fence, to be part of the text.
        self.out.truncate(self.out.trim_end().len());
        if let Some(before) = self.out.strip_suffix(FENCE) {
            self.out.truncate(before.trim_end().len());
            self.note(Repair::CodeFence);
        }
        while let Some(open) = self.open.pop() {
            self.push_end(open);
            self.note(Repair::Unclosed(open.to_owned()));
        }
        self.finish()
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
