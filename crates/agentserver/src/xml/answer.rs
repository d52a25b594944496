//! Reads what a listener said in text: one payload or several, each bare or in
//! an envelope of which only the `to` counts.

use super::{Limits, Repair, XmlError, canonical_element, parse, repair};
use crate::envelope;
use crate::payload::Canonical;
use uppsala::Document;

/// Bytes of an id.
const ID: usize = 256;

/// What was said, and what had to be mended to understand it.
#[derive(Debug, Clone)]
pub struct ParsedOutput {
    /// The messages, in order.
    pub said: Vec<Said>,
    /// The repairs; none for a clean answer.
    pub repairs: Vec<Repair>,
}

/// One message of an answer.
#[derive(Debug, Clone)]
pub struct Said {
    /// The target it asks for, if any.
    pub to: Option<String>,
    /// A key of its sender's, if any: one that is sent again with it is the same
    /// message.
    pub id: Option<String>,
    /// The payload.
    pub payload: Canonical,
}

impl ParsedOutput {
    /// Reads a clean document, and nothing else.
    pub fn read_exact(text: &str, limits: &Limits) -> Result<Self, XmlError> {
        let mut said = Vec::new();
        collect(&parse(text, limits)?, &mut said)?;
        let repairs = Vec::new();
        Ok(Self { said, repairs })
    }

    /// Reads a clean document, or the documents that the repairer finds.
    pub fn read(text: &str, limits: &Limits) -> Result<Self, XmlError> {
        match Self::read_exact(text, limits) {
            Err(XmlError::Malformed(_) | XmlError::Empty) => {}
            result => return result,
        }
        let mut said = Vec::new();
        let (documents, repairs) = repair(text, limits)?;
        for document in &documents {
            collect(&parse(document, limits)?, &mut said)?;
        }
        Ok(Self { said, repairs })
    }
}

fn collect(document: &Document<'_>, said: &mut Vec<Said>) -> Result<(), XmlError> {
    let root = document.document_element().ok_or(XmlError::Empty)?;
    let name = document
        .element(root)
        .map(|element| &element.name)
        .ok_or(XmlError::Empty)?;
    let namespace = name.namespace_uri.as_deref().unwrap_or_default();
    let is_envelope =
        *name.local_name == *"message" && [envelope::NAMESPACE, ""].contains(&namespace);
    if !is_envelope {
        said.push(Said {
            to: None,
            id: None,
            payload: canonical_element(document, root)?,
        });
        return Ok(());
    }
    let (mut to, mut id, before) = (None, None, said.len());
    for child in document.children_iter(root) {
        let Some(element) = document.element(child) else {
            continue;
        };
        if *element.name.local_name == *"meta" {
            let word = |name| {
                let text = envelope::own_text(document, child, name);
                let text = text.map(|text| text.trim().to_owned());
                text.filter(|text| !text.is_empty())
            };
            (to, id) = (word("to"), word("id"));
            if id.as_ref().is_some_and(|id| id.len() > ID) {
                return Err(XmlError::Limit {
                    what: "bytes of an id",
                    limit: ID,
                });
            }
        } else {
            let payload = without_envelope_namespace(canonical_element(document, child)?);
            said.push(Said {
                to: to.clone(),
                // An id is one message's.
                id: id.take(),
                payload,
            });
        }
    }
    match said.len() > before {
        true => Ok(()),
        false => Err(XmlError::Envelope("no payload".to_owned())),
    }
}

/// A model that writes an envelope seldom thinks of `xmlns=""`: a payload that
/// only inherited the envelope's namespace has none of its own.
fn without_envelope_namespace(payload: Canonical) -> Canonical {
    if payload.namespace() != envelope::NAMESPACE {
        return payload;
    }
    let declaration = format!(" xmlns=\"{}\"", envelope::NAMESPACE);
    let xml = payload.xml().replacen(&declaration, "", 1);
    Canonical::from_parts("", payload.root(), xml)
}
