//! What is told of a tool.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// What can go wrong when a tool runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It only looks.
    Safe,
    /// It changes or reveals something that can be put right.
    Moderate,
    /// It can destroy. Such a call waits for a yes.
    Destructive,
}

/// Name, description, schema and risk of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name, as it is registered.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// What can go wrong.
    pub risk: Risk,
    /// Whether it may run beside other calls of the same reply.
    pub independent: bool,
    /// How long it may run, where that is not as long as the others.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// A spec with this schema. Safe tools run side by side.
    pub fn new(name: &str, description: &str, risk: Risk, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            risk,
            independent: risk == Risk::Safe,
            timeout: None,
        }
    }

    /// A spec whose schema is that of `Args`.
    pub fn of<Args: JsonSchema>(name: &str, description: &str, risk: Risk) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<Args>();
        schema.remove("title");
        schema.remove("description");
        Self::new(name, description, risk, schema.to_value())
    }
}

/// The tools of one request, by name. The order is always the same, and the
/// fingerprint tells two sets apart.
#[derive(Clone, Debug, Default)]
pub struct ToolView {
    specs: BTreeMap<String, Arc<ToolSpec>>,
    fingerprint: u64,
}

impl ToolView {
    /// The view of these specs, of the registry's `version`.
    pub fn new(version: u64, specs: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        let specs: BTreeMap<String, Arc<ToolSpec>> = specs
            .into_iter()
            .map(|spec| (spec.name.clone(), spec))
            .collect();
        let mut hasher = DefaultHasher::new();
        version.hash(&mut hasher);
        specs.keys().for_each(|name| name.hash(&mut hasher));
        Self {
            specs,
            fingerprint: hasher.finish(),
        }
    }

    /// The tool with this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.specs.get(name).map(AsRef::as_ref)
    }

    /// All of them, in order.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.specs.values().map(AsRef::as_ref)
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.keys().map(String::as_str)
    }

    /// The same number for the same set of the same registry version.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}
