//! One point for all rows, without a target: their mean, or their geometric median.
//!
//! *What it computes.* `mean` (as method `statistics`): one noisy sum of the rows over the public number of units.
//! `geometric-median` (as `noisy-gd` or `noisy-sgd`): steps against noisy sums of unit vectors that point from the rows to the
//! iterate; the last iterate is the answer. Rows have no constant feature and lie in the unit ball by the bounds of the schema;
//! so does the answer.
//!
//! *Privacy.* A unit adds a vector of length at most 1 (`loss/mean.rs`, `loss/geometric_median.rs`), clipped on the integers:
//! zero-out and add-remove move a sum by at most 1, replace-one by 2. One Gaussian event for the mean, one for each step
//! otherwise, sampled for `noisy-sgd`. Steps, projections and the way back to the original units look at released numbers only.
//!
//! *Accuracy.* The mean is off by noise sqrt(d) / n in units of the ball. Records that can't be read, and a number of rows that
//! is too large under add-remove, draw it to the origin, which is the middle of the bounds. Steps of the median shrink from
//! `rate` to a 150th of it, so that the last ones fit data that are narrow against their bounds, whatever the curvature is.
//!
//! *Needs.* A schema without [target], delta > 0. Time: one pass over the data, or one for each step.
//!
//! *Reference.* Gaussian mechanism; noisy gradients as in `noisy-gd`; Haldane 1948 for the median.

use super::noisy_sgd::NoisySgdSettings;
use super::{Method, Plan, Problem, noisy_gd, noisy_sgd, rounded, statistics};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::loss::{geometric_median, mean};
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Gaussian, Rate, Run, planned_step};

/// Why it holds, for certificates.
pub(super) const THEOREM: &str = "A unit adds a vector of length at most 1, clipped on the integers, to a sum with Gaussian noise sigma: one unit moves it by at most 1 \
     (replace-one 2). One such sum for a mean; one for each step of a median, on a Poisson sample where the plan says so, composed \
     exactly or numerically. Steps and projections look at released numbers only.";

/// Steps shrink by e to this power.
const SHRINK: f64 = 5.0;

/// Plans, or refuses with the method that takes the loss.
pub(super) fn plan(method: &Method, problem: &Problem) -> Result<Box<dyn Plan>> {
    let settings = NoisySgdSettings::parse(&problem.settings)?;
    let sampling = if method.name == noisy_sgd::METHOD.name && !is_mean(problem) {
        noisy_sgd::sampled(problem, settings.sampling_rate)
    } else if method.name == taken_by(problem).name {
        None
    } else {
        return Err(no_score(problem, method.name));
    };
    if settings.nonconvex > 0.0 || settings.smoothing > 0.0 {
        return Err(Error::misuse(format!(
            "loss {} is about a point, which has neither a regulariser nor neighbouring weights: leave out nonconvex and smoothing, or use ",
            problem.loss.name
        ))
        .give("loss", "logistic"));
    }
    if problem.target.delta == 0.0 {
        return Err(Error::misuse(format!("loss {} takes Gaussian noise and needs a delta: give ", problem.loss.name))
            .naming("delta")
            .text(" (say 1/n^2)"));
    }
    let clip = problem.loss.unit_length;
    let clip = settings.clip.unwrap_or(clip).min(clip);
    let descent = match problem.loss_numbers()?.first() {
        None => None,
        Some(width) => Some(descent(&settings, *width, sampling)?),
    };
    let steps = descent.as_ref().map_or(1, |d| d.steps);
    let sampled = descent.as_ref().and_then(|d| d.sampled);
    let make = |nm: f64| -> Result<(Gaussian, Event)> {
        let mechanism = Gaussian::new(clip, nm, problem.rows.max(1))?;
        let event = planned_step(&mechanism, problem.features, sampled);
        Ok((mechanism, if descent.is_none() { event } else { event.repeated(steps) }))
    };
    let noise = calibrate(problem.target, |nm| make(nm).map(|m| m.1), problem.adjacency)?;
    let (mechanism, event) = make(noise)?;
    // The ball holds every row, and with them both kinds of point.
    let constraint = if problem.constraint == Constraint::None { Constraint::L2(1.0) } else { problem.constraint };
    let units = problem.rows.max(1) as f64;
    Ok(Box::new(Location { mechanism, descent, event, constraint, features: problem.features, units }))
}

/// A point by one sum, and not by steps: a loss without numbers.
fn is_mean(problem: &Problem) -> bool {
    problem.loss.parameters.is_empty()
}

/// The method that takes the loss.
fn taken_by(problem: &Problem) -> &'static Method {
    if is_mean(problem) { &statistics::METHOD } else { &noisy_gd::METHOD }
}

/// Why a method does not take a loss without scores, and which one does.
pub(super) fn no_score(problem: &Problem, method: &str) -> Error {
    let takes = taken_by(problem).name;
    Error::misuse(format!("{method} does not take loss {}, which is about a point and has no score: use ", problem.loss.name))
        .give("method", format!("{takes}"))
}

fn descent(settings: &NoisySgdSettings, width: f64, sampling: Option<f64>) -> Result<Descent> {
    let default_steps = sampling.map_or(100.0, |rate| (20.0 / rate).clamp(100.0, 5000.0).round());
    let steps = settings.steps.unwrap_or(default_steps as u64);
    Ok(Descent {
        width,
        steps,
        // All steps together go ten times the radius of the ball.
        rate: settings.learning_rate.unwrap_or((10.0 * SHRINK / steps as f64).min(0.5)),
        momentum: settings.momentum.unwrap_or(0.0),
        ridge: settings.ridge,
        sampled: sampling.map(Rate::new).transpose()?,
    })
}

struct Location {
    mechanism: Gaussian,
    /// None for the mean.
    descent: Option<Descent>,
    event: Event,
    constraint: Constraint,
    features: usize,
    units: f64,
}

struct Descent {
    width: f64,
    steps: u64,
    rate: f64,
    momentum: f64,
    ridge: f64,
    sampled: Option<Rate>,
}

impl Plan for Location {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Sums
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let noise = rounded(self.mechanism.standard_deviation());
        let Some(descent) = &self.descent else {
            return vec![("noise of the sum, standard deviation", noise)];
        };
        let mut out = vec![
            ("steps", descent.steps.to_string()),
            ("first learning rate", rounded(descent.rate)),
            ("momentum", rounded(descent.momentum)),
            ("noise of a step, standard deviation", noise),
        ];
        if let Some(rate) = descent.sampled {
            out.push(("sampling rate", rounded(rate.value())));
        }
        out
    }

    fn gradient_noise(&self) -> f64 {
        let (steps, fraction) = self.descent.as_ref().map_or((1, 1.0), |d| (d.steps, d.sampled.map_or(1.0, |rate| rate.value())));
        self.mechanism.standard_deviation() / fraction / (steps as f64).sqrt()
    }

    fn steps(&self) -> u64 {
        self.descent.as_ref().map_or(1, |d| d.steps)
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        let Some(descent) = &self.descent else {
            let contribution = mean::contribution(self.features);
            let mut point = run.at(&self.mechanism, |run, scale| {
                let noise = run.draw(&scale, self.features)?;
                let sum = everyone.sum(&noise, &contribution)?;
                run.release(noise, &sum)
            })?;
            point.iter_mut().for_each(|p| *p /= self.units);
            self.constraint.project(&mut point);
            progress();
            return Ok(point);
        };
        let (mut point, mut move_by) = (vec![0f64; self.features], vec![0f64; self.features]);
        self.constraint.project(&mut point);
        let divide = self.units * descent.sampled.map_or(1.0, |rate| rate.value());
        for step in 0..descent.steps {
            let contribution = geometric_median::contribution(descent.width, &point);
            let gradient = run.at(&self.mechanism, |run, scale| {
                let noise = run.draw(&scale, self.features)?;
                let sum = match descent.sampled {
                    None => everyone.sum(&noise, &contribution)?,
                    Some(rate) => run.poisson(rate)?.sum(&noise, &contribution)?,
                };
                run.release(noise, &sum)
            })?;
            let rate = descent.rate * (-SHRINK * step as f64 / descent.steps as f64).exp();
            for ((p, m), g) in point.iter_mut().zip(&mut move_by).zip(&gradient) {
                *m = descent.momentum * *m - rate * (g + descent.ridge * *p) / divide;
                *p += *m;
            }
            self.constraint.project(&mut point);
            progress();
        }
        Ok(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::data::cells::RowForm;
    use crate::data::csv::Csv;
    use crate::data::encode::{Encoder, Row};
    use crate::data::load::load_from;
    use crate::data::{Cell, Record};
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Contribution, Entropy, Mechanism};

    const UNIT: &str = "unit = { column = \"u\", max_rows = 3 }\nunits = 3";

    fn schema(unit: &str) -> Schema {
        Schema::parse(&format!(
            "[dataset]\nname = \"t\"\n{unit}\n[features.a]\ntype = \"number\"\nmin = -1\nmax = 1\n\
             [features.b]\ntype = \"category\"\nvalues = [\"p\", \"q\", \"r\"]\n[features.u]\ntype = \"ignore\"\n"
        ))
        .unwrap()
    }

    /// What records add to a sum: the same seed gives the same noise, so it is the difference to a release of null records. The
    /// mechanism would let ten times the sensitivity through.
    fn added(schema: &Schema, contribution: &Contribution, records: &[&str]) -> Vec<f64> {
        let wide = Gaussian::new(10.0, 1.0, 10).unwrap();
        let event = wide.event(contribution.dimension);
        let release = |records: &[&str]| {
            let text = format!("a,b,u\n0.1,p,1\n{}\n-0.4,q,2\n", records.join("\n"));
            let (entropy, engine) = (Entropy::simulated(8), Threads::new(1));
            let mut reader = Csv::open(Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap();
            let data = load_from(&mut reader, schema, RowForm::Features, &entropy).unwrap();
            let mut run = Run::begin(&data, &engine, &entropy, &event).unwrap();
            let everyone = run.everyone().unwrap();
            run.at(&wide, |run, scale| {
                let noise = run.draw(&scale, contribution.dimension)?;
                let sum = everyone.sum(&noise, contribution)?;
                run.release(noise, &sum)
            })
            .unwrap()
        };
        let null = release(&["broken"]);
        release(records).iter().zip(&null).map(|(a, b)| a - b).collect()
    }

    fn size(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    fn encoded(schema: &Schema, a: &str, b: &str) -> Vec<f64> {
        let encoder = Encoder::new(schema, &["a", "b", "u"].map(String::from), true).unwrap();
        let mut row = Row::default();
        encoder.encode(Record::Cells(&[Cell::Text(a.as_bytes()), Cell::Text(b.as_bytes()), Cell::Text(b"1")]), None, &mut row);
        row.dense
    }

    /// A record adds the derivative of its loss: by finite differences for the median, and its row for the mean.
    #[test]
    fn contributions_are_derivatives() {
        let schema = schema("");
        for (a, b) in [("1", "q"), ("-0.3", "r"), ("0.02", "z")] {
            let x = encoded(&schema, a, b);
            let line = format!("{a},{b},1");
            let sum = added(&schema, &mean::contribution(4), &[&line]);
            assert!(sum.iter().zip(&x).all(|(s, x)| (s - x).abs() < 5e-5), "{sum:?} {x:?}");
            // Rows are kept to 16 bits, and the median is about what is kept.
            let x = sum;
            for width in [0.01, 0.3, 1.0] {
                for point in [[0.0; 4], [0.1, 0.0, -0.2, 0.4], [0.6, 0.6, 0.1, 0.1], [x[0] + 0.003, x[1], x[2], x[3]]] {
                    let gradient = added(&schema, &geometric_median::contribution(width, &point), &[&line]);
                    let far = |point: &[f64]| size(&point.iter().zip(&x).map(|(t, x)| t - x).collect::<Vec<_>>());
                    for j in 0..4 {
                        let moved = |h: f64| {
                            let mut at = point;
                            at[j] += h;
                            geometric_median::value(width, far(&at))
                        };
                        let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                        assert!((gradient[j] - difference).abs() < 1e-5, "{line} {width} {point:?}: {gradient:?} {difference}");
                    }
                }
            }
        }
        // By hand: 0.5 of the half-range, two columns, from the origin.
        let gradient = added(&schema, &geometric_median::contribution(0.05, &[0.0; 4]), &["0.5,p,1"]);
        for (g, expected) in gradient.iter().zip([-0.5 / 1.25f64.sqrt(), -1.0 / 1.25f64.sqrt(), 0.0, 0.0]) {
            assert!((g - expected).abs() < 1e-4, "{gradient:?}");
        }
    }

    /// Nobody adds more than 1, single rows or units of several; two gradients differ by at most their distance over the width;
    /// and records without a readable cell add nothing at all.
    #[test]
    fn one_unit_moves_a_sum_by_its_sensitivity_at_most() {
        let units: [&[&str]; 9] = [
            &["1,q,7"],
            &["-1,p,7"],
            &["inf,r,7"],
            &["0,,7"],
            &["1,q,7", "1,q,7", "1,q,7"],
            &["1,q,7", "-1,p,7"],
            &["1,q,7", "broken", "nan,,7"],
            &["nan,,7"],
            &[",w,7", "nan,?,7"],
        ];
        let points = [[0.0; 4], [0.9, 0.0, 0.4, 0.0], [-0.7, 0.7, 0.0, 0.0], [1e6, -1e6, 3.0, 0.0]];
        for unit in ["", UNIT] {
            let schema = schema(unit);
            let mut all: Vec<(f64, Contribution)> = vec![(mean::LENGTH, mean::contribution(4))];
            for width in [0.01, 0.05, 1.0] {
                all.extend(points.iter().map(|p| (geometric_median::LENGTH, geometric_median::contribution(width, p))));
            }
            for (sensitivity, contribution) in all {
                let mut largest = 0f64;
                for records in units.iter().filter(|r| r.len() == 1 || !unit.is_empty()) {
                    let moved = added(&schema, &contribution, records);
                    assert!(size(&moved) <= sensitivity * (1.0 + 1e-9), "{records:?}: {moved:?}");
                    largest = largest.max(size(&moved));
                    if records.iter().all(|r| r.starts_with("nan") || r.starts_with(',')) {
                        assert_eq!(moved, vec![0.0; 4], "{records:?}");
                    }
                }
                assert!(largest > 0.6 * sensitivity, "the test never comes near the bound: {largest} of {sensitivity}");
            }
        }
    }

    /// Slopes change by at most the change of the point over the width.
    #[test]
    fn gradients_are_smooth() {
        let schema = schema("");
        let x = encoded(&schema, "0.2", "q");
        for width in [0.01, 0.05, 1.0] {
            let mut steepest = 0f64;
            for (i, radius) in [0.0, 0.3, 0.7, 0.99, 1.0, 1.5, 30.0].iter().enumerate() {
                let at = |r: f64| [x[0] + r, x[1], x[2], x[3]];
                let h = 0.1 * width * (1 + i) as f64;
                let (a, b) = (at(radius * width), at(radius * width + h));
                let gradient = |p: &[f64]| added(&schema, &geometric_median::contribution(width, p), &["0.2,q,1"]);
                let change = size(&gradient(&a).iter().zip(gradient(&b)).map(|(a, b)| a - b).collect::<Vec<_>>());
                assert!(change <= h / width * (1.0 + 1e-6), "{width} {radius}: {change}");
                steepest = steepest.max(change / h * width);
            }
            assert!(steepest > 0.9, "{steepest}");
        }
    }
}
