//! What a mechanism did, sufficient for any accountant, now or later.
//!
//! Convention, stated once: a `noise_multiplier` is the noise scale over the sensitivity of one record under zero-out (the
//! bound of its clipped contribution). Replace-one divides it by `replace_factor`. Variants without a replace factor
//! (`Approx`, `ZeroConcentrated`, `GaussianDp`, `Budget`) describe zero-out and add-remove, and replace-one
//! follows by group privacy of two: 2 epsilon, (2 epsilon, (1 + e^epsilon) delta), 4 rho, 2 mu.

use super::adjacency::Adjacency;
use super::checked::probability_at_most;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A private computation as a tree. Closed on purpose: a new variant makes the compiler list every accountant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Continuous Gaussian noise on a vector of bounded L2 norm.
    Gaussian {
        /// Standard deviation over the zero-out sensitivity.
        noise_multiplier: f64,
        /// Replace-one sensitivity over zero-out sensitivity: 2 for clipped vectors, sqrt 2 for outer products, 1 for parts that an index decides.
        replace_factor: f64,
    },
    /// Continuous Laplace noise on a vector of bounded L1 norm.
    Laplace {
        /// Scale over the zero-out sensitivity.
        noise_multiplier: f64,
        /// Replace-one sensitivity over zero-out sensitivity.
        replace_factor: f64,
    },
    /// Exact discrete Gaussian noise on an integer vector; all numbers in grid units.
    DiscreteGaussian {
        /// Scale parameter.
        sigma: u64,
        /// L2 sensitivity under zero-out.
        #[serde(rename = "reach")]
        sensitivity: u64,
        /// L2 sensitivity under replace-one.
        #[serde(rename = "replace_reach")]
        replace_sensitivity: u64,
        /// Number of coordinates.
        dimension: u64,
    },
    /// Exact discrete Laplace noise on an integer vector; all numbers in grid units.
    DiscreteLaplace {
        /// Scale parameter.
        scale: u64,
        /// L1 sensitivity under zero-out.
        #[serde(rename = "reach")]
        sensitivity: u64,
        /// L1 sensitivity under replace-one.
        #[serde(rename = "replace_reach")]
        replace_sensitivity: u64,
        /// Number of coordinates.
        dimension: u64,
    },
    /// Any mechanism with pure differential privacy.
    Pure {
        /// Its epsilon under zero-out.
        epsilon: f64,
        /// Its epsilon under replace-one over that; 2 by group privacy.
        #[serde(default = "two")]
        replace_factor: f64,
    },
    /// Any mechanism with approximate differential privacy.
    Approx {
        /// Its epsilon.
        epsilon: f64,
        /// Its delta.
        delta: f64,
    },
    /// Any zero-concentrated mechanism.
    ZeroConcentrated {
        /// Its rho.
        rho: f64,
    },
    /// Any Gaussian-differentially-private mechanism.
    GaussianDp {
        /// Its mu.
        mu: f64,
    },
    /// A minimiser of a randomly tilted, strongly convex sum, plus Gaussian output noise.
    ObjectivePerturbation(Objective),
    /// The exponential mechanism (or Gumbel noise) on scores: bounded range.
    Exponential {
        /// Range of the privacy loss under zero-out (2 x score sensitivity / scale; half of it for monotone scores).
        epsilon: f64,
        /// Replace-one range over zero-out range.
        replace_factor: f64,
    },
    /// The event on a fresh Poisson sample.
    Poisson {
        /// Probability of each record.
        rate: f64,
        /// What is done with the sample.
        event: Box<Event>,
    },
    /// The event on a fresh uniform subset of fixed size.
    FixedSize {
        /// Records drawn.
        batch: u64,
        /// Records in all.
        rows: u64,
        /// What is done with the sample.
        event: Box<Event>,
    },
    /// Disjoint batches in shuffled order: each record takes part once in an epoch, and nothing is amplified.
    Shuffled {
        /// Batches in an epoch (informative).
        batches: u64,
        /// Epochs.
        epochs: u64,
        /// What is done with each batch.
        event: Box<Event>,
    },
    /// The event a fixed number of times.
    Repeat {
        /// How often.
        times: u64,
        /// What.
        event: Box<Event>,
    },
    /// The event at most so often; a run may stop earlier.
    AtMost {
        /// How often at the most.
        times: u64,
        /// What.
        event: Box<Event>,
    },
    /// A filter: adaptively chosen zero-concentrated releases up to a total.
    Budget {
        /// The total.
        rho: f64,
    },
    /// One after the other.
    Compose(Vec<Event>),
    /// One of these for each record: they meet disjoint sets of records, or a coin that looks at no record picks one of them. Costs as
    /// much as the worst of them.
    Either(Vec<Event>),
    /// A random number of runs, of which the best is released.
    Select {
        /// Law of the number of runs.
        stopping: Stopping,
        /// One run, including its score.
        event: Box<Event>,
    },
    /// No guarantee.
    NotPrivate {
        /// Why not.
        why: String,
    },
}

/// Public facts of one objective perturbation (sum form, see `account/objective.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Standard deviation of the linear term over one unit's gradient bound under zero-out.
    pub noise_multiplier: f64,
    /// Replace-one gradient change over the zero-out bound (2 unless proved otherwise).
    pub replace_factor: f64,
    /// Dimensions that one unit's gradient can span (1 for a scalar score, K-1 for softmax, times rows per unit).
    pub degrees: u32,
    /// Bound on the log determinant ratio, e.g. log(1 + smoothness / ridge).
    pub log_determinant: f64,
    /// Standard deviation of the output noise over its sensitivity (2 tolerance / ridge plus grid), infinite if there is none.
    #[serde(with = "infinite_as_null")]
    pub output_noise_multiplier: f64,
    /// Standard deviation of the linear term in grid units, 0 if its distribution is continuous. No coupling exists between the discrete
    /// and the continuous distribution, so their distance is charged.
    pub grid_sigma: u64,
    /// Coordinates of the linear term.
    pub dimension: u64,
}

/// JSON has no infinity.
mod infinite_as_null {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, out: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { out.serialize_f64(*value) } else { out.serialize_none() }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

/// Law of the number of runs in a random-stopping selection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Stopping {
    /// Truncated negative binomial; eta = 1 is geometric, 0 logarithmic.
    NegativeBinomial {
        /// Shape, above -1.
        eta: f64,
        /// Success probability in (0, 1).
        gamma: f64,
    },
    /// Poisson; zero runs return a default.
    Poisson {
        /// Mean number of runs.
        mean: f64,
    },
    /// Every number from 1 to `most` with the same probability.
    Uniform {
        /// Most runs.
        most: u64,
    },
    /// The number k, from 1 to `most`, with a probability proportional to 1/k.
    Harmonic {
        /// Most runs.
        most: u64,
    },
}

/// How a leaf meets the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sampling {
    All,
    Poisson { rate: f64 },
    FixedSize { rate: f64 },
}

/// One leaf with its sampling and how often it happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) leaf: &'a Event,
    pub(crate) sampling: Sampling,
    pub(crate) count: u64,
}

fn positive(what: &'static str, value: f64) -> Result<()> {
    // Subnormals are refused as well: sums lose them, and a spend that a sum loses is a free look.
    if value >= f64::MIN_POSITIVE && value.is_finite() {
        return Ok(());
    }
    Err(Error::domain(what, value, "give a positive finite number"))
}

fn at_least_one(what: &'static str, value: u64) -> Result<()> {
    if value >= 1 { Ok(()) } else { Err(Error::domain(what, value, "give a whole number of at least 1")) }
}

/// Replacing a record can take it to nothing, so that it costs at least as much.
fn replaces(what: &'static str, value: f64) -> Result<()> {
    if value >= 1.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::domain(what, value, "give a finite number of at least 1"))
}

fn two() -> f64 {
    2.0
}

impl Event {
    /// A Gaussian on clipped vectors (replace-one moves it twice as far).
    pub fn gaussian(noise_multiplier: f64) -> Event {
        Event::Gaussian { noise_multiplier, replace_factor: 2.0 }
    }

    /// Laplace noise on clipped vectors (replace-one moves it twice as far).
    pub fn laplace(noise_multiplier: f64) -> Event {
        Event::Laplace { noise_multiplier, replace_factor: 2.0 }
    }

    /// This event on a Poisson sample.
    pub fn sampled(self, rate: f64) -> Event {
        Event::Poisson { rate, event: Box::new(self) }
    }

    /// A mechanism with pure privacy of which nothing else is known.
    pub fn pure(epsilon: f64) -> Event {
        Event::Pure { epsilon, replace_factor: 2.0 }
    }

    /// This event `times` times.
    pub fn repeated(self, times: u64) -> Event {
        Event::Repeat { times, event: Box::new(self) }
    }

    /// Checks every number of the tree.
    pub fn validate(&self) -> Result<()> {
        match self {
            Event::Gaussian { noise_multiplier, replace_factor } | Event::Laplace { noise_multiplier, replace_factor } => {
                positive("noise_multiplier", *noise_multiplier)?;
                replaces("replace_factor", *replace_factor)
            }
            Event::DiscreteGaussian { sigma: scale, sensitivity, replace_sensitivity, dimension }
            | Event::DiscreteLaplace { scale, sensitivity, replace_sensitivity, dimension } => {
                at_least_one("scale", *scale)?;
                at_least_one("sensitivity", *sensitivity)?;
                at_least_one("dimension", *dimension)?;
                if replace_sensitivity < sensitivity {
                    return Err(Error::domain(
                        "replace_sensitivity",
                        replace_sensitivity,
                        "give at least the zero-out sensitivity",
                    ));
                }
                Ok(())
            }
            Event::Pure { epsilon, replace_factor } => {
                positive("epsilon", *epsilon)?;
                replaces("replace_factor", *replace_factor)
            }
            Event::Approx { epsilon, delta } => {
                positive("epsilon", *epsilon)?;
                if *delta >= 0.0 && *delta < 1.0 {
                    return Ok(());
                }
                Err(Error::domain("delta", delta, "give a number of at least 0 and below 1"))
            }
            Event::ZeroConcentrated { rho } | Event::Budget { rho } => positive("rho", *rho),
            Event::GaussianDp { mu } => positive("mu", *mu),
            Event::ObjectivePerturbation(o) => {
                positive("noise_multiplier", o.noise_multiplier)?;
                replaces("replace_factor", o.replace_factor)?;
                at_least_one("degrees", u64::from(o.degrees))?;
                if o.degrees > 10_000 {
                    return Err(Error::domain(
                        "degrees",
                        o.degrees,
                        "give at most 10000: beyond, the curve is not computed exactly",
                    ));
                }
                at_least_one("dimension", o.dimension)?;
                if !(o.log_determinant >= 0.0 && o.log_determinant.is_finite()) {
                    return Err(Error::domain("log_determinant", o.log_determinant, "give a finite number of at least 0"));
                }
                if o.output_noise_multiplier.is_nan() || o.output_noise_multiplier <= 0.0 {
                    return Err(Error::domain("output_noise_multiplier", o.output_noise_multiplier, "give a positive number"));
                }
                Ok(())
            }
            Event::Exponential { epsilon, replace_factor } => {
                positive("epsilon", *epsilon)?;
                replaces("replace_factor", *replace_factor)
            }
            Event::Poisson { rate, event } => {
                if !(*rate >= f64::MIN_POSITIVE && *rate <= 1.0) {
                    return Err(Error::domain("sampling rate", rate, "give a number above 0 and at most 1"));
                }
                event.validate()
            }
            Event::FixedSize { batch, rows, event } => {
                at_least_one("batch", *batch)?;
                if batch > rows {
                    return Err(Error::domain("batch", batch, "give at most the number of rows"));
                }
                event.validate()
            }
            Event::Shuffled { batches, epochs, event } => {
                at_least_one("batches", *batches)?;
                at_least_one("epochs", *epochs)?;
                event.validate()
            }
            Event::Repeat { times, event } | Event::AtMost { times, event } => {
                at_least_one("times", *times)?;
                event.validate()
            }
            Event::Compose(events) => events.iter().try_for_each(Event::validate),
            Event::Either(events) => {
                at_least_one("events to choose from", events.len() as u64)?;
                events.iter().try_for_each(Event::validate)
            }
            Event::Select { stopping, event } => {
                match stopping {
                    Stopping::NegativeBinomial { eta, gamma } => {
                        if !(*eta > -1.0 && eta.is_finite()) {
                            return Err(Error::domain("eta", eta, "give a finite number above -1"));
                        }
                        if !(*gamma > 0.0 && *gamma < 1.0) {
                            return Err(Error::domain("gamma", gamma, "give a number strictly between 0 and 1"));
                        }
                    }
                    Stopping::Poisson { mean } => positive("mean", *mean)?,
                    Stopping::Uniform { most } | Stopping::Harmonic { most } => {
                        if !(1..=1_000_000).contains(most) {
                            return Err(Error::domain("most", most, "give a whole number from 1 to 1000000"));
                        }
                    }
                }
                event.validate()
            }
            Event::NotPrivate { .. } => Ok(()),
        }
    }

    /// The leaves with their sampling and counts, checked against the adjacency.
    pub(crate) fn steps(&self, adjacency: Adjacency) -> Result<Vec<Step<'_>>> {
        self.validate()?;
        let mut steps = Vec::new();
        self.collect(adjacency, Sampling::All, 1, &mut steps)?;
        Ok(steps)
    }

    fn collect<'a>(&'a self, a: Adjacency, sampling: Sampling, count: u64, out: &mut Vec<Step<'a>>) -> Result<()> {
        let times = |n: u64| {
            count.checked_mul(n).ok_or(Error::domain("count", format!("{count} x {n}"), "give at most 2^64 - 1 steps in all"))
        };
        let alone = || {
            if sampling == Sampling::All {
                return Ok(());
            }
            Err(Error::unsupported("a sample that is used by more than one release", "draw a fresh sample for each release"))
        };
        match self {
            Event::Gaussian { .. }
            | Event::Laplace { .. }
            | Event::DiscreteGaussian { .. }
            | Event::DiscreteLaplace { .. }
            | Event::Pure { .. }
            | Event::Approx { .. }
            | Event::ZeroConcentrated { .. }
            | Event::GaussianDp { .. }
            | Event::ObjectivePerturbation(_)
            | Event::Exponential { .. }
            | Event::Budget { .. }
            | Event::Either(_)
            | Event::Select { .. }
            | Event::NotPrivate { .. } => {
                out.push(Step { leaf: self, sampling, count });
                Ok(())
            }
            Event::Poisson { rate, event } => {
                alone()?;
                let sampling = if *rate == 1.0 { Sampling::All } else { Sampling::Poisson { rate: *rate } };
                event.collect(a, sampling, count, out)
            }
            Event::FixedSize { batch, rows, event } => {
                alone()?;
                if a == Adjacency::AddRemove {
                    return Err(Error::unsupported(
                        "a fixed-size sample under add-remove (its rate depends on the private number of records)",
                        "use zero-out or replace-one, or a Poisson sample",
                    ));
                }
                event.collect(
                    a,
                    Sampling::FixedSize { rate: probability_at_most((*batch as f64 / *rows as f64).next_up()) },
                    count,
                    out,
                )
            }
            Event::Shuffled { epochs, event, .. } => {
                alone()?;
                if a == Adjacency::AddRemove {
                    return Err(Error::unsupported(
                        "shuffled batches under add-remove (one record more moves every batch)",
                        "use zero-out or replace-one",
                    ));
                }
                event.collect(a, sampling, times(*epochs)?, out)
            }
            Event::Repeat { times: n, event } | Event::AtMost { times: n, event } => {
                if *n > 1 {
                    alone()?;
                }
                event.collect(a, sampling, times(*n)?, out)
            }
            Event::Compose(events) => {
                if events.len() > 1 {
                    alone()?;
                }
                events.iter().try_for_each(|e| e.collect(a, sampling, count, out))
            }
        }
    }
}
