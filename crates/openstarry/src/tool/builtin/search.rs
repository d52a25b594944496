//! `search_tools`: how a model finds tools it was not shown.

use crate::segment::ContentSegment;
use crate::tool::retrieval::{SEARCH_TOOLS, Selector};
use crate::tool::{Registry, Risk, Tool, ToolContext, ToolOutput, ToolSpec, parse};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::PoisonError;

const FOUND: usize = 10;

/// Looks for tools in a registry.
pub struct SearchTools {
    spec: ToolSpec,
    registry: Registry,
    selector: Selector,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What the tool should do, in a few words.
    query: String,
}

impl SearchTools {
    /// A search of this registry.
    pub fn new(registry: Registry, selector: Selector) -> Self {
        let about = "Find tools that are not shown. Those it names can be called from then on.";
        let mut spec = ToolSpec::of::<Args>(SEARCH_TOOLS, about, Risk::Safe);
        spec.independent = true;
        Self {
            spec,
            registry,
            selector,
        }
    }
}

impl Tool for SearchTools {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let args: Args = parse(args)?;
            let set = self.registry.snapshot();
            let mut names = self.selector.rank(&set, &args.query, FOUND + 1).await;
            names.retain(|name| name != SEARCH_TOOLS);
            let row =
                |name: &String| Some(format!("{name}: {}", set.get(name)?.spec().description));
            let rows: Vec<String> = names.iter().filter_map(row).collect();
            let mut found = context.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(names);
            let text = match rows.is_empty() {
                true => "no tool does that".into(),
                false => rows.join("\n"),
            };
            Ok(vec![ContentSegment::text(text)])
        })
    }
}
