//! A payload type ready for use: its schema and the validator made from it.

use super::explain::explain;
use super::plain;
use super::schema::collapsed;
use super::{FieldModel, FieldPosition, Occurs, Payload, Schema, Shape};
use crate::xml::{self, Limits, XmlError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use uppsala::XsdValidator;

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A name that no element may have.
    #[error("{0:?} cannot name an element")]
    Name(String),
    /// Two fields of one name.
    #[error("two fields are called {0:?}")]
    Twice(String),
    /// An attribute that cannot be one.
    #[error("{0:?} cannot be an attribute: that holds text, a number or a word, once")]
    Attribute(String),
    /// A default that nothing stands for.
    #[error(
        "{0:?} cannot have a default: that is for text, a number or a word that may be left out"
    )]
    Default(String),
    /// A choice of nothing, or words that are none.
    #[error("{0:?} has nothing to choose from, or something twice")]
    Choice(String),
    /// Fields within fields without end.
    #[error("fields are nested deeper than {0}")]
    Depth(usize),
    /// The example and the XSD do not agree.
    #[error("the example of <{name}> does not fit its own schema: {reason}")]
    Example {
        /// The payload type.
        name: String,
        /// What the validator said.
        reason: String,
    },
}

/// A payload that could not be written, read or accepted.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The struct has no XML form.
    #[error("cannot be written as XML: {0}")]
    Write(String),
    /// The XML does not fill the struct.
    #[error("cannot be read from XML: {0}")]
    Read(String),
    /// Not XML that the pump takes.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// Another type's root element.
    #[error("expected <{expected}>, found <{found}>")]
    Root {
        /// The type it was checked against.
        expected: String,
        /// What the document holds.
        found: String,
    },
    /// Refused by the XSD.
    #[error("does not fit its schema: {0}")]
    Invalid(String),
}

/// A payload's canonical XML (exclusive C14N, no comments) with its name.
/// Well-formed and within the limits; [`PayloadType::check`] says whether it is valid.
/// A clone is the same one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Canonical(Arc<Parts>);

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Parts {
    namespace: Box<str>,
    root: Box<str>,
    xml: Box<str>,
}

impl Canonical {
    /// From parts that belong together.
    pub(crate) fn from_parts(
        namespace: &str,
        root: impl Into<Box<str>>,
        xml: impl Into<Box<str>>,
    ) -> Self {
        Self(Arc::new(Parts {
            namespace: namespace.into(),
            root: root.into(),
            xml: xml.into(),
        }))
    }

    /// Reads one element: parsed within the limits, then made canonical.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, XmlError> {
        xml::canonical_text(text, limits)
    }

    /// Stands for a payload that has no XML form.
    pub(crate) fn unwritable() -> Self {
        Self::from_parts("", "unwritable", "<unwritable></unwritable>")
    }

    /// The root element's namespace; empty for none.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The root element's local name.
    pub fn root(&self) -> &str {
        &self.0.root
    }

    /// The document.
    pub fn xml(&self) -> &str {
        &self.0.xml
    }

    /// Whether this has the root element of `P`.
    pub fn is<P: Payload>(&self) -> bool {
        self.root() == P::NAME && self.namespace() == P::NAMESPACE
    }

    /// The struct, where the root element is that of `P`.
    pub fn read<P: Payload>(&self) -> Result<P, PayloadError> {
        if !self.is::<P>() {
            return Err(PayloadError::Root {
                expected: P::NAME.to_owned(),
                found: self.root().to_owned(),
            });
        }
        P::from_xml(self.xml())
    }
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.xml())
    }
}

/// A schema with its validator.
pub struct PayloadType {
    schema: Schema,
    validator: XsdValidator,
    /// Whether keys have to be compared.
    has_map: bool,
}

impl fmt::Debug for PayloadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PayloadType")
            .field(&self.schema.name)
            .finish()
    }
}

impl PayloadType {
    const DEPTH: usize = 16;

    /// Makes the validator, and shows that the example passes it.
    pub fn compile(schema: Schema) -> Result<Self, SchemaError> {
        check_name(&schema.name)?;
        check_shape(&schema.name, &schema.content, Self::DEPTH)?;
        let unfit = |reason: String| SchemaError::Example {
            name: schema.name.clone(),
            reason,
        };
        let validator = xml::validator(&schema.xsd_without_keys()).map_err(&unfit)?;
        let this = Self {
            schema: schema.clone(),
            validator,
            has_map: schema.content.has_map(),
        };
        let example = Canonical::parse(&this.schema.example(), &Limits::default())
            .map_err(|error| unfit(error.to_string()))?;
        this.check(&example)
            .map_err(|error| unfit(error.to_string()))?;
        Ok(this)
    }

    /// The type of a Rust struct or enum.
    pub fn of<P: Payload>() -> Result<Self, SchemaError> {
        Self::compile(P::schema())
    }

    /// The field model.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether the payload is a valid one of this type.
    pub fn check(&self, payload: &Canonical) -> Result<(), PayloadError> {
        if payload.root() != self.schema.name || payload.namespace() != self.schema.namespace {
            return Err(PayloadError::Root {
                expected: self.schema.name.clone(),
                found: payload.root().to_owned(),
            });
        }
        match plain::is_surely_valid(&self.schema, payload.xml()) {
            true => Ok(()),
            false => self.check_by_schema(payload),
        }
    }

    /// The same by the XSD, which decides.
    pub(super) fn check_by_schema(&self, payload: &Canonical) -> Result<(), PayloadError> {
        // The limits were applied before it became canonical.
        let document = xml::parse_trusted(payload.xml())?;
        match self.validator.validate(&document).first() {
            None if !self.has_map => Ok(()),
            None => explain(&self.schema, &document)
                .map_or(Ok(()), |wrong| Err(PayloadError::Invalid(wrong))),
            Some(error) => Err(PayloadError::Invalid(
                explain(&self.schema, &document).unwrap_or_else(|| error.message.clone()),
            )),
        }
    }
}

fn check_shape(name: &str, shape: &Shape, depth: usize) -> Result<(), SchemaError> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(SchemaError::Depth(PayloadType::DEPTH));
    };
    match shape {
        Shape::Record(fields) => check_fields(fields, below),
        Shape::Choice(variants) => {
            let is_plain = |field: &FieldModel| {
                field.position == FieldPosition::Element && field.occurs == Occurs::Once
            };
            if variants.is_empty() || !variants.iter().all(is_plain) {
                return Err(SchemaError::Choice(name.to_owned()));
            }
            check_fields(variants, below)
        }
        Shape::Map(value) => check_shape(name, value, below),
        Shape::Enumeration(words) => {
            let is_word = |word: &String| !word.is_empty() && collapsed(word) == *word;
            let is_twice = |(index, word)| words[..index].contains(word);
            match !words.is_empty()
                && words.iter().all(is_word)
                && !words.iter().enumerate().any(is_twice)
            {
                true => Ok(()),
                false => Err(SchemaError::Choice(name.to_owned())),
            }
        }
        Shape::Text | Shape::Boolean | Shape::Integer(_) | Shape::Decimal(_) => Ok(()),
    }
}

fn check_fields(fields: &[FieldModel], depth: usize) -> Result<(), SchemaError> {
    for (index, field) in fields.iter().enumerate() {
        let name = &field.name;
        check_name(name)?;
        if fields[..index].iter().any(|other| other.name == *name) {
            return Err(SchemaError::Twice(name.clone()));
        }
        let is_scalar = field.shape.is_scalar();
        if field.position == FieldPosition::Attribute
            && (!is_scalar || field.occurs == Occurs::Many)
        {
            return Err(SchemaError::Attribute(name.clone()));
        }
        if field.default.is_some() && (!is_scalar || field.occurs != Occurs::Optional) {
            return Err(SchemaError::Default(name.clone()));
        }
        check_shape(name, &field.shape, depth)?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), SchemaError> {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = characters.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    match starts && goes_on && name.len() <= 128 {
        true => Ok(()),
        false => Err(SchemaError::Name(name.to_owned())),
    }
}
