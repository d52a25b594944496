//! The retrieval layer: of a large set of tools, those that fit the turn.
//!
//! The query is what the user said. The default needs no network: a small model of
//! what English sentences mean, with stems and spelling beside it. An embeddings
//! endpoint can stand in for it, for other languages too.

mod embedding;
mod endpoint;
mod index;
mod words;

pub(crate) use embedding::ToolEmbedding;
pub use endpoint::{EmbeddingsConfig, EmbeddingsEndpoint};
pub use index::Index;

use super::{ToolSet, ToolView};
use crate::pain::excerpt;
use std::sync::Arc;
use std::time::Duration;

/// The tool by which a model looks for tools it was not shown.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The most of a query that is looked at.
const MAX_QUERY: usize = 4000;
/// So long a turn waits until it is known what the tools mean.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

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
        let index = Arc::clone(set.index());
        if tokio::time::timeout(READY_TIMEOUT, index.ready())
            .await
            .is_err()
        {
            tracing::info!("tools are picked by words alone until it is known what they mean");
        }
        // A millisecond or two of arithmetic, which other tasks need not wait for.
        let query = excerpt(query, MAX_QUERY).to_owned();
        let ranked = tokio::task::spawn_blocking(move || index.rank(&query, count));
        ranked.await.unwrap_or_default()
    }

    /// Begins what the first pick would have to wait for.
    pub(crate) fn prepare(&self, set: &ToolSet) {
        if set.len() > self.above && self.endpoint.is_none() {
            set.index().compute_embeddings();
        }
    }
}
