//! Dependencies: what the programs are built from, as cargo knows it: packages, licences and who
//! needs whom.

use crate::run::{cargo, root};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// The packages that ship as programs.
pub const SHIPPED: [(&str, &str); 2] = [("chatroom", "sc-chatroom"), ("starchild", "starchild")];

/// A package, of whatever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: Option<String>,
    pub repository: Option<String>,
    /// Where it comes from; nothing for this repository's own.
    pub source: Option<String>,
}

/// A package's name and version.
pub type Id = (String, String);

/// Packages, and what each is built with.
#[derive(Debug, Default)]
pub struct Graph {
    pub packages: BTreeMap<Id, Package>,
    pub needs: BTreeMap<Id, BTreeSet<Id>>,
}

impl Graph {
    /// What is built for these platforms, tests left out.
    pub fn read(targets: &[String]) -> Result<Self, String> {
        let mut graph = Self::default();
        for target in targets {
            let metadata = ["metadata", "--format-version", "1", "--locked"];
            let metadata = output(cargo().args(metadata).args(["--filter-platform", target]))?;
            graph.add_packages(&metadata)?;
            // Unlike the metadata, the tree leaves out what no feature asks for.
            let tree = ["tree", "--locked", "--workspace", "--edges", "normal,build"];
            let depths = ["--prefix", "depth", "--format", "|{p}|", "--target", target];
            graph.add_needs(&output(cargo().args(tree).args(depths))?)?;
        }
        Ok(graph)
    }

    fn add_packages(&mut self, metadata: &str) -> Result<(), String> {
        let metadata: Value = serde_json::from_str(metadata).map_err(|error| error.to_string())?;
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let text = |name: &str| package[name].as_str().map(str::to_owned);
            let (Some(name), Some(version)) = (text("name"), text("version")) else {
                return Err("cargo metadata tells of a package without a name".to_owned());
            };
            let package = Package {
                name: name.clone(),
                version: version.clone(),
                licence: text("license"),
                repository: text("repository"),
                source: text("source"),
            };
            self.packages.insert((name, version), package);
        }
        Ok(())
    }

    /// Reads lines such as `2|quote v1.0.47|`, each below the nearest one before it that is less
    /// deep. What was told before is told again without what is below it.
    fn add_needs(&mut self, tree: &str) -> Result<(), String> {
        let mut above: Vec<Id> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let odd = || format!("cargo tree says {line:?}");
            let mut parts = line.split('|');
            let depth: usize = parts
                .next()
                .and_then(|depth| depth.parse().ok())
                .ok_or_else(odd)?;
            let mut words = parts.next().unwrap_or_default().split(' ');
            let name = words.next().ok_or_else(odd)?;
            let version = words.next().and_then(|word| word.strip_prefix('v'));
            let id = (name.to_owned(), version.ok_or_else(odd)?.to_owned());
            above.truncate(depth);
            if let Some(user) = above.last() {
                let needs = self.needs.entry(user.clone()).or_default();
                needs.insert(id.clone());
            }
            above.push(id);
        }
        Ok(())
    }

    /// The package of this repository with this name, and all that it is built with.
    pub fn of_program(&self, name: &str) -> Result<(Id, BTreeSet<Id>), String> {
        let own = self
            .packages
            .iter()
            .find(|(_, package)| package.name == name && package.source.is_none());
        let (root, _) = own.ok_or_else(|| format!("there is no package {name}"))?;
        let mut found = BTreeSet::new();
        let mut waiting = vec![root.clone()];
        while let Some(id) = waiting.pop() {
            if found.insert(id.clone()) {
                waiting.extend(self.needs.get(&id).into_iter().flatten().cloned());
            }
        }
        Ok((root.clone(), found))
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// A file of the repository's root, read as TOML.
pub fn read_toml(name: &str) -> Result<toml::Table, String> {
    let text =
        std::fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{name}: {error}"))
}
