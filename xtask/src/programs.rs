//! Building the workspace for its tests, once, and finding the programs that came of it.

use crate::run::cargo;
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Whether the workspace is linted while it is built. Lints in the same build cost seconds; a
/// `cargo clippy` of its own would first check every dependency once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lints {
    /// It is built by rustc.
    Off,
    /// It is built by clippy's driver, and a warning is an error.
    Deny,
}

impl Lints {
    /// Cargo that builds with these lints. What one setting built, the other does not reuse, but
    /// for the dependencies.
    pub fn cargo(self) -> Command {
        let mut cargo = cargo();
        if self == Self::Deny {
            // What `cargo clippy -- -D warnings` sets, around a build instead of a check.
            cargo
                // Nothing is built a second time, so nothing is kept for it.
                .env("CARGO_INCREMENTAL", "0")
                .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
                .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings");
        }
        cargo
    }
}

/// A program that holds tests.
#[derive(Debug)]
pub struct TestProgram {
    /// The package it belongs to.
    pub package: String,
    /// Its name, where it is an integration test.
    pub test: Option<String>,
    /// Where it is.
    pub path: PathBuf,
    /// The package's folder, in which Cargo runs it.
    pub folder: PathBuf,
}

/// What a build came to.
#[derive(Debug, Default)]
pub struct Built {
    /// The programs that hold tests.
    pub tests: Vec<TestProgram>,
    /// The room server, for tests in other packages.
    pub server: PathBuf,
}

/// Builds every library, program, example and test of the workspace.
pub fn build_tests(lints: Lints) -> Result<Built, String> {
    build(lints.cargo().args(["test", "--workspace", "--no-run"]))
}

/// Builds the programs and examples alone, with the very dependencies that [`build_tests`] uses.
pub fn build_programs() -> Result<Built, String> {
    build(cargo().args(["build", "--workspace", "--bins", "--examples"]))
}

fn build(command: &mut Command) -> Result<Built, String> {
    let mut child = command
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    let mut built = Built::default();
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines().map_while(Result::ok) {
            built.note(&line);
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(built),
        Ok(status) => Err(format!("the build ended with {status}")),
        Err(error) => Err(format!("cannot wait for cargo: {error}")),
    }
}

impl Built {
    /// Takes up one of Cargo's messages, if it tells of a program.
    fn note(&mut self, message: &str) {
        let Some(path) = string(message, "executable") else {
            return;
        };
        let (Some(manifest), Some(name)) =
            (string(message, "manifest_path"), string(message, "name"))
        else {
            return;
        };
        let is_test = message
            .split_once("\"profile\":")
            .is_some_and(|(_, profile)| profile.contains("\"test\":true"));
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
        if is_test {
            let package = folder.file_name().unwrap_or_default().to_string_lossy();
            self.tests.push(TestProgram {
                package: package.into_owned(),
                test: message
                    .contains("\"kind\":[\"test\"]")
                    .then(|| name.to_owned()),
                path: path.into(),
                folder: folder.to_owned(),
            });
        } else if name == "sc-chatroom" {
            self.server = path.into();
        }
    }
}

/// The first string of this name in a line of JSON. Enough for names and paths, and it saves this
/// program, which everything waits for, from building a parser.
fn string<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///r/crates/chatroom#0.1.0","manifest_path":"/r/crates/chatroom/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"api","src_path":"/r/crates/chatroom/tests/api/main.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":2,"debug_assertions":true,"overflow_checks":true,"test":true},"features":[],"filenames":["/r/target/debug/deps/api-0a"],"executable":"/r/target/debug/deps/api-0a","fresh":true}"#;

    #[test]
    fn test_programs_and_the_server_are_found_in_cargos_messages() {
        let mut built = Built::default();
        built.note(API);
        let server = API
            .replace(r#""test":true},"features""#, r#""test":false},"features""#)
            .replace("\"api\"", "\"sc-chatroom\"")
            .replace("deps/api-0a", "sc-chatroom");
        built.note(&server);
        built.note(&API.replace(
            r#""executable":"/r/target/debug/deps/api-0a""#,
            r#""executable":null"#,
        ));
        let [api] = &built.tests[..] else {
            panic!("{built:?}")
        };
        assert_eq!(
            (api.package.as_str(), api.test.as_deref()),
            ("chatroom", Some("api"))
        );
        assert_eq!(api.folder, Path::new("/r/crates/chatroom"));
        assert_eq!(api.path, Path::new("/r/target/debug/deps/api-0a"));
        assert_eq!(built.server, Path::new("/r/target/debug/sc-chatroom"));
    }
}
