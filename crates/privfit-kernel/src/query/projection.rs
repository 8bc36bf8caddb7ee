//! Public rows, and a bound on how much longer a vector can get when it is seen through them.

use crate::error::{Error, Result};
use crate::run::Query;
use crate::run::Run;
use crate::value::{Sensitive, Theorem};
use std::sync::OnceLock;

/// Rows that are public: generated, or given by their owner as such.
#[derive(Clone, Debug)]
pub struct PublicRows {
    cells: Vec<f64>,
    pub(crate) features: usize,
    /// Worked out once; cells never change.
    bound: OnceLock<f64>,
}

impl PublicRows {
    /// Cells, row after row, so many to a row.
    pub fn new(cells: Vec<f64>, features: usize) -> PublicRows {
        PublicRows { cells, features, bound: OnceLock::new() }
    }

    /// The cells, row after row.
    pub fn cells(&self) -> &[f64] {
        &self.cells
    }

    /// The rows divided by a number.
    pub fn divided_by(&self, by: f64) -> PublicRows {
        PublicRows::new(self.cells.iter().map(|x| x / by).collect(), self.features)
    }

    /// Largest size of a cell.
    pub fn largest_cell(&self) -> f64 {
        self.cells.iter().fold(0f64, |m, x| if x.is_finite() { m.max(x.abs()) } else { f64::INFINITY })
    }

    /// Cells to a row.
    pub fn features(&self) -> usize {
        self.features
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.features).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks_exact(self.features.max(1))
    }

    /// Inner product of each row with a vector.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.iter().map(|row| row.iter().zip(vector).map(|(x, w)| x * w).sum()).collect()
    }

    /// Some of the columns, in this order; one that the rows do not have is zero.
    pub fn columns(&self, columns: &[usize]) -> PublicRows {
        let cells = self.iter().flat_map(|row| columns.iter().map(|c| row.get(*c).copied().unwrap_or(0.0))).collect();
        PublicRows::new(cells, columns.len())
    }
}

/// Bound on what float errors add to the distance of two vectors seen through rows of so many cells: each product is off by u times its
/// number of terms, relative to sizes whose squares add up to at most features x norm^2 x longest^2; twice, and the clipped besides.
pub fn products_error(features: usize, norm: f64, longest: f64) -> f64 {
    let k = features as f64;
    4.0 * (k + 8.0) * f64::EPSILON * k.sqrt() * norm * longest
}

/// A vector projected on public rows: one number for each row. Distances grow by at most the largest singular value of the rows, which is
/// bounded here, from the rows themselves. The vector is clipped to `longest`, a public length, so that the float error of the products has
/// a public bound.
pub struct Project<'a> {
    /// The vector.
    pub value: Sensitive<Vec<f64>>,
    /// The rows.
    pub rows: &'a PublicRows,
    /// Longest vector.
    pub longest: f64,
}

impl Query<'_> for Project<'_> {
    type Output = Sensitive<Vec<f64>>;

    fn execute(self, run: &mut Run<'_>) -> Result<Sensitive<Vec<f64>>> {
        let Some(theorem) = self.value.claim.clone() else {
            return Err(Error::Mismatch { what: "no theorem bounds this vector" });
        };
        if self.rows.features != self.value.value.len() || self.value.run != run.id {
            return Err(Error::Mismatch { what: "public rows and vector have different lengths, or runs" });
        }
        if !(self.longest > 0.0 && self.longest.is_finite()) {
            return Err(Error::domain("longest", self.longest, "give a positive finite number"));
        }
        let norm = norm_bound(self.rows);
        let length = self.value.value.iter().map(|w| w * w).sum::<f64>().sqrt();
        let factor = if length > self.longest { self.longest / length } else { 1.0 };
        let clipped: Vec<f64> = self.value.value.iter().map(|w| w * factor).collect();
        let error = products_error(self.rows.features, norm, self.longest);
        let claim = Theorem {
            reason: "the claim of the vector times the largest singular value of public rows, and the float error of the products",
            zero_out: theorem.zero_out * norm + error,
            replace_one: theorem.replace_one * norm + error,
        };
        Ok(Sensitive { value: self.rows.times(&clipped), claim: Some(claim), ..self.value })
    }
}

/// An upper bound on the largest singular value: the trace of the p-th power of the Gram matrix, to the power 1/(2p). The trace is the
/// sum of all p-th powers of eigenvalues, so it is never below the largest of them, and for p = 256 it is above it by less than a
/// factor of features^(1/512). Wide matrices take fewer powers, because a power costs features^3.
pub fn norm_bound(rows: &PublicRows) -> f64 {
    *rows.bound.get_or_init(|| work_out(rows))
}

fn work_out(rows: &PublicRows) -> f64 {
    let largest = rows.largest_cell();
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // Cells of at most 1 in size, so that no square vanishes that counts.
    let scaled: Vec<f64> = rows.cells.iter().map(|x| x / largest).collect();
    // The sum of all squares is a bound by itself.
    let mut square: f64 = scaled.iter().map(|x| x * x).sum();
    // Rows times rows or columns times columns: both have the same largest eigenvalue.
    let (m, k) = (rows.len(), rows.features);
    let side = m.min(k);
    if side <= 2000 {
        let mut gram = if k <= m { columns_gram(&scaled, k) } else { rows_gram(&scaled, k) };
        // Scaled by its trace each time, so that nothing overflows; the logarithm of the scale is kept.
        let trace = |g: &[f64]| (0..side).map(|i| g[i * side + i]).sum::<f64>();
        let (mut log, mut power) = (0.0, 1.0);
        for round in 0..9 {
            let size = trace(&gram);
            if !(size > 0.0) {
                break;
            }
            log += size.ln() / power;
            let before = square;
            square = square.min(log.exp());
            // Each power costs as much as the last one and brings less.
            let enough = round > 2 && square > 0.995 * before;
            if round == 8 || enough || (side as f64).powi(3) * (round + 1) as f64 > 8e9 {
                break;
            }
            gram.iter_mut().for_each(|g| *g /= size);
            gram = symmetric_square(&gram, side);
            power *= 2.0;
        }
    }
    // Float errors: of sums of m terms in each of side^2 products, relative to the trace, and of a few more roundings.
    largest * square.sqrt() * (1.0 + 1e-7 + 4.0 * m as f64 * side as f64 * f64::EPSILON)
}

/// Products of columns with columns.
fn columns_gram(cells: &[f64], k: usize) -> Vec<f64> {
    let mut gram = vec![0f64; k * k];
    for row in cells.chunks_exact(k) {
        for (i, x) in row.iter().enumerate().filter(|c| *c.1 != 0.0) {
            gram[i * k..(i + 1) * k].iter_mut().zip(row).for_each(|(g, y)| *g += x * y);
        }
    }
    gram
}

/// Products of rows with rows.
fn rows_gram(cells: &[f64], k: usize) -> Vec<f64> {
    let rows: Vec<&[f64]> = cells.chunks_exact(k).collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    rows.iter().flat_map(|a| rows.iter().map(|b| product(a, b))).collect()
}

fn symmetric_square(g: &[f64], k: usize) -> Vec<f64> {
    let mut out = vec![0f64; k * k];
    for (row, to) in g.chunks_exact(k).zip(out.chunks_exact_mut(k)) {
        for (a, other) in row.iter().zip(g.chunks_exact(k)) {
            to.iter_mut().zip(other).for_each(|(n, b)| *n += a * b);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never below the largest singular value, which a power iteration approaches from below; and not far above it.
    #[test]
    fn bound_is_above_and_close() {
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 * 0.5f64.powi(53) * 2.0 - 1.0
        };
        for (m, k) in [(800, 10), (50, 50), (3, 20), (1, 1), (400, 100)] {
            let rows = PublicRows::new((0..m * k).map(|_| uniform()).collect(), k);
            let mut v: Vec<f64> = (0..k).map(|_| uniform()).collect();
            let mut size = 0.0;
            for _ in 0..3000 {
                let seen = rows.times(&v);
                let mut back = vec![0f64; k];
                rows.iter().zip(&seen).for_each(|(r, s)| back.iter_mut().zip(r).for_each(|(b, x)| *b += s * x));
                size = back.iter().map(|b| b * b).sum::<f64>().sqrt();
                v = back.iter().map(|b| b / size).collect();
            }
            let bound = norm_bound(&rows);
            assert!(bound >= size.sqrt() && bound < 1.02 * size.sqrt(), "{m} x {k}: {bound} {}", size.sqrt());
        }
        let bound = |cells: Vec<f64>| norm_bound(&PublicRows::new(cells, 2));
        assert_eq!(bound(vec![0.0; 6]), 0.0);
        assert!(bound(vec![1e-200, 0.0]) >= 1e-200 && bound(vec![1e200, 1e200]) >= 1e200 * 2f64.sqrt());
        assert!(bound(vec![f64::NAN, 1.0]).is_infinite());
    }
}
