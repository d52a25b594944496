//! What may be built into the programs: `cargo xtask deny`.
//!
//! cargo-deny itself takes minutes to build, so this reads the part of its `deny.toml` that needs no
//! network: licences, banned crates, several major versions of one crate, and sources. Where
//! cargo-deny is installed, it runs too, and looks for advisories.

use crate::{
    dependencies::{Graph, Package, SHIPPED, read_toml},
    run::{command, find_program, run},
};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Checks what the programs are built from.
pub fn deny() -> Result<(), String> {
    let rules = read_toml("deny.toml")?;
    let graph = Graph::read(&texts(&rules, "graph", "targets"))?;
    let mut shipped = BTreeSet::new();
    for (package, _) in SHIPPED {
        shipped.extend(graph.of_program(package)?.1);
    }
    let packages: Vec<&Package> = shipped
        .iter()
        .filter_map(|id| graph.packages.get(id))
        .filter(|package| package.source.is_some())
        .collect();
    let wrong = violations(&rules, &packages);
    if !wrong.is_empty() {
        return Err(format!("deny.toml is not kept:\n  {}", wrong.join("\n  ")));
    }
    println!("deny.toml is kept by {} packages.", packages.len());
    match find_program("cargo-deny", &[]) {
        Some(_) => run(command("cargo-deny").args(["--workspace", "check"])),
        None => {
            println!("Advisories were not looked for: cargo-deny is not installed.");
            Ok(())
        }
    }
}

/// Everything that the rules do not allow, in words.
fn violations(rules: &Table, packages: &[&Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    let allowed = texts(rules, "licenses", "allow");
    let registries = texts(rules, "sources", "allow-registry");
    let banned = named(rules, "deny");
    let skipped = named(rules, "skip");
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let shown = format!("{} {}", package.name, package.version);
        match &package.licence {
            None => wrong.push(format!("{shown} names no licence")),
            Some(licence) if !permits(licence, &allowed) => {
                wrong.push(format!("{shown} has the licence {licence}"));
            }
            Some(_) => {}
        }
        let source = package.source.as_deref().unwrap_or_default();
        let source = source.strip_prefix("registry+").unwrap_or(source);
        if !registries.iter().any(|registry| registry == source) {
            wrong.push(format!("{shown} comes from {source}"));
        }
        for (name, reason) in &banned {
            if *name == package.name {
                wrong.push(format!("{shown} is banned: {reason}"));
            }
        }
        let spec = |name: &str| {
            let (name, version) = name.split_once('@').unwrap_or((name, ""));
            name == package.name && package.version.starts_with(version)
        };
        if !skipped.iter().any(|(name, _)| spec(name)) {
            let seen = versions.entry(&package.name).or_default();
            seen.insert(&package.version);
        }
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.iter().copied().collect();
        wrong.push(format!(
            "{name} is there in versions {}",
            versions.join(", ")
        ));
    }
    wrong
}

/// Whether these licences are enough for what an SPDX expression asks.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let permitted = any_of(&mut words, allowed);
    permitted && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        permitted |= all_of(words, allowed);
    }
    permitted
}

fn all_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        permitted &= one(words, allowed);
    }
    permitted
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    match words.next() {
        Some("(") => {
            let permitted = any_of(words, allowed);
            words.next_if_eq(&")").is_some() && permitted
        }
        Some(licence) => {
            let licence = match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
                Some(exception) => format!("{licence} WITH {exception}"),
                None => licence.to_owned(),
            };
            allowed.contains(&licence)
        }
        None => false,
    }
}

/// A list of words in the rules.
pub fn texts(rules: &Table, section: &str, name: &str) -> Vec<String> {
    let list = rules.get(section).and_then(|section| section.get(name));
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Crates that a list of the bans names, and why.
fn named(rules: &Table, list: &str) -> Vec<(String, String)> {
    let list = rules.get("bans").and_then(|bans| bans.get(list));
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|entry| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        Some((
            text("crate")?.to_owned(),
            text("reason").unwrap_or_default().to_owned(),
        ))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            licence: Some(licence.into()),
            repository: None,
            source: Some("registry+https://github.com/rust-lang/crates.io-index".into()),
        }
    }

    #[test]
    fn an_expression_is_read_as_spdx_says() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for (expression, permitted) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND ISC", true),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("(GPL-3.0 AND MIT) OR ISC", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("MIT ISC", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(permits(expression, &allowed), permitted, "{expression}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let rules: Table = toml::from_str(
            r#"
            licenses.allow = ["MIT"]
            sources.allow-registry = ["https://github.com/rust-lang/crates.io-index"]
            [bans]
            deny = [{ crate = "bad", reason = "it is bad" }]
            skip = [{ crate = "old@0.1", reason = "it takes time" }]
            "#,
        )
        .unwrap();
        let elsewhere = Package {
            source: Some("git+https://example.org/x".into()),
            ..package("elsewhere", "1.0.0", "MIT")
        };
        let packages = [
            package("good", "1.0.0", "MIT"),
            package("bad", "1.0.0", "MIT"),
            package("viral", "1.0.0", "AGPL-3.0"),
            package("old", "0.1.3", "MIT"),
            package("old", "0.2.0", "MIT"),
            package("twice", "1.0.0", "MIT"),
            package("twice", "2.0.0", "MIT"),
            elsewhere,
        ];
        let packages: Vec<&Package> = packages.iter().collect();
        let wrong = violations(&rules, &packages);
        assert_eq!(
            wrong,
            [
                "bad 1.0.0 is banned: it is bad",
                "viral 1.0.0 has the licence AGPL-3.0",
                "elsewhere 1.0.0 comes from git+https://example.org/x",
                "twice is there in versions 1.0.0, 2.0.0",
            ]
        );
    }
}
