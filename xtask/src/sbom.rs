//! The bill of materials of each program, as CycloneDX: `cargo xtask sbom`.

use crate::{
    deny::texts,
    dependencies::{Graph, Id, Package, SHIPPED, read_toml},
    run::root,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where the bills are written.
const FOLDER: &str = "target/sbom";

/// Writes a bill for each program. The same sources give the same bytes.
pub fn sbom() -> Result<(), String> {
    let graph = Graph::read(&texts(&read_toml("deny.toml")?, "graph", "targets"))?;
    let checksums = checksums()?;
    let folder = root().join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for (package, program) in SHIPPED {
        let bill = bill(&graph, &checksums, package, program)?;
        let file = folder.join(format!("{program}.cdx.json"));
        std::fs::write(&file, format!("{bill:#}\n")).map_err(|error| error.to_string())?;
        println!("{FOLDER}/{program}.cdx.json");
    }
    Ok(())
}

/// The SHA-256 of each package's archive, by name and version, from Cargo.lock.
fn checksums() -> Result<BTreeMap<Id, String>, String> {
    let lock = read_toml("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let packages = packages.into_iter().flatten();
    Ok(packages
        .filter_map(|package| {
            let text = |name: &str| Some(package.get(name)?.as_str()?.to_owned());
            Some(((text("name")?, text("version")?), text("checksum")?))
        })
        .collect())
}

fn bill(
    graph: &Graph,
    checksums: &BTreeMap<Id, String>,
    package: &str,
    program: &str,
) -> Result<Value, String> {
    let (root, built_with) = graph.of_program(package)?;
    let known = |id: &Id| graph.packages.get(id);
    let reference = |id: &Id| known(id).map(purl);
    let own = known(&root).ok_or("cargo metadata left the program out")?;
    let components: BTreeMap<String, Value> = built_with
        .iter()
        .filter(|id| **id != root)
        .filter_map(known)
        .map(|package| (purl(package), component(package, checksums)))
        .collect();
    let dependencies: BTreeMap<String, Value> = built_with
        .iter()
        .filter_map(|id| {
            let needs = graph.needs.get(id).into_iter().flatten();
            let needs: BTreeSet<String> = needs.filter_map(reference).collect();
            let of = reference(id)?;
            Some((of.clone(), json!({"ref": of, "dependsOn": needs})))
        })
        .collect();
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": purl(own),
            "name": program,
            "version": own.version,
            "purl": purl(own),
            "licenses": licences(own),
        }},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

fn component(package: &Package, checksums: &BTreeMap<Id, String>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": package.name,
        "version": package.version,
        "purl": purl(package),
        "licenses": licences(package),
    });
    let at = (package.name.clone(), package.version.clone());
    if let Some(hash) = checksums.get(&at) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Older packages write `MIT/Apache-2.0`, which is no SPDX.
fn licences(package: &Package) -> Value {
    match &package.licence {
        Some(licence) => {
            let words: Vec<&str> = licence.split('/').map(str::trim).collect();
            json!([{"expression": words.join(" OR ")}])
        }
        None => json!([]),
    }
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against Cargo.lock: what it says of a package, the bill says too.
    #[test]
    fn a_bill_names_every_package_with_its_licence_and_hash() {
        // The platform of the tests: its packages are here already.
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let graph = Graph::read(&[target]).unwrap();
        let checksums = checksums().unwrap();
        for (package, program) in SHIPPED {
            let made = bill(&graph, &checksums, package, program).unwrap();
            assert_eq!(made, bill(&graph, &checksums, package, program).unwrap());
            let components = made["components"].as_array().unwrap();
            assert!(components.len() > 100, "{}", components.len());
            let mut names = BTreeSet::new();
            for component in components {
                let text = |name: &str| component[name].as_str().unwrap().to_owned();
                let (name, version) = (text("name"), text("version"));
                assert_eq!(text("purl"), format!("pkg:cargo/{name}@{version}"));
                let expression = component["licenses"][0]["expression"].as_str();
                assert!(!expression.unwrap().contains('/'), "{name}");
                let hash = component["hashes"][0]["content"].as_str();
                let locked = checksums.get(&(name.clone(), version)).map(String::as_str);
                assert_eq!(hash, locked, "{name}");
                names.insert(name);
            }
            for needed in ["tokio", "rustls", "serde_json", "protocol"] {
                assert!(names.contains(needed), "{program} is built with {needed}");
            }
            assert!(!names.contains("proptest"), "tests are not shipped");
            let references: BTreeSet<&str> = made["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .map(|dependency| dependency["ref"].as_str().unwrap())
                .collect();
            assert_eq!(references.len(), components.len() + 1);
        }
    }
}
