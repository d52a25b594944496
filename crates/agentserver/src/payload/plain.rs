//! The short way for the commonest payloads: records of text, whole numbers and
//! truth values, as C14N writes them. What it finds valid the XSD finds valid too;
//! of the rest it says nothing, and the XSD decides.

use super::{FieldModel, FieldPosition, IntegerType, Occurs, Schema, Shape};

/// Whether canonical XML is surely a valid payload.
pub(super) fn is_surely_valid(schema: &Schema, xml: &str) -> bool {
    schema.namespace.is_empty() && after_element(&schema.name, &schema.content, xml) == Some("")
}

/// What follows an element that is surely valid.
fn after_element<'a>(name: &str, shape: &Shape, xml: &'a str) -> Option<&'a str> {
    let content = after_start(name, xml)?;
    let end = match shape {
        Shape::Record(fields) => after_fields(fields, content)?,
        scalar => {
            let (text, _) = content.split_once('<')?;
            is_surely_scalar(scalar, text).then(|| &content[text.len()..])?
        }
    };
    let end = end.strip_prefix("</")?.strip_prefix(name)?;
    end.strip_prefix('>')
}

fn after_start<'a>(name: &str, xml: &'a str) -> Option<&'a str> {
    let start = xml.strip_prefix('<')?.strip_prefix(name)?;
    start.strip_prefix('>')
}

fn after_fields<'a>(fields: &[FieldModel], mut xml: &'a str) -> Option<&'a str> {
    for field in fields {
        if field.position != FieldPosition::Element {
            return None;
        }
        let mut is_there = after_start(&field.name, xml).is_some() || field.occurs == Occurs::Once;
        while is_there {
            xml = after_element(&field.name, &field.shape, xml)?;
            is_there = field.occurs == Occurs::Many && after_start(&field.name, xml).is_some();
        }
    }
    Some(xml)
}

fn is_surely_scalar(shape: &Shape, text: &str) -> bool {
    match shape {
        Shape::Text => true,
        Shape::Boolean => matches!(text, "true" | "false"),
        Shape::Integer(kind) => is_surely_integer(*kind, text),
        _ => false,
    }
}

fn is_surely_integer(kind: IntegerType, text: &str) -> bool {
    let (least, most) = kind.bounds();
    let digits = match least < 0 {
        true => text.strip_prefix('-').unwrap_or(text),
        false => text,
    };
    (1..=20).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && text
            .parse()
            .is_ok_and(|value: i128| (least..=most).contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Canonical, PayloadType};
    use crate::xml::Limits;
    use proptest::prelude::*;

    fn schema() -> Schema {
        let field = |name: &str, shape: Shape, occurs: Occurs| FieldModel {
            name: name.to_owned(),
            description: String::new(),
            shape,
            occurs,
            position: FieldPosition::Element,
            default: None,
            example: None,
        };
        let inner = vec![
            field("a", Shape::Integer(IntegerType::Uint64), Occurs::Optional),
            field("b", Shape::Boolean, Occurs::Once),
        ];
        Schema {
            name: "R".to_owned(),
            namespace: String::new(),
            description: String::new(),
            content: Shape::Record(vec![
                field("a", Shape::Integer(IntegerType::Int8), Occurs::Once),
                field("b", Shape::Text, Occurs::Optional),
                field("c", Shape::Record(inner), Occurs::Many),
            ]),
        }
    }

    /// Fields of the schema and others, with contents that fit and others, in any order.
    fn content() -> impl Strategy<Value = String> {
        let text = prop::sample::select(vec![
            "",
            "1",
            "-1",
            "-0",
            "007",
            "127",
            "128",
            "-128",
            "true",
            "false",
            "yes",
            " 1",
            "x &amp; y",
            "18446744073709551615",
            "18446744073709551616",
            "1.0",
            "+1",
            "\u{661}",
        ]);
        let name = || prop::sample::select(vec!["a", "b", "c", "ab"]);
        let leaf = (name(), text).prop_map(|(name, text)| format!("<{name}>{text}</{name}>"));
        let leaves = prop::collection::vec(leaf.clone(), 0..3);
        let nested =
            (name(), leaves).prop_map(|(n, leaves)| format!("<{n}>{}</{n}>", leaves.concat()));
        let right = Just("<a>1</a>".to_owned());
        let child = prop_oneof![3 => leaf, 2 => nested, 2 => right];
        prop::collection::vec(child, 0..4).prop_map(|children| children.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_surely_valid_is_valid_by_the_schema(content in content()) {
            let known = PayloadType::compile(schema()).unwrap();
            let payload = Canonical::parse(&format!("<R>{content}</R>"), &Limits::default()).unwrap();
            if is_surely_valid(&schema(), payload.xml()) {
                known.check_by_schema(&payload).unwrap();
            }
        }
    }

    #[test]
    fn the_commonest_payloads_are_surely_valid() {
        for content in [
            "<a>1</a>",
            "<a>-128</a><b>x &amp; y</b><c><a>7</a><b>true</b></c><c><b>false</b></c>",
        ] {
            assert!(
                is_surely_valid(&schema(), &format!("<R>{content}</R>")),
                "{content}"
            );
        }
    }
}
