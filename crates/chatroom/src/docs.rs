//! The documents that the server carries: markdown for agents and people.

use crate::auth::secrets::sha256_hex;
use include_dir::{Dir, include_dir};
use protocol::DocsVersion;
use std::collections::BTreeMap;

static DOCS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs");
/// What there is to read.
pub const INDEX: &str = include_str!("../../../docs/README.md");
/// The documents that define the protocol. Agents read them again when one changes.
const TRACKED: [&str; 4] = ["agent-playbook", "api", "handler-interface", "welcome"];
const FINGERPRINT: usize = 16;

/// The documents and their fingerprints.
pub struct Docs {
    version: String,
    per_doc: BTreeMap<String, String>,
}

impl Default for Docs {
    fn default() -> Self {
        let per_doc: BTreeMap<String, String> = TRACKED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fingerprint(text(name)?.as_bytes()))))
            .collect();
        let all: String = per_doc
            .iter()
            .map(|(name, hash)| format!("{name}={hash}\n"))
            .collect();
        Self {
            version: fingerprint(all.as_bytes()),
            per_doc,
        }
    }
}

impl Docs {
    /// Changes when any tracked document changes.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A document's text and fingerprint.
    pub fn get(&self, name: &str) -> Option<(&'static str, String)> {
        let text = text(name)?;
        let hash = self
            .per_doc
            .get(name)
            .cloned()
            .unwrap_or_else(|| fingerprint(text.as_bytes()));
        Some((text, hash))
    }

    /// What `/docs-version` answers.
    pub fn describe(&self, public_url: &str) -> DocsVersion {
        DocsVersion {
            docs_version: self.version.clone(),
            per_doc: self.per_doc.clone(),
            doc_url_template: format!("{public_url}/docs/{{name}}"),
        }
    }
}

/// Whether there is a document of this name. The folders below are for people who change the code.
pub fn is_served(name: &str) -> bool {
    text(name).is_some()
}

fn text(name: &str) -> Option<&'static str> {
    if name.contains('/') {
        return None;
    }
    DOCS.get_file(format!("{name}.md"))?.contents_utf8()
}

fn fingerprint(bytes: &[u8]) -> String {
    sha256_hex(bytes)[..FINGERPRINT].to_owned()
}
