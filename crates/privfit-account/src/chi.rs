//! Tails of W, chi-distributed with k degrees of freedom (W = |N| for one), with and without a factor e^(-mu W): all that a perturbed
//! objective's loss Z = constant + mu W needs.
//!
//! Nothing here overflows, whatever mu is: every e^(mu^2/2) P(N > w + mu) is written as a density times a Mills ratio, and integrals are
//! taken relative to their largest value.

use super::profile::Pair;
use super::special::{bell, log_integral, log_normal_upper, mills, mills_drop, normal_upper};
use std::f64::consts::{FRAC_2_PI, PI};

/// Relative error granted to tails: quadrature, logarithms of gamma functions, exponentials of large arguments.
const SLACK: f64 = 1e-11;

/// W and the factor mu of its loss.
pub(super) struct Chi {
    degrees: u32,
    mu: f64,
    /// ln of the normalising constant of x^(k-1) e^(-x^2/2).
    log_norm: f64,
    table: Option<Table>,
}

/// Sums over panels of equal width: of the density, and of the density times e^(-mu x).
struct Table {
    width: f64,
    /// Sums over the panels from i upwards, and below i.
    above: Vec<Pair>,
    below: Vec<Pair>,
}

impl Chi {
    pub(super) fn new(degrees: u32, mu: f64) -> Chi {
        let k = f64::from(degrees);
        Chi { degrees, mu, log_norm: (0.5 * k - 1.0) * 2f64.ln() + libm::lgamma(0.5 * k), table: None }
    }

    /// With sums over panels, so that a tail costs one panel. Degrees 1 and 2 have closed forms, and a mu above 40 does not fit in a
    /// loss distribution anyway.
    pub(super) fn tabulated(degrees: u32, mu: f64) -> Chi {
        let mut chi = Chi::new(degrees, mu);
        if degrees > 2 && mu <= 40.0 {
            chi.table = Some(chi.tabulate());
        }
        chi
    }

    pub(super) fn mu(&self) -> f64 {
        self.mu
    }

    #[cfg(test)]
    pub(super) fn degrees(&self) -> u32 {
        self.degrees
    }

    pub(super) fn density(&self, x: f64) -> f64 {
        if self.degrees == 1 {
            return FRAC_2_PI.sqrt() * bell(x);
        }
        ((f64::from(self.degrees) - 1.0) * x.ln() - 0.5 * x * x - self.log_norm).exp()
    }

    fn panel(&self, low: f64, high: f64) -> Pair {
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        let (mut p, mut q) = (0.0, 0.0);
        for (x, weight) in super::special::rule() {
            let x = middle + half * x;
            let value = weight * self.density(x);
            p += value;
            q += value * (-self.mu * x).exp();
        }
        (half * p, half * q)
    }

    fn tabulate(&self) -> Table {
        let width = if self.mu > 8.0 { 2.0 / self.mu } else { 0.25 };
        let panels = ((f64::from(self.degrees).sqrt() + 39.0) / width).ceil() as usize;
        let parts: Vec<Pair> = (0..panels).map(|i| self.panel(width * i as f64, width * (i + 1) as f64)).collect();
        let add = |a: Pair, b: Pair| (a.0 + b.0, a.1 + b.1);
        let (mut above, mut below) = (vec![(0.0, 0.0); panels + 1], vec![(0.0, 0.0); panels + 1]);
        for i in 0..panels {
            below[i + 1] = add(below[i], parts[i]);
        }
        for i in (0..panels).rev() {
            above[i] = add(above[i + 1], parts[i]);
        }
        Table { width, above, below }
    }

    /// ln E[e^(t W); W > w], w >= 0, by an integral relative to its largest value.
    fn log_tail(&self, w: f64, t: f64) -> f64 {
        let k = f64::from(self.degrees);
        // The maximum of (k-1) ln x - x^2/2 + t x, without cancellation for negative t, or the edge.
        let root = (t * t + 4.0 * (k - 1.0)).sqrt();
        let peak = if t >= 0.0 { 0.5 * (t + root) } else { 2.0 * (k - 1.0) / (root - t) };
        let mode = if peak > w { peak } else { w };
        let (slope, curvature) = if mode > 0.0 {
            ((t - mode + (k - 1.0) / mode).abs(), (1.0 + (k - 1.0) / (mode * mode)).sqrt())
        } else {
            (t.abs(), 1.0)
        };
        let h = |x: f64| if self.degrees == 1 { t * x - 0.5 * x * x } else { (k - 1.0) * x.ln() - 0.5 * x * x + t * x };
        log_integral(w, mode, 1.0 / (slope + curvature), h) - self.log_norm
    }

    /// ln E[e^(t mu W)], t > 0, rounded up.
    pub(super) fn log_moment(&self, t: f64) -> f64 {
        let t = t * self.mu;
        let value = match self.degrees {
            1 => 2f64.ln() + 0.5 * t * t + log_normal_upper(-t),
            2 => {
                let log = t.ln() + 0.5 * (2.0 * PI).ln() + 0.5 * t * t + log_normal_upper(-t);
                super::special::log_add(0.0, log)
            }
            _ => self.log_tail(0.0, t),
        };
        value * (1.0 + SLACK) + SLACK
    }

    /// (P(W > w), E[e^(-mu W); W > w]).
    pub(super) fn above(&self, w: f64) -> Pair {
        let (mu, w) = (self.mu, if w > 0.0 { w } else { 0.0 });
        match (self.degrees, &self.table) {
            (1, _) => (2.0 * normal_upper(w), FRAC_2_PI.sqrt() * bell(w) * (-mu * w).exp() * mills(w + mu)),
            (2, _) => (bell(w), bell(w) * (-mu * w).exp() * (1.0 - mu * mills(w + mu))),
            (_, Some(table)) => {
                let i = (w / table.width) as usize;
                if i + 1 >= table.above.len() {
                    return (0.0, 0.0);
                }
                let (part, rest) = (self.panel(w, table.width * (i + 1) as f64), table.above[i + 1]);
                (part.0 + rest.0, part.1 + rest.1)
            }
            _ => (self.log_tail(w, 0.0).exp(), self.log_tail(w, -mu).exp()),
        }
    }

    /// (P(W <= w), E[e^(-mu W); W <= w]).
    pub(super) fn below(&self, w: f64) -> Pair {
        if !(w > 0.0) {
            return (0.0, 0.0);
        }
        match &self.table {
            Some(table) => {
                let i = ((w / table.width) as usize).min(table.below.len() - 1);
                let low = table.width * i as f64;
                let (part, rest) = (if w > low { self.panel(low, w) } else { (0.0, 0.0) }, table.below[i]);
                (part.0 + rest.0, part.1 + rest.1)
            }
            None => {
                let (all, above) = (self.above(0.0), self.above(w));
                let p = if self.degrees == 1 { libm::erf(w * std::f64::consts::FRAC_1_SQRT_2) } else { 1.0 - above.0 };
                (p, all.1 - above.1)
            }
        }
    }

    /// An upper bound on E[(1 - e^(e - mu W))+]; e may be negative.
    pub(super) fn hockey_stick(&self, e: f64) -> f64 {
        let mu = self.mu;
        if e < 0.0 {
            // 1 - e^e M = (1 - e^e) + e^e (1 - M), M = E[e^(-mu W)] <= 1.
            let rest = match self.degrees {
                1 => FRAC_2_PI.sqrt() * mills_drop(0.0, mu),
                2 => mu * mills(mu),
                _ => -self.log_tail(0.0, -mu).exp_m1() + SLACK,
            };
            return (e.exp() * rest - e.exp_m1()) * (1.0 + SLACK);
        }
        let w = e / mu;
        let value = match self.degrees {
            1 => FRAC_2_PI.sqrt() * bell(w) * mills_drop(w, mu),
            2 => bell(w) * mu * mills(w + mu),
            _ => {
                let log_p = self.log_tail(w, 0.0);
                // Relative to P, which is where the rounding is.
                log_p.exp() * (SLACK - (self.log_tail(w, -mu) + mu * w - log_p).exp_m1())
            }
        };
        // The exponent w^2/2 carries its own rounding.
        value * (1.0 + SLACK + 1e-15 * w * w) + f64::MIN_POSITIVE
    }
}

#[cfg(test)]
mod tests {
    use super::super::special::gauss_legendre;
    use super::*;

    /// The general rule against closed forms, in the bulk and far out.
    #[test]
    fn integrals_agree_with_closed_forms() {
        for degrees in [1, 2] {
            for mu in [1e-3, 0.3, 1.0, 8.0, 40.0, 700.0] {
                let chi = Chi::new(degrees, mu);
                for w in [0.0, 0.01, 0.7, 3.0, 9.0, 25.0] {
                    let (p, q) = chi.above(w);
                    let general = (chi.log_tail(w, 0.0).exp(), chi.log_tail(w, -mu));
                    assert!((general.0 / p - 1.0).abs() < 1e-12, "{degrees} {w}: {p} {general:?}");
                    assert!(
                        q < 1e-300 || (general.1 - q.ln()).abs() < 1e-9 * (1.0 + mu * w),
                        "{degrees} {mu} {w}: {q} {general:?}"
                    );
                }
                let moment = chi.log_tail(0.0, mu * 3.0);
                assert!((chi.log_moment(3.0) - moment).abs() < 2e-11 + 1e-10 * moment, "{degrees} {mu}");
            }
        }
    }

    /// Tables against the general rule.
    #[test]
    fn tables_agree_with_integrals() {
        for (degrees, mu) in [(3, 0.2), (4, 2.0), (18, 0.05), (100, 12.0), (5, 35.0)] {
            let (slow, fast) = (Chi::new(degrees, mu), Chi::tabulated(degrees, mu));
            for i in 0..60 {
                let w = 0.31 * f64::from(i);
                let (a, b) = (slow.above(w), fast.above(w));
                assert!((a.0 - b.0).abs() <= 1e-11 * a.0 + 1e-300, "{degrees} {mu} {w}: {a:?} {b:?}");
                assert!((a.1 - b.1).abs() <= 1e-11 * a.1 + 1e-300, "{degrees} {mu} {w}: {a:?} {b:?}");
                let (above, below) = (fast.above(w), fast.below(w));
                assert!((above.0 + below.0 - 1.0).abs() < 1e-11, "{degrees} {mu} {w}");
            }
        }
    }

    /// The mean of (1 - e^(e - mu W))+ against brute force, from tiny to huge mu.
    #[test]
    fn hockey_sticks_agree_with_brute_force() {
        for degrees in [1, 2, 3, 10] {
            for mu in [1e-4, 0.1, 2.0, 50.0, 2000.0] {
                let chi = Chi::new(degrees, mu);
                for w in [-1.0, 0.0, 0.4, 2.0, 6.0, 12.0] {
                    let e = mu * w;
                    let from = if w > 0.0 { w } else { 0.0 };
                    // Panels that grow from a thousandth of 1/mu.
                    let (mut x, mut step, mut sum) = (from, 1e-3 / mu.max(1.0), 0.0);
                    while x < 60.0 {
                        sum += gauss_legendre(x, x + step, |y| chi.density(y) * -(e - mu * y).exp_m1());
                        x += step;
                        step = (1.2 * step).min(0.05);
                    }
                    let ours = chi.hockey_stick(e);
                    let slack = 1e-10 + 3e-11 * (1.0 + w.abs()) * (1.0 + 1.0 / mu);
                    assert!(
                        ours >= sum * (1.0 - 1e-12) && ours <= sum * (1.0 + slack) + 1e-300,
                        "{degrees} {mu} {w}: {ours} {sum}"
                    );
                }
            }
        }
    }
}
