//! How near a tool is to a query: by the similarity of their embeddings, and word by word. Words meet
//! when they have one stem or are spelt nearly alike.

use super::embedding::{Embedding, ToolEmbedding};
use super::words::{self, Word};
use crate::tool::ToolSpec;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Where a word of a tool comes from decides how much it counts.
const NAME: f32 = 1.3;
const DESCRIPTION: f32 = 1.0;
const PARAMETERS: f32 = 0.3;
/// What counts beside how similar the embeddings are: how much of the query the tool has,
/// and how much of the tool the query has.
const OF_QUERY: f32 = 0.1;
const OF_TOOL: f32 = 0.1;
/// The most words that are looked at.
const MAX_QUERY_WORDS: usize = 64;
const MAX_TOOL_WORDS: usize = 200;
/// Threads that compute the embeddings of tools.
const MAX_THREADS: usize = 4;

/// An index over one version of the tools.
#[derive(Debug, Default)]
pub struct Index {
    tools: Vec<IndexedTool>,
    /// Every word of the tools, once.
    vocabulary: Vec<Word>,
    /// In how many tools a stem is, as a weight: rare ones tell more.
    rarity: HashMap<String, f32>,
    /// What is said of each tool, and its embedding.
    embeddings: Arc<Vec<(String, ToolEmbedding)>>,
    embedding_work: OnceLock<EmbeddingWork>,
}

/// Work that ends with the index.
#[derive(Debug)]
struct EmbeddingWork {
    /// Closed when every tool has its embedding.
    done: watch::Receiver<()>,
    _wanted: Arc<()>,
}

#[derive(Debug)]
struct IndexedTool {
    name: String,
    /// Words by their place in the vocabulary, with weights that add up to one.
    words: Vec<(usize, f32)>,
}

impl Index {
    /// Builds the index, without the embeddings of the tools: [`Index::ready`] waits for those.
    pub(crate) fn new<'a>(
        tools: impl IntoIterator<Item = (&'a ToolSpec, &'a ToolEmbedding)>,
    ) -> Self {
        let mut index = Self::default();
        let mut embeddings = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut with_stem: HashMap<String, usize> = HashMap::new();
        for (spec, embedding) in tools {
            let mut counts: HashMap<usize, f32> = HashMap::new();
            for (text, weight) in texts(spec) {
                for word in words::split(text).into_iter().take(MAX_TOOL_WORDS) {
                    let place = *places.entry(word).or_insert_with_key(|word| {
                        index.vocabulary.push(Word::new(word));
                        index.vocabulary.len() - 1
                    });
                    let count = counts.entry(place).or_default();
                    *count = count.max(weight);
                }
            }
            let mut words: Vec<_> = counts.into_iter().collect();
            words.sort_unstable_by_key(|(place, _)| *place);
            let mut stems: Vec<_> = words
                .iter()
                .map(|(at, _)| &index.vocabulary[*at].stem)
                .collect();
            stems.sort_unstable();
            stems.dedup();
            for stem in stems {
                *with_stem.entry(stem.clone()).or_default() += 1;
            }
            index.tools.push(IndexedTool {
                name: spec.name.clone(),
                words,
            });
            embeddings.push((ToolEmbedding::text(spec), embedding.clone()));
        }
        index.weigh(with_stem);
        index.embeddings = Arc::new(embeddings);
        index
    }

    /// Gives words their weights, once it is known how rare they are.
    fn weigh(&mut self, with_stem: HashMap<String, usize>) {
        let count = self.tools.len() as f32;
        let most = (1.0 + count).ln();
        let rarity = |tools| (1.0 + count / tools as f32).ln() / most;
        self.rarity = with_stem
            .into_iter()
            .map(|(stem, tools)| (stem, rarity(tools)))
            .collect();
        let mut tools = std::mem::take(&mut self.tools);
        for tool in &mut tools {
            for (place, weight) in &mut tool.words {
                *weight *= self.weight(&self.vocabulary[*place]);
            }
            let sum: f32 = tool.words.iter().map(|(_, weight)| weight).sum();
            for (_, weight) in &mut tool.words {
                *weight /= sum.max(f32::MIN_POSITIVE);
            }
        }
        self.tools = tools;
    }

    /// How much a word tells.
    fn weight(&self, word: &Word) -> f32 {
        word.weight * self.rarity.get(&word.stem).unwrap_or(&1.0)
    }

    /// Begins to compute the embeddings of the tools, on threads of its own, where that has not
    /// begun. They end when all are there or the index is gone. The receiver is closed then.
    pub(super) fn compute_embeddings(&self) -> watch::Receiver<()> {
        let begun = self.embedding_work.get_or_init(|| {
            let (working, done) = watch::channel(());
            let wanted = Arc::new(());
            let unknown = self.embeddings.iter().filter(|(_, it)| it.get().is_none());
            let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
            let threads = unknown.count().min(cores).min(MAX_THREADS);
            let next = Arc::new(AtomicUsize::new(0));
            for _ in 0..threads {
                let (wanted, next) = (Arc::downgrade(&wanted), Arc::clone(&next));
                let (tools, working) = (Arc::clone(&self.embeddings), working.clone());
                let work = move || {
                    let _working = working;
                    while wanted.strong_count() > 0
                        && let Some((text, tool)) = tools.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        tool.compute(text);
                    }
                };
                let thread = std::thread::Builder::new().name("retrieval".into());
                if let Err(error) = thread.spawn(work) {
                    tracing::warn!(%error, "no thread to compute the embeddings of tools");
                }
            }
            EmbeddingWork {
                done,
                _wanted: wanted,
            }
        });
        begun.done.clone()
    }

    /// Waits until every tool has its embedding: a second or two for 1,000 of them,
    /// once. Those of an earlier version of the registry are kept.
    pub async fn ready(&self) {
        let mut done = self.compute_embeddings();
        // It never changes; it is closed.
        while done.changed().await.is_ok() {}
    }

    /// The names of up to `count` tools, the nearest first. Tools that share
    /// nothing with the query are left out. Until every tool has its embedding,
    /// words alone count.
    pub fn rank(&self, query: &str, count: usize) -> Vec<String> {
        let query = crate::pain::excerpt(query, super::MAX_QUERY);
        let embeddings: Option<Vec<&Embedding>> =
            self.embeddings.iter().map(|(_, it)| it.get()).collect();
        let embeddings = embeddings.map(|tools| (Embedding::of_query(query), tools));
        let mut wanted: Vec<(Word, f32)> = words::split(query)
            .into_iter()
            .map(|word| Word::new(&word))
            .map(|word| (self.weight(&word), word))
            .map(|(weight, word)| (word, weight))
            .collect();
        // Of a long text, what tells most.
        wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
        wanted.truncate(MAX_QUERY_WORDS);
        let sum: f32 = wanted.iter().map(|(_, weight)| weight).sum();
        let similarities: Vec<Vec<f32>> = wanted
            .iter()
            .map(|(word, _)| {
                self.vocabulary
                    .iter()
                    .map(|of_tool| word.similarity(of_tool))
                    .collect()
            })
            .collect();
        let score = |(at, tool): (usize, &IndexedTool)| {
            let mut of_query = 0.0;
            let mut best = vec![0.0f32; tool.words.len()];
            for (similar, (_, weight)) in similarities.iter().zip(&wanted) {
                let mut nearest = 0.0f32;
                for ((place, _), best) in tool.words.iter().zip(&mut best) {
                    nearest = nearest.max(similar[*place]);
                    *best = best.max(similar[*place]);
                }
                of_query += nearest * weight;
            }
            let of_tool: f32 = tool
                .words
                .iter()
                .zip(&best)
                .map(|((_, w), similar)| w * similar)
                .sum();
            let of_query = of_query / sum.max(f32::MIN_POSITIVE);
            let similarity = embeddings.as_ref();
            let similarity =
                similarity.map_or(0.0, |(query, tools)| query.cosine_similarity(tools[at]));
            similarity + OF_QUERY * of_query + OF_TOOL * of_tool
        };
        let scored = self.tools.iter().enumerate();
        let scored = scored.map(|(at, tool)| (score((at, tool)), tool));
        let mut scored: Vec<_> = scored.filter(|(score, _)| *score > 0.0).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = scored.into_iter().take(count);
        best.map(|(_, tool)| tool.name.clone()).collect()
    }
}

/// What a tool says of itself, and how much that counts.
fn texts(spec: &ToolSpec) -> Vec<(&str, f32)> {
    let mut texts = vec![
        (spec.name.as_str(), NAME),
        (spec.description.as_str(), DESCRIPTION),
    ];
    let properties = spec.parameters.get("properties");
    for (name, property) in properties.and_then(|p| p.as_object()).into_iter().flatten() {
        texts.push((name, PARAMETERS));
        if let Some(text) = property.get("description").and_then(|text| text.as_str()) {
            texts.push((text, PARAMETERS));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Risk;
    use serde_json::json;
    use std::time::Duration;

    fn index(tools: &[(&str, &str)]) -> Index {
        let spec = |(name, about): &(&str, &str)| {
            let spec = ToolSpec::new(name, about, Risk::Safe, json!({}));
            (spec, ToolEmbedding::default())
        };
        let tools: Vec<_> = tools.iter().map(spec).collect();
        Index::new(tools.iter().map(|(spec, embedding)| (spec, embedding)))
    }

    #[tokio::test]
    async fn words_alone_count_until_tools_have_embeddings() {
        let index = index(&[
            ("forecast", "Tells the weather of the coming days."),
            ("play", "Plays a song."),
        ]);
        assert_eq!(index.rank("which songs are there", 1), ["play"]);
        assert!(index.rank("shall I take an umbrella", 1).is_empty());
        index.ready().await;
        assert_eq!(index.rank("shall I take an umbrella", 1), ["forecast"]);
    }

    #[tokio::test]
    async fn an_index_that_is_gone_is_not_finished() {
        let about = "what nobody will ever ask for, told at great length ".repeat(20);
        let names: Vec<String> = (0..2000).map(|n| format!("tool{n}")).collect();
        let tools: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), about.as_str()))
            .collect();
        let index = index(&tools);
        let mut done = index.compute_embeddings();
        let embeddings = Arc::clone(&index.embeddings);
        drop(index);
        let closed = tokio::time::timeout(Duration::from_secs(60), done.changed());
        assert!(closed.await.unwrap().is_err());
        assert!(embeddings.iter().any(|(_, one)| one.get().is_none()));
    }
}
