//! Mechanisms with finitely many losses: randomised responses, composed by enumeration.
//!
//! Beside anything else they need no grid. Let such a mechanism have the loss `l_j` with probability `p_j` under P, and something else the
//! curve delta(e); both together have `sum_j p_j delta(e - l_j)`, and an infinite loss adds its probability. Atoms that lie on no common
//! grid would cost a lower bound a whole cell each.

use super::discretise::cumulant;
use super::profile::{Pair, Profile, Response};

/// Finitely many losses, the same in both directions.
pub(crate) struct Atoms {
    /// Finite losses from the largest down, each with its (P, Q).
    losses: Vec<f64>,
    masses: Vec<Pair>,
    /// (P, Q) of the first j of them, and of the others.
    above: Vec<Pair>,
    below: Vec<Pair>,
    infinite: f64,
    /// Number of responses.
    count: f64,
    /// What divides all losses, where something does.
    divisor: Option<f64>,
}

impl Atoms {
    /// Most losses that are enumerated.
    const MOST: usize = 4097;

    fn new(mut atoms: Vec<(f64, Pair)>, infinite: f64, count: f64, divisor: Option<f64>) -> Atoms {
        atoms.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (losses, masses): (Vec<f64>, Vec<Pair>) = atoms.into_iter().unzip();
        let add = |sum: &mut Pair, mass: &Pair| {
            *sum = (sum.0 + mass.0, sum.1 + mass.1);
            Some(*sum)
        };
        let sums = |masses: &mut dyn Iterator<Item = &Pair>| -> Vec<Pair> {
            std::iter::once((0.0, 0.0)).chain(masses.scan((0.0, 0.0), add)).collect()
        };
        let above = sums(&mut masses.iter());
        let mut below = sums(&mut masses.iter().rev());
        below.reverse();
        Atoms { losses, masses, above, below, infinite, count, divisor }
    }

    /// The same response so many times: losses (k - 2 j) epsilon with binomial probabilities. None where there are too many, or
    /// probabilities do not fit.
    pub(crate) fn responses(one: &Response, count: u64) -> Option<Atoms> {
        let k = count as f64;
        if count == 0 || count >= Atoms::MOST as u64 || !(k * one.epsilon < 600.0) {
            return None;
        }
        let finite = (k * (-one.delta).ln_1p()).exp();
        let (log_keep, log_flip) = (-(-one.epsilon).exp().ln_1p(), -one.epsilon.exp().ln_1p());
        let mut log = k * log_keep;
        let atoms = (0..=count).map(|j| {
            let loss = (k - 2.0 * j as f64) * one.epsilon;
            let pair = (finite * log.exp(), finite * (log - loss).exp());
            log += log_flip - log_keep + ((k - j as f64) / (j as f64 + 1.0)).ln();
            (loss, pair)
        });
        Some(Atoms::new(atoms.collect(), -(k * (-one.delta).ln_1p()).exp_m1(), k, Some(one.epsilon)))
    }

    /// Both, independently. None where there are too many losses.
    pub(crate) fn with(&self, other: &Atoms) -> Option<Atoms> {
        let largest = self.losses.first()? + other.losses.first()?;
        if self.losses.len() * other.losses.len() > Atoms::MOST || !(largest < 600.0) {
            return None;
        }
        let both = self.each().flat_map(|(l, p)| other.each().map(move |(m, q)| (l + m, (p.0 * q.0, p.1 * q.1))));
        let infinite = self.infinite + other.infinite - self.infinite * other.infinite;
        Some(Atoms::new(both.collect(), infinite * (1.0 + 1e-15), self.count + other.count, None))
    }

    /// Finite losses with their (P, Q).
    pub(crate) fn each(&self) -> impl Iterator<Item = (f64, Pair)> {
        self.losses.iter().copied().zip(self.masses.iter().copied())
    }

    /// How many finite losses there are.
    pub(crate) fn number(&self) -> usize {
        self.losses.len()
    }

    /// (ln of the finite part of E[e^(t L)], its first and second derivative).
    pub(crate) fn cumulant(&self, t: f64) -> (f64, f64, f64) {
        cumulant(self.losses.iter().copied().zip(self.masses.iter().map(|m| m.0)), t)
    }

    fn losses_above(&self, e: f64) -> usize {
        self.losses.partition_point(|l| *l > e)
    }
}

impl Profile for Atoms {
    fn above(&self, e: f64) -> Pair {
        let (p, q) = self.above[self.losses_above(e)];
        (p + self.infinite, q)
    }
    fn below(&self, e: f64) -> Pair {
        let (p, q) = self.below[self.losses_above(e)];
        (p, q + self.infinite)
    }
    fn infinite(&self) -> f64 {
        self.infinite
    }
    fn atom(&self) -> Option<f64> {
        self.divisor
    }
    fn slack(&self) -> f64 {
        1e-13 + 1e-15 * self.count
    }
}
