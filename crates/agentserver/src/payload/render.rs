//! XSD, example and prompt text from the field model.

use super::{FieldModel, Occurs, Schema, Shape};
use quick_xml::escape::escape;
use std::fmt::Write;

impl Schema {
    /// The XML Schema document.
    pub fn xsd(&self) -> String {
        let mut out = String::from("<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"");
        if !self.namespace.is_empty() {
            let namespace = escape(&self.namespace);
            put(
                &mut out,
                format_args!(" targetNamespace=\"{namespace}\" xmlns=\"{namespace}\""),
            );
        }
        out.push_str(" elementFormDefault=\"qualified\">");
        put(
            &mut out,
            format_args!("<xs:element name=\"{}\">", self.name),
        );
        complex_type(&self.fields, &mut out);
        out.push_str("</xs:element></xs:schema>");
        out
    }

    /// A document that the XSD accepts, as an agent would write it.
    pub fn example(&self) -> String {
        let mut out = format!("<{}", self.name);
        if !self.namespace.is_empty() {
            put(
                &mut out,
                format_args!(" xmlns=\"{}\"", escape(&self.namespace)),
            );
        }
        out.push('>');
        examples(&self.fields, &mut out);
        put(&mut out, format_args!("</{}>", self.name));
        out
    }

    /// What an agent needs to know to write this payload.
    pub fn prompt(&self) -> String {
        let mut out = format!("<{}>", self.name);
        if !self.description.is_empty() {
            put(&mut out, format_args!(": {}", self.description));
        }
        out.push('\n');
        describe(&self.fields, 1, &mut out);
        put(&mut out, format_args!("Example: {}\n", self.example()));
        out
    }
}

/// Writing to a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

fn complex_type(fields: &[FieldModel], out: &mut String) {
    out.push_str("<xs:complexType><xs:sequence>");
    for field in fields {
        put(out, format_args!("<xs:element name=\"{}\"", field.name));
        out.push_str(match field.occurs {
            Occurs::Once => "",
            Occurs::Optional => " minOccurs=\"0\"",
            Occurs::Many => " minOccurs=\"0\" maxOccurs=\"unbounded\"",
        });
        match &field.shape {
            Shape::Record(fields) => {
                out.push('>');
                complex_type(fields, out);
                out.push_str("</xs:element>");
            }
            Shape::Text => out.push_str(" type=\"xs:string\"/>"),
            Shape::Boolean => out.push_str(" type=\"xs:boolean\"/>"),
            Shape::Integer(name) | Shape::Decimal(name) => {
                put(out, format_args!(" type=\"xs:{name}\"/>"));
            }
        }
    }
    out.push_str("</xs:sequence></xs:complexType>");
}

fn examples(fields: &[FieldModel], out: &mut String) {
    for field in fields {
        put(out, format_args!("<{}>", field.name));
        match (&field.example, &field.shape) {
            (_, Shape::Record(fields)) => examples(fields, out),
            (Some(value), _) => out.push_str(&escape(value)),
            (None, Shape::Text) => out.push_str("text"),
            (None, Shape::Boolean) => out.push_str("true"),
            (None, Shape::Integer(_)) => out.push('1'),
            (None, Shape::Decimal(_)) => out.push_str("1.5"),
        }
        put(out, format_args!("</{}>", field.name));
    }
}

fn describe(fields: &[FieldModel], level: usize, out: &mut String) {
    for field in fields {
        let kind = field.shape.in_words();
        let occurs = match field.occurs {
            Occurs::Once => "",
            Occurs::Optional => ", optional",
            Occurs::Many => ", any number of times",
        };
        let indent = "  ".repeat(level);
        put(out, format_args!("{indent}{} ({kind}{occurs})", field.name));
        if !field.description.is_empty() {
            put(out, format_args!(": {}", field.description));
        }
        out.push('\n');
        if let Shape::Record(fields) = &field.shape {
            describe(fields, level + 1, out);
        }
    }
}
