//! Which tests to run, from the command line.

/// What `cargo xtask test` was asked for. Everything is built all the same: one build serves every
/// selection, and no test meets a stale program of another crate.
#[derive(Debug, Default)]
pub struct Selection {
    /// Only these packages, where there are any.
    packages: Vec<String>,
    /// Only these integration-test programs, where there are any.
    tests: Vec<String>,
    /// Only the examples in the documentation.
    pub documentation_only: bool,
    /// For the test programs: a part of a name, options.
    pub rest: Vec<String>,
}

impl Selection {
    /// Reads `[-p PACKAGE]… [--test NAME]… [FILTER] [-- OPTIONS]`.
    pub fn parse(args: &[String]) -> Result<Self, String> {
        let mut selection = Self::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg, None),
            };
            let mut value = || {
                let value = value.or_else(|| args.next());
                let value = value.ok_or_else(|| format!("{arg} needs a name"));
                value.map(str::to_owned)
            };
            match name {
                "-p" | "--package" => selection.packages.push(value()?),
                "--test" => selection.tests.push(value()?),
                "--doc" => selection.documentation_only = true,
                "--" => selection.rest.extend(args.by_ref().map(str::to_owned)),
                option if option.starts_with('-') => {
                    return Err(format!(
                        "`cargo xtask test` knows no {option}; options of the test programs stand after `--`"
                    ));
                }
                _ => selection.rest.push(arg.to_owned()),
            }
        }
        Ok(selection)
    }

    /// Whether every test of the repository is meant.
    pub fn is_everything(&self) -> bool {
        self.packages.is_empty()
            && self.tests.is_empty()
            && self.rest.is_empty()
            && !self.documentation_only
    }

    /// Whether a test program is meant; `test` is its name where it is an integration test.
    pub fn has(&self, package: &str, test: Option<&str>) -> bool {
        let package_fits =
            self.packages.is_empty() || self.packages.iter().any(|wanted| wanted == package);
        let test_fits = self.tests.is_empty()
            || test.is_some_and(|name| self.tests.iter().any(|wanted| wanted == name));
        package_fits && test_fits && !self.documentation_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Selection, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Selection::parse(&args)
    }

    #[test]
    fn nothing_means_everything() {
        let selection = parse("").unwrap();
        assert!(selection.is_everything());
        assert!(selection.has("chatroom", None) && selection.has("starchild", Some("integration")));
    }

    #[test]
    fn packages_tests_and_filters_narrow_it() {
        let selection = parse("-p chatroom --test=api stream -- --nocapture").unwrap();
        assert!(!selection.is_everything());
        assert!(selection.has("chatroom", Some("api")));
        assert!(!selection.has("chatroom", None));
        assert!(!selection.has("starchild", Some("api")));
        assert_eq!(selection.rest, ["stream", "--nocapture"]);
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        assert!(parse("--release").unwrap_err().contains("--release"));
        assert!(parse("-p").unwrap_err().contains("needs a name"));
    }
}
