//! Reads a model from its file. Bytes that do not fit make no model.

use crate::product::{BLOCK, Matrix};
use crate::tokens::Tokens;

/// Weights that have a scale in common.
const GROUP: usize = 32;
/// No model of ours has more of anything.
const MOST: usize = 1 << 20;
/// Longer rows would not fit the sums of `product`.
const MOST_WIDE: usize = 4096;
/// The tokens around a text.
const BEGIN: &str = "[CLS]";
const END: &str = "[SEP]";

/// A model as its file has it.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) tokens: Tokens,
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) width: usize,
    pub(crate) inner: usize,
    pub(crate) heads: usize,
    /// The scale of each token's numbers, and the numbers, half a byte each.
    pub(crate) token_scales: Vec<f32>,
    pub(crate) token_numbers: &'static [u8],
    /// What is added for a token's place.
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer>,
}

/// Brings numbers to a common mean and spread.
#[derive(Debug)]
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// One layer of a transformer.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Query, key and value, one below the other.
    pub(crate) attention: Matrix,
    pub(crate) attended: Matrix,
    pub(crate) attended_norm: Norm,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
    pub(crate) norm: Norm,
}

impl Weights {
    /// The numbers of its shape, its tokens and then its weights, as `make.py` writes them.
    pub(crate) fn parse(bytes: &'static [u8]) -> Option<Self> {
        let mut file = Reader(bytes);
        let (width, heads) = (file.count()?, file.count()?);
        let (layers, inner) = (file.count()?, file.count()?);
        let (positions, text) = (file.count()?, file.count()?);
        let blocks = |numbers: usize| numbers.is_multiple_of(GROUP) && numbers <= MOST_WIDE;
        if !blocks(width) || !blocks(inner) || !width.is_multiple_of(heads.checked_mul(BLOCK)?) {
            return None;
        }
        let text = str::from_utf8(file.bytes(text)?).ok()?;
        let tokens = Tokens::new(text);
        let count = text.lines().count();
        let weights = Self {
            begin: tokens.whole(BEGIN)?,
            end: tokens.whole(END)?,
            tokens,
            width,
            inner,
            heads,
            token_scales: file.floats(count)?,
            token_numbers: file.bytes(count * width / 2)?,
            positions: file.floats(positions * width)?,
            norm: file.norm(width)?,
            layers: (0..layers)
                .map(|_| file.layer(width, inner))
                .collect::<Option<_>>()?,
        };
        file.0.is_empty().then_some(weights)
    }
}

/// What is left of a file.
struct Reader(&'static [u8]);

impl Reader {
    fn bytes(&mut self, count: usize) -> Option<&'static [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn count(&mut self) -> Option<usize> {
        let count = u32::from_le_bytes(*self.bytes(4)?.first_chunk()?);
        let count = usize::try_from(count).ok()?;
        (1..=MOST).contains(&count).then_some(count)
    }

    fn floats(&mut self, count: usize) -> Option<Vec<f32>> {
        let (numbers, _) = self.bytes(count * 4)?.as_chunks();
        let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
        numbers.map(|x| x.is_finite().then_some(x)).collect()
    }

    fn norm(&mut self, width: usize) -> Option<Norm> {
        Some(Norm {
            weight: self.floats(width)?,
            bias: self.floats(width)?,
        })
    }

    fn layer(&mut self, width: usize, inner: usize) -> Option<Layer> {
        Some(Layer {
            attention: self.matrix(width, 3 * width)?,
            attended: self.matrix(width, width)?,
            attended_norm: self.norm(width)?,
            up: self.matrix(width, inner)?,
            down: self.matrix(inner, width)?,
            norm: self.norm(width)?,
        })
    }

    /// What is added to each product; the scale of each group, as the upper half of a float; and
    /// the numbers, half a byte each.
    fn matrix(&mut self, from: usize, to: usize) -> Option<Matrix> {
        let bias = self.floats(to)?;
        let (scales, _) = self.bytes(from * to / GROUP * 2)?.as_chunks();
        let scale = |bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
        let scales: Vec<f32> = scales.iter().map(scale).collect();
        let numbers = self.bytes(from * to / 2)?;
        if !scales.iter().all(|scale| scale.is_finite()) {
            return None;
        }
        let groups = numbers.chunks_exact(GROUP / 2).zip(&scales);
        let weights = groups.flat_map(|(numbers, scale)| halves(numbers).map(move |x| x * scale));
        Some(Matrix::new(weights.collect(), from, bias))
    }
}

/// The numbers in the halves of bytes, the lower half first: from -8 to 7.
pub(crate) fn halves(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes
        .iter()
        .flat_map(|byte| [byte & 15, byte >> 4])
        .map(|half| f32::from(half) - 8.0)
}
