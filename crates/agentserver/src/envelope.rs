//! The envelope around a payload. The pump alone writes one; what comes from
//! outside is read here, and then only its `to` and its payload are believed.

use crate::payload::Canonical;
use crate::xml::{self, Limits, XmlError};
use quick_xml::escape::escape;
use std::sync::{Arc, LazyLock};
use uppsala::{Document, NodeId, XsdValidator};

/// The envelope's namespace.
pub const NAMESPACE: &str = "https://xml-pipeline.org/ns/envelope/v1";

/// The namespace of what the pump itself adds.
const CORE: &str = "https://xml-pipeline.org/ns/core/v1";

/// The envelope's XML Schema.
pub const XSD: &str = include_str!("envelope.xsd");

static VALIDATOR: LazyLock<Option<XsdValidator>> = LazyLock::new(|| xml::validator(XSD).ok());

/// One message: who, to whom, in which thread, and the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Who sent it.
    pub from: Arc<str>,
    /// To whom; absent when the payload's type decides.
    pub to: Option<Arc<str>>,
    /// The thread, opaque.
    pub thread: Arc<str>,
    /// The payload, canonical.
    pub payload: Canonical,
}

impl Envelope {
    /// Reads and validates an envelope. The payload is well-formed; whether it
    /// is valid is its type's to say.
    pub fn read(text: &str, limits: &Limits) -> Result<Self, XmlError> {
        let document = xml::parse(text, limits)?;
        Self::from_document(&document)
    }

    /// The envelope as canonical XML, validated before it is given out.
    pub fn write(&self) -> Result<String, XmlError> {
        self.write_with([])
    }

    /// The same with elements of the pump's own in its `meta`.
    pub(crate) fn write_with<'a>(
        &self,
        notes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<String, XmlError> {
        let mut is_plain = self.is_plain();
        let notes = notes
            .into_iter()
            .inspect(|(_, note)| is_plain &= is_plain_text(note));
        let text = self.render(notes);
        match is_plain {
            true => Ok(text),
            false => canonical(&text),
        }
    }

    /// Whether what is rendered from it is canonical and valid as it is.
    fn is_plain(&self) -> bool {
        let texts = [
            &*self.from,
            self.to.as_deref().unwrap_or_default(),
            &*self.thread,
        ];
        is_plain(texts, &self.payload)
    }

    fn from_document(document: &Document<'_>) -> Result<Self, XmlError> {
        validate(document)?;
        let lacking = |what: &str| XmlError::Envelope(format!("no {what}"));
        let root = document.document_element().ok_or(XmlError::Empty)?;
        let mut children = document
            .children_iter(root)
            .filter(|id| document.element(*id).is_some());
        let meta = children.next().ok_or_else(|| lacking("meta"))?;
        let payload = children.next().ok_or_else(|| lacking("payload"))?;
        Ok(Self {
            from: own_text(document, meta, "from")
                .ok_or_else(|| lacking("from"))?
                .into(),
            to: own_text(document, meta, "to").map(Into::into),
            thread: own_text(document, meta, "thread")
                .ok_or_else(|| lacking("thread"))?
                .into(),
            payload: xml::canonical_element(document, payload)?,
        })
    }

    fn render<'a>(&self, notes: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let payload = self.payload.xml();
        let mut out = String::with_capacity(payload.len() + 256);
        out.push_str("<message xmlns=\"");
        out.push_str(NAMESPACE);
        out.push_str("\"><meta>");
        element("from", &self.from, &mut out);
        if let Some(to) = &self.to {
            element("to", to, &mut out);
        }
        element("thread", &self.thread, &mut out);
        for (name, text) in notes {
            let (start, text) = (format!("<{name} xmlns=\"{CORE}\">"), escape(text));
            out.extend([&*start, &*text, "</", name, ">"]);
        }
        out.push_str("</meta>");
        // A payload without a default namespace must not fall into the envelope's.
        let name_end = payload.find([' ', '>']).unwrap_or(payload.len());
        let (name, rest) = payload.split_at(name_end);
        out.push_str(name);
        if !rest.starts_with(" xmlns=\"") {
            out.push_str(" xmlns=\"\"");
        }
        out.push_str(rest);
        out.push_str("</message>");
        out
    }
}

/// Whether an envelope with these texts around a payload is canonical and valid as it is
/// rendered: no text has to be escaped, the payload has no prefix and holds no envelope.
pub(crate) fn is_plain<'a>(texts: impl IntoIterator<Item = &'a str>, payload: &Canonical) -> bool {
    let payload = payload.xml();
    let name_end = payload.find([' ', '>']).unwrap_or(payload.len());
    let has_prefix = payload[..name_end].contains(':');
    // A namespace is declared by an attribute, which few payloads have.
    let may_hold_envelope = payload.contains('=') && payload.contains(NAMESPACE);
    !has_prefix && !may_hold_envelope && texts.into_iter().all(is_plain_text)
}

/// The canonical form of an envelope, validated before it is given out.
fn canonical(text: &str) -> Result<String, XmlError> {
    let document = xml::parse_trusted(text)?;
    validate(&document)?;
    let root = document.document_element().ok_or(XmlError::Empty)?;
    Ok(xml::canonical_element(&document, root)?.xml().to_owned())
}

/// Whether a text is written as it is.
fn is_plain_text(text: &str) -> bool {
    let is_plain = |c: char| match c {
        '&' | '<' | '>' | '\'' | '"' | '\u{fffe}' | '\u{ffff}' => false,
        ' '..='~' => true,
        c => !c.is_control(),
    };
    text.chars().all(is_plain)
}

fn validate(document: &Document<'_>) -> Result<(), XmlError> {
    let unusable = || XmlError::Envelope("the envelope schema does not load".to_owned());
    let validator = VALIDATOR.as_ref().ok_or_else(unusable)?;
    match validator.validate(document).first() {
        None => Ok(()),
        Some(error) => Err(XmlError::Envelope(error.message.clone())),
    }
}

/// The text of one of the envelope's own elements.
pub(crate) fn own_text(document: &Document<'_>, parent: NodeId, name: &str) -> Option<String> {
    document
        .children_iter(parent)
        .find(|id| {
            document
                .element(*id)
                .is_some_and(|e| *e.name.local_name == *name)
        })
        .map(|id| document.text_content_deep(id))
}

fn element(name: &str, text: &str, out: &mut String) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    out.push_str(&escape(text));
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_that_is_written_as_it_is_rendered_is_canonical_and_valid() {
        let payloads = [
            "<Ask><text>x &amp; y</text></Ask>",
            "<Ask xmlns='urn:x' b='2' a='1'><c xmlns=''/></Ask>",
            "<Ask xmlns:p='urn:p' p:a='1'><p:b/><c/></Ask>",
            "<p:Ask xmlns:p='urn:p'><c/></p:Ask>",
            "<Ask><message xmlns='https://xml-pipeline.org/ns/envelope/v1'/></Ask>",
        ];
        let mut plain = 0;
        for payload in payloads {
            for from in ["console", "a&b", "\u{fc}ber"] {
                let envelope = Envelope {
                    from: from.into(),
                    to: Some("echo".into()),
                    thread: "8e2f1b7e".into(),
                    payload: Canonical::parse(payload, &Limits::default()).unwrap(),
                };
                let rendered = envelope.render([("id", "7")]);
                if envelope.is_plain() {
                    plain += 1;
                    assert_eq!(canonical(&rendered).unwrap(), rendered);
                }
                let written = envelope.write_with([("id", "7")]);
                assert_eq!(written.ok(), canonical(&rendered).ok());
            }
        }
        assert_eq!(plain, 6);
    }
}
