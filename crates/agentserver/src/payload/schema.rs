//! The field model.

use super::{Canonical, Field};

/// A payload type: the one model behind XML, XSD, example and prompt text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The root element's local name.
    pub name: String,
    /// The root element's namespace; empty for none.
    pub namespace: String,
    /// What the payload is for, in a sentence that agents read.
    pub description: String,
    /// The child elements, in order.
    pub fields: Vec<FieldModel>,
}

impl Schema {
    /// Whether a payload has this type's root element.
    pub(crate) fn is_of(&self, payload: &Canonical) -> bool {
        self.name == payload.root() && self.namespace == payload.namespace()
    }
}

/// One field: a child element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldModel {
    /// The element's name.
    pub name: String,
    /// What it holds, in a sentence that agents read.
    pub description: String,
    /// What its content looks like.
    pub shape: Shape,
    /// How often it occurs.
    pub occurs: Occurs,
    /// A value for the example, where the shape's own will not do.
    pub example: Option<String>,
}

impl FieldModel {
    /// The model of a Rust field.
    pub fn of<F: Field>(name: &str, description: &str, example: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            shape: F::shape(),
            occurs: F::OCCURS,
            example,
        }
    }
}

/// What a field's content looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any text, kept to the last space.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number, with the XSD type that bounds it.
    Integer(&'static str),
    /// A number with a fraction, with its XSD type.
    Decimal(&'static str),
    /// Fields of its own.
    Record(Vec<FieldModel>),
}

/// How often a field occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurs {
    /// Exactly once.
    Once,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Many,
}
