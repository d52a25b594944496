//! libxml as a second opinion on what we write. Needs `xmllint`, which Debian
//! has in `libxml2-utils`.

use agentserver::Payload;
use agentserver::envelope::{self, Envelope};
use agentserver::payload::{Canonical, PayloadType};
use agentserver::system::{Huh, SystemError};
use agentserver::xml::Limits;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn xmllint(arguments: &[&str], input: &str) -> (bool, String) {
    let child = Command::new("xmllint")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child =
        child.expect("xmllint is needed for this test: install the Debian package libxml2-utils");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

pub fn is_valid(folder: &Path, xsd: &str, document: &str) -> bool {
    let path = folder.join("schema.xsd");
    std::fs::write(&path, xsd).unwrap();
    xmllint(
        &[
            "--noout",
            "--nonet",
            "--schema",
            path.to_str().unwrap(),
            "-",
        ],
        document,
    )
    .0
}

const DOCUMENTS: [&str; 9] = [
    "<a b='2' a='1'><!-- gone --><c/></a>",
    "<a xmlns:x='urn:x' xmlns:unused='urn:u'><x:b x:c='1' a='2'/></a>",
    "<x:a xmlns:x='urn:x' xmlns='urn:d'><b xmlns=''><x:c/></b></x:a>",
    "<a>text &amp; &lt; &gt; &quot; &apos; &#13; &#9;\n</a>",
    "<a b='&amp;&lt;&quot;&#9;&#10;&#13;'/>",
    "<a><![CDATA[<&>]]></a>",
    "<?xml version='1.0' encoding='UTF-8'?>\n<a>\u{e9}\u{1F600}</a>\n",
    "<a  b = '1'  ></a  >",
    "<a xmlns='urn:d'><b xmlns='urn:d'><c xmlns=''/></b></a>",
];

#[test]
fn our_canonical_form_is_libxmls() {
    for document in DOCUMENTS {
        let ours = Canonical::parse(document, &Limits::default()).unwrap();
        let stripped = document.replace("<!-- gone -->", "");
        let (is_ok, theirs) = xmllint(&["--nonet", "--exc-c14n", "-"], &stripped);
        assert!(is_ok, "{document}");
        assert_eq!(ours.xml(), theirs.trim_end_matches('\n'), "{document}");
    }
}

#[test]
fn libxml_accepts_our_envelopes_and_payloads() {
    let folder = tempfile::tempdir().unwrap();
    for schema in [SystemError::schema(), Huh::schema()] {
        assert!(
            is_valid(folder.path(), &schema.xsd(), &schema.example()),
            "{}",
            schema.name
        );
        let written = Envelope {
            from: "a".into(),
            to: Some("b".into()),
            thread: "t".into(),
            payload: Canonical::parse(&schema.example(), &Limits::default()).unwrap(),
        };
        assert!(
            is_valid(folder.path(), envelope::XSD, &written.write().unwrap()),
            "{}",
            schema.name
        );
    }
}

#[derive(Payload)]
#[allow(dead_code)]
struct Mixed {
    text: String,
    number: Option<i32>,
    many: Vec<bool>,
    fraction: f64,
}

#[test]
fn libxml_and_we_say_the_same_of_each_document() {
    let folder = tempfile::tempdir().unwrap();
    let known = PayloadType::of::<Mixed>().unwrap();
    // One thing is left out: libxml refuses spaces around an integer, which the
    // standard collapses.
    for inner in [
        "<text>x</text><fraction>1</fraction>",
        "<text/><number>5</number><many>1</many><many>false</many><fraction>-INF</fraction>",
        "<text/><fraction>NaN</fraction>",
        "<text/><number>+5</number><fraction>1e3</fraction>",
        "<text/><number>5.0</number><fraction>1</fraction>",
        "<text/><number>2147483648</number><fraction>1</fraction>",
        "<text/><many>yes</many><fraction>1</fraction>",
        "<text/><fraction>inf</fraction>",
        "<text/><fraction/>",
        "<fraction>1</fraction><text/>",
        "<text/><text/><fraction>1</fraction>",
        "<text>x<b/></text><fraction>1</fraction>",
        "",
    ] {
        let document = format!("<Mixed>{inner}</Mixed>");
        let ours = Canonical::parse(&document, &Limits::default())
            .is_ok_and(|payload| known.check(&payload).is_ok());
        assert_eq!(
            ours,
            is_valid(folder.path(), &Mixed::schema().xsd(), &document),
            "{document}"
        );
        // What the schema accepts, the struct can be read from.
        if ours {
            assert!(Mixed::from_xml(&document).is_ok(), "{document}");
        }
    }
}
