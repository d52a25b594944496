//! What is wrong with a payload, in words that whoever wrote it can use.

use super::{FieldModel, Occurs, Schema, Shape};
use uppsala::{Document, NodeId};

/// The first thing in which a document differs from its schema.
pub(super) fn explain(schema: &Schema, document: &Document<'_>) -> Option<String> {
    let root = document.document_element()?;
    fields(&schema.name, &schema.fields, document, root)
}

fn fields(
    name: &str,
    models: &[FieldModel],
    document: &Document<'_>,
    parent: NodeId,
) -> Option<String> {
    let children: Vec<_> = document
        .children_iter(parent)
        .filter_map(|id| Some((id, &*document.element(id)?.name.local_name)))
        .collect();
    let unknown = children
        .iter()
        .find(|(_, child)| models.iter().all(|model| model.name != **child));
    if let Some((_, child)) = unknown {
        return Some(format!(
            "<{name}> has no field <{child}>. {}",
            in_words(name, models)
        ));
    }
    for model in models {
        let field = &model.name;
        let found: Vec<_> = children.iter().filter(|(_, c)| *c == *field).collect();
        match (model.occurs, found.len()) {
            (Occurs::Once, 0) => {
                let kind = model.shape.in_words();
                return Some(format!("<{name}> lacks the field <{field}> ({kind})."));
            }
            (Occurs::Once | Occurs::Optional, 2..) => {
                return Some(format!("<{name}> has <{field}> more than once."));
            }
            _ => {}
        }
        for (id, _) in found {
            if let Some(wrong) = content(model, document, *id) {
                return Some(wrong);
            }
        }
    }
    let places = children
        .iter()
        .filter_map(|(_, child)| models.iter().position(|model| model.name == **child));
    (!places.is_sorted()).then(|| {
        format!(
            "The fields of <{name}> are in the wrong order. {}",
            in_words(name, models)
        )
    })
}

fn content(model: &FieldModel, document: &Document<'_>, id: NodeId) -> Option<String> {
    const SHOWN: usize = 60;
    if let Shape::Record(models) = &model.shape {
        return fields(&model.name, models, document, id);
    }
    let text = document.text_content_deep(id);
    let is_right = match &model.shape {
        Shape::Integer(_) => text.trim().parse::<i128>().is_ok(),
        Shape::Decimal(_) => text.trim().parse::<f64>().is_ok(),
        Shape::Boolean => matches!(text.trim(), "true" | "false" | "1" | "0"),
        Shape::Text | Shape::Record(_) => true,
    };
    let has_elements = document
        .children_iter(id)
        .any(|child| document.element(child).is_some());
    if has_elements {
        return Some(format!(
            "<{}> holds elements; expected {} alone.",
            model.name,
            model.shape.in_words()
        ));
    }
    (!is_right).then(|| {
        let shown: String = text.chars().take(SHOWN).collect();
        let kind = model.shape.in_words();
        format!("<{}> holds {shown:?}; expected a {kind}.", model.name)
    })
}

fn in_words(name: &str, models: &[FieldModel]) -> String {
    if models.is_empty() {
        return format!("<{name}> has no fields.");
    }
    let fields = models.iter().map(|model| {
        let occurs = match model.occurs {
            Occurs::Once => "",
            Occurs::Optional => ", optional",
            Occurs::Many => ", any number of times",
        };
        format!("{} ({}{occurs})", model.name, model.shape.in_words())
    });
    let fields: Vec<_> = fields.collect();
    format!("Its fields, in order: {}.", fields.join(", "))
}

impl Shape {
    /// What it holds, for people and models.
    pub(super) fn in_words(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Integer(_) => "whole number",
            Self::Decimal(_) => "number",
            Self::Record(_) => "fields",
        }
    }
}
