//! What a text means, by the model of sentences that is built in.

use super::words;
use crate::tool::ToolSpec;
use sentences::{Model, nearness};
use std::sync::{Arc, OnceLock};

/// The most tokens of a query and of a tool that are looked at.
const QUERY_TOKENS: usize = 30;
const TOOL_TOKENS: usize = 46;

/// What a text means. Of a text that the model cannot read there is nothing.
#[derive(Debug)]
pub(super) struct Meaning(Option<Vec<f32>>);

impl Meaning {
    pub(super) fn of_query(query: &str) -> Self {
        Self(Model::built_in().and_then(|model| model.embed(query, QUERY_TOKENS)))
    }

    fn of_tool(text: &str) -> Self {
        Self(Model::built_in().and_then(|model| model.embed(text, TOOL_TOKENS)))
    }

    /// From -1, the opposite, to 1, the same.
    pub(super) fn near(&self, other: &Self) -> f32 {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => nearness(a, b),
            _ => 0.0,
        }
    }
}

/// What a tool means: found out when it is first asked for, and kept by all clones, over versions
/// of the registry too.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolMeaning(Arc<OnceLock<Meaning>>);

impl ToolMeaning {
    /// What is said of a tool, as a sentence.
    pub(super) fn text(spec: &ToolSpec) -> String {
        format!(
            "{}: {}",
            words::all_words(&spec.name).join(" "),
            spec.description
        )
    }

    pub(super) fn get(&self) -> Option<&Meaning> {
        self.0.get()
    }

    pub(super) fn find_out(&self, text: &str) {
        self.0.get_or_init(|| Meaning::of_tool(text));
    }

    #[cfg(test)]
    pub(crate) fn is_kept_by(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
