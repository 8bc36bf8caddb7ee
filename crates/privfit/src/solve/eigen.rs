//! Eigenvalues and eigenvectors of a symmetric matrix by Jacobi rotations: short, and exact to rounding for any spectrum.

/// Eigenvalues, and eigenvectors one after the other; the matrix is given row after row.
pub(crate) fn symmetric(mut a: Vec<f64>, d: usize) -> (Vec<f64>, Vec<f64>) {
    let mut v = vec![0f64; d * d];
    (0..d).for_each(|i| v[i * d + i] = 1.0);
    let total: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..60 {
        let off: f64 = (0..d).map(|i| (0..i).map(|j| a[i * d + j] * a[i * d + j]).sum::<f64>()).sum();
        if !(off > 1e-28 * total) {
            break;
        }
        for p in 0..d {
            for q in p + 1..d {
                let apq = a[p * d + q];
                if apq.abs() <= 1e-300 {
                    continue;
                }
                let theta = (a[q * d + q] - a[p * d + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                rotate_rows(&mut a, d, p, q, c, s);
                for k in 0..d {
                    let (x, y) = (a[k * d + p], a[k * d + q]);
                    a[k * d + p] = c * x - s * y;
                    a[k * d + q] = s * x + c * y;
                }
                rotate_rows(&mut v, d, p, q, c, s);
            }
        }
    }
    ((0..d).map(|i| a[i * d + i]).collect(), v)
}

fn rotate_rows(m: &mut [f64], d: usize, p: usize, q: usize, c: f64, s: f64) {
    let (low, high) = m.split_at_mut(q * d);
    for (x, y) in low[p * d..(p + 1) * d].iter_mut().zip(&mut high[..d]) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

/// Sum over eigenvectors v of v <v, b> / h.
pub(crate) fn solve(vectors: &[f64], h: &[f64], b: &[f64]) -> Vec<f64> {
    let d = b.len();
    let mut out = vec![0f64; d];
    for (v, h) in vectors.chunks(d).zip(h) {
        let along = v.iter().zip(b).map(|(v, b)| v * b).sum::<f64>() / h;
        out.iter_mut().zip(v).for_each(|(o, v)| *o += along * v);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        for d in [1usize, 2, 7, 30] {
            let at = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 - 11.0;
            let a: Vec<f64> = (0..d * d).map(|x| at(x / d, x % d) + at(x % d, x / d)).collect();
            let (e, v) = symmetric(a.clone(), d);
            for i in 0..d {
                for j in 0..d {
                    let back: f64 = (0..d).map(|k| e[k] * v[k * d + i] * v[k * d + j]).sum();
                    assert!((back - a[i * d + j]).abs() < 1e-9 * d as f64, "{d}");
                }
            }
            let b: Vec<f64> = (0..d).map(|i| i as f64 + 1.0).collect();
            let h: Vec<f64> = e.iter().map(|e| if e.abs() < 1e-9 { 1.0 } else { *e }).collect();
            let x = solve(&v, &h, &b);
            let back: Vec<f64> = (0..d).map(|i| (0..d).map(|j| a[i * d + j] * x[j]).sum()).collect();
            if e.iter().all(|e| e.abs() > 1e-6) {
                assert!(back.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-6));
            }
        }
    }
}
