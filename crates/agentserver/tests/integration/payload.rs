//! One field model: XML in and out, XSD, example and prompt agree.

use agentserver::Payload;
use agentserver::payload::{
    Canonical, FieldModel, FieldPosition, IntegerType, Occurs, PayloadType, Schema, SchemaError,
    Shape,
};
use agentserver::system::{
    Boot, Huh, SystemError, TodoClosed, TodoComplete, TodoNudge, TodoRegistered, TodoUntil,
};
use agentserver::xml::Limits;
use proptest::prelude::*;

/// A thing with every kind of field.
#[derive(Payload, Debug, Clone, PartialEq)]
#[payload(name = "everything", namespace = "urn:test:\"<&>")]
struct Everything {
    /// Any text.
    text: String,
    #[payload(name = "may-be")]
    optional: Option<String>,
    many: Vec<String>,
    r#type: bool,
    small: i8,
    large: u64,
    fraction: f64,
    #[payload(example = "4")]
    number: Option<u32>,
    inner: Inner,
    inners: Vec<Inner>,
}

#[derive(Payload, Debug, Clone, PartialEq)]
struct Inner {
    a: String,
    b: Option<i64>,
}

#[derive(Payload, Debug, Clone, PartialEq)]
struct Nothing;

pub fn round_trip<P: Payload + PartialEq + std::fmt::Debug>(payload: &P) {
    let known = PayloadType::of::<P>().unwrap();
    let canonical = Canonical::parse(&payload.to_xml().unwrap(), &Limits::default()).unwrap();
    known.check(&canonical).unwrap();
    assert_eq!(canonical.read::<P>().unwrap(), *payload);
    let json = known.xml_to_json(&canonical).unwrap();
    let back = Canonical::parse(&known.json_to_xml(&json).unwrap(), &Limits::default()).unwrap();
    assert_eq!(back.read::<P>().unwrap(), *payload, "JSON and back");
}

/// Text as XML can carry it.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("007".to_owned()),
        Just(" padded ".to_owned()),
        Just("&<>'\"]]>\r\n\t".to_owned()),
        "[ -~\u{9}\u{A}\u{D}\u{A0}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]{0,20}",
    ]
}

prop_compose! {
    fn inner()(a in text(), b in any::<Option<i64>>()) -> Inner {
        Inner { a, b }
    }
}

prop_compose! {
    fn everything()(
        text in text(),
        optional in prop::option::of(text()),
        many in prop::collection::vec(text(), 0..4),
        (r#type, small, large, number) in any::<(bool, i8, u64, Option<u32>)>(),
        fraction in prop::num::f64::NORMAL | prop::num::f64::ZERO,
        inner in inner(),
        inners in prop::collection::vec(inner(), 0..3),
    ) -> Everything {
        Everything { text, optional, many, r#type, small, large, fraction, number, inner, inners }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_payload_goes_round_exactly(payload in everything()) {
        round_trip(&payload);
    }

    #[test]
    fn text_goes_round_exactly(text in text()) {
        round_trip(&crate::common::told(text));
    }

    #[test]
    fn the_example_of_any_schema_fits_its_xsd(schema in schema()) {
        let known = PayloadType::compile(schema.clone()).unwrap();
        let example = Canonical::parse(&schema.example(), &Limits::default()).unwrap();
        known.check(&example).unwrap();
        prop_assert!(schema.prompt().contains(&schema.example()));
        let json = known.xml_to_json(&example).unwrap();
        let back = known.json_to_xml(&json).unwrap();
        let back = Canonical::parse(&back, &Limits::default()).unwrap();
        known.check(&back).unwrap();
        prop_assert_eq!(known.xml_to_json(&back).unwrap(), json);
    }
}

fn field(shape: impl Strategy<Value = Shape> + 'static) -> impl Strategy<Value = FieldModel> {
    let occurs = prop_oneof![
        Just(Occurs::Once),
        Just(Occurs::Optional),
        Just(Occurs::Many)
    ];
    ("[a-z_][a-zA-Z0-9_.-]{0,8}", "[ -~]{0,20}", shape, occurs).prop_map(
        |(name, description, shape, occurs)| FieldModel {
            name,
            description,
            shape,
            occurs,
            position: FieldPosition::Element,
            default: None,
            example: None,
        },
    )
}

/// Variants of a choice: each once.
fn variants(
    shape: impl Strategy<Value = Shape> + 'static,
) -> impl Strategy<Value = Vec<FieldModel>> {
    fields(shape).prop_map(|mut variants| {
        variants.push(FieldModel::of::<String>("last", "The last.", None));
        let mut seen = std::collections::HashSet::new();
        variants.retain(|field| seen.insert(field.name.clone()));
        for variant in &mut variants {
            variant.occurs = Occurs::Once;
        }
        variants
    })
}

/// Fields of which those that can be are attributes, or have a default.
fn record(shape: impl Strategy<Value = Shape> + 'static) -> impl Strategy<Value = Shape> {
    (fields(shape), any::<[bool; 4]>(), any::<[bool; 4]>()).prop_map(
        |(mut fields, are_attributes, have_defaults)| {
            let marks = are_attributes.into_iter().zip(have_defaults);
            for (field, (is_attribute, has_default)) in fields.iter_mut().zip(marks) {
                let default = match &field.shape {
                    Shape::Text => "any \"<text>\" & \nmore",
                    Shape::Integer(_) => "7",
                    Shape::Boolean => "false",
                    _ => continue,
                };
                if is_attribute && field.occurs != Occurs::Many {
                    field.position = FieldPosition::Attribute;
                }
                if has_default && field.occurs == Occurs::Optional {
                    field.default = Some(default.to_owned());
                }
            }
            Shape::Record(fields)
        },
    )
}

fn fields(shape: impl Strategy<Value = Shape> + 'static) -> impl Strategy<Value = Vec<FieldModel>> {
    prop::collection::vec(field(shape), 0..4).prop_map(|mut fields| {
        let mut seen = std::collections::HashSet::new();
        fields.retain(|field| seen.insert(field.name.clone()));
        fields
    })
}

fn schema() -> impl Strategy<Value = Schema> {
    let leaf = prop_oneof![
        Just(Shape::Text),
        Just(Shape::Boolean),
        prop::sample::select(vec![
            IntegerType::Int8,
            IntegerType::Int64,
            IntegerType::Uint8,
            IntegerType::Uint64,
        ])
        .prop_map(Shape::Integer),
        Just(Shape::Decimal("double")),
        prop::collection::btree_set("[!-~]{1,4}( [!-~]{1,3})?", 1..4)
            .prop_map(|words| Shape::Enumeration(words.into_iter().collect())),
    ];
    let shape = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            record(inner.clone()),
            variants(inner.clone()).prop_map(Shape::Choice),
            inner.prop_map(|value| Shape::Map(Box::new(value))),
        ]
    });
    (
        "[A-Za-z_][a-zA-Z0-9_.-]{0,8}",
        "(urn:[a-z\"<>&']{0,6})?",
        "[ -~]{0,20}",
        shape,
    )
        .prop_map(|(name, namespace, description, content)| Schema {
            name,
            namespace,
            description,
            content,
        })
}

#[test]
fn every_type_of_the_pumps_own_has_an_example_that_fits() {
    for schema in [
        SystemError::schema(),
        Huh::schema(),
        Boot::schema(),
        TodoUntil::schema(),
        TodoRegistered::schema(),
        TodoComplete::schema(),
        TodoClosed::schema(),
        TodoNudge::schema(),
        Nothing::schema(),
        Everything::schema(),
    ] {
        PayloadType::compile(schema).unwrap();
    }
    round_trip(&Nothing);
}

#[test]
fn the_system_error_is_written_as_the_contract_writes_it() {
    let error = agentserver::system::Fault::Routing.error();
    assert_eq!(
        error.to_xml().unwrap(),
        "<SystemError><code>routing</code><message>Message could not be delivered. Please verify your target and \
         try again.</message><retry-allowed>true</retry-allowed></SystemError>"
    );
}

#[test]
fn a_schema_refuses_what_it_does_not_name() {
    let known = PayloadType::of::<Inner>().unwrap();
    let check = |xml: &str| {
        Canonical::parse(xml, &Limits::default()).map(|payload| known.check(&payload).is_ok())
    };
    assert_eq!(check("<Inner><a>x</a></Inner>"), Ok(true));
    assert_eq!(
        check("<Inner>\n  <a>x</a>\n  <b> 5 </b>\n</Inner>"),
        Ok(true)
    );
    for xml in [
        "<Inner/>",
        "<Inner><b>5</b><a>x</a></Inner>",
        "<Inner><a>x</a><b>five</b></Inner>",
        "<Inner><a>x</a><b>99999999999999999999</b></Inner>",
        "<Inner><a>x</a><c/></Inner>",
        "<Inner><a>x</a>text</Inner>",
        "<Inner one='1'><a>x</a></Inner>",
        "<Inner xmlns='urn:other'><a>x</a></Inner>",
        "<Inner xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'/>",
        "<Other/>",
    ] {
        assert_eq!(check(xml), Ok(false), "{xml}");
    }
}

#[test]
fn a_schema_that_contradicts_itself_is_refused() {
    let schema = |fields: Vec<FieldModel>| Schema {
        name: "T".into(),
        namespace: String::new(),
        description: String::new(),
        content: Shape::Record(fields),
    };
    let field = |name: &str, example: Option<&str>| FieldModel {
        name: name.into(),
        description: String::new(),
        shape: Shape::Integer(IntegerType::Int32),
        occurs: Occurs::Once,
        position: FieldPosition::Element,
        default: None,
        example: example.map(Into::into),
    };
    let compile = |fields| PayloadType::compile(schema(fields)).map(drop);
    assert!(matches!(
        compile(vec![field("a", Some("one"))]),
        Err(SchemaError::Example { .. })
    ));
    assert!(matches!(
        compile(vec![field("a", None), field("a", None)]),
        Err(SchemaError::Twice(_))
    ));
    assert!(matches!(
        compile(vec![field("<a", None)]),
        Err(SchemaError::Name(_))
    ));
}
