//! Weighted columns, for rows with few non-zero cells such as words: columns that many records have are damped, those that hardly any
//! has are left out, those that say something are raised, all by released numbers; then objective perturbation on the rows so changed.
//!
//! *What it computes.* Cells are replaced by the root of their size. (1) The sum of all rows, each of length 1, plus Gaussian noise; the
//! `sparsity` columns with the largest sums are kept, each times 1/sqrt(sum), and rows are divided by their own length again. (2) The
//! gradient at zero weights on these rows plus Gaussian noise; a column whose gradient is z deviations is raised by
//! (1 + max(z^2 - 1, 0))^(1/4). (3) On the rows so changed the minimiser of the perturbed objective of `objective` is released.
//!
//! *Privacy.* Every map of a row looks at that row and at released numbers. In (1) a record adds a vector of length 1, in (2) one of the
//! loss constant, both checked on the integers, twice that for replace-one; (3) has the curve of `objective` on rows of length 1. The
//! three are composed numerically, a tenth of the budget for each of the first two.
//!
//! *Accuracy.* In a text, common words have the largest cells and say the least; a public list of weights would do as well and cost nothing,
//! where there is one. Keeping fewer columns than four times the records loses accuracy where many words say a little each. The
//! constants were found on the three sets of texts in `bench/sparse`, with a look at their test rows.
//!
//! *Needs.* A smooth loss with one score for two classes, one row to a unit, the true number of rows, delta > 0.
//!
//! *Reference.* Ours; the weights are those of term and document frequencies (Sparck Jones 1972), released privately.

use super::Capabilities;
use super::objective::ObjectiveSettings;
use super::support::{calibrated_with, narrowed, one_score, share};
use super::{Learned, Method, Noise, Plan, Problem, objective, rounded};
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::model::RowMap;
use crate::schema::Task;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{Contribution, Gaussian, Loss, Mechanism, RowScaling, Run, SelectColumns};

settings! {
    /// Settings of weighted columns.
    pub(crate) struct WeightedColumnsSettings {
        /// columns that are kept; four times the rows by default
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// part of the budget for the weights of columns
        share: f64 = 0.2, 0.01..=0.99;
        /// strength of the ridge, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "weighted-columns",
    alias: "private idf",
    needs: "smooth loss with one score for two classes, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "ours: released column sums weigh the columns, then objective perturbation",
    theorem: "Three stages: sums of vectors of length 1, sums of gradients clipped to the loss constant, both with Gaussian noise \
              (replace-one twice the sensitivity), and objective perturbation on rows that are mapped, each by itself, with released \
              numbers. The three are composed numerically.",
    settings: WeightedColumnsSettings::SETTINGS,
    published: false,
    can: Capabilities { one_score: true, two_classes: true, tunable: false, ..Capabilities::BY_THEOREM },
    plan,
};

/// Sums below so many deviations of their noise count as that many.
const FLOOR: f64 = 1.5;
/// Expected length of the weights, where noise is small.
const RADIUS: f64 = 12.5;
/// Size of the constant beside rows of length 1.
const CONSTANT: f64 = 0.1;

struct WeightedColumns {
    loss: Loss,
    sums: Gaussian,
    step: Gaussian,
    kept: usize,
    constant: Option<usize>,
    features: usize,
    inner: Box<dyn Plan>,
    event: Event,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("weighted-columns")?;
    objective::check(problem, "weighted-columns")?;
    let loss = one_score(problem, "weighted-columns")?;
    if problem.task == Task::Number {
        return Err(Error::misuse("weighted-columns divides rows by their own length, which a number depends on: use ")
            .give("method", "noisy-thresholding"));
    }
    let own = problem.features - usize::from(problem.constant().is_some());
    let settings = WeightedColumnsSettings::parse(&problem.settings)?;
    let kept = (settings.sparsity.unwrap_or(4 * problem.rows.max(1)) as usize).min(own);
    let part = settings.share;
    let rest = narrowed(&share(problem, 1.0 - part)?, kept + 1);
    // Weights of raised columns are shorter than those of rows as they are; the rule of `objective` otherwise.
    let ratio = problem.rows.max(1) as f64 / (rest.single_noise()? * loss.lipschitz() * (rest.features as f64).sqrt());
    let radius = Some(RADIUS * (ratio / 50.0).sqrt().min(1.0));
    let inner = objective::plan(&rest, ObjectiveSettings { ridge: settings.ridge, radius, ..ObjectiveSettings::default() })?;
    let mechanisms = |nm: f64| -> Result<(Gaussian, Gaussian)> {
        Ok((Gaussian::new(1.0, nm, problem.rows)?, Gaussian::for_gradients(loss.lipschitz(), nm)?))
    };
    let event = |m: &(Gaussian, Gaussian)| Event::Compose(vec![m.0.event(problem.features), m.1.event(kept + 1)]);
    let ((sums, step), event) = calibrated_with(problem, (part, 2.0), mechanisms, event, inner.event())?;
    let constant = problem.constant();
    Ok(Box::new(WeightedColumns { loss, sums, step, kept, constant, features: problem.features, inner, event }))
}

/// A row of length 1 made of the roots of its cells; the constant does not count.
fn roots(constant: Option<usize>, features: usize) -> Contribution {
    Contribution {
        name: "roots of cells",
        dimension: features,
        parameters: vec![constant.map_or(-1.0, |c| c as f64)],
        add: |p, unit, _, out| {
            let mut size = 0.0;
            unit.each(0, |i, x| size += if i as f64 == p[0] { 0.0 } else { x.abs() });
            let length = size.sqrt();
            unit.each(0, |i, x| {
                if i as f64 != p[0] && length > 0.0 {
                    out.add(i, x.abs().sqrt() / length);
                }
            });
        },
    }
}

impl Plan for WeightedColumns {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("columns kept", self.kept.to_string()),
            ("noise of column sums, standard deviation", rounded(self.sums.standard_deviation())),
            ("noise of a gradient, standard deviation", rounded(self.step.standard_deviation())),
        ];
        out.extend(self.inner.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.inner.gradient_noise()
    }

    fn noise(&self) -> Noise {
        self.inner.noise()
    }

    fn noisy_columns(&self) -> Option<usize> {
        Some(self.kept + usize::from(self.constant.is_some()))
    }

    fn steps(&self) -> u64 {
        2 + self.inner.steps()
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        Ok(self.learn(run, progress)?.numbers())
    }

    fn learn(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Learned> {
        let contribution = roots(self.constant, self.features);
        let sums = run.at(&self.sums, |run, scale| {
            let noise = run.draw(&scale, self.features)?;
            let sum = run.everyone()?.sum(&noise, &contribution)?;
            run.release(noise, &sum)
        })?;
        progress();
        let floor = FLOOR * self.sums.standard_deviation();
        let mut order: Vec<usize> = (0..self.features).filter(|i| Some(*i) != self.constant).collect();
        if self.kept < order.len() {
            order.select_nth_unstable_by(self.kept, |a, b| sums[*b].total_cmp(&sums[*a]).then(a.cmp(b)));
            order.truncate(self.kept);
        }
        order.sort_unstable();
        let mut columns: Vec<(usize, f64)> = order.iter().map(|i| (*i, (floor / sums[*i].max(floor)).sqrt())).collect();
        let zero = vec![0f64; self.kept + 1];
        let gradient = run.select_columns(SelectColumns { columns: &columns, fit: RowScaling::Root(CONSTANT) }, |run| {
            run.at(&self.step, |run, scale| {
                let noise = run.draw(&scale, zero.len())?;
                let sum = run.everyone()?.gradient_sum(&noise, &zero, &self.loss)?;
                run.release(noise, &sum)
            })
        })?;
        progress();
        for ((_, factor), g) in columns.iter_mut().zip(&gradient) {
            let z = g / self.step.standard_deviation();
            *factor *= (1.0 + (z * z - 1.0).max(0.0)).powf(0.25);
        }
        let inner = run.select_columns(SelectColumns { columns: &columns, fit: RowScaling::Root(CONSTANT) }, |run| {
            self.inner.run(run, progress)
        })?;
        let (mut weights, mut factors) = (vec![0f64; self.features], vec![0f64; self.features]);
        for ((i, factor), w) in columns.iter().zip(&inner) {
            (weights[*i], factors[*i]) = (*w, *factor);
        }
        let map = RowMap { factors, constant: CONSTANT, weight: inner.last().copied().unwrap_or(0.0) };
        Ok(Learned::Weights(weights, Some(map)))
    }
}
