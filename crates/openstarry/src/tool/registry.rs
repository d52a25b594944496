//! Holds the tools. Each change makes a new version; what hangs on a version
//! (schemas, checkers, the index of the retrieval layer) is built once for it.

use super::args::{ArgsError, Checker};
use super::retrieval::{Index, ToolEmbedding};
use super::{Tool, ToolSpec, ToolView};
use crate::pain::excerpt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

const MAX_NAME: usize = 128;
const MAX_DESCRIPTION: usize = 4096;
const MAX_TOOLS: usize = 10_000;

/// Why a tool was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Another tool has the name.
    #[error("there is a tool named {0} already")]
    Taken(String),
    /// The name is empty, too long or holds blanks.
    #[error("{0:?} is no name for a tool")]
    Name(String),
    /// The schema is no good.
    #[error("the schema of {name}: {error}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong.
        error: ArgsError,
    },
    /// Too many tools.
    #[error("over {MAX_TOOLS} tools")]
    Full,
}

/// A tool with its checked schema.
pub struct Registered {
    tool: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
    checker: Checker,
    embedding: ToolEmbedding,
}

impl Registered {
    /// The tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// What is told of it.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Whether arguments fit the schema.
    pub fn check(&self, args: &Value) -> Result<(), ArgsError> {
        self.checker.check(args)
    }
}

/// One version of the registry. It never changes.
#[derive(Default)]
pub struct ToolSet {
    version: u64,
    tools: BTreeMap<String, Arc<Registered>>,
    index: OnceLock<Arc<Index>>,
}

impl ToolSet {
    /// The tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name)
    }

    /// All tools, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.tools.values()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The version; no two sets of a process share one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tools with these names; names that do not exist are left out.
    pub fn view<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> ToolView {
        let specs = names.into_iter().filter_map(|name| self.get(name));
        ToolView::new(self.version, specs.map(|tool| Arc::clone(&tool.spec)))
    }

    /// All tools.
    pub fn view_all(&self) -> ToolView {
        ToolView::new(self.version, self.iter().map(|tool| Arc::clone(&tool.spec)))
    }

    /// These tools and one more, as a version of their own.
    pub(crate) fn with(&self, tool: Arc<dyn Tool>) -> Result<Self, RegistryError> {
        let tool = prepare(tool)?;
        let mut tools = self.tools.clone();
        tools.insert(tool.spec.name.clone(), Arc::new(tool));
        Ok(Self {
            version: VERSION.fetch_add(1, Ordering::Relaxed),
            tools,
            index: OnceLock::new(),
        })
    }

    /// The index for retrieval, built when it is first asked for.
    pub fn index(&self) -> &Arc<Index> {
        let tools = self
            .iter()
            .map(|tool| (tool.spec.as_ref(), &tool.embedding));
        self.index.get_or_init(|| Arc::new(Index::new(tools)))
    }
}

/// The tools of an agent. Clones share them.
#[derive(Clone, Default)]
pub struct Registry(Arc<RwLock<Arc<ToolSet>>>);

static VERSION: AtomicU64 = AtomicU64::new(1);

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools as they are now.
    pub fn snapshot(&self) -> Arc<ToolSet> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds tools: all of them, or none.
    pub fn add(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), RegistryError> {
        self.replace(|_| false, tools)
    }

    /// Removes the tools that `leave` picks by name and adds `tools`, in one step.
    pub fn replace(
        &self,
        leave: impl Fn(&str) -> bool,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<(), RegistryError> {
        let prepared = tools
            .into_iter()
            .map(prepare)
            .collect::<Result<Vec<_>, _>>()?;
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = current.tools.iter().filter(|(name, _)| !leave(name));
        let mut all: BTreeMap<String, Arc<Registered>> = kept
            .map(|(name, tool)| (name.clone(), Arc::clone(tool)))
            .collect();
        for mut tool in prepared {
            // A server that lists its tools anew has most of them as before.
            let before = current.tools.get(&tool.spec.name);
            if let Some(before) = before.filter(|it| it.spec.description == tool.spec.description) {
                tool.embedding = before.embedding.clone();
            }
            if all.contains_key(&tool.spec.name) {
                return Err(RegistryError::Taken(tool.spec.name.clone()));
            }
            all.insert(tool.spec.name.clone(), Arc::new(tool));
        }
        if all.len() > MAX_TOOLS {
            return Err(RegistryError::Full);
        }
        *current = Arc::new(ToolSet {
            version: VERSION.fetch_add(1, Ordering::Relaxed),
            tools: all,
            index: OnceLock::new(),
        });
        Ok(())
    }
}

fn prepare(tool: Arc<dyn Tool>) -> Result<Registered, RegistryError> {
    let mut spec = tool.spec().clone();
    let blank = |c: char| c.is_whitespace() || c.is_control();
    if spec.name.is_empty() || spec.name.len() > MAX_NAME || spec.name.contains(blank) {
        return Err(RegistryError::Name(excerpt(&spec.name, MAX_NAME).into()));
    }
    // Some APIs refuse a schema that does not say that it is of an object.
    if let Some(schema) = spec.parameters.as_object_mut() {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    spec.description = excerpt(&spec.description, MAX_DESCRIPTION).into();
    let checker = Checker::new(&spec.parameters).map_err(|error| RegistryError::Schema {
        name: spec.name.clone(),
        error,
    })?;
    Ok(Registered {
        tool,
        spec: Arc::new(spec),
        checker,
        embedding: ToolEmbedding::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{FnTool, Risk};
    use serde_json::json;

    fn tool(name: &str) -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, "does", Risk::Safe, json!({ "type": "object" }));
        Arc::new(FnTool::new(spec, async |_| Ok(vec![])))
    }

    #[test]
    fn tools_are_added_all_or_none_and_each_change_is_a_version() {
        let registry = Registry::new();
        registry.add(vec![tool("b"), tool("a")]).unwrap();
        let first = registry.snapshot();
        assert_eq!(first.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(registry.add(vec![tool("c"), tool("a")]).is_err());
        assert_eq!(registry.snapshot().version(), first.version());
        registry
            .replace(|name| name == "a", vec![tool("c")])
            .unwrap();
        let second = registry.snapshot();
        assert_eq!(second.names().collect::<Vec<_>>(), ["b", "c"]);
        assert_ne!(second.version(), first.version());
        assert_ne!(
            second.view_all().fingerprint(),
            first.view_all().fingerprint()
        );
    }

    #[test]
    fn the_embedding_of_a_tool_is_computed_once_for_the_same_text() {
        let about = |text: &str| {
            let spec = ToolSpec::new("t", text, Risk::Safe, json!({}));
            Arc::new(FnTool::new(spec, async |_| Ok(vec![]))) as Arc<dyn Tool>
        };
        let registry = Registry::new();
        let replaced = |text: &str| {
            registry.replace(|_| true, vec![about(text)]).unwrap();
            registry.snapshot().get("t").unwrap().embedding.clone()
        };
        let first = replaced("Tells the time.");
        assert!(replaced("Tells the time.").is_kept_by(&first));
        assert!(!replaced("Tells the date.").is_kept_by(&first));
    }

    #[test]
    fn a_bad_name_or_schema_is_refused() {
        let registry = Registry::new();
        for name in ["", "a b", "a\n", &"x".repeat(200)] {
            assert!(registry.add(vec![tool(name)]).is_err(), "{name:?}");
        }
        let spec = ToolSpec::new("t", "", Risk::Safe, json!({ "type": "nonsense" }));
        let bad: Arc<dyn Tool> = Arc::new(FnTool::new(spec, async |_| Ok(vec![])));
        assert!(matches!(
            registry.add(vec![bad]),
            Err(RegistryError::Schema { .. })
        ));
    }
}
