//! What a short English text means, as a vector: texts that mean alike have vectors that point
//! the same way. A small transformer that is part of the program; no I/O.

mod file;
mod forward;
mod product;
mod tokens;

use file::Weights;
use product::Processor;
use std::sync::OnceLock;

const BYTES: &[u8] = include_bytes!("../model/sentences.bin");

/// A model of what texts mean.
#[derive(Debug)]
pub struct Model {
    weights: Weights,
    processor: Processor,
}

impl Model {
    /// The model that is built in. It is read when it is first asked for.
    pub fn built_in() -> Option<&'static Self> {
        static MODEL: OnceLock<Option<Model>> = OnceLock::new();
        let read = || {
            Some(Self {
                weights: Weights::parse(BYTES)?,
                processor: Processor::new(),
            })
        };
        MODEL.get_or_init(read).as_ref()
    }

    /// What a text means, as a vector of length one; of a long text, what its first `most` tokens
    /// mean. `None` if the model knows none of its words.
    pub fn embed(&self, text: &str, most: usize) -> Option<Vec<f32>> {
        let tokens = self.tokens(text, most)?;
        Some(forward::embedding(&self.weights, &tokens, self.processor))
    }

    /// The tokens of a text, between those that begin and end it.
    fn tokens(&self, text: &str, most: usize) -> Option<Vec<usize>> {
        let Weights { begin, end, .. } = self.weights;
        let places = self.weights.positions.len() / self.weights.width;
        let found = self
            .weights
            .tokens
            .of(text, most.min(places.saturating_sub(2)));
        if found.is_empty() {
            return None;
        }
        Some([begin].into_iter().chain(found).chain([end]).collect())
    }

    /// How many commoner words the model knows, if it knows this one, in lower case, as a whole.
    pub fn rank(&self, word: &str) -> Option<usize> {
        self.weights.tokens.whole(word)
    }
}

/// How near two vectors of length one are: from -1, the opposite, to 1, the same.
pub fn cosine_similarity(a: &[f32], b: &[f32]) -> f32 {
    forward::dot(a, b)
}

#[cfg(test)]
mod tests;
