//! From the file's payload types to field models.

use super::{FieldFile, FieldType, PayloadFile, PayloadKind};
use crate::payload::{FieldModel, FieldPosition, IntegerType, Occurs, Schema, Shape};

impl PayloadFile {
    pub(super) fn schema(&self) -> Result<Schema, String> {
        let fields = models(&self.fields)?;
        Ok(Schema {
            name: self.name.value.clone(),
            namespace: self.namespace.clone(),
            description: self.description.clone(),
            content: match self.kind {
                PayloadKind::Record => Shape::Record(fields),
                PayloadKind::Choice => Shape::Choice(fields),
            },
        })
    }
}

fn models(fields: &[FieldFile]) -> Result<Vec<FieldModel>, String> {
    fields.iter().map(model).collect()
}

fn model(file: &FieldFile) -> Result<FieldModel, String> {
    let FieldFile {
        name,
        kind,
        description,
        optional,
        many,
        attribute,
        default,
        example,
        values,
        of,
        fields,
    } = file;
    let (is_map, held) = match (kind, of) {
        (FieldType::Map, of) => (true, of.unwrap_or_default()),
        (_, Some(_)) => return Err(format!("{name}: `of` is for a map")),
        (kind, None) => (false, *kind),
    };
    if !matches!(held, FieldType::Record | FieldType::Choice) && !fields.is_empty() {
        return Err(format!("{name}: only a record or a choice has fields"));
    }
    if held != FieldType::Enum && !values.is_empty() {
        return Err(format!("{name}: only an enum has values"));
    }
    let shape = match held {
        FieldType::Text => Shape::Text,
        FieldType::Boolean => Shape::Boolean,
        FieldType::Integer => Shape::Integer(IntegerType::Int64),
        FieldType::Int8 => Shape::Integer(IntegerType::Int8),
        FieldType::Int16 => Shape::Integer(IntegerType::Int16),
        FieldType::Int32 => Shape::Integer(IntegerType::Int32),
        FieldType::Unsigned => Shape::Integer(IntegerType::Uint64),
        FieldType::Uint8 => Shape::Integer(IntegerType::Uint8),
        FieldType::Uint16 => Shape::Integer(IntegerType::Uint16),
        FieldType::Uint32 => Shape::Integer(IntegerType::Uint32),
        FieldType::Number => Shape::Decimal("double"),
        FieldType::Enum => Shape::Enumeration(values.clone()),
        FieldType::Record => Shape::Record(models(fields)?),
        FieldType::Choice => Shape::Choice(models(fields)?),
        FieldType::Map => return Err(format!("{name}: a map of maps needs a record between")),
    };
    let shape = match is_map {
        true => Shape::Map(Box::new(shape)),
        false => shape,
    };
    let has_own_examples = matches!(shape, Shape::Record(_) | Shape::Choice(_) | Shape::Map(_));
    if has_own_examples && example.is_some() {
        return Err(format!("{name}: the fields within have the examples"));
    }
    if default.is_some() && *many {
        return Err(format!(
            "{name}: what occurs any number of times has no default"
        ));
    }
    Ok(FieldModel {
        name: name.clone(),
        description: description.clone(),
        shape,
        occurs: match (*optional || default.is_some(), many) {
            (_, true) => Occurs::Many,
            (true, false) => Occurs::Optional,
            (false, false) => Occurs::Once,
        },
        position: match attribute {
            true => FieldPosition::Attribute,
            false => FieldPosition::Element,
        },
        default: default.clone(),
        example: example.clone(),
    })
}
