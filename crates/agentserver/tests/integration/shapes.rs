//! Payloads beyond plain fields: choices, words, maps, attributes, sized
//! numbers, defaults. XML, XSD, JSON and prompt agree on each.

use crate::oracle::is_valid;
use crate::payload::{round_trip, text};
use agentserver::Payload;
use agentserver::payload::{Canonical, PayloadType};
use agentserver::xml::Limits;
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// How much it matters.
#[derive(Payload, Debug, Clone, Copy, Default, PartialEq)]
enum Weight {
    #[payload(name = "low")]
    Low,
    #[default]
    #[payload(name = "high")]
    High,
}

/// What to do with a file.
#[derive(Payload, Debug, Clone, PartialEq)]
enum Action {
    /// Nothing at all.
    Nothing,
    /// Put it somewhere else.
    Move {
        #[payload(attribute)]
        force: bool,
        to: String,
        #[payload(default = 3)]
        tries: u8,
    },
    Rename(String),
    Weigh(Weight),
    Note(Note),
    Other(Inner),
}

#[derive(Payload, Debug, Clone, PartialEq)]
enum Inner {
    One(u16),
    Two { left: i32, right: Option<i32> },
}

/// A note.
#[derive(Payload, Debug, Clone, PartialEq)]
#[payload(namespace = "urn:notes")]
struct Note {
    /// Who wrote it.
    #[payload(attribute)]
    author: String,
    #[payload(attribute, default = "en")]
    language: String,
    #[payload(attribute)]
    page: Option<u32>,
    body: String,
    #[payload(default)]
    weight: Weight,
    /// Free words.
    labels: BTreeMap<String, String>,
    counts: HashMap<String, u64>,
}

#[derive(Payload, Debug, Clone, PartialEq)]
struct Plan {
    first: Action,
    then: Option<Action>,
    rest: Vec<Action>,
    weights: Vec<Weight>,
    by_name: BTreeMap<String, Action>,
}

fn weight() -> impl Strategy<Value = Weight> {
    prop_oneof![Just(Weight::Low), Just(Weight::High)]
}

prop_compose! {
    fn note()(
        (author, language, body) in (text(), text(), text()),
        page in any::<Option<u32>>(),
        weight in weight(),
        labels in prop::collection::btree_map(text(), text(), 0..3),
        counts in prop::collection::hash_map(text(), any::<u64>(), 0..3),
    ) -> Note {
        Note { author, language, page, body, weight, labels, counts }
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Nothing),
        (any::<bool>(), text(), any::<u8>()).prop_map(|(force, to, tries)| Action::Move {
            force,
            to,
            tries
        }),
        text().prop_map(Action::Rename),
        weight().prop_map(Action::Weigh),
        note().prop_map(Action::Note),
        any::<u16>().prop_map(|number| Action::Other(Inner::One(number))),
        any::<(i32, Option<i32>)>()
            .prop_map(|(left, right)| Action::Other(Inner::Two { left, right })),
    ]
}

prop_compose! {
    fn plan()(
        first in action(),
        then in prop::option::of(action()),
        rest in prop::collection::vec(action(), 0..3),
        weights in prop::collection::vec(weight(), 0..3),
        by_name in prop::collection::btree_map(text(), action(), 0..2),
    ) -> Plan {
        Plan { first, then, rest, weights, by_name }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn choices_maps_and_attributes_go_round_exactly(plan in plan(), note in note(), action in action()) {
        round_trip(&plan);
        round_trip(&note);
        round_trip(&action);
    }
}

fn read<P: Payload>(xml: &str) -> Result<P, String> {
    let known = PayloadType::of::<P>().unwrap();
    let canonical = Canonical::parse(xml, &Limits::default()).map_err(|e| e.to_string())?;
    known.check(&canonical).map_err(|error| error.to_string())?;
    canonical.read().map_err(|error| error.to_string())
}

const NOTE: &str = "<Note xmlns='urn:notes' author='me'><body>x</body></Note>";

#[test]
fn what_is_left_out_has_its_default() {
    let note: Note = read(NOTE).unwrap();
    assert_eq!((&*note.language, note.page), ("en", None));
    assert_eq!(note.weight, Weight::High);
    assert!(note.labels.is_empty());
    let action: Action = read("<Action><Move force='1'><to>x</to></Move></Action>").unwrap();
    let expected = Action::Move {
        force: true,
        to: "x".into(),
        tries: 3,
    };
    assert_eq!(action, expected);
    let known = PayloadType::of::<Note>().unwrap();
    let canonical = Canonical::parse(NOTE, &Limits::default()).unwrap();
    assert_eq!(
        known.xml_to_json(&canonical).unwrap(),
        json!({ "author": "me", "language": "en", "body": "x", "weight": "high" })
    );
}

#[test]
fn a_choice_is_written_over_several_lines_as_well() {
    let plan: Plan = read(
        "<Plan>\n  <first>\n    <Nothing/>\n  </first>\n  <rest>\n    <Rename>a</Rename>\n  </rest>\n  \
         <rest>\n <Other>\n <One> 7 </One>\n </Other></rest>\n</Plan>",
    )
    .unwrap();
    assert_eq!(plan.first, Action::Nothing);
    assert_eq!(plan.rest.len(), 2);
    assert_eq!(plan.rest[1], Action::Other(Inner::One(7)));
}

#[test]
fn what_does_not_fit_is_told_in_words() {
    let note = |inner: &str, attributes: &str| {
        let xml = format!("<Note xmlns='urn:notes' {attributes}><body/>{inner}</Note>");
        read::<Note>(&xml).unwrap_err()
    };
    let plan = |first: &str| read::<Plan>(&format!("<Plan><first>{first}</first></Plan>"));
    let entry = |key: &str| format!("<entry><key>{key}</key><value>1</value></entry>");
    for (told, words) in [
        (note("", ""), "<Note> lacks the attribute author (text)."),
        (
            note("", "author='x' page='-1'"),
            "The attribute page of <Note> holds \"-1\"; expected a whole number from 0 to 4294967295.",
        ),
        (
            note("", "author='x' colour='red'"),
            "<Note> has no attribute colour.",
        ),
        (
            note("<weight>heavy</weight>", "author='x'"),
            "<weight> holds \"heavy\"; expected one of: low, high.",
        ),
        (
            note(
                &format!("<counts>{}{}</counts>", entry("a"), entry("a")),
                "author='x'",
            ),
            "<counts> has the key \"a\" more than once.",
        ),
        (
            note(
                "<counts><entry><key>a</key><value>-1</value></entry></counts>",
                "author='x'",
            ),
            "<value> holds \"-1\"; expected a whole number, 0 or more.",
        ),
        (
            note("<counts><a>1</a></counts>", "author='x'"),
            "<counts> holds <a>; expected <entry>s of a <key> and a <value>.",
        ),
        (
            plan("").unwrap_err(),
            "<first> holds no element; expected exactly one of: Nothing, Move, Rename, Weigh, Note, Other.",
        ),
        (
            plan("<Nothing/><Nothing/>").unwrap_err(),
            "<first> holds several elements; expected",
        ),
        (
            plan("<Delete/>").unwrap_err(),
            "<first> holds <Delete>; expected exactly one of",
        ),
        (
            plan("<Move force='true'><to/><tries>256</tries></Move>").unwrap_err(),
            "<tries> holds \"256\"; expected a whole number from 0 to 255.",
        ),
    ] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn libxml_says_the_same_of_each_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let agree = |known: &PayloadType, document: &str| {
        let schema = known.schema();
        let ours = Canonical::parse(document, &Limits::default())
            .is_ok_and(|payload| known.check(&payload).is_ok());
        let theirs = is_valid(folder.path(), &schema.xsd(), document);
        assert_eq!(ours, theirs, "{document}");
        if ours {
            known
                .xml_to_json(&Canonical::parse(document, &Limits::default()).unwrap())
                .unwrap();
        }
    };
    let (plan, note, action) = (
        PayloadType::of::<Plan>().unwrap(),
        PayloadType::of::<Note>().unwrap(),
        PayloadType::of::<Action>().unwrap(),
    );
    for known in [&plan, &note, &action] {
        assert!(is_valid(
            folder.path(),
            &known.schema().xsd(),
            &known.schema().example()
        ));
    }
    for first in [
        "<Nothing/>",
        "<Nothing>x</Nothing>",
        "<Nothing/><Nothing/>",
        "",
        "<Rename/>",
        "<Weigh>low</Weigh>",
        "<Weigh> low </Weigh>",
        "<Weigh>Low</Weigh>",
        "<Move force='yes'><to/></Move>",
        "<Move force='0'><to/></Move>",
        "<Move><to/></Move>",
        "<Move force='0'><to/><tries>256</tries></Move>",
        "<Other><One>65536</One></Other>",
        "<Other><Two><left>1</left></Two></Other>",
    ] {
        agree(&plan, &format!("<Plan><first>{first}</first></Plan>"));
        agree(&action, &format!("<Action>{first}</Action>"));
    }
    let entry = |key: &str| format!("<entry><key>{key}</key><value>1</value></entry>");
    for labels in [
        entry("a"),
        entry("a") + &entry("b"),
        entry("a") + &entry("a"),
        entry("a") + &entry("b") + &entry("a"),
        entry("a") + &entry(" a "),
        entry("") + &entry(" "),
        entry("1") + &entry("01"),
        entry("x:a") + &entry("y:a"),
        entry("") + &entry("a"),
        "<entry><value>1</value><key>a</key></entry>".to_owned(),
        "<a>1</a>".to_owned(),
    ] {
        let body = format!("<body/><counts>{labels}</counts>");
        agree(
            &note,
            &format!("<Note xmlns='urn:notes' author='x'>{body}</Note>"),
        );
    }
    for attributes in [
        "",
        "author='x'",
        "author='x' page='4294967296'",
        "author='x' page=''",
    ] {
        agree(
            &note,
            &format!("<Note xmlns='urn:notes' {attributes}><body/></Note>"),
        );
    }
}

#[test]
fn doc_comments_and_defaults_are_in_the_xsd_and_in_the_prompt() {
    let (note, action) = (Note::schema(), Action::schema());
    for part in [
        "<xs:documentation>A note.</xs:documentation>",
        "<xs:documentation>Who wrote it.</xs:documentation>",
        "<xs:documentation>\"high\" unless said.</xs:documentation>",
        "name=\"language\" default=\"en\"",
        "<xs:unique name=\"map-1\"><xs:selector xpath=\"own:entry\"/>",
    ] {
        let part = part.replace("\"high\"", "&quot;high&quot;");
        assert!(note.xsd().contains(&part), "{}", note.xsd());
    }
    let prompt = note.prompt();
    for part in [
        "<Note>: A note.\n",
        "  author (attribute, text): Who wrote it.\n",
        "  language (attribute, text, \"en\" unless said)\n",
        "  weight (one of: low, high, \"high\" unless said)\n",
        "  page (attribute, whole number from 0 to 4294967295, optional)\n",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert!(action.xsd().contains("<xs:choice>") && action.xsd().contains("Nothing at all."));
    let prompt = action.prompt();
    assert!(
        prompt.contains("<Action> (exactly one of these elements): What to do"),
        "{prompt}"
    );
    assert!(prompt.contains("  Move (fields): Put it somewhere else.\n    force (attribute, "));
    assert_eq!(
        Weight::schema().json_schema(),
        json!({ "type": "string", "enum": ["low", "high"], "description": "How much it matters." })
    );
}

#[test]
fn every_character_goes_round_wherever_it_stands() {
    let characters = (0x20..=0xd7ff)
        .chain(0xe000..=0xfffd)
        .chain([0x9, 0xa, 0xd, 0x1_f600]);
    let characters: Vec<_> = characters.filter_map(char::from_u32).collect();
    for some in characters.chunks(2048) {
        let text = String::from_iter(some);
        let note = Note {
            author: text.clone(),
            language: text.clone(),
            page: None,
            body: text.clone(),
            weight: Weight::Low,
            labels: [("key".to_owned(), text.clone())].into(),
            counts: HashMap::new(),
        };
        round_trip(&note);
        round_trip(&Action::Rename(text));
    }
}
