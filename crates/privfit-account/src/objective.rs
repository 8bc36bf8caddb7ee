//! Objective perturbation: theta minimises sum of losses + (ridge/2)|theta|^2 + <b, theta> with b Gaussian.
//!
//! Privacy. Changing variables from b to theta, the log density ratio of neighbours is at most
//! Z = log_determinant + mu^2/2 + mu W, where mu is one unit's gradient change over the noise, W is the norm of the noise
//! inside the fixed subspace that the gradients span: |N| for one dimension, chi with `degrees` (zero-out, add-remove) or
//! 2 `degrees` (replace-one) degrees of freedom. The determinant ratio is at most 1 + smoothness/ridge per rank, also
//! under replace-one, because the removed record only shrinks it. An approximate minimiser is followed by Gaussian output
//! noise, whose loss adds to Z given the exact minimiser: delta(e) <= E[delta_Gauss(e - Z)], negative arguments included.
//!
//! Composition with Gaussian releases of total s has a closed form of its own: their loss s^2/2 + s N adds to Z, and mu W + s N lies
//! stochastically below m W' with m^2 = mu^2 + s^2 and W' of the same distribution as W. For with G and G' Gaussian vectors in as many
//! dimensions as W has degrees and u = G/|G|, mu |G| + s <G', u> = <mu G + s G', u> <= |mu G + s G'|, where <G', u> is a standard
//! Gaussian that does not depend on |G|. So the whole is one objective perturbation with m in the place of mu.

use super::adjacency::Adjacency;
use super::checked::{at_most, probability_at_most};
use super::chi::Chi;
use super::event::{Event, Objective, Sampling, Step};
use super::gdp::{discrete_delta, discrete_epsilon, mu_of};
use super::profile::{Pair, Profile};
use super::special::crossing;
use super::{Accountant, Bound, check_delta, check_epsilon};
use crate::error::{Error, Result};

/// The loss bound Z of one objective perturbation, without output noise.
pub(crate) struct PerturbedObjective {
    constant: f64,
    chi: Chi,
}

impl PerturbedObjective {
    #[cfg(test)]
    pub(crate) fn new(o: &Objective, adjacency: Adjacency) -> PerturbedObjective {
        let (constant, mu, degrees) = loss_bound(o, adjacency);
        PerturbedObjective { constant, chi: Chi::new(degrees, mu) }
    }

    /// With tables for many questions.
    pub(crate) fn prepared(o: &Objective, adjacency: Adjacency) -> PerturbedObjective {
        let (constant, mu, degrees) = loss_bound(o, adjacency);
        PerturbedObjective { constant, chi: Chi::tabulated(degrees, mu) }
    }

    /// delta of Z alone: the mean of (1 - e^(epsilon - Z))+.
    fn delta_alone(&self, epsilon: f64) -> f64 {
        probability_at_most(self.chi.hockey_stick(epsilon - self.constant))
    }

    /// delta of Z followed by Gaussian noise with multiplier `output`, by quadrature: what the closed form is compared with.
    #[cfg(test)]
    fn joint(&self, epsilon: f64, output: f64) -> f64 {
        let s = 1.0 / output;
        let (mu, root) = (self.chi.mu(), f64::from(self.chi.degrees()).sqrt());
        // Short panels: the distribution of W must be resolved whatever the noise is.
        let end = (((epsilon - self.constant) / mu).max(root) + 45.0 * s / mu + 14.0).min(root + 40.0);
        let f = |x: f64| self.chi.density(x) * super::gdp::gaussian_delta(epsilon - self.constant - mu * x, s).upper;
        let panels = 20_000;
        let edge = |i: i32| end * f64::from(i) / f64::from(panels);
        (0..panels).map(|i| super::special::gauss_legendre(edge(i), edge(i + 1), f)).sum()
    }
}

/// (constant, mu, degrees) of Z = constant + mu W.
fn loss_bound(o: &Objective, adjacency: Adjacency) -> (f64, f64, u32) {
    let (mu, degrees) = if adjacency.replaces() {
        (o.replace_factor / o.noise_multiplier, 2 * o.degrees)
    } else {
        (1.0 / o.noise_multiplier, o.degrees)
    };
    (o.log_determinant + 0.5 * mu * mu, mu, degrees)
}

impl Profile for PerturbedObjective {
    fn above(&self, e: f64) -> Pair {
        let (p, q) = self.chi.above((e - self.constant) / self.chi.mu());
        (probability_at_most(p), q * (-self.constant).exp())
    }
    fn below(&self, e: f64) -> Pair {
        let (p, q) = self.chi.below((e - self.constant) / self.chi.mu());
        (probability_at_most(p), q * (-self.constant).exp())
    }
    fn delta(&self, e: f64) -> f64 {
        self.delta_alone(e)
    }
    // The bound Z holds in both directions, so there is nothing to reverse.
}

/// Renyi divergence at one order: E e^((order-1) Z), plus the output noise.
pub(crate) fn divergence(o: &Objective, adjacency: Adjacency, order: f64) -> f64 {
    let (constant, mu, degrees) = loss_bound(o, adjacency);
    let log_moment = Chi::new(degrees, mu).log_moment(order - 1.0);
    let output = 1.0 / o.output_noise_multiplier;
    at_most(constant + log_moment / (order - 1.0) + 0.5 * order * output * output)
}

/// One objective perturbation, by its own curve.
pub struct ObjectiveAccountant;

impl ObjectiveAccountant {
    /// One objective perturbation, and Gaussian releases beside it.
    fn only(&self, steps: &[Step<'_>], adjacency: Adjacency) -> Result<PerturbedObjective> {
        let mut found = None;
        let mut square = 0.0;
        for step in steps {
            match (step.leaf, mu_of(step.leaf, adjacency)) {
                _ if step.sampling != Sampling::All => return Err(not_alone()),
                (Event::ObjectivePerturbation(o), _) if found.is_none() && step.count == 1 => found = Some(o),
                (_, Some(mu)) => square += mu * mu * step.count as f64,
                _ => return Err(not_alone()),
            }
        }
        let Some(o) = found else { return Err(not_alone()) };
        // Output noise of its own is one more Gaussian release.
        square += o.output_noise_multiplier.powi(-2);
        let (constant, mu, degrees) = loss_bound(o, adjacency);
        if !(square <= 0.01 * mu * mu) {
            // Loose there; the loss distribution composes the two exactly.
            return Err(not_alone());
        }
        let both = if square > 0.0 { (mu * mu + square).sqrt() * (1.0 + 1e-15) } else { mu };
        Ok(PerturbedObjective { constant: constant + 0.5 * square * (1.0 + 1e-15), chi: Chi::new(degrees, both) })
    }
}

fn not_alone() -> Error {
    Error::unsupported(
        "anything but one objective perturbation, with Gaussian releases or without, in its own curve",
        "use the pld accountant",
    )
}

impl Accountant for ObjectiveAccountant {
    fn name(&self) -> &'static str {
        "objective"
    }

    fn epsilon(&self, event: &Event, adjacency: Adjacency, delta: f64) -> Result<Bound> {
        check_delta(delta, false)?;
        let steps = event.steps(adjacency)?;
        let z = self.only(&steps, adjacency)?;
        discrete_epsilon(delta, &steps, |delta| {
            // How far ln delta is above what is asked for; what is not a number is.
            let excess = |e: f64| {
                let value = (z.delta_alone(e) / delta).ln();
                if value.is_nan() { f64::INFINITY } else { value }
            };
            let (mut low, mut high) = ((0.0, excess(0.0)), (0.0, excess(0.0)));
            while !(high.1 <= 0.0) {
                let next = if high.0 > 0.0 { 2.0 * high.0 } else { 1.0 };
                if next > 1e300 {
                    return Ok(Bound { lower: 0.0, upper: f64::INFINITY });
                }
                (low, high) = (high, (next, excess(next)));
            }
            Ok(Bound { lower: 0.0, upper: if high.0 > 0.0 { crossing(low, high, 1e-14, excess).1 } else { 0.0 } })
        })
    }

    fn delta(&self, event: &Event, adjacency: Adjacency, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        let steps = event.steps(adjacency)?;
        let z = self.only(&steps, adjacency)?;
        Ok(Bound { lower: 0.0, upper: discrete_delta(epsilon, &steps, |e| z.delta_alone(e)) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::special::normal_upper;
    use super::*;
    use crate::gdp::gaussian_delta;

    fn event(mu: f64, log_determinant: f64, s: f64) -> Objective {
        Objective {
            noise_multiplier: 1.0 / mu,
            replace_factor: 2.0,
            degrees: 1,
            log_determinant,
            output_noise_multiplier: if s == 0.0 { f64::INFINITY } else { 1.0 / s },
            grid_sigma: 0,
            dimension: 1,
        }
    }

    /// Correction A7: mu 0.17, log determinant 0.089, epsilon 1. A clamped argument would say 5.4e-11 and 6.5e-10.
    #[test]
    fn joint_curve_uses_negative_arguments() {
        for (s, truth) in [(1e-3, 3.87e-9), (1e-2, 4.09e-9)] {
            let z = PerturbedObjective::new(&event(0.17, 0.089, s), Adjacency::ZeroOut);
            let value = z.joint(1.0, 1.0 / s);
            assert!((value / truth - 1.0).abs() < 0.03, "s {s}: {value}");
            let inside = |x: f64| z.chi.density(x) * gaussian_delta((1.0 - z.constant - z.chi.mu() * x).max(0.0), s).upper;
            let clamped: f64 = (0..2000)
                .map(|i| 0.007 * f64::from(i))
                .map(|x| super::super::special::gauss_legendre(x, x + 0.007, inside))
                .sum();
            assert!(value > 5.0 * clamped, "clamping under-reports: {clamped} {value}");
        }
    }

    /// Composition with a Gaussian: above the exact joint curve, by little, and never below it.
    #[test]
    fn gaussians_beside_it_have_a_closed_form() {
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            for (degrees, mu, s) in [(1, 0.3, 0.01), (1, 0.3, 0.029), (2, 0.3, 0.02), (3, 0.3, 0.01), (9, 0.05, 0.005)] {
                let o = Objective { degrees, ..event(mu, 0.1, 0.0) };
                let beside = Event::Gaussian { noise_multiplier: 1.0 / s, replace_factor: 1.0 };
                let both = Event::Compose(vec![Event::ObjectivePerturbation(o), beside]);
                for epsilon in [0.2, 1.0, 2.0, 4.0] {
                    let closed = ObjectiveAccountant.delta(&both, adjacency, epsilon).unwrap().upper;
                    let exact = PerturbedObjective::new(&o, adjacency).joint(epsilon, 1.0 / s);
                    assert!(closed >= exact * (1.0 - 1e-9), "{adjacency} {degrees} {s} {epsilon}: {closed} {exact}");
                    assert!(closed <= exact * 1.5 + 1e-12, "{adjacency} {degrees} {s} {epsilon}: {closed} {exact}");
                    // Output noise inside of the event is the same thing.
                    let inside = Event::ObjectivePerturbation(Objective { output_noise_multiplier: 1.0 / s, ..o });
                    let inside = ObjectiveAccountant.delta(&inside, adjacency, epsilon).unwrap().upper;
                    assert!((inside - closed).abs() <= 1e-9 * closed, "{inside} {closed}");
                }
            }
        }
    }

    /// Much output noise loss against little of the linear term: the closed form is loose there, and a coarse quadrature would be
    /// wrong. The loss distribution answers, above the exact curve.
    #[test]
    fn large_gaussians_go_to_the_loss_distribution() {
        for (degrees, mu, s) in [(4, 0.001, 1.0), (2, 0.3, 3.0), (1, 0.3, 1.0)] {
            let o = Objective { degrees, output_noise_multiplier: 1.0 / s, ..event(mu, 0.05, 0.0) };
            let event = Event::ObjectivePerturbation(o);
            assert!(ObjectiveAccountant.delta(&event, Adjacency::ZeroOut, 3.0).is_err());
            for epsilon in [0.5, 3.0] {
                let exact = PerturbedObjective::new(&o, Adjacency::ZeroOut).joint(epsilon, 1.0 / s);
                let ours = crate::delta(&event, Adjacency::ZeroOut, epsilon).unwrap().bound.upper;
                assert!(ours >= exact * (1.0 - 1e-9) && ours <= exact * 1.01, "{degrees} {mu} {s}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn closed_forms_for_both_adjacencies() {
        // The printed closed forms of the specification, evaluated term by term.
        let (mu0, det) = (0.3, 0.2f64);
        for epsilon in [0.3, 1.0, 2.5] {
            let o = event(mu0, det, 0.0);
            let a = epsilon - det - 0.5 * mu0 * mu0;
            let w = a.max(0.0) / mu0;
            let zero = 2.0 * (normal_upper(w) - (a + 0.5 * mu0 * mu0).exp() * normal_upper(w + mu0));
            let ours = PerturbedObjective::new(&o, Adjacency::ZeroOut).delta_alone(epsilon);
            assert!((ours / zero - 1.0).abs() < 1e-6, "{ours} {zero}");
            let mu = 2.0 * mu0;
            let a = epsilon - det - 0.5 * mu * mu;
            let r = a.max(0.0) / mu;
            let replace = (-0.5 * r * r).exp()
                - (a + 0.5 * mu * mu).exp()
                    * ((-0.5 * (r + mu) * (r + mu)).exp() - mu * (2.0 * std::f64::consts::PI).sqrt() * normal_upper(r + mu));
            let ours = PerturbedObjective::new(&o, Adjacency::ReplaceOne).delta_alone(epsilon);
            assert!((ours / replace - 1.0).abs() < 1e-6, "{ours} {replace}");
        }
    }

    #[test]
    fn more_degrees_mean_more_loss() {
        let mut last = 0.0;
        for degrees in [1, 2, 3, 9, 18] {
            let delta = PerturbedObjective { constant: 0.42, chi: Chi::new(degrees, 0.8) }.delta_alone(1.5);
            assert!(delta > last, "{degrees}: {delta}");
            last = delta;
        }
    }

    /// Where exp(mu^2/2) does not fit in a double epsilon goes on growing: by the loss at mu, which is about mu^2/2 + mu w.
    #[test]
    fn little_noise_is_never_free() {
        for adjacency in Adjacency::ALL {
            for degrees in [1, 2, 3, 9] {
                let mut last = 0.0;
                for i in 0..80 {
                    let mu = 0.5 * 1.15f64.powi(i);
                    let o = Objective { degrees, ..event(mu, 0.1, 0.0) };
                    let upper = ObjectiveAccountant.epsilon(&Event::ObjectivePerturbation(o), adjacency, 1e-5).unwrap().upper;
                    assert!(upper > last && upper > 0.5 * mu * mu + 4.0 * mu, "{adjacency} {degrees} {mu}: {upper} {last}");
                    let by_moments = super::super::RenyiAccountant.epsilon(&Event::ObjectivePerturbation(o), adjacency, 1e-5);
                    assert!(by_moments.unwrap().upper >= upper * (1.0 - 1e-9), "{adjacency} {degrees} {mu}");
                    last = upper;
                }
            }
        }
        // The case that read as perfect privacy.
        let o = |noise_multiplier| Event::ObjectivePerturbation(Objective { noise_multiplier, ..event(1.0, 0.1, 0.0) });
        let at = |nm| super::super::epsilon(&o(nm), Adjacency::ZeroOut, 1e-5).unwrap().bound.upper;
        assert!((at(0.027) - 848.63).abs() < 0.01 && (at(0.0265) - 877.84).abs() < 0.01, "{} {}", at(0.027), at(0.0265));
        for target in [670.0, 705.0] {
            let found = super::super::calibrate::<crate::Error>(
                super::super::Target { epsilon: target, delta: 1e-6 },
                |x| Ok(o(x)),
                Adjacency::ZeroOut,
            )
            .unwrap();
            assert!(found > 0.02, "{found}");
        }
        // It does not spread into compositions and selections either.
        let both = Event::Compose(vec![o(0.0265), Event::gaussian(2.0)]);
        assert!(super::super::epsilon(&both, Adjacency::ZeroOut, 1e-5).unwrap().bound.upper > 877.8);
        let best = Event::Select { stopping: super::super::Stopping::Uniform { most: 3 }, event: Box::new(o(0.0265)) };
        assert!(super::super::epsilon(&best, Adjacency::ZeroOut, 1e-5).unwrap().bound.upper > 877.8);
    }

    #[test]
    fn noise_table_of_the_specification() {
        // Logistic, 36176 rows, delta = 1/m^2, ridge = thesis/8, zero-out and replace-one (thesis ridge 297.2, 21.5, 2.02).
        let m = 36176f64;
        for (epsilon, ridge, zero, replace) in
            [(0.1, 297.2 / 8.0, 55.5, 118.3), (1.0, 21.5 / 8.0, 6.18, 13.1), (10.0, 2.02 / 8.0, 0.71, 1.48)]
        {
            for (adjacency, sigma) in [(Adjacency::ZeroOut, zero), (Adjacency::ReplaceOne, replace)] {
                let curve = |s: f64| {
                    PerturbedObjective::new(&event(1.0 / s, (1.0f64 + 0.25 / ridge).ln(), 0.0), adjacency).delta_alone(epsilon)
                };
                assert!(curve(sigma * 1.01) < 1.0 / (m * m), "{epsilon} {adjacency}: {}", curve(sigma * 1.01));
                assert!(curve(sigma * 0.99) > 1.0 / (m * m), "{epsilon} {adjacency}: {}", curve(sigma * 0.99));
            }
        }
    }
}
