//! How near a tool is to a query: as a whole, and word by word. Words meet when
//! they have one stem, lie near each other in the table of words, or are spelt
//! nearly alike.

use super::table::Table;
use super::words::{self, Word};
use crate::tool::ToolSpec;
use std::collections::HashMap;

/// Where a word of a tool comes from decides how much it counts.
const NAME: f32 = 1.3;
const DESCRIPTION: f32 = 1.0;
const PARAMETERS: f32 = 0.3;
/// What counts beside how near the two are as a whole: how much of the query the
/// tool has, and how much of the tool the query has.
const OF_QUERY: f32 = 0.6;
const OF_TOOL: f32 = 0.3;
/// The most of a query that is looked at.
const MAX_QUERY: usize = 4000;
const MAX_QUERY_WORDS: usize = 64;
const MAX_TOOL_WORDS: usize = 200;
const MAX_TEXT_WORDS: usize = 1000;

/// An index over one version of the tools.
#[derive(Debug, Default)]
pub struct Index {
    tools: Vec<IndexedTool>,
    /// Every word of the tools, once.
    vocabulary: Vec<Word>,
    /// In how many tools a stem is, as a weight: rare ones tell more.
    rarity: HashMap<String, f32>,
}

#[derive(Debug)]
struct IndexedTool {
    name: String,
    /// Words by their place in the vocabulary, with weights that add up to one.
    words: Vec<(usize, f32)>,
    whole: Whole,
}

impl Index {
    /// Builds the index.
    pub fn new<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let mut index = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut with_stem: HashMap<String, usize> = HashMap::new();
        for spec in specs {
            let mut whole = Whole::new();
            let mut counts: HashMap<usize, f32> = HashMap::new();
            for (text, weight) in texts(spec) {
                whole.add(text, weight.min(1.0));
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
                whole: whole.of_length_one(),
            });
        }
        index.weigh(with_stem);
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

    /// The names of up to `count` tools, the nearest first. Tools that share
    /// nothing with the query are left out.
    pub fn rank(&self, query: &str, count: usize) -> Vec<String> {
        let query = crate::pain::excerpt(query, MAX_QUERY);
        let mut whole = Whole::new();
        whole.add(query, 1.0);
        let whole = whole.of_length_one();
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
        let nearness: Vec<Vec<f32>> = wanted
            .iter()
            .map(|(word, _)| {
                self.vocabulary
                    .iter()
                    .map(|of_tool| word.near(of_tool))
                    .collect()
            })
            .collect();
        let score = |tool: &IndexedTool| {
            let mut of_query = 0.0;
            let mut best = vec![0.0f32; tool.words.len()];
            for (near, (_, weight)) in nearness.iter().zip(&wanted) {
                let mut nearest = 0.0f32;
                for ((place, _), best) in tool.words.iter().zip(&mut best) {
                    nearest = nearest.max(near[*place]);
                    *best = best.max(near[*place]);
                }
                of_query += nearest * weight;
            }
            let of_tool: f32 = tool
                .words
                .iter()
                .zip(&best)
                .map(|((_, w), near)| w * near)
                .sum();
            let of_query = of_query / sum.max(f32::MIN_POSITIVE);
            tool.whole.near(&whole) + OF_QUERY * of_query + OF_TOOL * of_tool
        };
        let scored = self.tools.iter().map(|tool| (score(tool), tool));
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

/// The sum of all words of a text, the small ones too: the table knows how much
/// each tells.
#[derive(Debug)]
struct Whole(Vec<f32>);

impl Whole {
    fn new() -> Self {
        Self(vec![0.0; Table::built_in().dims()])
    }

    fn add(&mut self, text: &str, weight: f32) {
        for word in words::all_words(text).iter().take(MAX_TEXT_WORDS) {
            let Some(known) = Table::built_in().get(word) else {
                continue;
            };
            let scale = known.scale * weight;
            for (sum, x) in self.0.iter_mut().zip(known.vector) {
                *sum += f32::from(x.cast_signed()) * scale;
            }
        }
    }

    fn of_length_one(mut self) -> Self {
        let length = self.0.iter().map(|x| x * x).sum::<f32>().sqrt();
        for x in &mut self.0 {
            *x /= length.max(f32::MIN_POSITIVE);
        }
        self
    }

    /// From -1, the opposite, to 1, the same.
    fn near(&self, other: &Self) -> f32 {
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }
}
