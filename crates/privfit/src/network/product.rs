//! Products of matrices in single precision: c(i, j) = sum over k of a(i, k) b(k, j).
//!
//! Every entry is one chain of multiply-adds over k, from zero, in the order of k, wherever it lies: so what is computed for one example does not depend on which others
//! are computed with it. The bound of the error of a block rests on that.
//!
//! The first matrix is addressed by two lists, a(i, k) = x[rows[i] + steps[k]]: rows of a batch, windows of an image, and the transpose of either need no copy.

/// Columns come in groups of so many.
pub(crate) const LANES: usize = 16;

/// The next multiple of the group.
pub(crate) fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// The first matrix.
#[derive(Clone, Copy)]
pub(crate) struct Addressed<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) rows: &'a [u32],
    pub(crate) steps: &'a [u32],
}

/// Where a product begins.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Start<'a> {
    /// At zero.
    Zero,
    /// At these numbers, in every row, which are added last.
    Bias(&'a [f32]),
}

/// Computes c, whose rows have `columns` entries, as b has: a multiple of the group.
pub(crate) fn product(a: Addressed<'_>, b: &[f32], columns: usize, start: Start<'_>, c: &mut [f32]) {
    let last = |list: &[u32]| list.iter().max().map_or(0, |x| *x as usize);
    assert!(columns.is_multiple_of(LANES) && b.len() >= a.steps.len() * columns && c.len() >= a.rows.len() * columns);
    assert!(a.rows.is_empty() || a.steps.is_empty() || last(a.rows) + last(a.steps) < a.x.len());
    if let Start::Bias(bias) = start {
        assert!(bias.len() >= columns);
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions, and all places were compared with the lengths above.
            return unsafe { x86::wide(a, b, columns, start, c) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the same.
            return unsafe { x86::narrow(a, b, columns, start, c) };
        }
    }
    plain(a, b, columns, start, c);
}

fn plain(a: Addressed<'_>, b: &[f32], columns: usize, start: Start<'_>, c: &mut [f32]) {
    for (row, out) in a.rows.iter().zip(c.chunks_exact_mut(columns)) {
        for (g, out) in out.chunks_exact_mut(LANES).enumerate() {
            let mut sum = [0f32; LANES];
            for (step, b) in a.steps.iter().zip(b.chunks_exact(columns)) {
                let x = a.x[(row + step) as usize];
                sum.iter_mut().zip(&b[g * LANES..]).for_each(|(s, b)| *s = x.mul_add(*b, *s));
            }
            for (j, (o, s)) in out.iter_mut().zip(sum).enumerate() {
                *o = match start {
                    Start::Zero => s,
                    Start::Bias(bias) => s + bias[g * LANES + j],
                };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Addressed, LANES, Start};
    use std::arch::x86_64::*;

    /// All rows, so many at once and then one at a time, for all groups of columns.
    ///
    /// # Safety
    /// The processor has avx512f; places lie within their lists.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn wide(a: Addressed<'_>, b: &[f32], columns: usize, start: Start<'_>, c: &mut [f32]) {
        // With one group every multiply-add loads an entry, so that addresses must stay in registers: those of ten rows do.
        const ROWS: usize = 12;
        const SINGLE: usize = 10;
        let n = a.rows.len();
        let mut column = 0;
        while column < columns {
            let two = column + 2 * LANES <= columns;
            let mut row = 0;
            while row < n {
                let many = [if two { ROWS } else { SINGLE }, 8, 4].into_iter().find(|many| n - row >= *many).unwrap_or(1);
                // SAFETY: as the caller promised.
                unsafe {
                    match (many, two) {
                        (ROWS, true) => wide_tile::<ROWS, 2>(a, row, b, column, columns, start, c),
                        (SINGLE, false) => wide_tile::<SINGLE, 1>(a, row, b, column, columns, start, c),
                        (8, true) => wide_tile::<8, 2>(a, row, b, column, columns, start, c),
                        (8, false) => wide_tile::<8, 1>(a, row, b, column, columns, start, c),
                        (4, true) => wide_tile::<4, 2>(a, row, b, column, columns, start, c),
                        (4, false) => wide_tile::<4, 1>(a, row, b, column, columns, start, c),
                        (_, true) => wide_tile::<1, 2>(a, row, b, column, columns, start, c),
                        (_, false) => wide_tile::<1, 1>(a, row, b, column, columns, start, c),
                    }
                }
                row += many;
            }
            column += if two { 2 * LANES } else { LANES };
        }
    }

    /// M rows of V groups.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn wide_tile<const M: usize, const V: usize>(
        a: Addressed<'_>,
        row: usize,
        b: &[f32],
        column: usize,
        columns: usize,
        start: Start<'_>,
        c: &mut [f32],
    ) {
        // SAFETY: as the caller promised.
        unsafe {
            let x: [*const f32; M] = std::array::from_fn(|i| a.x.as_ptr().add(a.rows[row + i] as usize));
            let mut sums = [[_mm512_setzero_ps(); V]; M];
            let mut at = b.as_ptr().add(column);
            for step in a.steps {
                let own: [__m512; V] = std::array::from_fn(|v| _mm512_loadu_ps(at.add(v * LANES)));
                for i in 0..M {
                    let entry = _mm512_set1_ps(*x[i].add(*step as usize));
                    for v in 0..V {
                        sums[i][v] = _mm512_fmadd_ps(entry, own[v], sums[i][v]);
                    }
                }
                at = at.wrapping_add(columns);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let to = c.as_mut_ptr().add((row + i) * columns + column + v * LANES);
                    let sum = match start {
                        Start::Zero => *sum,
                        Start::Bias(bias) => _mm512_add_ps(*sum, _mm512_loadu_ps(bias.as_ptr().add(column + v * LANES))),
                    };
                    _mm512_storeu_ps(to, sum);
                }
            }
        }
    }

    /// # Safety
    /// The processor has avx2 and fma; places lie within their lists.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow(a: Addressed<'_>, b: &[f32], columns: usize, start: Start<'_>, c: &mut [f32]) {
        const ROWS: usize = 6;
        let n = a.rows.len();
        for column in (0..columns).step_by(LANES) {
            let mut row = 0;
            while row < n {
                let many = if n - row >= ROWS { ROWS } else { 1 };
                // SAFETY: as the caller promised.
                unsafe {
                    match many {
                        ROWS => narrow_tile::<ROWS>(a, row, b, column, columns, start, c),
                        _ => narrow_tile::<1>(a, row, b, column, columns, start, c),
                    }
                }
                row += many;
            }
        }
    }

    /// M rows of one group, which is two registers.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn narrow_tile<const M: usize>(
        a: Addressed<'_>,
        row: usize,
        b: &[f32],
        column: usize,
        columns: usize,
        start: Start<'_>,
        c: &mut [f32],
    ) {
        const HALF: usize = LANES / 2;
        // SAFETY: as the caller promised.
        unsafe {
            let x: [*const f32; M] = std::array::from_fn(|i| a.x.as_ptr().add(a.rows[row + i] as usize));
            let mut sums = [[_mm256_setzero_ps(); 2]; M];
            let mut at = b.as_ptr().add(column);
            for step in a.steps {
                let own = [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(HALF))];
                for i in 0..M {
                    let entry = _mm256_set1_ps(*x[i].add(*step as usize));
                    for v in 0..2 {
                        sums[i][v] = _mm256_fmadd_ps(entry, own[v], sums[i][v]);
                    }
                }
                at = at.wrapping_add(columns);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let to = c.as_mut_ptr().add((row + i) * columns + column + v * HALF);
                    let sum = match start {
                        Start::Zero => *sum,
                        Start::Bias(bias) => _mm256_add_ps(*sum, _mm256_loadu_ps(bias.as_ptr().add(column + v * HALF))),
                    };
                    _mm256_storeu_ps(to, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8) as f32 / 8_388_608.0) - 1.0).collect()
    }

    /// Against sums in double precision, for all ways of addressing and beginning; and an entry has the same bits whatever else is computed with it.
    #[test]
    fn products_are_right_and_each_entry_is_its_own() {
        for (m, k, n) in [(1, 1, 16), (3, 7, 16), (13, 64, 32), (25, 33, 48), (12, 5, 16)] {
            let (x, b, bias, there) = (numbers(m * k, 1), numbers(k * n, 2), numbers(n, 3), numbers(m * n, 4));
            let across: (Vec<u32>, Vec<u32>) = ((0..m).map(|i| (i * k) as u32).collect(), (0..k as u32).collect());
            let down: (Vec<u32>, Vec<u32>) = ((0..m as u32).collect(), (0..k).map(|i| (i * m) as u32).collect());
            for (rows, steps) in [across, down] {
                for start in [Start::Zero, Start::Bias(&bias)] {
                    let mut c = there.clone();
                    product(Addressed { x: &x, rows: &rows, steps: &steps }, &b, n, start, &mut c);
                    for i in 0..m {
                        let mut own = there[i * n..(i + 1) * n].to_vec();
                        product(Addressed { x: &x, rows: &rows[i..=i], steps: &steps }, &b, n, start, &mut own);
                        assert!(own.iter().zip(&c[i * n..]).all(|(a, b)| a.to_bits() == b.to_bits()), "{m} {k} {n} {i}");
                        for j in 0..n {
                            let sum: f64 =
                                (0..k).map(|t| f64::from(x[(rows[i] + steps[t]) as usize]) * f64::from(b[t * n + j])).sum();
                            let begin = match start {
                                Start::Zero => 0.0,
                                Start::Bias(bias) => bias[j],
                            };
                            assert!((sum + f64::from(begin) - f64::from(c[i * n + j])).abs() < 1e-5);
                        }
                    }
                }
            }
        }
    }

    /// The narrow and the plain way do the same arithmetic.
    #[test]
    fn all_ways_agree() {
        let (m, k, n) = (14, 40, 32);
        let (x, b) = (numbers(m * k, 5), numbers(k * n, 6));
        let (rows, steps): (Vec<u32>, Vec<u32>) = ((0..m).map(|i| (i * k) as u32).collect(), (0..k as u32).collect());
        let a = Addressed { x: &x, rows: &rows, steps: &steps };
        let (mut one, mut two) = (vec![0f32; m * n], vec![0f32; m * n]);
        product(a, &b, n, Start::Zero, &mut one);
        plain(a, &b, n, Start::Zero, &mut two);
        assert_eq!(one, two);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions, and places are those that `product` accepted.
            unsafe { x86::narrow(a, &b, n, Start::Zero, &mut two) };
            assert_eq!(one, two);
        }
    }
}
