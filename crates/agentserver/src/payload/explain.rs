//! What is wrong with a payload, in words that whoever wrote it can use.

use super::schema::collapsed;
use super::{FieldModel, FieldPosition, Occurs, Schema, Shape};
use std::collections::HashSet;
use uppsala::{Document, NodeId};

/// The first thing in which a document differs from its schema.
pub(super) fn explain(schema: &Schema, document: &Document<'_>) -> Option<String> {
    let root = document.document_element()?;
    content(&schema.name, &schema.content, document, root)
}

fn content(name: &str, shape: &Shape, document: &Document<'_>, id: NodeId) -> Option<String> {
    match shape {
        Shape::Record(models) => record(name, models, document, id),
        Shape::Choice(variants) => choice(name, variants, document, id),
        Shape::Map(value) => map(name, value, document, id),
        scalar => {
            let has_elements = !elements(document, id).is_empty();
            if has_elements {
                let kind = scalar.in_words();
                return Some(format!("<{name}> holds elements; expected {kind} alone."));
            }
            let text = document.text_content_deep(id);
            wrong_text(&format!("<{name}>"), scalar, &text)
        }
    }
}

fn elements<'a>(document: &'a Document<'_>, parent: NodeId) -> Vec<(NodeId, &'a str)> {
    document
        .children_iter(parent)
        .filter_map(|id| Some((id, &*document.element(id)?.name.local_name)))
        .collect()
}

fn record(
    name: &str,
    models: &[FieldModel],
    document: &Document<'_>,
    parent: NodeId,
) -> Option<String> {
    if let Some(wrong) = attributes(name, models, document, parent) {
        return Some(wrong);
    }
    let children = elements(document, parent);
    let position = |child: &str| {
        let is_it =
            |model: &FieldModel| model.position == FieldPosition::Element && model.name == child;
        models.iter().position(is_it)
    };
    if let Some((_, child)) = children.iter().find(|(_, child)| position(child).is_none()) {
        return Some(format!(
            "<{name}> has no field <{child}>. {}",
            in_words(name, models)
        ));
    }
    for model in models
        .iter()
        .filter(|m| m.position == FieldPosition::Element)
    {
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
            if let Some(wrong) = content(field, &model.shape, document, *id) {
                return Some(wrong);
            }
        }
    }
    let places = children.iter().filter_map(|(_, child)| position(child));
    (!places.is_sorted()).then(|| {
        format!(
            "The fields of <{name}> are in the wrong order. {}",
            in_words(name, models)
        )
    })
}

fn attributes(
    name: &str,
    models: &[FieldModel],
    document: &Document<'_>,
    id: NodeId,
) -> Option<String> {
    let element = document.element(id)?;
    let models = models
        .iter()
        .filter(|m| m.position == FieldPosition::Attribute);
    for model in models.clone() {
        let attribute = &model.name;
        match element.get_attribute(attribute) {
            Some(text) => {
                let what = format!("The attribute {attribute} of <{name}>");
                if let Some(wrong) = wrong_text(&what, &model.shape, text) {
                    return Some(wrong);
                }
            }
            None if model.occurs == Occurs::Once => {
                let kind = model.shape.in_words();
                return Some(format!(
                    "<{name}> lacks the attribute {attribute} ({kind})."
                ));
            }
            None => {}
        }
    }
    let unknown = element.attributes.iter().find(|attribute| {
        let local = &*attribute.name.local_name;
        models.clone().all(|model| model.name != local)
    })?;
    let unknown = &*unknown.name.local_name;
    Some(format!("<{name}> has no attribute {unknown}."))
}

fn choice(
    name: &str,
    variants: &[FieldModel],
    document: &Document<'_>,
    id: NodeId,
) -> Option<String> {
    let names: Vec<_> = variants.iter().map(|variant| &*variant.name).collect();
    let expected = format!("expected exactly one of: {}.", names.join(", "));
    match &elements(document, id)[..] {
        [(id, child)] => match variants.iter().find(|variant| variant.name == *child) {
            Some(variant) => content(&variant.name, &variant.shape, document, *id),
            None => Some(format!("<{name}> holds <{child}>; {expected}")),
        },
        [] => Some(format!("<{name}> holds no element; {expected}")),
        _ => Some(format!("<{name}> holds several elements; {expected}")),
    }
}

fn map(name: &str, value: &Shape, document: &Document<'_>, id: NodeId) -> Option<String> {
    let models = [
        FieldModel::of::<String>("key", "", None),
        FieldModel {
            shape: value.clone(),
            ..FieldModel::of::<String>("value", "", None)
        },
    ];
    let mut keys = HashSet::new();
    for (entry, child) in elements(document, id) {
        if child != "entry" {
            return Some(format!(
                "<{name}> holds <{child}>; expected <entry>s of a <key> and a <value>."
            ));
        }
        if let Some(wrong) = record("entry", &models, document, entry) {
            return Some(wrong);
        }
        let key = elements(document, entry).into_iter().next()?;
        let key = document.text_content_deep(key.0);
        if let Some(key) = keys.replace(key) {
            return Some(format!("<{name}> has the key {key:?} more than once."));
        }
    }
    None
}

/// What is wrong with the text of an element or attribute.
fn wrong_text(what: &str, shape: &Shape, text: &str) -> Option<String> {
    const SHOWN: usize = 60;
    let is_right = match shape {
        Shape::Integer(kind) => {
            let (least, most) = kind.bounds();
            let number = text.trim().parse::<i128>();
            number.is_ok_and(|number| (least..=most).contains(&number))
        }
        Shape::Decimal(_) => text.trim().parse::<f64>().is_ok(),
        Shape::Boolean => matches!(text.trim(), "true" | "false" | "1" | "0"),
        Shape::Enumeration(words) => words.contains(&collapsed(text)),
        Shape::Text | Shape::Record(_) | Shape::Choice(_) | Shape::Map(_) => true,
    };
    (!is_right).then(|| {
        let shown: String = text.chars().take(SHOWN).collect();
        let kind = shape.in_words();
        let article = match shape {
            Shape::Boolean | Shape::Enumeration(_) => "",
            _ => "a ",
        };
        format!("{what} holds {shown:?}; expected {article}{kind}.")
    })
}

fn in_words(name: &str, models: &[FieldModel]) -> String {
    if models.is_empty() {
        return format!("<{name}> has no fields.");
    }
    let fields: Vec<_> = models.iter().map(FieldModel::in_words).collect();
    format!("Its fields, in order: {}.", fields.join(", "))
}
