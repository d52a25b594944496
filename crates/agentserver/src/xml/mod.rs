//! The door for XML: every document passes `parse` before anything else
//! looks at it. No DOCTYPE, no processing instruction, and bounds on size,
//! depth, count and attributes, all checked in one pass over the bytes before
//! a tree is built.

mod answer;
mod plain;
mod repair;
mod split;

pub use answer::{ParsedOutput, Said};
pub use repair::{Repair, is_prose, repair};
pub use split::{Piece, Splitter};

use crate::payload::Canonical;
use bergshamra_c14n::{C14nMode, canonicalize_doc};
use bergshamra_xml::NodeSet;
use quick_xml::events::Event;
use uppsala::{Document, NodeId, Parser, XsdValidator};

/// Bounds on one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text.
    pub bytes: usize,
    /// Elements within elements; 100 at most, whatever is said here.
    pub depth: u32,
    /// Elements, texts and comments together.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            depth: 32,
            nodes: 10_000,
        }
    }
}

/// Parser and C14N go down with the document, on the stack.
const DEPTH: u32 = 100;

/// On one element. A parser's check for duplicates is quadratic.
const ATTRIBUTES: usize = 16;

/// Text that the door turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// No element in it.
    #[error("there is no element")]
    Empty,
    /// Words, or words around an element.
    #[error("there are words around the elements, or no element; write elements and nothing else")]
    Prose,
    /// Not UTF-8.
    #[error("the text is not UTF-8")]
    Encoding,
    /// A document type declaration, which could define entities.
    #[error("a DOCTYPE is not allowed")]
    Doctype,
    /// A processing instruction.
    #[error("a processing instruction is not allowed")]
    Instruction,
    /// Over a limit.
    #[error("the document is over the limit of {limit} {what}")]
    Limit {
        /// What was counted.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// Not well-formed.
    #[error("not well-formed: {0}")]
    Malformed(String),
    /// Well-formed, but no envelope.
    #[error("not an envelope: {0}")]
    Envelope(String),
}

fn over(what: &'static str, limit: usize) -> XmlError {
    XmlError::Limit { what, limit }
}

/// The text of a document, where its bytes are text.
pub fn text(bytes: &[u8]) -> Result<&str, XmlError> {
    let text = std::str::from_utf8(bytes).map_err(|_| XmlError::Encoding)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Parses a document from outside.
pub(crate) fn parse<'a>(text: &'a str, limits: &Limits) -> Result<Document<'a>, XmlError> {
    scan(text, limits)?;
    parser().parse(text).map_err(malformed)
}

/// Parses a document that the pump wrote.
pub(crate) fn parse_trusted(text: &str) -> Result<Document<'_>, XmlError> {
    parser().parse(text).map_err(malformed)
}

fn parser() -> Parser {
    Parser::new()
        .with_forbid_dtd(true)
        .with_forbid_entities(true)
}

fn malformed(error: impl std::fmt::Display) -> XmlError {
    XmlError::Malformed(error.to_string())
}

/// One pass over the text, without a tree, that applies the limits.
fn scan(text: &str, limits: &Limits) -> Result<(), XmlError> {
    if text.len() > limits.bytes {
        return Err(over("bytes", limits.bytes));
    }
    let mut reader = quick_xml::Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let most = limits.depth.min(DEPTH);
    let (mut depth, mut nodes) = (0u32, 0usize);
    loop {
        match reader.read_event().map_err(malformed)? {
            Event::Eof => return Ok(()),
            Event::DocType(_) => return Err(XmlError::Doctype),
            Event::PI(_) => return Err(XmlError::Instruction),
            Event::Decl(_) => {}
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Start(tag) => {
                depth += 1;
                if depth > most {
                    return Err(over("levels", most as usize));
                }
                check_attributes(&tag)?;
                nodes += 1;
            }
            Event::Empty(tag) => {
                check_attributes(&tag)?;
                nodes += 1;
            }
            Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::GeneralRef(_) => {
                nodes += 1
            }
        }
        if nodes > limits.nodes {
            return Err(over("nodes", limits.nodes));
        }
    }
}

fn check_attributes(tag: &quick_xml::events::BytesStart<'_>) -> Result<(), XmlError> {
    for (index, attribute) in tag.attributes().with_checks(false).enumerate() {
        if index == ATTRIBUTES {
            return Err(over("attributes on one element", ATTRIBUTES));
        }
        // The parser lets it pass, and then what it wrote itself cannot be read.
        let attribute = attribute.map_err(malformed)?;
        if attribute.value.is_empty() && attribute.key.as_ref().starts_with("xmlns:") {
            return Err(XmlError::Malformed(
                "a prefix is bound to no namespace".to_owned(),
            ));
        }
    }
    Ok(())
}

/// The exclusive C14N, without comments, of one element and all below it.
pub(crate) fn canonical_element(
    document: &Document<'_>,
    id: NodeId,
) -> Result<Canonical, XmlError> {
    let element = document.element(id).ok_or(XmlError::Empty)?;
    let nodes = match document.document_element() == Some(id) {
        true => None,
        false => Some(NodeSet::tree_without_comments(id, document)),
    };
    let bytes = canonicalize_doc::<&str>(document, C14nMode::Exclusive, nodes.as_ref(), &[])
        .map_err(malformed)?;
    let xml = String::from_utf8(bytes).map_err(|_| XmlError::Encoding)?;
    let namespace = element.name.namespace_uri.as_deref().unwrap_or_default();
    Ok(Canonical::from_parts(
        namespace,
        &*element.name.local_name,
        xml,
    ))
}

/// The canonical form of a text that is one element.
pub(crate) fn canonical_text(text: &str, limits: &Limits) -> Result<Canonical, XmlError> {
    match plain::root(text, limits) {
        Some(root) => Ok(Canonical::from_parts("", root, text)),
        None => canonical_text_of_any(text, limits),
    }
}

fn canonical_text_of_any(text: &str, limits: &Limits) -> Result<Canonical, XmlError> {
    let document = parse(text, limits)?;
    let root = document.document_element().ok_or(XmlError::Empty)?;
    canonical_element(&document, root)
}

/// The canonical form of a whole document, for whoever signs or compares one.
pub fn canonicalize(text: &str, limits: &Limits) -> Result<String, XmlError> {
    Ok(Canonical::parse(text, limits)?.xml().to_owned())
}

/// A validator from a schema of our own making.
pub(crate) fn validator(xsd: &str) -> Result<XsdValidator, String> {
    let document = parse_trusted(xsd).map_err(|error| error.to_string())?;
    XsdValidator::from_schema(&document).map_err(|error| error.to_string())
}
