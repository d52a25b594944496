//! Example and prompt text from the field model.

use super::{FieldModel, FieldPosition, IntegerType, Occurs, Schema, Shape};
use quick_xml::escape::escape;

impl Schema {
    /// A document that the XSD accepts, as an agent would write it.
    pub fn example(&self) -> String {
        let mut out = format!("<{}", self.name);
        if !self.namespace.is_empty() {
            out.push_str(&format!(" xmlns=\"{}\"", escape(&self.namespace)));
        }
        put_example(&self.name, &self.content, None, &mut out);
        out
    }

    /// What an agent needs to know to write this payload.
    pub fn prompt(&self) -> String {
        let mut out = format!("<{}>", self.name);
        if !matches!(self.content, Shape::Record(_)) {
            out.push_str(&format!(" ({})", self.content.in_words()));
        }
        if !self.description.is_empty() {
            out.push_str(&format!(": {}", self.description));
        }
        out.push('\n');
        describe(&self.content, 1, &mut out);
        out.push_str(&format!("Example: {}\n", self.example()));
        out
    }
}

/// The rest of an element whose name and namespace are written.
fn put_example(name: &str, shape: &Shape, value: Option<&str>, out: &mut String) {
    if let Shape::Record(fields) = shape {
        let attributes = fields
            .iter()
            .filter(|f| f.position == FieldPosition::Attribute);
        for field in attributes {
            let value = example_value(&field.shape, field.example_or_default());
            out.push_str(&format!(" {}=\"{}\"", field.name, escape(&value)));
        }
    }
    out.push('>');
    match shape {
        Shape::Record(fields) => {
            let elements = fields
                .iter()
                .filter(|f| f.position == FieldPosition::Element);
            elements.for_each(|field| put_field(field, out));
        }
        Shape::Choice(variants) => variants.iter().take(1).for_each(|f| put_field(f, out)),
        Shape::Map(value) => {
            out.push_str("<entry><key>key</key><value");
            put_example("value", value, None, out);
            out.push_str("</entry>");
        }
        scalar => out.push_str(&escape(example_value(scalar, value))),
    }
    out.push_str(&format!("</{name}>"));
}

fn put_field(field: &FieldModel, out: &mut String) {
    out.push_str(&format!("<{}", field.name));
    put_example(&field.name, &field.shape, field.example_or_default(), out);
}

fn example_value(shape: &Shape, given: Option<&str>) -> String {
    let own = match shape {
        Shape::Boolean => "true",
        Shape::Integer(_) => "1",
        Shape::Decimal(_) => "1.5",
        Shape::Enumeration(words) => words.first().map_or("", String::as_str),
        _ => "text",
    };
    given.unwrap_or(own).to_owned()
}

fn describe(shape: &Shape, level: usize, out: &mut String) {
    match shape {
        Shape::Record(fields) | Shape::Choice(fields) => {
            for field in fields {
                let description = match field.description.is_empty() {
                    true => String::new(),
                    false => format!(": {}", field.description),
                };
                out.push_str(&"  ".repeat(level));
                out.push_str(&format!("{}{description}\n", field.in_words()));
                describe(&field.shape, level + 1, out);
            }
        }
        Shape::Map(value) => describe(value, level, out),
        _ => {}
    }
}

impl FieldModel {
    fn example_or_default(&self) -> Option<&str> {
        self.example.as_deref().or(self.default.as_deref())
    }

    /// Its name and what it holds, for people and models.
    pub(super) fn in_words(&self) -> String {
        let place = match self.position {
            FieldPosition::Element => "",
            FieldPosition::Attribute => "attribute, ",
        };
        let occurs = match (self.occurs, &self.default) {
            (Occurs::Once, _) => String::new(),
            (Occurs::Optional, None) => ", optional".to_owned(),
            (Occurs::Optional, Some(default)) => format!(", {default:?} unless said"),
            (Occurs::Many, _) => ", any number of times".to_owned(),
        };
        format!("{} ({place}{}{occurs})", self.name, self.shape.in_words())
    }
}

impl Shape {
    /// What it holds, for people and models.
    pub(super) fn in_words(&self) -> String {
        let words = match self {
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Integer(kind) => {
                return match (kind, kind.bounds()) {
                    (IntegerType::Int64, _) => "whole number".to_owned(),
                    (IntegerType::Uint64, _) => "whole number, 0 or more".to_owned(),
                    (_, (least, most)) => format!("whole number from {least} to {most}"),
                };
            }
            Self::Decimal(_) => "number",
            Self::Enumeration(words) => return format!("one of: {}", words.join(", ")),
            Self::Record(_) => "fields",
            Self::Choice(_) => "exactly one of these elements",
            Self::Map(value) => {
                return format!(
                    "<entry>s of a <key> and a <value>, no key twice; the value: {}",
                    value.in_words()
                );
            }
        };
        words.to_owned()
    }
}
