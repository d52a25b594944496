//! A payload as JSON and back, for processes that would rather not read XML.
//! The object has one member, the payload's name, that holds the fields.

use super::{Canonical, FieldModel, Occurs, PayloadType, Schema, Shape};
use crate::xml;
use quick_xml::escape::escape;
use serde_json::{Map, Number, Value, json};
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
    #[error("{0} has a value of the wrong kind")]
    Kind(String),
    /// The payload's own XML could not be read.
    #[error("the payload could not be read")]
    Xml,
}

impl Schema {
    /// XML from the fields. It still has to pass [`PayloadType::check`].
    pub fn json_to_xml(&self, fields: &Value) -> Result<String, JsonError> {
        let Schema {
            name,
            namespace,
            fields: models,
            ..
        } = self;
        let mut out = format!("<{name}");
        if !namespace.is_empty() {
            out.push_str(&format!(" xmlns=\"{}\"", escape(namespace)));
        }
        out.push('>');
        fields_from_json(models, fields, name, &mut out)?;
        out.push_str(&format!("</{name}>"));
        Ok(out)
    }

    /// The JSON Schema of the fields, for models that write JSON.
    pub fn json_schema(&self) -> Value {
        object_schema(&self.fields)
    }
}

fn object_schema(models: &[FieldModel]) -> Value {
    let mut properties = Map::new();
    for model in models {
        let mut schema = match &model.shape {
            Shape::Text => json!({ "type": "string" }),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Integer(_) => json!({ "type": "integer" }),
            Shape::Decimal(_) => json!({ "type": "number" }),
            Shape::Record(fields) => object_schema(fields),
        };
        if model.occurs == Occurs::Many {
            schema = json!({ "type": "array", "items": schema });
        }
        if !model.description.is_empty() {
            schema["description"] = Value::from(model.description.as_str());
        }
        properties.insert(model.name.clone(), schema);
    }
    let required = models.iter().filter(|model| model.occurs == Occurs::Once);
    let required: Vec<_> = required.map(|model| model.name.as_str()).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

impl PayloadType {
    /// The fields of a valid payload of this type.
    pub fn xml_to_json(&self, payload: &Canonical) -> Result<Value, JsonError> {
        let document = xml::parse_trusted(payload.xml()).map_err(|_| JsonError::Xml)?;
        let root = document.document_element().ok_or(JsonError::Xml)?;
        Ok(fields_to_json(&self.schema().fields, &document, root))
    }

    /// XML from the fields. It still has to pass [`PayloadType::check`].
    pub fn json_to_xml(&self, fields: &Value) -> Result<String, JsonError> {
        self.schema().json_to_xml(fields)
    }
}

fn fields_to_json(models: &[FieldModel], document: &Document<'_>, parent: NodeId) -> Value {
    let mut object = Map::new();
    for model in models {
        let mut values = document
            .children_iter(parent)
            .filter(|id| {
                document
                    .element(*id)
                    .is_some_and(|e| *e.name.local_name == *model.name)
            })
            .map(|id| value_to_json(&model.shape, document, id));
        match model.occurs {
            Occurs::Many => drop(object.insert(model.name.clone(), values.collect())),
            Occurs::Once | Occurs::Optional => {
                if let Some(value) = values.next() {
                    object.insert(model.name.clone(), value);
                }
            }
        }
    }
    Value::Object(object)
}

fn value_to_json(shape: &Shape, document: &Document<'_>, id: NodeId) -> Value {
    if let Shape::Record(fields) = shape {
        return fields_to_json(fields, document, id);
    }
    let text = document.text_content_deep(id);
    let word = text.trim();
    let number = match shape {
        Shape::Text | Shape::Record(_) => None,
        Shape::Boolean => return Value::Bool(matches!(word, "true" | "1")),
        Shape::Integer(_) => match word.trim_start_matches('+').parse::<i64>() {
            Ok(number) => Some(Number::from(number)),
            Err(_) => word
                .trim_start_matches('+')
                .parse::<u64>()
                .ok()
                .map(Number::from),
        },
        Shape::Decimal(_) => word.parse().ok().and_then(Number::from_f64),
    };
    // Infinity and "not a number" have no JSON number; they stay words.
    number.map_or(Value::String(text), Value::Number)
}

fn fields_from_json(
    models: &[FieldModel],
    value: &Value,
    path: &str,
    out: &mut String,
) -> Result<(), JsonError> {
    let object = value
        .as_object()
        .ok_or_else(|| JsonError::NotAnObject(path.to_owned()))?;
    if let Some(unknown) = object
        .keys()
        .find(|key| models.iter().all(|model| model.name != **key))
    {
        return Err(JsonError::Unknown(path.to_owned(), unknown.clone()));
    }
    for model in models {
        let path = format!("{path}.{}", model.name);
        match (model.occurs, object.get(&model.name)) {
            (_, None | Some(Value::Null)) => {}
            (Occurs::Many, Some(Value::Array(values))) => {
                for value in values {
                    value_from_json(model, value, &path, out)?;
                }
            }
            (_, Some(value)) => value_from_json(model, value, &path, out)?,
        }
    }
    Ok(())
}

fn value_from_json(
    model: &FieldModel,
    value: &Value,
    path: &str,
    out: &mut String,
) -> Result<(), JsonError> {
    out.push_str(&format!("<{}>", model.name));
    match (&model.shape, value) {
        (Shape::Record(fields), value) => fields_from_json(fields, value, path, out)?,
        (Shape::Boolean, Value::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
        (Shape::Integer(_) | Shape::Decimal(_), Value::Number(number)) => {
            out.push_str(&number.to_string())
        }
        // Text as it stands: the schema decides whether it is a number.
        (_, Value::String(text)) => out.push_str(&escape(text).replace('\r', "&#13;")),
        _ => return Err(JsonError::Kind(path.to_owned())),
    }
    out.push_str(&format!("</{}>", model.name));
    Ok(())
}
