//! Dense rows: inner products with weights, and sums of rows times derivatives.
//!
//! Memory traffic: each row is read once from memory (2 bytes a cell) and a second time from the first-level cache, tile by tile. Integer
//! products of two rows at a time fit in 32 bits (2 x 32767^2 < 2^31); their sum is kept as its value modulo 2^32 and the sum of its upper
//! halves, which together determine it for up to 2^16 products. In double precision what costs is turning 16-bit integers into doubles, so
//! wide instructions do that, four rows at a time.

use crate::processor::wide;
use std::ops::Range;

/// Cells read past the end of a row by wide loads.
pub(crate) const PADDING: usize = 32;
/// Weights and sums in double precision are padded to whole vectors of this many numbers; cells past a row meet weights of zero.
pub(super) const LANES: usize = 8;
/// Rows after which 32-bit sums are widened.
pub(super) const FLUSH: usize = 32_768;

/// Inner product of a row of d cells with padded weights; cells past the row meet weights of zero.
#[inline]
pub(super) fn dot_single(cells: &[i16], d: usize, weights: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if wide() && cells.len() >= d.next_multiple_of(16) && weights.len() >= d.next_multiple_of(16) {
        // SAFETY: the processor has the instructions and both slices hold d cells rounded up to 16.
        return unsafe { x86::dot(cells, d, weights) };
    }
    cells[..d].iter().zip(weights).map(|(x, w)| f32::from(*x) * w).sum()
}

/// Sums of derivative x cell for all columns: modulo 2^32, and of the upper halves.
#[derive(Clone)]
pub(super) struct PairSums {
    modulo: Vec<i32>,
    upper: Vec<i32>,
    /// Position of a column in the vectors above: wide instructions interleave halves of 8.
    wide: bool,
}

impl PairSums {
    pub(super) fn new(padded: usize) -> PairSums {
        PairSums { modulo: vec![0; padded], upper: vec![0; padded], wide: wide() }
    }

    /// Adds rows of d cells, each times its derivative.
    pub(super) fn add(&mut self, cells: &[i16], d: usize, derivatives: &[i16]) {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            let full = derivatives.len() / 8 * 8;
            // SAFETY: the processor has the instructions; every row of the data is followed by at least PADDING more cells.
            unsafe { x86::add_pairs(cells, d, &derivatives[..full], &mut self.modulo, &mut self.upper) };
            let mut i = full;
            while i < derivatives.len() {
                let second =
                    if i + 1 < derivatives.len() { (&cells[(i + 1) * d..], derivatives[i + 1]) } else { (&cells[i * d..], 0) };
                self.add_pair(&cells[i * d..], second.0, d, derivatives[i], second.1);
                i += 2;
            }
            return;
        }
        for (i, pair) in derivatives.chunks(2).enumerate() {
            let (first, second) = (&cells[2 * i * d..], if pair.len() == 2 { &cells[(2 * i + 1) * d..] } else { cells });
            self.add_pair(first, second, d, pair[0], pair.get(1).copied().unwrap_or(0));
        }
    }

    fn add_pair(&mut self, first: &[i16], second: &[i16], d: usize, a: i16, b: i16) {
        for j in 0..d {
            let sum = i32::from(first[j]) * i32::from(a) + i32::from(second[j]) * i32::from(b);
            let at = self.position(j);
            self.modulo[at] = self.modulo[at].wrapping_add(sum);
            self.upper[at] += sum >> 16;
        }
    }

    fn position(&self, column: usize) -> usize {
        if !self.wide {
            return column;
        }
        // Within 16 columns: 0-3, 8-11, 4-7, 12-15.
        let (chunk, i) = (column / 16 * 16, column % 16);
        chunk + [0, 8, 4, 12][i / 4] + i % 4
    }

    /// Moves the sums to 64 bits.
    pub(super) fn flush(&mut self, out: &mut [i64]) {
        for (j, total) in out.iter_mut().enumerate() {
            let at = self.position(j);
            let upper = i64::from(self.upper[at]) << 16;
            let lower = (i64::from(self.modulo[at]) - upper) as u32;
            *total = total.wrapping_add(upper + i64::from(lower));
        }
        self.modulo.fill(0);
        self.upper.fill(0);
    }
}

/// Inner products of rows of d cells with padded weights, written with a stride.
pub(super) fn scores(cells: &[i16], d: usize, rows: Range<usize>, weights: &[f64], out: &mut [f64], stride: usize, wide: bool) {
    let cells = &cells[rows.start * d..];
    #[cfg(target_arch = "x86_64")]
    if wide {
        // SAFETY: the processor has the instructions; every row is followed by at least PADDING more cells.
        return unsafe { x86::scores(cells, d, rows.len(), weights, out, stride) };
    }
    let _ = wide;
    for (i, row) in cells[..rows.len() * d].chunks_exact(d).enumerate() {
        out[i * stride] = dot(row, weights);
    }
}

/// Adds rows of d cells, each times its derivative, which are read with a stride.
pub(super) fn add_rows(
    cells: &[i16],
    d: usize,
    rows: Range<usize>,
    derivatives: &[f64],
    stride: usize,
    sum: &mut [f64],
    wide: bool,
) {
    let cells = &cells[rows.start * d..];
    #[cfg(target_arch = "x86_64")]
    if wide {
        // SAFETY: the processor has the instructions; every row is followed by at least PADDING more cells.
        return unsafe { x86::add_rows(cells, d, rows.len(), derivatives, stride, sum) };
    }
    let _ = wide;
    for (i, row) in cells[..rows.len() * d].chunks_exact(d).enumerate() {
        let s = derivatives[i * stride];
        sum.iter_mut().zip(row).for_each(|(t, x)| *t += s * f64::from(*x));
    }
}

/// Inner product in lanes, so that the compiler can use what every processor has.
fn dot(row: &[i16], weights: &[f64]) -> f64 {
    let mut lanes = [0f64; LANES];
    let (x, w) = (row.chunks_exact(LANES), weights[..row.len()].chunks_exact(LANES));
    let rest: f64 = x.remainder().iter().zip(w.remainder()).map(|(x, w)| f64::from(*x) * w).sum();
    for (x, w) in x.zip(w) {
        for i in 0..LANES {
            lanes[i] += f64::from(x[i]) * w[i];
        }
    }
    // A tree, not a chain.
    for half in [4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0] + rest
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::LANES;
    use std::arch::x86_64::*;

    /// Inner product; reads d rounded up to 16 cells and weights.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn dot(cells: &[i16], d: usize, weights: &[f32]) -> f32 {
        let chunks = d.div_ceil(16);
        assert!(cells.len() >= 16 * chunks && weights.len() >= 16 * chunks);
        let (mut a, mut b) = (_mm256_setzero_ps(), _mm256_setzero_ps());
        for c in 0..chunks {
            // SAFETY: both slices hold 16 x chunks elements.
            unsafe {
                let low = _mm_loadu_si128(cells.as_ptr().add(16 * c).cast());
                let high = _mm_loadu_si128(cells.as_ptr().add(16 * c + 8).cast());
                let low = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(low));
                let high = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(high));
                a = _mm256_fmadd_ps(low, _mm256_loadu_ps(weights.as_ptr().add(16 * c)), a);
                b = _mm256_fmadd_ps(high, _mm256_loadu_ps(weights.as_ptr().add(16 * c + 8)), b);
            }
        }
        let sum = _mm256_add_ps(a, b);
        let sum = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
        let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
        _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)))
    }

    /// Adds derivative x row for a multiple of eight rows.
    #[target_feature(enable = "avx2")]
    pub(super) fn add_pairs(cells: &[i16], d: usize, derivatives: &[i16], modulo: &mut [i32], upper: &mut [i32]) {
        let chunks = d.div_ceil(16);
        assert!(modulo.len() >= 16 * chunks && upper.len() >= 16 * chunks);
        assert!(derivatives.is_empty() || cells.len() >= (derivatives.len() - 1) * d + 16 * chunks);
        for (group, eight) in derivatives.chunks_exact(8).enumerate() {
            let rows = &cells[8 * group * d..];
            let mut pair = [_mm256_setzero_si256(); 4];
            for (p, two) in pair.iter_mut().zip(eight.chunks_exact(2)) {
                *p = _mm256_set1_epi32(i32::from(two[1]) << 16 | i32::from(two[0] as u16));
            }
            for c in 0..chunks {
                // SAFETY: asserted above: the last row has 16 x chunks cells, sums have 16 x chunks entries.
                unsafe {
                    let m = modulo.as_mut_ptr().add(16 * c).cast::<__m256i>();
                    let u = upper.as_mut_ptr().add(16 * c).cast::<__m256i>();
                    let (mut m0, mut m1) = (_mm256_loadu_si256(m), _mm256_loadu_si256(m.add(1)));
                    let (mut u0, mut u1) = (_mm256_loadu_si256(u), _mm256_loadu_si256(u.add(1)));
                    for (i, p) in pair.iter().enumerate() {
                        let first = _mm256_loadu_si256(rows.as_ptr().add(2 * i * d + 16 * c).cast());
                        let second = _mm256_loadu_si256(rows.as_ptr().add((2 * i + 1) * d + 16 * c).cast());
                        let low = _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), *p);
                        let high = _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), *p);
                        m0 = _mm256_add_epi32(m0, low);
                        m1 = _mm256_add_epi32(m1, high);
                        u0 = _mm256_add_epi32(u0, _mm256_srai_epi32(low, 16));
                        u1 = _mm256_add_epi32(u1, _mm256_srai_epi32(high, 16));
                    }
                    _mm256_storeu_si256(m, m0);
                    _mm256_storeu_si256(m.add(1), m1);
                    _mm256_storeu_si256(u, u0);
                    _mm256_storeu_si256(u.add(1), u1);
                }
            }
        }
    }

    /// Four cells as doubles.
    ///
    /// # Safety
    /// Four cells must be readable at the pointer.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn four(cells: *const i16) -> __m256d {
        // SAFETY: the caller's word.
        _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(unsafe { _mm_loadl_epi64(cells.cast()) }))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn scores(cells: &[i16], d: usize, rows: usize, weights: &[f64], out: &mut [f64], stride: usize) {
        let chunks = d.div_ceil(LANES);
        assert!(weights.len() >= LANES * chunks);
        assert!(rows == 0 || (cells.len() >= (rows - 1) * d + LANES * chunks && out.len() > (rows - 1) * stride));
        let mut row = 0;
        while row < rows {
            let n = 4.min(rows - row);
            let mut sums = [_mm256_setzero_pd(); 8];
            // The last rows of a tile are computed with the last one repeated.
            let at = [0, 1, 2, 3].map(|i: usize| (row + i.min(n - 1)) * d);
            for c in 0..chunks {
                // SAFETY: asserted above.
                unsafe {
                    let w = weights.as_ptr().add(LANES * c);
                    let (low, high) = (_mm256_loadu_pd(w), _mm256_loadu_pd(w.add(4)));
                    for i in 0..4 {
                        let x = cells.as_ptr().add(at[i] + LANES * c);
                        sums[i] = _mm256_fmadd_pd(four(x), low, sums[i]);
                        sums[4 + i] = _mm256_fmadd_pd(four(x.add(4)), high, sums[4 + i]);
                    }
                }
            }
            for i in 0..n {
                let sum = _mm256_add_pd(sums[i], sums[4 + i]);
                let sum = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
                out[(row + i) * stride] = _mm_cvtsd_f64(_mm_add_sd(sum, _mm_unpackhi_pd(sum, sum)));
            }
            row += n;
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_rows(cells: &[i16], d: usize, rows: usize, derivatives: &[f64], stride: usize, sum: &mut [f64]) {
        let chunks = d.div_ceil(LANES);
        assert!(sum.len() >= LANES * chunks);
        assert!(rows == 0 || (cells.len() >= (rows - 1) * d + LANES * chunks && derivatives.len() > (rows - 1) * stride));
        let mut row = 0;
        while row < rows {
            let n = 4.min(rows - row);
            let at = [0, 1, 2, 3].map(|i: usize| (row + i.min(n - 1)) * d);
            let derivative =
                [0, 1, 2, 3].map(|i: usize| _mm256_set1_pd(if i < n { derivatives[(row + i) * stride] } else { 0.0 }));
            for c in 0..chunks {
                // SAFETY: asserted above.
                unsafe {
                    let to = sum.as_mut_ptr().add(LANES * c);
                    let (mut low, mut high) = (_mm256_loadu_pd(to), _mm256_loadu_pd(to.add(4)));
                    for i in 0..4 {
                        let x = cells.as_ptr().add(at[i] + LANES * c);
                        low = _mm256_fmadd_pd(four(x), derivative[i], low);
                        high = _mm256_fmadd_pd(four(x.add(4)), derivative[i], high);
                    }
                    _mm256_storeu_pd(to, low);
                    _mm256_storeu_pd(to.add(4), high);
                }
            }
            row += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wide, narrow and plain 64-bit arithmetic agree bit for bit, at extreme values too.
    #[test]
    fn pair_sums_are_exact() {
        for d in [1usize, 3, 16, 17, 100] {
            for rows in [1usize, 2, 7, 8, 9, 64] {
                let cell = |i: usize| -> i16 { [i16::MAX, -i16::MAX, 1, -1, 0, 12345, -32000][i * 2654435761 % 7] };
                let cells: Vec<i16> = (0..rows * d).map(cell).chain(std::iter::repeat_n(0, 32)).collect();
                let derivatives: Vec<i16> = (0..rows).map(|i| cell(i * 31 + 5)).collect();
                let mut exact = vec![0i64; d];
                for i in 0..rows {
                    for j in 0..d {
                        exact[j] += 3 * i64::from(derivatives[i]) * i64::from(cells[i * d + j]);
                    }
                }
                for wide in [false, true] {
                    let mut sums = PairSums::new(d.next_multiple_of(16));
                    if wide && !sums.wide {
                        continue;
                    }
                    sums.wide = wide;
                    for _ in 0..3 {
                        sums.add(&cells, d, &derivatives);
                    }
                    let mut out = vec![0i64; d];
                    sums.flush(&mut out);
                    assert_eq!(out, exact, "d {d} rows {rows} wide {wide}");
                }
            }
        }
    }

    /// The largest sums that a flush period can hold: every product at its extreme.
    #[test]
    fn flush_period_does_not_overflow() {
        for sign in [1i16, -1] {
            let cells = vec![i16::MAX; 8 * 16 + 32];
            let derivatives = [sign * i16::MAX; 8];
            let mut sums = PairSums::new(16);
            for _ in 0..FLUSH / 8 {
                sums.add(&cells, 16, &derivatives);
            }
            let mut out = vec![0i64; 16];
            sums.flush(&mut out);
            let exact = FLUSH as i64 * i64::from(sign) * i64::from(i16::MAX) * i64::from(i16::MAX);
            assert!(out.iter().all(|x| *x == exact), "{out:?} {exact}");
        }
    }
}
