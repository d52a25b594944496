//! From tokens to a vector: a transformer's layers. Sums of fractions have a fixed order, so that
//! every processor comes to the same.

use crate::file::{Layer, Norm, Weights, halves};
use crate::product::{BLOCK, Input, Processor, round};

/// Keeps a spread of nothing from being divided by.
const LEAST_SPREAD: f32 = 1e-12;

/// What tokens mean together, as a vector of length one.
pub(crate) fn embedding(weights: &Weights, tokens: &[usize], processor: Processor) -> Vec<f32> {
    let width = weights.width;
    let mut x = token_embeddings(weights, tokens);
    weights.norm.apply(&mut x);
    for layer in &weights.layers {
        layer.apply(&mut x, weights, processor);
    }
    let mut mean = vec![0.0; width];
    for row in x.chunks_exact(width) {
        add(&mut mean, row);
    }
    let length = dot(&mean, &mean).sqrt().max(f32::MIN_POSITIVE);
    mean.iter().map(|x| x / length).collect()
}

/// What each token means by itself and at its place.
fn token_embeddings(weights: &Weights, tokens: &[usize]) -> Vec<f32> {
    let half = weights.width / 2;
    let mut x = Vec::with_capacity(tokens.len() * weights.width);
    for (token, place) in tokens
        .iter()
        .zip(weights.positions.chunks_exact(weights.width))
    {
        let scale = weights.token_scales[*token];
        let numbers = &weights.token_numbers[token * half..(token + 1) * half];
        x.extend(
            halves(numbers)
                .zip(place)
                .map(|(x, place)| x * scale + place),
        );
    }
    x
}

impl Norm {
    fn apply(&self, x: &mut [f32]) {
        let width = self.weight.len();
        for row in x.chunks_exact_mut(width) {
            let mean = sum(row) / width as f32;
            for x in row.iter_mut() {
                *x -= mean;
            }
            let spread = (dot(row, row) / width as f32 + LEAST_SPREAD).sqrt();
            for ((x, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *x = *x / spread * weight + bias;
            }
        }
    }
}

impl Layer {
    fn apply(&self, x: &mut [f32], weights: &Weights, processor: Processor) {
        let Weights { width, inner, .. } = *weights;
        let asked = self.attention.product(&Input::new(x, width), processor);
        let seen = attend(&asked, width, weights.heads);
        add(
            x,
            &self.attended.product(&Input::new(&seen, width), processor),
        );
        self.attended_norm.apply(x);
        let mut up = self.up.product(&Input::new(x, width), processor);
        for x in &mut up {
            *x = gelu(*x);
        }
        add(x, &self.down.product(&Input::new(&up, inner), processor));
        self.norm.apply(x);
    }
}

/// Each row has a query, a key and a value; it gets the values of the rows whose keys fit its
/// query, head by head.
fn attend(rows: &[f32], width: usize, heads: usize) -> Vec<f32> {
    let part = width / heads;
    let scale = 1.0 / (part as f32).sqrt();
    let count = rows.len() / (3 * width);
    let mut out = vec![0.0; count * width];
    let mut fits = vec![0.0; count];
    for (row, out) in rows
        .chunks_exact(3 * width)
        .zip(out.chunks_exact_mut(width))
    {
        for (head, out) in out.chunks_exact_mut(part).enumerate() {
            let at = head * part;
            let query = &row[at..at + part];
            for (fit, row) in fits.iter_mut().zip(rows.chunks_exact(3 * width)) {
                *fit = dot(query, &row[width + at..width + at + part]) * scale;
            }
            let most = fits.iter().fold(f32::MIN, |most, fit| most.max(*fit));
            for fit in &mut fits {
                *fit = exp(*fit - most);
            }
            let all: f32 = fits.iter().sum();
            for (fit, row) in fits.iter().zip(rows.chunks_exact(3 * width)) {
                let share = fit / all;
                let value = &row[2 * width + at..2 * width + at + part];
                for (out, value) in out.iter_mut().zip(value) {
                    *out += share * value;
                }
            }
        }
    }
    out
}

fn add(x: &mut [f32], more: &[f32]) {
    for (x, more) in x.iter_mut().zip(more) {
        *x += more;
    }
}

/// The sum of numbers, of which there are whole blocks.
fn sum(x: &[f32]) -> f32 {
    let mut sums = [0.0; BLOCK];
    for block in x.as_chunks::<BLOCK>().0 {
        add(&mut sums, block);
    }
    together(sums)
}

/// The product of two vectors of whole blocks.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; BLOCK];
    for (a, b) in a
        .as_chunks::<BLOCK>()
        .0
        .iter()
        .zip(b.as_chunks::<BLOCK>().0)
    {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    together(sums)
}

/// Adds halves up until one number is left.
fn together(mut sums: [f32; BLOCK]) -> f32 {
    let mut half = BLOCK / 2;
    while half > 0 {
        let (left, right) = sums.split_at_mut(half);
        add(left, right);
        half /= 2;
    }
    sums[0]
}

/// Lets through what is above zero, softly.
fn gelu(x: f32) -> f32 {
    x / (1.0 + exp(-1.595_769 * (x + 0.044_715 * x * x * x)))
}

/// `e` to the power of `x`, to six digits. Plain arithmetic, which a compiler does many at a time.
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    let twos = round(x * std::f32::consts::LOG2_E);
    let x = x - twos as f32 * std::f32::consts::LN_2;
    let series = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x / 120.0))));
    series * f32::from_bits(((twos + 127) << 23).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_near() {
        for x in (-800..=800).map(|x| x as f32 / 10.0) {
            let found = exp(x) / x.exp();
            assert!((found - 1.0).abs() < 1e-5, "{x}: {found}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-30 && exp(f32::INFINITY).is_finite());
    }

    #[test]
    fn attention_takes_the_values_that_fit() {
        // Two rows, one head of sixteen: the first row's query fits the second row's key.
        let mut rows = vec![0.0; 2 * 48];
        rows[0] = 40.0;
        rows[48 + 16] = 40.0;
        rows[32] = 1.0;
        rows[48 + 32] = 2.0;
        let out = attend(&rows, 16, 1);
        assert!((out[0] - 2.0).abs() < 1e-5);
        assert!((out[16] - 1.5).abs() < 1e-5);
    }
}
