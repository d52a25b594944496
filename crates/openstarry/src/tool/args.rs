//! Checks arguments against a schema before anything runs.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Bounds on schemas, which MCP servers write.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_SCHEMA_DEPTH: usize = 64;
const MAX_REFERENCES: usize = 500;
const MAX_ERRORS: usize = 8;

/// What is wrong with arguments, or with the schema itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArgsError(pub String);

/// A schema, ready to check arguments.
#[derive(Debug)]
pub(crate) struct Checker(Validator);

impl Checker {
    /// Reads a schema. References may point into the schema itself alone.
    pub(crate) fn new(schema: &Value) -> Result<Self, ArgsError> {
        if !schema.is_object() {
            return Err(ArgsError("the schema is no object".into()));
        }
        let size = Size::of(schema, 0)?;
        if size.bytes > MAX_SCHEMA_BYTES || size.references > MAX_REFERENCES {
            return Err(ArgsError("the schema is too large".into()));
        }
        jsonschema::options()
            .offline()
            // The plain engine runs in linear time, whatever the pattern.
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
            .build(schema)
            .map(Self)
            .map_err(|error| ArgsError(format!("the schema cannot be used: {error}")))
    }

    /// What is wrong, in one text for the model.
    pub(crate) fn check(&self, args: &Value) -> Result<(), ArgsError> {
        let mut wrong: Vec<String> = self
            .0
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

#[derive(Default)]
struct Size {
    bytes: usize,
    references: usize,
}

impl Size {
    fn of(value: &Value, depth: usize) -> Result<Self, ArgsError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(ArgsError("the schema is nested too deeply".into()));
        }
        let mut size = Self {
            bytes: 8,
            references: 0,
        };
        match value {
            Value::String(text) => size.bytes += text.len(),
            Value::Array(items) => {
                for item in items {
                    size.add(Self::of(item, depth + 1)?);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    size.bytes += key.len();
                    size.references += usize::from(key.ends_with("ef") && key.starts_with('$'));
                    size.add(Self::of(item, depth + 1)?);
                }
            }
            _ => {}
        }
        Ok(size)
    }

    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.references += other.references;
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
        for _ in 0..100 {
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
