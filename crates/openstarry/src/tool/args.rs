//! Checks arguments against a schema before anything runs.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::collections::HashMap;

/// Bounds on schemas, which MCP servers write.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_DEPTH: usize = 200;
const MAX_COST: usize = 100_000;
/// A schema that contains itself multiplies its cost with each level of the
/// arguments, so both are bounded.
const MAX_SELF_REFERENCES: usize = 8;
const MAX_RECURSIVE_DEPTH: usize = 8;
const MAX_ERRORS: usize = 8;

/// What is wrong with arguments, or with the schema itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArgsError(pub String);

/// A schema, ready to check arguments.
#[derive(Debug)]
pub(crate) struct Checker {
    validator: Validator,
    recursive: bool,
}

impl Checker {
    /// Reads a schema. References may point into the schema itself alone.
    pub(crate) fn new(schema: &Value) -> Result<Self, ArgsError> {
        if !schema.is_object() {
            return Err(ArgsError("the schema is no object".into()));
        }
        let mut cost = Cost::new(schema);
        let total = cost.of(schema, 0)?;
        if total > MAX_COST || cost.bytes > MAX_SCHEMA_BYTES {
            return Err(ArgsError("the schema is too large".into()));
        }
        if cost.self_references > MAX_SELF_REFERENCES {
            return Err(ArgsError("the schema contains itself too often".into()));
        }
        let recursive = cost.self_references > 0;
        jsonschema::options()
            .offline()
            // The plain engine runs in linear time, whatever the pattern.
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
            .build(schema)
            .map(|validator| Self {
                validator,
                recursive,
            })
            .map_err(|error| ArgsError(format!("the schema cannot be used: {error}")))
    }

    /// What is wrong, in one text for the model.
    pub(crate) fn check(&self, args: &Value) -> Result<(), ArgsError> {
        if self.recursive && depth(args) > MAX_RECURSIVE_DEPTH {
            return Err(ArgsError("nested too deeply".into()));
        }
        let mut wrong: Vec<String> = self
            .validator
            .iter_errors(args)
            .take(MAX_ERRORS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let text = error.to_string();
                let text = crate::pain::excerpt(&text, 300);
                match place.is_empty() {
                    true => text.to_owned(),
                    false => format!("{place}: {text}"),
                }
            })
            .collect();
        wrong.dedup();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(ArgsError(wrong.join("; "))),
        }
    }
}

/// How deeply a value is nested.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

/// What it costs to check a value against a schema, references followed: a few
/// lines of references can stand for more checks than there is time.
struct Cost<'a> {
    root: &'a Value,
    /// The cost of what was referred to; `None` while it is being counted.
    known: HashMap<&'a str, Option<usize>>,
    bytes: usize,
    self_references: usize,
}

impl<'a> Cost<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            known: HashMap::from([("#", None)]),
            bytes: 0,
            self_references: 0,
        }
    }

    fn of(&mut self, value: &'a Value, depth: usize) -> Result<usize, ArgsError> {
        if depth > MAX_DEPTH {
            return Err(ArgsError("the schema is nested too deeply".into()));
        }
        let mut cost = 1usize;
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => {
                for item in items {
                    cost = cost.saturating_add(self.of(item, depth + 1)?);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    self.bytes += key.len() + 8;
                    let more = match (key.as_str(), item) {
                        ("$ref", Value::String(target)) => self.reference(target, depth)?,
                        ("$dynamicRef" | "$recursiveRef", _) => {
                            return Err(ArgsError(format!("the schema uses {key}")));
                        }
                        _ => self.of(item, depth + 1)?,
                    };
                    cost = cost.saturating_add(more);
                }
            }
            _ => {}
        }
        Ok(cost)
    }

    /// References go by path into the schema itself: `#/$defs/…`.
    fn reference(&mut self, target: &'a str, depth: usize) -> Result<usize, ArgsError> {
        match self.known.get(target) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => {
                self.self_references += 1;
                return Ok(1);
            }
            None => {}
        }
        let path = target
            .strip_prefix('#')
            .filter(|path| path.starts_with('/'));
        let found = path.and_then(|path| self.root.pointer(path));
        let found = found.ok_or_else(|| {
            let target = crate::pain::excerpt(target, 100);
            ArgsError(format!(
                "the schema refers to {target:?}, which is not in it"
            ))
        })?;
        self.known.insert(target, None);
        let cost = self.of(found, depth + 1)?;
        self.known.insert(target, Some(cost));
        Ok(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_arguments_are_told_with_their_place() {
        let schema = json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": { "path": { "type": "string" }, "n": { "type": "integer" } }
        });
        let checker = Checker::new(&schema).unwrap();
        assert!(checker.check(&json!({ "path": "a" })).is_ok());
        let error = checker.check(&json!({ "n": "x" })).unwrap_err().to_string();
        assert!(error.contains("path") && error.contains("/n"), "{error}");
        assert!(checker.check(&json!({ "path": "a", "else": 1 })).is_err());
        assert!(checker.check(&json!("text")).is_err());
        assert!(checker.check(&Value::Null).is_err());
    }

    #[test]
    fn references_to_elsewhere_are_refused() {
        for place in ["http://127.0.0.1:9/s.json", "file:///etc/passwd"] {
            assert!(Checker::new(&json!({ "$ref": place })).is_err(), "{place}");
        }
        let inside = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object" } } });
        assert!(Checker::new(&inside).unwrap().check(&json!({})).is_ok());
    }

    #[test]
    fn hostile_schemas_end() {
        let mut deep = json!({});
        for _ in 0..150 {
            deep = json!({ "properties": { "a": deep } });
        }
        assert!(Checker::new(&deep).is_err());
        let wide = json!({ "enum": vec!["x".repeat(1000); 1000] });
        assert!(Checker::new(&wide).is_err());
        // A pattern that takes a backtracking engine for ever.
        let slow = json!({ "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
        let checker = Checker::new(&slow).unwrap();
        assert!(
            checker
                .check(&json!({ "a": format!("{}!", "a".repeat(5000)) }))
                .is_err()
        );
        // A few lines that stand for 2^40 checks.
        let mut defs = serde_json::Map::new();
        for n in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            defs.insert(format!("d{n}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("d40".into(), json!({ "type": "object" }));
        assert!(Checker::new(&json!({ "$ref": "#/$defs/d0", "$defs": defs })).is_err());
        // Twice the checks with each level of the arguments.
        let twice =
            json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let nested = (0..100).fold(json!({}), |inner, _| json!({ "a": inner }));
        assert!(Checker::new(&twice).unwrap().check(&nested).is_err());
        assert!(Checker::new(&json!({ "$dynamicRef": "#x" })).is_err());
        // A schema that refers to itself.
        let round = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
        assert!(
            Checker::new(&round)
                .unwrap()
                .check(&json!({ "a": { "a": {} } }))
                .is_ok()
        );
    }
}
