//! The JSON Schema of a payload's JSON form: for tools, and for OpenAPI.

use super::{FieldModel, IntegerType, Occurs, Schema, Shape};
use serde_json::{Map, Value, json};

impl Schema {
    /// The JSON Schema of what [`Schema::json_to_xml`] takes.
    pub fn json_schema(&self) -> Value {
        described(shape_schema(&self.content), &self.description)
    }
}

fn described(mut schema: Value, description: &str) -> Value {
    if !description.is_empty() {
        schema["description"] = Value::from(description);
    }
    schema
}

fn shape_schema(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Integer(kind) => integer(*kind),
        Shape::Decimal(_) => json!({ "type": "number" }),
        Shape::Enumeration(words) => json!({ "type": "string", "enum": words }),
        Shape::Record(fields) => {
            let required = fields.iter().filter(|field| field.occurs == Occurs::Once);
            let required: Vec<_> = required.map(|field| field.name.as_str()).collect();
            json!({
                "type": "object",
                "properties": properties(fields),
                "required": required,
                "additionalProperties": false,
            })
        }
        Shape::Choice(variants) => json!({
            "type": "object",
            "properties": properties(variants),
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
        }),
        Shape::Map(value) => json!({
            "type": "object",
            "additionalProperties": shape_schema(value),
        }),
    }
}

/// JSON's own numbers are exact to 53 bits: bounds beyond them would mislead.
fn integer(kind: IntegerType) -> Value {
    match (kind, kind.bounds()) {
        (IntegerType::Int64, _) => json!({ "type": "integer" }),
        (IntegerType::Uint64, _) => json!({ "type": "integer", "minimum": 0 }),
        (_, (least, most)) => json!({
            "type": "integer",
            "minimum": i64::try_from(least).unwrap_or(i64::MIN),
            "maximum": i64::try_from(most).unwrap_or(i64::MAX),
        }),
    }
}

fn properties(fields: &[FieldModel]) -> Map<String, Value> {
    let property = |field: &FieldModel| {
        let mut schema = shape_schema(&field.shape);
        if field.occurs == Occurs::Many {
            schema = json!({ "type": "array", "items": schema });
        }
        if let Some(default) = &field.default {
            schema["default"] = field.shape.text_to_json(default);
        }
        (field.name.clone(), described(schema, &field.description))
    };
    fields.iter().map(property).collect()
}
