//! Embeddings: what a text means as a vector, by the model of sentences that is built in.

use super::words;
use crate::tool::ToolSpec;
use sentences::{Model, cosine_similarity};
use std::sync::{Arc, OnceLock};

/// The most tokens of a query and of a tool that are looked at.
const QUERY_TOKENS: usize = 30;
const TOOL_TOKENS: usize = 46;

/// The embedding of a text. A text that the model cannot read has none.
#[derive(Debug)]
pub(super) struct Embedding(Option<Vec<f32>>);

impl Embedding {
    pub(super) fn of_query(query: &str) -> Self {
        Self(Model::built_in().and_then(|model| model.embed(query, QUERY_TOKENS)))
    }

    fn of_tool(text: &str) -> Self {
        Self(Model::built_in().and_then(|model| model.embed(text, TOOL_TOKENS)))
    }

    /// From -1, the opposite, to 1, the same; 0 where there is no embedding.
    pub(super) fn cosine_similarity(&self, other: &Self) -> f32 {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => cosine_similarity(a, b),
            _ => 0.0,
        }
    }
}

/// The embedding of a tool: computed when it is first asked for, and kept by all clones, over
/// versions of the registry too.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolEmbedding(Arc<OnceLock<Embedding>>);

impl ToolEmbedding {
    /// What is said of a tool, as a sentence.
    pub(super) fn text(spec: &ToolSpec) -> String {
        format!(
            "{}: {}",
            words::all_words(&spec.name).join(" "),
            spec.description
        )
    }

    pub(super) fn get(&self) -> Option<&Embedding> {
        self.0.get()
    }

    pub(super) fn compute(&self, text: &str) {
        self.0.get_or_init(|| Embedding::of_tool(text));
    }

    #[cfg(test)]
    pub(crate) fn is_kept_by(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
