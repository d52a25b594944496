//! A table of English words: for each a small vector that lies near those of
//! words with a like meaning. The sum of a sentence's words lies near what a
//! model of sentences makes of it: words that tell little are short.
//! `embeddings/make.py` makes it, and says from what.

use std::collections::HashMap;
use std::sync::OnceLock;

const BYTES: &[u8] = include_bytes!("../../../embeddings/words.bin");
/// A word of rank `r` is about `1 / (r * RANKS)` of all words of a text.
const RANKS: f32 = 12.0;
/// Words that are more common than this say less and less.
const COMMON: f32 = 1e-4;

/// Vectors of words, the commonest word first.
#[derive(Debug, Default)]
pub(super) struct Table {
    ranks: HashMap<&'static str, usize>,
    dims: usize,
    /// What the numbers of each vector are to be multiplied with.
    scales: &'static [[u8; 4]],
    vectors: &'static [u8],
}

/// What the table has of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    /// The vector, in whole numbers.
    pub vector: &'a [u8],
    /// What they are to be multiplied with.
    pub scale: f32,
    /// How much the word tells, from 0 to 1: common words tell little.
    pub weight: f32,
}

impl Table {
    /// The table that is built in.
    pub(super) fn built_in() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(BYTES).unwrap_or_default())
    }

    /// The number of dimensions, the length of the words, the words with a line
    /// feed after each, their scales, and the vectors.
    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let (dims, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let dims = u32::from_le_bytes(*dims) as usize;
        let (words, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let words = str::from_utf8(words).ok()?;
        let ranks: HashMap<_, _> = words.lines().zip(0..).collect();
        let (scales, vectors) = rest.split_at_checked(ranks.len().checked_mul(4)?)?;
        let (scales, _) = scales.as_chunks();
        (vectors.len() == ranks.len() * dims).then_some(Self {
            ranks,
            dims,
            scales,
            vectors,
        })
    }

    /// How many numbers a vector has.
    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// A word in lower case.
    pub(super) fn get(&self, word: &str) -> Option<Entry<'_>> {
        let rank = *self.ranks.get(word)?;
        let share = 1.0 / ((rank + 3) as f32 * RANKS);
        Some(Entry {
            vector: self.vectors.get(rank * self.dims..(rank + 1) * self.dims)?,
            scale: f32::from_le_bytes(*self.scales.get(rank)?),
            weight: COMMON / (COMMON + share),
        })
    }
}

/// The product of two vectors. Bytes hold signed numbers.
pub(super) fn dot(a: &[u8], b: &[u8]) -> f32 {
    let pairs = a.iter().zip(b);
    let sum: i32 = pairs
        .map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()))
        .sum();
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &str, b: &str) -> f32 {
        let table = Table::built_in();
        let [a, b] = [a, b].map(|word| table.get(word).unwrap().vector);
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn words_of_like_meaning_are_near() {
        assert!(near("car", "vehicle") > near("car", "poem") + 0.2);
        assert!(near("doctor", "physician") > near("doctor", "bridge") + 0.2);
        let table = Table::built_in();
        assert!(table.get("the").unwrap().weight < table.get("harbour").unwrap().weight);
        assert!(table.get("qqzzx").is_none());
    }

    #[test]
    fn a_broken_table_is_no_table() {
        assert!(Table::parse(b"").is_none());
        assert!(Table::parse(b"\x02\0\0\0\x05\0\0\0one\n").is_none());
        assert!(Table::parse(b"\x02\0\0\0\x04\0\0\0one\n\0\0\x80\x3fabc").is_none());
        let table = Table::parse(b"\x02\0\0\0\x04\0\0\0one\n\0\0\x80\x3fab").unwrap();
        assert_eq!(table.get("one").unwrap().scale, 1.0);
    }
}
