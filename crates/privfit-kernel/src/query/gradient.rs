//! Gradient sums of linear models on 16-bit rows: slope times row is a product of small integers, so the sum is exact.
//!
//! Memory traffic: each row is read once from memory (2 bytes a cell) and a second time from the first-level cache, block by
//! block. Products of two rows at a time fit in 32 bits (2 x 32767^2 < 2^31); their sum is kept as its value modulo 2^32 and the
//! sum of its upper halves, which together determine it for up to 2^16 products.

use crate::store::compressed::wide;
use crate::store::data::{Dataset, PADDING, Rows};
use crate::query::loss::Loss;
use crate::mechanism::{Grid, ROW_LIMIT};
use crate::quiet::quietly;
use std::ops::Range;

/// Rows whose scores are computed together: they stay in the first-level cache.
pub(crate) const BLOCK: usize = 64;
/// Rows after which 32-bit sums are widened.
const FLUSH: usize = 32_768;

/// How slopes become integers: at most `limit`, so that limit x row limit is the bound of the grid.
#[derive(Clone, Copy)]
pub(crate) struct SlopeGrid {
    pub(crate) limit: i16,
    per_unit: f32,
    /// Cells are cut at this before they enter a sum; none where the bound is on the whole row.
    pub(crate) cap: Option<i16>,
}

impl SlopeGrid {
    /// For cells of at most `cap` units.
    pub(crate) fn new(loss: &Loss, grid: &Grid, cap: u64) -> Option<SlopeGrid> {
        let limit = grid.bound / cap;
        if limit == 0 || limit > ROW_LIMIT || limit * cap != grid.bound {
            return None;
        }
        let cap = (cap < ROW_LIMIT).then_some(cap as i16);
        Some(SlopeGrid { limit: limit as i16, per_unit: (limit as f64 / loss.lipschitz) as f32, cap })
    }

    /// Integer slopes of rows with these scores and labels. Each depends on its own row alone: a row whose slope panics, or whose
    /// label the loss does not know, has none, and the others do not notice.
    pub(crate) fn of_rows(&self, loss: &Loss, scores: &[f32], labels: &[f32], slopes: &mut [f32], out: &mut [i16]) {
        let k = loss.outputs;
        let call = || (loss.slopes)(&loss.parameters, scores, labels, slopes);
        if quietly(call).is_none() {
            // One row's doing: each by itself, and only that one contributes nothing.
            for i in 0..labels.len() {
                let part = i * k..(i + 1) * k;
                let call = || (loss.slopes)(&loss.parameters, &scores[part.clone()], &labels[i..=i], &mut slopes[part.clone()]);
                if quietly(call).is_none() {
                    slopes[part].fill(0.0);
                }
            }
        }
        for (s, y) in slopes.chunks_mut(k).zip(labels) {
            if !loss.knows(*y) {
                s.fill(0.0);
            }
        }
        self.quantise(slopes, k, out);
    }

    /// Truncates toward zero; a slope that is not finite, or too long, becomes zero or is cut, on the integers.
    fn quantise(&self, slopes: &[f32], outputs: usize, out: &mut [i16]) {
        let limit = i32::from(self.limit);
        for (z, s) in out.iter_mut().zip(slopes) {
            // NaN becomes 0, infinities saturate and are cut.
            *z = ((s * self.per_unit) as i32).clamp(-limit, limit) as i16;
        }
        if outputs > 1 {
            for row in out.chunks_mut(outputs) {
                let square: u64 = row.iter().map(|z| u64::from(z.unsigned_abs()).pow(2)).sum();
                let bound = u64::from(self.limit.unsigned_abs()).pow(2);
                if square > bound {
                    let factor = (bound as f64 / square as f64).sqrt() * (1.0 - 1e-4);
                    row.iter_mut().for_each(|z| *z = (f64::from(*z) * factor) as i16);
                    if row.iter().map(|z| u64::from(z.unsigned_abs()).pow(2)).sum::<u64>() > bound {
                        row.fill(0);
                    }
                }
            }
        }
    }
}

/// Adds the gradients of the rows of a range of slots (one row each) to `out`, output after output.
pub(crate) fn add_gradients(
    data: &Dataset,
    range: Range<usize>,
    chosen: Option<&[bool]>,
    weights: &[f64],
    loss: &Loss,
    slope_grid: SlopeGrid,
    out: &mut [i64],
) {
    let d = data.dimension;
    let k = loss.outputs;
    let unit = data.row_norm / ROW_LIMIT as f64;
    // Weights absorb the row unit; padded for wide loads.
    let padded = d.next_multiple_of(16);
    let mut scaled = vec![0f32; k * padded];
    for o in 0..k {
        for j in 0..d {
            scaled[o * padded + j] = (weights[o * d + j] * unit) as f32;
        }
    }
    // At the start of a descent all scores are 0, which nobody needs to add up. Weights are public.
    let nowhere = weights.iter().all(|w| *w == 0.0);
    let mut scores = vec![0f32; BLOCK * k];
    let mut slopes = vec![0f32; BLOCK * k];
    let mut integers = vec![0i16; BLOCK * k];
    let mut sums = vec![PairSums::new(padded); k];
    let mut column = [0i16; BLOCK];
    let mut labels = [0f32; BLOCK];
    // Rows of a sample are brought together first, so that a step costs what its sample costs.
    let mut gathered = vec![0i16; if chosen.is_some() && matches!(data.rows, Rows::Dense(_)) { BLOCK * d + PADDING } else { 0 }];
    let mut picked = [0usize; BLOCK];
    let mut row = range.start;
    let mut since_flush = 0;
    while row < range.end {
        let mut n = 0;
        match chosen {
            None => {
                n = BLOCK.min(range.end - row);
                (0..n).for_each(|i| picked[i] = row + i);
                row += n;
            }
            Some(chosen) => {
                while n < BLOCK && row < range.end {
                    picked[n] = row;
                    n += usize::from(chosen[row]);
                    row += 1;
                }
            }
        }
        let rows = &picked[..n];
        let cells: &[i16] = match (&data.rows, chosen) {
            (Rows::Dense(cells), None) => &cells[rows[0] * d..],
            (Rows::Dense(cells), Some(_)) => {
                for (to, from) in gathered.chunks_exact_mut(d).zip(rows) {
                    to.copy_from_slice(&cells[from * d..(from + 1) * d]);
                }
                &gathered
            }
            (Rows::Sparse(_), _) => &[],
        };
        labels[..n].iter_mut().zip(rows).for_each(|(l, r)| *l = data.labels[*r]);
        let labels = &labels[..n];
        for o in (0..k).filter(|_| !nowhere) {
            score_block(data, cells, rows, &scaled[o * padded..(o + 1) * padded], &mut scores[o..], k);
        }
        slope_grid.of_rows(loss, &scores[..n * k], labels, &mut slopes[..n * k], &mut integers[..n * k]);
        for o in 0..k {
            for i in 0..n {
                column[i] = integers[i * k + o];
            }
            match (&data.rows, slope_grid.cap) {
                (Rows::Dense(_), None) => sums[o].add(cells, d, &column[..n]),
                (Rows::Dense(_), Some(cap)) => {
                    let out = &mut out[o * d..(o + 1) * d];
                    for (z, row) in column[..n].iter().zip(cells.chunks_exact(d)) {
                        let add = |(t, x): (&mut i64, &i16)| *t += i64::from(i32::from(*z) * i32::from((*x).clamp(-cap, cap)));
                        out.iter_mut().zip(row).for_each(add);
                    }
                }
                (Rows::Sparse(sparse), None) => sparse.add_integers(rows, &column[..n], &mut out[o * d..(o + 1) * d]),
                (Rows::Sparse(sparse), Some(cap)) => {
                    let out = &mut out[o * d..(o + 1) * d];
                    for (z, row) in column[..n].iter().zip(rows) {
                        let ((index, value), z) = (sparse.row(*row), i32::from(*z));
                        for (j, x) in index.iter().zip(value) {
                            let slot = &mut out[*j as usize];
                            // Both below 2^15 in size.
                            *slot = slot.wrapping_add(i64::from(z * i32::from((*x).clamp(-cap, cap))));
                        }
                    }
                }
            }
        }
        since_flush += n;
        if since_flush + BLOCK > FLUSH {
            sums.iter_mut().enumerate().for_each(|(o, s)| s.flush(&mut out[o * d..(o + 1) * d]));
            since_flush = 0;
        }
    }
    sums.iter_mut().enumerate().for_each(|(o, s)| s.flush(&mut out[o * d..(o + 1) * d]));
}

fn score_block(data: &Dataset, cells: &[i16], rows: &[usize], weights: &[f32], out: &mut [f32], stride: usize) {
    match &data.rows {
        Rows::Dense(_) => {
            for i in 0..rows.len() {
                out[i * stride] = dot(&cells[i * data.dimension..], data.dimension, weights);
            }
        }
        Rows::Sparse(sparse) => sparse.scores_in_order(rows, weights, out, stride),
    }
}

/// Inner product of a row of d cells with padded weights; cells past the row meet weights of zero.
#[inline]
fn dot(cells: &[i16], d: usize, weights: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if wide() && cells.len() >= d.next_multiple_of(16) && weights.len() >= d.next_multiple_of(16) {
        // SAFETY: the processor has the instructions and both slices hold d cells rounded up to 16.
        return unsafe { x86::dot(cells, d, weights) };
    }
    cells[..d].iter().zip(weights).map(|(x, w)| f32::from(*x) * w).sum()
}

/// Sums of slope x cell for all columns: modulo 2^32, and of the upper halves.
#[derive(Clone)]
struct PairSums {
    modulo: Vec<i32>,
    upper: Vec<i32>,
    /// Position of a column in the vectors above: wide instructions interleave halves of 8.
    wide: bool,
}

impl PairSums {
    fn new(padded: usize) -> PairSums {
        PairSums { modulo: vec![0; padded], upper: vec![0; padded], wide: wide() }
    }

    /// Adds rows of d cells, each times its slope.
    fn add(&mut self, cells: &[i16], d: usize, slopes: &[i16]) {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            let full = slopes.len() / 8 * 8;
            // SAFETY: the processor has the instructions; every row of the data is followed by at least PADDING more cells.
            unsafe { x86::add_pairs(cells, d, &slopes[..full], &mut self.modulo, &mut self.upper) };
            let mut i = full;
            while i < slopes.len() {
                let second = if i + 1 < slopes.len() { (&cells[(i + 1) * d..], slopes[i + 1]) } else { (&cells[i * d..], 0) };
                self.add_pair(&cells[i * d..], second.0, d, slopes[i], second.1);
                i += 2;
            }
            return;
        }
        for (i, pair) in slopes.chunks(2).enumerate() {
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
    fn flush(&mut self, out: &mut [i64]) {
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

#[cfg(target_arch = "x86_64")]
mod x86 {
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

    /// Adds slope x row for a multiple of eight rows.
    #[target_feature(enable = "avx2")]
    pub(super) fn add_pairs(cells: &[i16], d: usize, slopes: &[i16], modulo: &mut [i32], upper: &mut [i32]) {
        let chunks = d.div_ceil(16);
        assert!(modulo.len() >= 16 * chunks && upper.len() >= 16 * chunks);
        assert!(slopes.is_empty() || cells.len() >= (slopes.len() - 1) * d + 16 * chunks);
        for (group, eight) in slopes.chunks_exact(8).enumerate() {
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
                let slopes: Vec<i16> = (0..rows).map(|i| cell(i * 31 + 5)).collect();
                let mut exact = vec![0i64; d];
                for i in 0..rows {
                    for j in 0..d {
                        exact[j] += 3 * i64::from(slopes[i]) * i64::from(cells[i * d + j]);
                    }
                }
                for wide in [false, true] {
                    let mut sums = PairSums::new(d.next_multiple_of(16));
                    if wide && !sums.wide {
                        continue;
                    }
                    sums.wide = wide;
                    for _ in 0..3 {
                        sums.add(&cells, d, &slopes);
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
            let slopes = [sign * i16::MAX; 8];
            let mut sums = PairSums::new(16);
            for _ in 0..FLUSH / 8 {
                sums.add(&cells, 16, &slopes);
            }
            let mut out = vec![0i64; 16];
            sums.flush(&mut out);
            let exact = FLUSH as i64 * i64::from(sign) * i64::from(i16::MAX) * i64::from(i16::MAX);
            assert!(out.iter().all(|x| *x == exact), "{out:?} {exact}");
        }
    }
}
