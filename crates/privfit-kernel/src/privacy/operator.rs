//! Public rows, and a bound on how much longer a vector can get when it is seen through them.

/// Rows that are public: generated, or given by their owner as such.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicRows {
    /// Cells, row after row.
    pub cells: Vec<f64>,
    /// Cells to a row.
    pub features: usize,
}

impl PublicRows {
    /// How many.
    pub fn len(&self) -> usize {
        if self.features == 0 { 0 } else { self.cells.len() / self.features }
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
        PublicRows { cells, features: columns.len() }
    }
}

/// An upper bound on the largest singular value: the trace of the p-th power of the Gram matrix, to the power 1/(2p). The trace is the
/// sum of all p-th powers of eigenvalues, so it is never below the largest of them, and for p = 256 it is above it by less than a
/// factor of features^(1/512). Wide matrices take fewer powers, because a power costs features^3.
pub fn norm_bound(rows: &PublicRows) -> f64 {
    let k = rows.features;
    // The sum of all squares is a bound by itself.
    let mut square: f64 = rows.cells.iter().map(|x| x * x).sum();
    if k > 0 && k <= 2000 && square.is_finite() && square > 0.0 {
        let mut gram = vec![0f64; k * k];
        for row in rows.iter() {
            for (i, x) in row.iter().enumerate() {
                if *x != 0.0 {
                    gram[i * k..(i + 1) * k].iter_mut().zip(row).for_each(|(g, y)| *g += x * y);
                }
            }
        }
        // Scaled by its trace each time, so that nothing overflows; the logarithm of the scale is kept.
        let trace = |m: &[f64]| (0..k).map(|i| m[i * k + i]).sum::<f64>();
        let (mut log, mut power) = (0.0, 1.0);
        for round in 0..9 {
            let size = trace(&gram);
            if !(size > 0.0) {
                break;
            }
            log += size.ln() / power;
            square = square.min(log.exp());
            if round == 8 || (k as f64).powi(3) * (round + 1) as f64 > 8e9 {
                break;
            }
            gram.iter_mut().for_each(|g| *g /= size);
            let mut next = vec![0f64; k * k];
            for i in 0..k {
                for j in 0..k {
                    let a = gram[i * k + j];
                    next[i * k..(i + 1) * k].iter_mut().zip(&gram[j * k..(j + 1) * k]).for_each(|(n, b)| *n += a * b);
                }
            }
            gram = next;
            power *= 2.0;
        }
    }
    // Float errors of sums and products: below one part in 10^9 for any matrix that fits in memory.
    square.sqrt() * (1.0 + 1e-7)
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
            let rows = PublicRows { cells: (0..m * k).map(|_| uniform()).collect(), features: k };
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
        let one = PublicRows { cells: vec![0.0; 6], features: 2 };
        assert_eq!(norm_bound(&one), 0.0);
    }
}
