//! Ridge least squares with several targets: no iterations, so that it takes the same time on any rows.

/// Solves A x = b for a symmetric positive definite A, row after row, and several right sides, row after row; in place. False if A is not.
fn cholesky_solve(a: &mut [f64], n: usize, b: &mut [f64], targets: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            let (before, own) = a.split_at(i * n);
            let row = if j < i { &before[j * n..j * n + j] } else { &own[..j] };
            let sum: f64 = own[j] - row.iter().zip(own).map(|(x, y)| x * y).sum::<f64>();
            a[i * n + j] = if j < i {
                sum / a[j * n + j]
            } else if sum > 0.0 {
                sum.sqrt()
            } else {
                return false;
            };
        }
    }
    for t in 0..targets {
        for i in 0..n {
            let sum: f64 = (0..i).map(|j| a[i * n + j] * b[j * targets + t]).sum();
            b[i * targets + t] = (b[i * targets + t] - sum) / a[i * n + i];
        }
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|j| a[j * n + i] * b[j * targets + t]).sum();
            b[i * targets + t] = (b[i * targets + t] - sum) / a[i * n + i];
        }
    }
    true
}

/// Weights, feature after feature and target after target, by whichever of both forms is smaller. Zeros where there are no rows or no solution.
pub(crate) fn ridge(rows: &[f64], features: usize, targets: &[f64], outputs: usize, strength: f64) -> Vec<f64> {
    let count = if features == 0 { 0 } else { rows.len() / features };
    let mut weights = vec![0f64; features * outputs];
    if count == 0 {
        return weights;
    }
    let row = |i: usize| &rows[i * features..(i + 1) * features];
    if count <= features {
        let mut gram = vec![0f64; count * count];
        for i in 0..count {
            for j in 0..=i {
                let dot: f64 = row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum();
                (gram[i * count + j], gram[j * count + i]) = (dot, dot);
            }
            gram[i * count + i] += strength;
        }
        let mut dual = targets.to_vec();
        if !cholesky_solve(&mut gram, count, &mut dual, outputs) {
            return weights;
        }
        for i in 0..count {
            for (x, own) in row(i).iter().zip(weights.chunks_mut(outputs)) {
                own.iter_mut().zip(&dual[i * outputs..]).for_each(|(w, d)| *w += x * d);
            }
        }
        return weights;
    }
    let mut gram = vec![0f64; features * features];
    for i in 0..count {
        let x = row(i);
        for j in 0..features {
            gram[j * features..=j * features + j].iter_mut().zip(x).for_each(|(g, y)| *g += x[j] * y);
            weights[j * outputs..(j + 1) * outputs].iter_mut().zip(&targets[i * outputs..]).for_each(|(w, t)| *w += x[j] * t);
        }
    }
    (0..features).for_each(|j| gram[j * features + j] += strength);
    match cholesky_solve(&mut gram, features, &mut weights, outputs) {
        true => weights,
        false => vec![0f64; features * outputs],
    }
}

/// More rows than this tell what they would be without each of them by being many.
const LEFT_OUT: usize = 512;

/// Score of each row by the weights that all the others have; of many rows, by the weights of all of them.
pub(crate) fn left_out(rows: &[f64], features: usize, targets: &[f64], weights: &[f64], strength: f64) -> Vec<f64> {
    let count = targets.len();
    let row = |i: usize| &rows[i * features..(i + 1) * features];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let all = || (0..count).map(|i| dot(row(i), weights)).collect();
    if count > LEFT_OUT {
        return all();
    }
    let mut gram = vec![0f64; count * count];
    for i in 0..count {
        for j in 0..=i {
            let value = dot(row(i), row(j));
            (gram[i * count + j], gram[j * count + i]) = (value, value);
        }
        gram[i * count + i] += strength;
    }
    let mut inverse = vec![0f64; count * count];
    (0..count).for_each(|i| inverse[i * count + i] = 1.0);
    if !cholesky_solve(&mut gram, count, &mut inverse, count) {
        return all();
    }
    // The residual without a row is its dual weight over its entry of the inverse.
    (0..count).map(|i| targets[i] - dot(&inverse[i * count..(i + 1) * count], targets) / inverse[i * count + i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::Random;

    /// Both forms meet the normal equations, and so each other.
    #[test]
    fn solutions_meet_the_normal_equations() {
        let mut random = Random::new(3);
        for (count, features, outputs) in [(5, 9, 2), (9, 5, 3), (1, 1, 1), (40, 12, 1), (12, 40, 4)] {
            let rows: Vec<f64> = (0..count * features).map(|_| random.normal()).collect();
            let targets: Vec<f64> = (0..count * outputs).map(|_| random.normal()).collect();
            let weights = ridge(&rows, features, &targets, outputs, 0.7);
            for j in 0..features {
                for t in 0..outputs {
                    let gradient: f64 = (0..count)
                        .map(|i| {
                            let own = &rows[i * features..(i + 1) * features];
                            let score: f64 = own.iter().enumerate().map(|(k, x)| x * weights[k * outputs + t]).sum();
                            own[j] * (score - targets[i * outputs + t])
                        })
                        .sum();
                    assert!((gradient + 0.7 * weights[j * outputs + t]).abs() < 1e-9);
                }
            }
        }
        // Scores without a row are those of a fit without it.
        let rows: Vec<f64> = (0..7 * 3).map(|_| random.normal()).collect();
        let targets: Vec<f64> = (0..7).map(|_| random.normal()).collect();
        let scores = left_out(&rows, 3, &targets, &[0.0; 3], 0.4);
        for i in 0..7 {
            let (mut others, mut rest) = (rows.clone(), targets.clone());
            others.drain(3 * i..3 * i + 3);
            rest.remove(i);
            let weights = ridge(&others, 3, &rest, 1, 0.4);
            let score: f64 = rows[3 * i..3 * i + 3].iter().zip(&weights).map(|(x, w)| x * w).sum();
            assert!((score - scores[i]).abs() < 1e-9);
        }
        assert_eq!(ridge(&[], 3, &[], 1, 1.0), [0.0; 3]);
        assert_eq!(ridge(&[f64::NAN], 1, &[1.0], 1, 1.0), [0.0]);
    }
}
