//! Products of matrices, in whole numbers: every processor comes to the same, and those with wide
//! registers come to it sooner.

/// Numbers that are multiplied side by side.
pub(crate) const BLOCK: usize = 16;
/// Rows of a matrix, and rows of input, whose products are taken at once.
const ROWS: usize = 2;
const INPUTS: usize = 4;
/// Blocks of input that are done with the whole matrix before the next: they fit the nearest cache.
const NEAR: usize = 768;
/// What the largest number of a row of weights, and of a row of input, becomes. The sum of 4,096
/// products fits 32 bits.
const LARGEST_WEIGHT: f32 = 127.0;
const LARGEST_INPUT: f32 = 4095.0;
/// Adding this rounds to a whole number, which is then in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// A matrix of rounded weights, and what is added to the product with each row.
#[derive(Debug)]
pub(crate) struct Matrix {
    weights: Vec<[i8; BLOCK]>,
    /// What the numbers of a row are to be multiplied with.
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// Blocks of a row.
    blocks: usize,
}

/// A block of input, where a wide register reads it at once.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Aligned([i16; BLOCK]);

/// Rows of rounded input.
#[derive(Debug, Default)]
pub(crate) struct Input {
    numbers: Vec<Aligned>,
    scales: Vec<f32>,
}

impl Input {
    /// Rounds rows of `width` numbers.
    pub(crate) fn new(rows: &[f32], width: usize) -> Self {
        let mut input = Self::default();
        for row in rows.chunks_exact(width) {
            let largest = largest(row);
            let scale = LARGEST_INPUT / largest;
            let (blocks, _) = row.as_chunks::<BLOCK>();
            let round = |block: &[f32; BLOCK]| Aligned(block.map(|x| round(x * scale) as i16));
            input.numbers.extend(blocks.iter().map(round));
            input.scales.push(largest / LARGEST_INPUT);
        }
        input
    }
}

impl Matrix {
    /// Rounds rows of `width` weights.
    pub(crate) fn new(weights: Vec<f32>, width: usize, bias: Vec<f32>) -> Self {
        let mut matrix = Self {
            weights: Vec::with_capacity(weights.len() / BLOCK),
            scales: Vec::with_capacity(bias.len()),
            bias,
            blocks: width / BLOCK,
        };
        for row in weights.chunks_exact(width) {
            let largest = largest(row);
            let scale = LARGEST_WEIGHT / largest;
            let (blocks, _) = row.as_chunks::<BLOCK>();
            let round = |block: &[f32; BLOCK]| block.map(|x| round(x * scale) as i8);
            matrix.weights.extend(blocks.iter().map(round));
            matrix.scales.push(largest / LARGEST_WEIGHT);
        }
        matrix
    }

    /// For each row of input, its product with each row of the matrix.
    pub(crate) fn product(&self, input: &Input, processor: Processor) -> Vec<f32> {
        let mut out = vec![0.0; input.scales.len() * self.scales.len()];
        match processor {
            #[cfg(target_arch = "x86_64")]
            Processor::Avx2(simd) => simd.vectorize(avx2::Product {
                matrix: self,
                input,
                out: &mut out,
                simd,
            }),
            Processor::Any => self.plain_product(input, &mut out),
        }
        out
    }

    fn plain_product(&self, input: &Input, out: &mut [f32]) {
        let rows = self.weights.chunks_exact(self.blocks);
        for (at, weights) in rows.enumerate() {
            let inputs = input.numbers.chunks_exact(self.blocks).enumerate();
            for (of, numbers) in inputs {
                let mut sum = 0;
                for (weights, numbers) in weights.iter().zip(numbers) {
                    let pairs = weights.iter().zip(&numbers.0);
                    sum += pairs
                        .map(|(w, x)| i32::from(*w) * i32::from(*x))
                        .sum::<i32>();
                }
                self.store(out, input, (at, of), sum);
            }
        }
    }

    /// Keeps the product of a row of the matrix with a row of input.
    #[inline(always)]
    fn store(&self, out: &mut [f32], input: &Input, (at, of): (usize, usize), sum: i32) {
        let scale = self.scales[at] * input.scales[of];
        out[of * self.scales.len() + at] = sum as f32 * scale + self.bias[at];
    }
}

/// What the processor can do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {
    /// 256 bits at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    /// What the compiler knows of.
    Any,
}

impl Processor {
    /// This one.
    pub(crate) fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Self::Avx2(simd);
        }
        Self::Any
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{BLOCK, INPUTS, Input, Matrix, NEAR, ROWS};
    use pulp::NullaryFnOnce;
    use pulp::x86::V3;

    /// A product, for `V3::vectorize`. All that it calls has to be inlined to it.
    pub(super) struct Product<'a> {
        pub(super) matrix: &'a Matrix,
        pub(super) input: &'a Input,
        pub(super) out: &'a mut [f32],
        pub(super) simd: V3,
    }

    impl NullaryFnOnce for Product<'_> {
        type Output = ();

        #[inline(always)]
        fn call(mut self) {
            let (rows, inputs) = (self.matrix.scales.len(), self.input.scales.len());
            let near = (NEAR / self.matrix.blocks).max(INPUTS);
            let mut of = 0;
            while of < inputs {
                let end = inputs.min(of + near);
                let mut at = 0;
                while at + ROWS <= rows {
                    self.rows::<ROWS>(at, of, end);
                    at += ROWS;
                }
                while at < rows {
                    self.rows::<1>(at, of, end);
                    at += 1;
                }
                of = end;
            }
        }
    }

    impl Product<'_> {
        /// The products of `R` rows of the matrix with the rows of input from `of` to `end`.
        #[inline(always)]
        fn rows<const R: usize>(&mut self, at: usize, mut of: usize, end: usize) {
            while of + INPUTS <= end {
                self.tile::<R, INPUTS>(at, of);
                of += INPUTS;
            }
            match end - of {
                3 => self.tile::<R, 3>(at, of),
                2 => self.tile::<R, 2>(at, of),
                1 => self.tile::<R, 1>(at, of),
                _ => {}
            }
        }

        /// The products of `R` rows of the matrix with `T` rows of input.
        #[inline(always)]
        fn tile<const R: usize, const T: usize>(&mut self, at: usize, of: usize) {
            let (simd, blocks) = (self.simd, self.matrix.blocks);
            // Slices of one length, so that the loop needs no checks.
            let mut weights = [&self.matrix.weights[..0]; R];
            for (r, row) in weights.iter_mut().enumerate() {
                *row = &self.matrix.weights[(at + r) * blocks..][..blocks];
            }
            let mut numbers = [&self.input.numbers[..0]; T];
            for (t, row) in numbers.iter_mut().enumerate() {
                *row = &self.input.numbers[(of + t) * blocks..][..blocks];
            }
            let zero = simd.avx._mm256_setzero_si256();
            let mut sums = [[zero; T]; R];
            for block in 0..blocks {
                for r in 0..R {
                    let weight: [i8; BLOCK] = weights[r][block];
                    let weight = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(weight));
                    for t in 0..T {
                        let number = pulp::cast(numbers[t][block].0);
                        let product = simd.avx2._mm256_madd_epi16(weight, number);
                        sums[r][t] = simd.avx2._mm256_add_epi32(sums[r][t], product);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let mut four = [zero; INPUTS];
                four[..T].copy_from_slice(sums);
                let [a, b, c, d] = four;
                // Neighbours are added until each of the four is in two places, far apart.
                let ab = simd.avx2._mm256_hadd_epi32(a, b);
                let cd = simd.avx2._mm256_hadd_epi32(c, d);
                let [a, b, c, d, more @ ..]: [i32; 8] =
                    pulp::cast(simd.avx2._mm256_hadd_epi32(ab, cd));
                for (t, sum) in [a, b, c, d].iter().enumerate().take(T) {
                    let (matrix, input) = (self.matrix, self.input);
                    matrix.store(self.out, input, (at + r, of + t), sum + more[t]);
                }
            }
        }
    }
}

fn largest(row: &[f32]) -> f32 {
    let (blocks, _) = row.as_chunks::<BLOCK>();
    let mut largest = [f32::MIN_POSITIVE; BLOCK];
    for block in blocks {
        for (largest, x) in largest.iter_mut().zip(block) {
            *largest = largest.max(x.abs());
        }
    }
    largest.into_iter().fold(f32::MIN_POSITIVE, f32::max)
}

/// The nearest whole number of a small one.
#[inline(always)]
pub(crate) fn round(x: f32) -> i32 {
    (x + ROUND).to_bits().cast_signed() - ROUND.to_bits().cast_signed()
}
