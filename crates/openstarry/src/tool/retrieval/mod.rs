//! The retrieval layer: of a large set of tools, those that fit the turn.
//!
//! The query is what the user said. The default needs no network: a table of
//! English words, with stems and spelling beside it. An embeddings endpoint can
//! stand in for it, for other languages too.

mod endpoint;
mod index;
mod table;
mod words;

pub use endpoint::{EmbeddingsConfig, EmbeddingsEndpoint};
pub use index::Index;

use super::{ToolSet, ToolView};
use std::sync::Arc;

/// The tool by which a model looks for tools it was not shown.
pub const SEARCH_TOOLS: &str = "search_tools";

/// Which tools a turn is offered.
#[derive(Clone)]
pub struct Selector {
    /// Sets up to this size are offered whole.
    pub above: usize,
    /// How many to pick out of a larger set.
    pub top: usize,
    /// Always offered.
    pub pinned: Vec<String>,
    /// Stands in for the built-in vectors.
    pub endpoint: Option<Arc<EmbeddingsEndpoint>>,
}

impl Default for Selector {
    fn default() -> Self {
        Self {
            above: 40,
            top: 20,
            pinned: Vec::new(),
            endpoint: None,
        }
    }
}

impl Selector {
    /// The tools for a turn: the pinned ones, those in use (`recent`), and the
    /// best for what was said. Small sets are offered whole, without the search.
    pub async fn select(&self, set: &ToolSet, said: &str, recent: &[String]) -> ToolView {
        if set.len() <= self.above {
            return set.view(set.names().filter(|name| *name != SEARCH_TOOLS));
        }
        let found = self.rank(set, said, self.top).await;
        let names = self
            .pinned
            .iter()
            .chain(recent)
            .map(String::as_str)
            .chain(found.iter().map(String::as_str))
            .chain([SEARCH_TOOLS]);
        set.view(names)
    }

    /// The best tools for `query`, the best first.
    pub async fn rank(&self, set: &ToolSet, query: &str, count: usize) -> Vec<String> {
        if let Some(endpoint) = &self.endpoint {
            match endpoint.rank(set, query, count).await {
                Ok(found) => return found,
                Err(error) => {
                    tracing::warn!(%error, "the embeddings endpoint failed; using built-in vectors");
                }
            }
        }
        set.index().rank(query, count)
    }
}
