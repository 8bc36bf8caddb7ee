//! Factors of noise that is correlated over time: lower-triangular Toeplitz matrices C with ones on the diagonal.
//!
//! *What they are for.* A run of T steps releases y = g + C^-1 z instead of g + z. C^-1 takes back a part of earlier noise, so that sums over steps, which are what a descent is made
//! of, have less noise than with independent z. What it costs is the sensitivity of C g: of the whole run at once, one release of T steps.
//!
//! *Claim.* Let a unit take part in at most k steps, any two of them at least b apart, and add a vector of length at most 1 to each of them. Then C g moves by at most
//! max over patterns of sqrt(sum over i, j in the pattern of |(C'C)_ij|), because <(C'C)_ij v_i, v_j> <= |(C'C)_ij|. Where the coefficients c_0, c_1, ... of C are non-negative and do
//! not grow, (C'C)_ij = sum over u of c_u c_(u + j - i), u up to T - j, falls with j and with j - i, and the earliest and closest pattern 1, 1 + b, ..., 1 + (k-1) b has the smallest of all of
//! these at once: the largest is the length of the sum of its columns. Other factors are refused: their patterns would have to be enumerated.
//!
//! *Rounding.* C^-1 has band after band a whole multiple of 2^-40, which a kernel can apply exactly. C follows from it by c_j = sum of a_i c_{j-i}, in which nothing is
//! subtracted, so that rounding every operation up gives upper bounds. Every coefficient is then raised to the largest one behind it: what is bounded is a matrix that is
//! at least C in every entry, and so is its C'C, and whose coefficients do not grow. All that leaves [`Participation::sensitivity`] and [`Factor::norm`] is an upper bound.
//!
//! *Reference.* Fichtenberger, Henzinger, Upadhyay 2023 (square root of the prefix sums); Kalinin, McKenna, Upadhyay, Lampert 2025 (its banded inverse); Choquette-Choo et al. 2023 (participation).

use crate::error::{Error, Result};

/// Coefficients of C^-1 are whole multiples of two to this power.
pub const FACTOR_BITS: u32 = 40;

/// A lower-triangular Toeplitz matrix C with ones on its diagonal, by the bands of its inverse: 1, -a_1, -a_2, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// a_1, a_2, ... in steps of 2^-40.
    taken_back: Vec<u64>,
}

impl Factor {
    /// No correlation: C is the identity.
    pub const INDEPENDENT: Factor = Factor { taken_back: Vec::new() };

    /// The inverse with these bands, each in steps of 2^-40 and at most 1.
    pub fn new(taken_back: Vec<u64>) -> Result<Factor> {
        match taken_back.iter().find(|a| **a > 1 << FACTOR_BITS) {
            Some(above) => Err(Error::domain("band of a factor", *above as f64 / scale(), "give numbers from 0 to 1")),
            None => Ok(Factor { taken_back }),
        }
    }

    /// The first bands of the inverse of the square root of the prefix sums: 1, -1/2, -1/8, -1/16, ...
    pub fn inverse_square_root(bands: usize) -> Factor {
        let mut band = 1.0;
        let next = |j: usize| {
            // Coefficients of (1 - x)^(1/2), but for the sign.
            band *= (j as f64 - 1.5).abs() / j as f64;
            (band * scale()).round() as u64
        };
        Factor { taken_back: (1..bands.max(1)).map(next).collect() }
    }

    /// First differences with a decay: C^-1 takes back `decay` of the last noise, and C is 1, decay, decay^2, ...
    pub fn geometric(decay: f64) -> Result<Factor> {
        if !(0.0..=1.0).contains(&decay) {
            return Err(Error::domain("decay", decay, "give a number from 0 to 1"));
        }
        Factor::new(vec![(decay * scale()).round() as u64])
    }

    /// a_1, a_2, ... in steps of 2^-40: how much of the noise of so many steps before is taken back.
    pub fn taken_back(&self) -> &[u64] {
        &self.taken_back
    }

    /// The bands of C^-1, the diagonal included.
    pub fn bands(&self) -> usize {
        1 + self.taken_back.len()
    }

    /// Upper bounds on the first coefficients of C that do not grow; none where those of C do.
    fn coefficients(&self, steps: usize) -> Result<Vec<f64>> {
        let bands: Vec<f64> = self.taken_back.iter().map(|a| *a as f64 / scale()).collect();
        let mut c: Vec<f64> = Vec::with_capacity(steps);
        for j in 0..steps {
            let terms = bands.iter().zip(c.iter().rev()).map(|(a, c)| up(a * c));
            let sum = terms.fold(0.0, |sum, term| up(sum + term));
            c.push(if j == 0 { 1.0 } else { sum });
        }
        let mut largest = 0.0f64;
        for c in c.iter_mut().rev() {
            largest = largest.max(*c);
            if largest > *c * (1.0 + GROWTH) + f64::MIN_POSITIVE {
                return Err(Error::domain(
                    "factor",
                    format!("{bands:?}"),
                    "give one whose coefficients do not grow, which has a closed form: the banded inverse square root, or a geometric one",
                ));
            }
            *c = largest;
        }
        Ok(c)
    }

    /// An upper bound on the spectral norm of C over so many steps: the sum of its coefficients.
    pub fn norm(&self, steps: u64) -> Result<f64> {
        Ok(self.coefficients(most(steps)?)?.iter().fold(0.0, |sum, c| up(sum + c)))
    }

    /// Root of the mean square, over all steps, of the error of a prefix sum with noise of deviation 1: the root of the mean square length of the rows of A C^-1, A being the prefix sums.
    pub fn prefix_error(&self, steps: u64) -> Result<f64> {
        self.error(steps, &[])
    }

    /// The same for sums in which a step counts `weights[age]`, and 1 where it is older than all that are listed: momentum makes such sums.
    pub fn error(&self, steps: u64, weights: &[f64]) -> Result<f64> {
        let steps = most(steps)?;
        let weight = |age: usize| weights.get(age).copied().unwrap_or(1.0);
        let (mut row, mut total) = (0.0, 0.0);
        for age in 0..steps {
            let earlier = self.taken_back.iter().zip((0..age).rev()).map(|(a, age)| *a as f64 / scale() * weight(age));
            let entry = weight(age) - earlier.sum::<f64>();
            row += entry * entry;
            total += row;
        }
        Ok((total / steps as f64).sqrt())
    }
}

/// How often, and how far apart, one unit takes part in the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participation {
    /// Steps in all.
    pub steps: u64,
    /// Steps that a unit takes part in at the most.
    pub times: u64,
    /// Steps from one to the next at the least.
    pub separation: u64,
}

impl Participation {
    /// Disjoint batches in an order that every epoch keeps.
    pub fn epochs(steps: u64, batches: u64) -> Participation {
        let separation = batches.max(1);
        Participation { steps, times: steps.div_ceil(separation), separation }
    }

    /// An upper bound on how far C g moves, for units that move a step by at most 1.
    pub fn sensitivity(&self, factor: &Factor) -> Result<f64> {
        let Participation { steps, times, separation } = *self;
        if times == 0 || separation == 0 {
            return Err(Error::domain(
                "participation",
                format!("{times} times, {separation} steps apart"),
                "give at least one time, and at least one step from one to the next",
            ));
        }
        let c = factor.coefficients(most(steps)?)?;
        let separation = usize::try_from(separation).unwrap_or(usize::MAX).min(c.len());
        let all = times >= c.len().div_ceil(separation) as u64;
        let mut sums: Vec<f64> = Vec::with_capacity(c.len());
        for t in 0..c.len() {
            let sum = match t.checked_sub(separation) {
                None => c[t],
                Some(before) if all => up(c[t] + sums[before]),
                Some(_) => (0..times as usize).map_while(|j| t.checked_sub(j * separation)).fold(0.0, |sum, t| up(sum + c[t])),
            };
            sums.push(sum);
        }
        Ok(up(sums.iter().fold(0.0, |square, s| up(square + up(s * s))).sqrt()))
    }
}

/// Coefficients may grow by so much, which their rounding explains.
const GROWTH: f64 = 1e-6;
/// Most steps of a factor.
const MOST: u64 = 10_000_000;

fn scale() -> f64 {
    (1u64 << FACTOR_BITS) as f64
}

/// An upper bound on the true value of one operation on non-negative numbers that gave this.
fn up(x: f64) -> f64 {
    if x == 0.0 { x } else { x.next_up() }
}

fn most(steps: u64) -> Result<usize> {
    match usize::try_from(steps) {
        Ok(few) if (1..=MOST).contains(&steps) => Ok(few),
        _ => Err(Error::domain("steps", steps, "give a number from 1 to 1e7")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C by solving with its inverse, in plain doubles.
    fn dense(factor: &Factor, steps: usize) -> Vec<Vec<f64>> {
        let bands: Vec<f64> = factor.taken_back.iter().map(|a| *a as f64 / scale()).collect();
        let mut c = vec![1.0];
        for j in 1..steps {
            c.push(bands.iter().enumerate().filter(|(i, _)| *i < j).map(|(i, a)| a * c[j - 1 - i]).sum());
        }
        (0..steps).map(|t| (0..steps).map(|s| if s <= t { c[t - s] } else { 0.0 }).collect()).collect()
    }

    /// The largest over all patterns, by listing them.
    fn searched(factor: &Factor, p: Participation) -> f64 {
        let n = p.steps as usize;
        let c = dense(factor, n);
        let gram = |i: usize, j: usize| (0..n).map(|t| c[t][i] * c[t][j]).sum::<f64>();
        let mut largest = 0.0f64;
        for mask in 1u32..1 << n {
            let steps: Vec<usize> = (0..n).filter(|i| mask >> i & 1 == 1).collect();
            if steps.len() as u64 <= p.times && steps.windows(2).all(|w| (w[1] - w[0]) as u64 >= p.separation) {
                let square = steps.iter().flat_map(|i| steps.iter().map(move |j| (*i, *j))).map(|(i, j)| gram(i, j).abs());
                largest = largest.max(square.sum::<f64>().sqrt());
            }
        }
        largest
    }

    fn factors() -> Vec<Factor> {
        let roots = [1, 2, 3, 4, 7, 16].map(Factor::inverse_square_root);
        let decays = [0.0, 0.3, 0.5, 0.9, 1.0].map(|decay| Factor::geometric(decay).unwrap());
        roots.into_iter().chain(decays).collect()
    }

    /// No pattern moves further than the closed form, and one moves as far.
    #[test]
    fn closed_forms_are_the_largest_of_all_patterns() {
        for factor in factors() {
            for steps in [1, 2, 5, 9, 12] {
                for separation in [1, 2, 3, 5, 20] {
                    for times in [1, 2, 3, 12] {
                        let pattern = Participation { steps, times, separation };
                        let (closed, largest) = (pattern.sensitivity(&factor).unwrap(), searched(&factor, pattern));
                        assert!(
                            closed >= largest && closed <= largest * (1.0 + 1e-12),
                            "{factor:?} {pattern:?}: {closed} {largest}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn known_numbers() {
        // 1, 1/2, 3/8, 5/16: one participation, and two of them two steps apart.
        let root = Factor::inverse_square_root(4);
        assert_eq!(root.taken_back(), [1 << 39, 1 << 37, 1 << 36]);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        let of = |times, separation| Participation { steps: 4, times, separation }.sensitivity(&root).unwrap();
        assert!(near(of(1, 1), 1.488_281_25f64.sqrt()) && near(of(2, 2), 3.800_781_25f64.sqrt()));
        // Independent noise: the root of the number of times; prefix sums have the error of a random walk.
        let epochs = Participation::epochs(100, 25);
        assert_eq!((epochs.times, epochs.separation), (4, 25));
        assert!(near(epochs.sensitivity(&Factor::INDEPENDENT).unwrap(), 2.0));
        assert!(near(Factor::INDEPENDENT.prefix_error(99).unwrap(), 50f64.sqrt()));
        // All noise is taken back: prefix sums have the noise of one step, and the sensitivity is that of all prefix sums.
        let all = Factor::geometric(1.0).unwrap();
        assert!(near(all.prefix_error(77).unwrap(), 1.0));
        assert!(near(Participation { steps: 77, times: 1, separation: 1 }.sensitivity(&all).unwrap(), 77f64.sqrt()));
        // 1, decay, decay^2, ...
        let (decay, steps) = (0.75f64, 40);
        let geometric = Factor::geometric(decay).unwrap();
        let expected = ((1.0 - decay.powi(2 * steps)) / (1.0 - decay * decay)).sqrt();
        assert!(near(Participation { steps: steps as u64, times: 1, separation: 3 }.sensitivity(&geometric).unwrap(), expected));
        assert!(near(geometric.norm(steps as u64).unwrap(), (1.0 - decay.powi(steps)) / (1.0 - decay)));
        // The square root is balanced: rows of A C^-1 are those of C.
        let full = Factor::inverse_square_root(64);
        let c = full.coefficients(64).unwrap();
        let rows = (0..64).map(|t| c[..=t].iter().map(|c| c * c).sum::<f64>()).sum::<f64>() / 64.0;
        assert!((full.prefix_error(64).unwrap() / rows.sqrt() - 1.0).abs() < 1e-9);
    }

    /// The norm is at least that of C on any vector, and the error is that of the rows of W C^-1 by multiplication.
    #[test]
    fn norms_and_errors_are_those_of_the_matrices() {
        let steps = 30;
        for factor in factors() {
            let (c, norm) = (dense(&factor, steps), factor.norm(steps as u64).unwrap());
            for v in [vec![1.0; steps], (0..steps).map(|i| ((i * i) as f64 * 0.7).sin()).collect::<Vec<f64>>()] {
                let product = c.iter().map(|row| row.iter().zip(&v).map(|(c, v)| c * v).sum::<f64>());
                let size = |square: f64| square.sqrt();
                assert!(size(product.map(|x| x * x).sum()) <= norm * size(v.iter().map(|x| x * x).sum()));
            }
            let weights = [0.1, 0.5, 0.8];
            let mut total = 0.0;
            for t in 0..steps {
                for s in 0..=t {
                    // Entry of W C^-1: row t of W times column s of C^-1.
                    let entry: f64 = (s..=t)
                        .map(|u| {
                            let inverse = match u - s {
                                0 => 1.0,
                                age => -factor.taken_back.get(age - 1).map_or(0.0, |a| *a as f64 / scale()),
                            };
                            inverse * weights.get(t - u).copied().unwrap_or(1.0)
                        })
                        .sum();
                    total += entry * entry;
                }
            }
            let expected = (total / steps as f64).sqrt();
            assert!((factor.error(steps as u64, &weights).unwrap() / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_closed_form_is_refused() {
        // 1, 0, 1/2, 0, 1/4: columns overlap more two steps apart than next to each other.
        let gaps = Factor::new(vec![0, 1 << 39]).unwrap();
        let refused = Participation::epochs(8, 2).sensitivity(&gaps).unwrap_err().to_string();
        assert!(refused.contains("do not grow") && refused.contains("banded inverse square root"), "{refused}");
        assert!(Factor::new(vec![(1 << 40) + 1]).is_err());
        for decay in [-0.1, 1.1, f64::NAN] {
            assert!(Factor::geometric(decay).is_err());
        }
        let none =
            |steps, times, separation| Participation { steps, times, separation }.sensitivity(&Factor::INDEPENDENT).is_err();
        assert!(none(0, 1, 1) && none(5, 0, 1) && none(5, 1, 0) && none(MOST + 1, 1, 1) && !none(5, 1, 1));
    }
}
