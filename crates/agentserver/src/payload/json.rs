//! A payload as JSON and back, for processes that would rather not read XML.
//! Attributes are members like elements; a field that was left out has its
//! default.

use super::schema::collapsed;
use super::{Canonical, FieldModel, FieldPosition, Occurs, PayloadType, Schema, Shape};
use crate::xml;
use quick_xml::escape::escape;
use serde_json::{Map, Number, Value};
use uppsala::{Document, NodeId};

/// JSON that is no payload of this type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not an object of the fields.
    #[error("{0} is not an object")]
    NotAnObject(String),
    /// A field that the type does not have.
    #[error("{0} has no field {1}")]
    Unknown(String, String),
    /// A value of the wrong shape.
    #[error("{0} has a value of the wrong kind; expected {1}")]
    Kind(String, String),
    /// The payload's own XML could not be read.
    #[error("the payload could not be read")]
    Xml,
}

impl Schema {
    /// XML from the JSON form. It still has to pass [`PayloadType::check`].
    pub fn json_to_xml(&self, value: &Value) -> Result<String, JsonError> {
        let mut out = format!("<{}", self.name);
        if !self.namespace.is_empty() {
            out.push_str(&format!(" xmlns=\"{}\"", escape(&self.namespace)));
        }
        put_rest(&self.name, &self.content, value, &self.name, &mut out)?;
        Ok(out)
    }
}

impl PayloadType {
    /// The JSON form of a valid payload of this type.
    pub fn xml_to_json(&self, payload: &Canonical) -> Result<Value, JsonError> {
        let document = xml::parse_trusted(payload.xml()).map_err(|_| JsonError::Xml)?;
        let root = document.document_element().ok_or(JsonError::Xml)?;
        Ok(element_to_json(&self.schema().content, &document, root))
    }

    /// XML from the JSON form. It still has to pass [`PayloadType::check`].
    pub fn json_to_xml(&self, value: &Value) -> Result<String, JsonError> {
        self.schema().json_to_xml(value)
    }
}

fn element_to_json(shape: &Shape, document: &Document<'_>, id: NodeId) -> Value {
    match shape {
        Shape::Record(fields) => record_to_json(fields, document, id),
        Shape::Choice(variants) => {
            let object = variants.iter().flat_map(|variant| {
                let found = children(document, id, &variant.name);
                found.map(|id| {
                    let value = element_to_json(&variant.shape, document, id);
                    (variant.name.clone(), value)
                })
            });
            Value::Object(object.collect())
        }
        Shape::Map(value) => {
            let entries = children(document, id, "entry").filter_map(|entry| {
                let key = children(document, entry, "key").next()?;
                let found = children(document, entry, "value").next()?;
                let key = document.text_content_deep(key);
                Some((key, element_to_json(value, document, found)))
            });
            Value::Object(entries.collect())
        }
        scalar => scalar.text_to_json(&document.text_content_deep(id)),
    }
}

fn record_to_json(fields: &[FieldModel], document: &Document<'_>, id: NodeId) -> Value {
    let mut object = Map::new();
    for field in fields {
        let mut values = children(document, id, &field.name)
            .map(|id| element_to_json(&field.shape, document, id));
        let found = match (field.position, field.occurs) {
            (FieldPosition::Attribute, _) => document
                .get_attribute(id, &field.name)
                .map(|text| field.shape.text_to_json(text)),
            (FieldPosition::Element, Occurs::Many) => Some(values.collect()),
            (FieldPosition::Element, _) => values.next(),
        };
        let default = field.default.as_ref();
        let default = default.map(|text| field.shape.text_to_json(text));
        if let Some(value) = found.or(default) {
            object.insert(field.name.clone(), value);
        }
    }
    Value::Object(object)
}

fn children<'a>(
    document: &'a Document<'_>,
    parent: NodeId,
    name: &'a str,
) -> impl Iterator<Item = NodeId> + 'a {
    let is_it = move |id: &NodeId| {
        let element = document.element(*id);
        element.is_some_and(|element| *element.name.local_name == *name)
    };
    document.children_iter(parent).filter(is_it)
}

impl Shape {
    /// The value that a text stands for.
    pub(super) fn text_to_json(&self, text: &str) -> Value {
        let word = text.trim();
        let number = match self {
            Self::Enumeration(_) => return Value::from(collapsed(text)),
            Self::Boolean => return Value::Bool(matches!(word, "true" | "1")),
            Self::Integer(_) => {
                let word = word.trim_start_matches('+');
                let signed = word.parse::<i64>().map(Number::from);
                signed
                    .or_else(|_| word.parse::<u64>().map(Number::from))
                    .ok()
            }
            Self::Decimal(_) => word.parse().ok().and_then(Number::from_f64),
            _ => None,
        };
        // Infinity and "not a number" have no JSON number; they stay words.
        number.map_or_else(|| Value::from(text), Value::Number)
    }

    fn wrong_kind(&self, path: &str) -> JsonError {
        JsonError::Kind(path.to_owned(), self.in_words())
    }
}

/// The rest of an element whose name and namespace are written.
fn put_rest(
    name: &str,
    shape: &Shape,
    value: &Value,
    path: &str,
    out: &mut String,
) -> Result<(), JsonError> {
    match shape {
        Shape::Record(fields) => put_record(fields, value, path, out)?,
        Shape::Choice(variants) => {
            let object = members(variants, value, path)?;
            let mut found = object.iter().filter(|(_, value)| !value.is_null());
            let (Some((key, value)), None) = (found.next(), found.next()) else {
                return Err(shape.wrong_kind(path));
            };
            out.push('>');
            let variant = variants.iter().filter(|variant| variant.name == *key);
            for variant in variant {
                put_element(variant, value, &format!("{path}.{key}"), out)?;
            }
        }
        Shape::Map(of) => {
            let object = value.as_object().ok_or_else(|| shape.wrong_kind(path))?;
            out.push('>');
            for (key, value) in object {
                out.push_str(&format!("<entry><key>{}</key><value", text(key)));
                put_rest("value", of, value, &format!("{path}.{key}"), out)?;
                out.push_str("</entry>");
            }
        }
        scalar => {
            out.push('>');
            out.push_str(&text(&scalar_text(scalar, value, path)?));
        }
    }
    out.push_str(&format!("</{name}>"));
    Ok(())
}

fn put_record(
    fields: &[FieldModel],
    value: &Value,
    path: &str,
    out: &mut String,
) -> Result<(), JsonError> {
    let object = members(fields, value, path)?;
    let of = |field: &FieldModel| object.get(&field.name).filter(|value| !value.is_null());
    for field in fields
        .iter()
        .filter(|f| f.position == FieldPosition::Attribute)
    {
        if let Some(value) = of(field) {
            let value = scalar_text(&field.shape, value, &format!("{path}.{}", field.name))?;
            let value = text(&value).replace('\n', "&#10;").replace('\t', "&#9;");
            out.push_str(&format!(" {}=\"{value}\"", field.name));
        }
    }
    out.push('>');
    for field in fields
        .iter()
        .filter(|f| f.position == FieldPosition::Element)
    {
        let path = format!("{path}.{}", field.name);
        match (field.occurs, of(field)) {
            (_, None) => {}
            (Occurs::Many, Some(Value::Array(values))) => {
                for value in values {
                    put_element(field, value, &path, out)?;
                }
            }
            (_, Some(value)) => put_element(field, value, &path, out)?,
        }
    }
    Ok(())
}

fn put_element(
    field: &FieldModel,
    value: &Value,
    path: &str,
    out: &mut String,
) -> Result<(), JsonError> {
    out.push_str(&format!("<{}", field.name));
    put_rest(&field.name, &field.shape, value, path, out)
}

/// The members of an object that has these fields and no others.
fn members<'a>(
    fields: &[FieldModel],
    value: &'a Value,
    path: &str,
) -> Result<&'a Map<String, Value>, JsonError> {
    let object = value
        .as_object()
        .ok_or_else(|| JsonError::NotAnObject(path.to_owned()))?;
    let is_unknown = |key: &&String| fields.iter().all(|field| field.name != **key);
    match object.keys().find(is_unknown) {
        None => Ok(object),
        Some(unknown) => Err(JsonError::Unknown(path.to_owned(), unknown.clone())),
    }
}

fn scalar_text(shape: &Shape, value: &Value, path: &str) -> Result<String, JsonError> {
    match (shape, value) {
        (Shape::Boolean, Value::Bool(value)) => Ok(value.to_string()),
        (Shape::Integer(_) | Shape::Decimal(_), Value::Number(number)) => Ok(number.to_string()),
        // Text as it stands: the schema decides whether it is a number.
        (_, Value::String(text)) => Ok(text.clone()),
        _ => Err(shape.wrong_kind(path)),
    }
}

fn text(text: &str) -> String {
    escape(text).replace('\r', "&#13;")
}
