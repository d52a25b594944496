//! Tool names that an API refuses, mapped there and back for one request.

use crate::hash::fnv;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Which names an API takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Letters, digits, `_` and `-`, up to 64.
    Plain,
    /// As plain, with `.` and `:`, and a letter or `_` first.
    Dotted,
    /// Any name.
    #[default]
    Any,
}

const MAX_NAME: usize = 64;

impl NameRule {
    fn takes(self, at: usize, c: char) -> bool {
        let plain = c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match self {
            Self::Plain => plain,
            Self::Dotted if at == 0 => c.is_ascii_alphabetic() || c == '_',
            Self::Dotted => plain || c == '.' || c == ':',
            Self::Any => true,
        }
    }

    fn accepts(self, name: &str) -> bool {
        self == Self::Any
            || (!name.is_empty()
                && name.len() <= MAX_NAME
                && name.chars().enumerate().all(|(at, c)| self.takes(at, c)))
    }

    /// The name with what the API refuses replaced, and a mark of the original
    /// where `marked`.
    fn sanitize(self, name: &str, marked: bool) -> String {
        let mut sanitized: String = name
            .chars()
            .enumerate()
            .map(|(at, c)| if self.takes(at, c) { c } else { '_' })
            .collect();
        if sanitized.is_empty() {
            sanitized.push('_');
        }
        if marked || sanitized.len() > MAX_NAME {
            sanitized.truncate(MAX_NAME - 9);
            sanitized.push_str(&format!("_{:08x}", fnv([name]) as u32));
        }
        sanitized
    }

    /// An id that an API with this rule takes; the same text for the same id.
    pub(crate) fn id(self, id: &str) -> String {
        if self.accepts(id) {
            id.into()
        } else {
            self.sanitize(id, true)
        }
    }
}

/// The names of one request, both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameMap {
    rule: NameRule,
    to_wire: HashMap<String, String>,
    to_core: HashMap<String, String>,
}

impl NameMap {
    /// A map for `names`. Names the API takes stay as they are; no two names
    /// become the same.
    pub(crate) fn new<'a>(rule: NameRule, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: HashSet<&str> = names.into_iter().collect();
        let mut refused: Vec<&str> = names.iter().filter(|n| !rule.accepts(n)).copied().collect();
        refused.sort_unstable();
        let mut map = Self {
            rule,
            ..Self::default()
        };
        for name in refused {
            let free =
                |wire: &String| !names.contains(wire.as_str()) && !map.to_core.contains_key(wire);
            let wire = std::iter::once(rule.sanitize(name, false))
                .chain(std::iter::once(rule.sanitize(name, true)))
                .chain((0..).map(|n| rule.sanitize(&format!("{name}\0{n}"), true)))
                .find(free);
            if let Some(wire) = wire {
                map.to_core.insert(wire.clone(), name.into());
                map.to_wire.insert(name.into(), wire);
            }
        }
        map
    }

    /// The name as the API takes it. A name of an old call whose tool is not in
    /// the request is sanitized too.
    pub(crate) fn wire<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.to_wire.get(name) {
            Some(wire) => Cow::Borrowed(wire),
            None if self.rule.accepts(name) => Cow::Borrowed(name),
            None => Cow::Owned(self.rule.sanitize(name, true)),
        }
    }

    /// The name as the core knows it. A name that the model invented stays.
    pub(crate) fn core<'a>(&'a self, wire: &'a str) -> &'a str {
        self.to_core.get(wire).map_or(wire, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_names_go_there_and_back() {
        let map = NameMap::new(NameRule::Plain, ["fs.read", "time.now", "plain"]);
        assert_eq!(map.wire("fs.read"), "fs_read");
        assert_eq!(map.core("fs_read"), "fs.read");
        assert_eq!(map.wire("plain"), "plain");
        assert_eq!(map.core("invented"), "invented");
    }

    #[test]
    fn names_that_would_become_the_same_stay_apart() {
        let long_a = format!("{}a", "x".repeat(80));
        let long_b = format!("{}b", "x".repeat(80));
        let names = [
            "fs.read", "fs_read", "fs:read", "天氣", "天気", "", &long_a, &long_b,
        ];
        for rule in [NameRule::Plain, NameRule::Dotted] {
            let map = NameMap::new(rule, names);
            let wires: HashSet<_> = names.iter().map(|name| map.wire(name)).collect();
            assert_eq!(wires.len(), names.len());
            assert!(wires.iter().all(|wire| rule.accepts(wire)), "{wires:?}");
            assert!(names.iter().all(|name| map.core(&map.wire(name)) == *name));
            assert_eq!(map.wire("fs_read"), "fs_read");
        }
    }

    #[test]
    fn dots_stay_where_the_api_takes_them() {
        let map = NameMap::new(NameRule::Dotted, ["fs.read", "9lives"]);
        assert_eq!(map.wire("fs.read"), "fs.read");
        assert_eq!(map.wire("9lives"), "_lives");
    }
}
