//! The field model.

use super::{Canonical, Field};

/// A payload type: the one model behind XML, XSD, JSON, example and prompt text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The root element's local name.
    pub name: String,
    /// The root element's namespace; empty for none.
    pub namespace: String,
    /// What the payload is for, in a sentence that agents read.
    pub description: String,
    /// What the root element holds.
    pub content: Shape,
}

impl Schema {
    /// The fields of a record; none for anything else.
    pub fn fields(&self) -> &[FieldModel] {
        match &self.content {
            Shape::Record(fields) => fields,
            _ => &[],
        }
    }

    /// Whether a payload has this type's root element.
    pub(crate) fn is_of(&self, payload: &Canonical) -> bool {
        self.name == payload.root() && self.namespace == payload.namespace()
    }
}

/// One field: a child element or an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldModel {
    /// The element's or attribute's name.
    pub name: String,
    /// What it holds, in a sentence that agents read.
    pub description: String,
    /// What its content looks like.
    pub shape: Shape,
    /// How often it occurs.
    pub occurs: Occurs,
    /// Where it stands.
    pub position: FieldPosition,
    /// What it holds when it is left out.
    pub default: Option<String>,
    /// A value for the example, where the default's or the shape's own will not do.
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
            position: FieldPosition::Element,
            default: None,
            example,
        }
    }

    /// The same as an attribute.
    pub fn attribute(mut self) -> Self {
        self.position = FieldPosition::Attribute;
        self
    }

    /// The same, with a value for when it is left out.
    pub fn or<F: Field>(mut self, default: &F) -> Self {
        const { assert!(matches!(F::OCCURS, Occurs::Once), "has a default already") };
        self.occurs = Occurs::Optional;
        self.default = default.text();
        self
    }
}

/// What an element or an attribute holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any text, kept to the last space.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer(IntegerType),
    /// A number with a fraction, with its XSD type.
    Decimal(&'static str),
    /// One of these words; spaces around it do not count.
    Enumeration(Vec<String>),
    /// Fields of its own.
    Record(Vec<FieldModel>),
    /// Exactly one of these elements.
    Choice(Vec<FieldModel>),
    /// Values by key: `<entry>`s of a `<key>` and a `<value>`, no key twice.
    Map(Box<Shape>),
}

/// A text as XSD collapses a token.
pub(super) fn collapsed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl Shape {
    /// Whether it is text alone, as an attribute's value must be.
    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Record(_) | Self::Choice(_) | Self::Map(_))
    }

    /// Whether there is a map somewhere in it.
    pub(super) fn has_map(&self) -> bool {
        match self {
            Self::Map(_) => true,
            Self::Record(fields) | Self::Choice(fields) => {
                fields.iter().any(|field| field.shape.has_map())
            }
            _ => false,
        }
    }

    /// Whether both accept the same documents.
    pub(crate) fn accepts_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Record(one), Self::Record(other)) | (Self::Choice(one), Self::Choice(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(same_field)
            }
            (Self::Map(one), Self::Map(other)) => one.accepts_the_same(other),
            (one, other) => one == other,
        }
    }
}

fn same_field((one, other): (&FieldModel, &FieldModel)) -> bool {
    one.name == other.name
        && one.occurs == other.occurs
        && one.position == other.position
        && one.shape.accepts_the_same(&other.shape)
}

/// How large a whole number may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum IntegerType {
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

impl IntegerType {
    /// The XSD type of the same bounds.
    pub(super) fn xsd(self) -> &'static str {
        match self {
            Self::Int8 => "byte",
            Self::Int16 => "short",
            Self::Int32 => "int",
            Self::Int64 => "long",
            Self::Uint8 => "unsignedByte",
            Self::Uint16 => "unsignedShort",
            Self::Uint32 => "unsignedInt",
            Self::Uint64 => "unsignedLong",
        }
    }

    /// The smallest and the largest.
    pub(super) fn bounds(self) -> (i128, i128) {
        match self {
            Self::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Self::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Self::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Int64 => (i64::MIN.into(), i64::MAX.into()),
            Self::Uint8 => (0, u8::MAX.into()),
            Self::Uint16 => (0, u16::MAX.into()),
            Self::Uint32 => (0, u32::MAX.into()),
            Self::Uint64 => (0, u64::MAX.into()),
        }
    }
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

/// Where a field stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPosition {
    /// In an element of its own.
    Element,
    /// In an attribute of its parent's element.
    Attribute,
}
