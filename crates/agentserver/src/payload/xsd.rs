//! The XML Schema document of a payload type.

use super::{FieldModel, FieldPosition, Occurs, Schema, Shape};
use quick_xml::escape::escape;
use std::fmt::Write;

impl Schema {
    /// The XML Schema document.
    pub fn xsd(&self) -> String {
        self.write_xsd(Some(0))
    }

    /// The same without what is said of keys. The validator takes a key `01` for
    /// a second `1`; [`PayloadType::check`](super::PayloadType::check) compares
    /// keys itself.
    pub(super) fn xsd_without_keys(&self) -> String {
        self.write_xsd(None)
    }

    fn write_xsd(&self, maps: Option<usize>) -> String {
        let mut writer = Writer {
            out: String::from("<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\""),
            prefix: "",
            maps,
        };
        if !self.namespace.is_empty() {
            let namespace = escape(&self.namespace);
            writer.prefix = "own:";
            writer.put(format_args!(
                " targetNamespace=\"{namespace}\" xmlns:own=\"{namespace}\""
            ));
        }
        writer.put(format_args!(" elementFormDefault=\"qualified\">"));
        writer.element(&self.name, &self.description, "", &self.content);
        writer.put(format_args!("</xs:schema>"));
        writer.out
    }
}

struct Writer {
    out: String,
    /// Of the schema's own names in paths.
    prefix: &'static str,
    /// Maps so far, where keys are constrained: a constraint has a name of its own.
    maps: Option<usize>,
}

impl Writer {
    /// Writing to a `String` cannot fail.
    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(arguments);
    }

    fn element(&mut self, name: &str, description: &str, occurs: &str, shape: &Shape) {
        self.put(format_args!("<xs:element name=\"{name}\"{occurs}"));
        self.content(description, shape);
        if let (Shape::Map(_), Some(number)) = (shape, self.maps) {
            let prefix = self.prefix;
            self.maps = Some(number + 1);
            self.put(format_args!(
                "<xs:unique name=\"map-{number}\"><xs:selector xpath=\"{prefix}entry\"/>\
                 <xs:field xpath=\"{prefix}key\"/></xs:unique>"
            ));
        }
        self.put(format_args!("</xs:element>"));
    }

    /// The type of an element or attribute whose tag is open.
    fn content(&mut self, description: &str, shape: &Shape) {
        if let Some(name) = shape.built_in() {
            self.put(format_args!(" type=\"xs:{name}\""));
        }
        self.put(format_args!(">"));
        if !description.is_empty() {
            let text = escape(description);
            self.put(format_args!(
                "<xs:annotation><xs:documentation>{text}</xs:documentation></xs:annotation>"
            ));
        }
        match shape {
            Shape::Enumeration(words) => self.enumeration(words),
            Shape::Record(fields) => self.record(fields),
            Shape::Choice(variants) => self.choice(variants),
            Shape::Map(value) => self.map(value),
            _ => {}
        }
    }

    fn enumeration(&mut self, words: &[String]) {
        self.put(format_args!(
            "<xs:simpleType><xs:restriction base=\"xs:token\">"
        ));
        for word in words {
            self.put(format_args!("<xs:enumeration value=\"{}\"/>", escape(word)));
        }
        self.put(format_args!("</xs:restriction></xs:simpleType>"));
    }

    fn record(&mut self, fields: &[FieldModel]) {
        self.put(format_args!("<xs:complexType><xs:sequence>"));
        let elements = fields
            .iter()
            .filter(|f| f.position == FieldPosition::Element);
        elements.for_each(|field| self.field(field));
        self.put(format_args!("</xs:sequence>"));
        let attributes = fields
            .iter()
            .filter(|f| f.position == FieldPosition::Attribute);
        attributes.for_each(|field| self.attribute(field));
        self.put(format_args!("</xs:complexType>"));
    }

    fn choice(&mut self, variants: &[FieldModel]) {
        self.put(format_args!("<xs:complexType><xs:choice>"));
        variants.iter().for_each(|field| self.field(field));
        self.put(format_args!("</xs:choice></xs:complexType>"));
    }

    fn map(&mut self, value: &Shape) {
        self.put(format_args!(
            "<xs:complexType><xs:sequence>\
             <xs:element name=\"entry\" minOccurs=\"0\" maxOccurs=\"unbounded\">\
             <xs:complexType><xs:sequence><xs:element name=\"key\" type=\"xs:string\"/>"
        ));
        self.element("value", "", "", value);
        self.put(format_args!(
            "</xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType>"
        ));
    }

    fn field(&mut self, field: &FieldModel) {
        let occurs = match field.occurs {
            Occurs::Once => "",
            Occurs::Optional => " minOccurs=\"0\"",
            Occurs::Many => " minOccurs=\"0\" maxOccurs=\"unbounded\"",
        };
        self.element(&field.name, &field.documentation(), occurs, &field.shape);
    }

    fn attribute(&mut self, field: &FieldModel) {
        self.put(format_args!("<xs:attribute name=\"{}\"", field.name));
        match (&field.default, field.occurs) {
            (Some(default), _) => self.put(format_args!(" default=\"{}\"", escape(default))),
            (None, Occurs::Once) => self.put(format_args!(" use=\"required\"")),
            (None, _) => {}
        }
        self.content(&field.description, &field.shape);
        self.put(format_args!("</xs:attribute>"));
    }
}

impl FieldModel {
    /// XSD's own default of an element is for one that is there and empty, not
    /// for one that is left out: ours is told in words.
    fn documentation(&self) -> String {
        let default = self.default.as_ref();
        let default = default.map(|default| format!("{default:?} unless said."));
        let parts = [Some(self.description.clone()), default];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl Shape {
    /// The XSD type that is all of it.
    fn built_in(&self) -> Option<&'static str> {
        match self {
            Self::Text => Some("string"),
            Self::Boolean => Some("boolean"),
            Self::Integer(kind) => Some(kind.xsd()),
            Self::Decimal(name) => Some(name),
            Self::Enumeration(_) | Self::Record(_) | Self::Choice(_) | Self::Map(_) => None,
        }
    }
}
