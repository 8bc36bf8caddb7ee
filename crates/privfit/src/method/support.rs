//! What methods with few weights share: how many there are to be, a private choice of which, and training on those alone.

use super::{Plan, Problem};
use crate::data::encode::Column;
use crate::error::{Error, Result};
use crate::schema::Task;
use privfit_kernel::account::{Event, calibrate_near, epsilon};
use privfit_kernel::{ChooseLargest, Exponential, Loss, RowScaling, Run, SelectColumns, StabilityTest, StableSupport};

/// Weights that are wanted, the constant not counted: declared, or a few.
pub(super) fn sparsity(problem: &Problem, given: Option<u64>) -> usize {
    let own = (problem.features - usize::from(problem.constant().is_some())).max(1);
    given.map_or(10, |g| g as usize).min(own)
}

/// The loss, where there is one score and one row to a unit.
pub(super) fn one_score(problem: &Problem, method: &str) -> Result<Loss> {
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse(format!("{method} has one row to a unit: use ")).give("method", "noisy-gd"));
    }
    if problem.loss.multiclass || problem.scores() > 1 {
        return Err(Error::misuse(format!("{method} has one score, for two classes or a number: use "))
            .give("method", "noisy-thresholding")
            .text(" with ")
            .give("loss", "logistic")
            .text(", or noisy-gd"));
    }
    problem.build_loss(1)
}

/// Residuals are clipped at half of the half-range of the target unless that is set: less signal, and a quarter of the noise.
pub(super) fn tight_clip(problem: &Problem) -> Problem {
    let mut out = problem.clone();
    if let (Some(clip), Some(number)) = (problem.loss.tight_clip, problem.loss.parameters.first()) {
        out.settings.0.entry(number.name.into()).or_insert(clip);
    }
    out
}

/// The same problem with a part of the budget, in the sense of a Gaussian: what is left of it goes to something else.
pub(super) fn share(problem: &Problem, part: f64) -> Result<Problem> {
    let noise = problem.single_noise()? / part.sqrt();
    let event = Event::Gaussian { noise_multiplier: noise, replace_factor: 2.0 };
    let mut out = problem.clone();
    out.target.epsilon = epsilon(&event, problem.adjacency, problem.target.delta)?.bound.upper;
    Ok(out)
}

/// The problem on so many chosen columns.
pub(super) fn narrowed(problem: &Problem, columns: usize) -> Problem {
    let mut out = problem.clone();
    out.features = columns;
    out.sparse = RowScaling::stays_sparse(problem.sparse, columns);
    out.columns = vec![Column { scale: 1.0, shift: 0.0, group: None, constant: false }; columns];
    out.constraint = crate::constraint::Constraint::None;
    out
}

/// How rows that were left with some of their columns get into the unit ball. Which class is more likely does not change with the
/// length of a row, a number does. Cells that use their whole range evenly make rows of 0.58 sqrt(columns) bounds.
pub(super) fn fit(problem: &Problem, columns: usize) -> RowScaling {
    let usual = ((columns as f64 / 3.0).sqrt() * problem.largest_cell()).min(1.0);
    match problem.task {
        Task::Number => RowScaling::Within(usual),
        _ if problem.largest_cell() < 1.0 => RowScaling::Within(usual),
        _ => RowScaling::Sphere,
    }
}

/// Noise for the rest of the budget: the composition with `then` meets the target. `part` of the budget goes to so many releases of one
/// noise multiplier; that is where the search begins.
pub(super) fn calibrated_with<M>(
    problem: &Problem,
    (part, releases): (f64, f64),
    mechanism: impl Fn(f64) -> Result<M>,
    event: impl Fn(&M) -> Event,
    then: &Event,
) -> Result<(M, Event)> {
    let whole = |m: &M| Event::Compose(vec![event(m), then.clone()]);
    let guess = problem.single_noise()? * (releases / part).sqrt();
    let multiplier = calibrate_near(problem.target, |nm| mechanism(nm).map(|m| whole(&m)), problem.adjacency, guess)?;
    let mechanism = mechanism(multiplier)?;
    let event = whole(&mechanism);
    Ok((mechanism, event))
}

/// A choice of columns by the size of the gradient at zero weights: how much each of them says about the label by itself.
pub(super) struct Screening {
    pub(super) mechanism: Exponential,
    pub(super) count: usize,
    pub(super) features: usize,
    pub(super) constant: Option<usize>,
    /// TrialResult first: the set as it is, if no record could have changed it.
    pub(super) stable: Option<StabilityTest>,
}

impl Screening {
    /// What it costs, the choice included even where the test makes it unnecessary.
    pub(super) fn event(mechanism: &Exponential, count: usize, stable: Option<StabilityTest>) -> Event {
        let choice = mechanism.event();
        match stable {
            None => choice.repeated(count as u64),
            Some(test) => Event::Compose(vec![test.event(), Event::AtMost { times: count as u64, event: Box::new(choice) }]),
        }
    }

    /// The chosen columns, then the constant.
    pub(super) fn run(&self, run: &mut Run<'_>, loss: &Loss) -> Result<Vec<usize>> {
        let everyone = run.everyone()?;
        let zero = vec![0f64; self.features];
        let except: Vec<usize> = self.constant.into_iter().collect();
        let support = run.at(&self.mechanism, |run, scale| {
            let arrival_times = run.draw(&scale, self.features)?;
            let values = everyone.gradient_coordinates(&arrival_times, &zero, loss, &zero)?;
            if let Some(test) = &self.stable
                && let Some(support) = run.execute(StableSupport { values: &values, test, count: self.count, except: &except })?
            {
                return Ok(support);
            }
            run.execute(ChooseLargest {
                arrival_times,
                values: &values,
                mechanism: &self.mechanism,
                count: self.count,
                except: &except,
            })
        })?;
        Ok(support.indices().iter().copied().chain(self.constant).collect())
    }
}

/// Training on chosen columns, by any method.
pub(super) struct OnColumns {
    pub(super) inner: Box<dyn Plan>,
    pub(super) fit: RowScaling,
    pub(super) features: usize,
}

impl OnColumns {
    /// Weights of all features; zero where a column was not chosen.
    pub(super) fn run(&self, run: &mut Run<'_>, columns: &[usize], progress: &dyn Fn()) -> Result<Vec<f64>> {
        let weights = run.select_columns(SelectColumns { columns: &unit_factors(columns), fit: self.fit }, |run| {
            self.inner.run(run, progress)
        })?;
        Ok(scatter(&weights, columns, self.fit, self.features))
    }
}

/// Columns as they are.
pub(super) fn unit_factors(columns: &[usize]) -> Vec<(usize, f64)> {
    columns.iter().map(|c| (*c, 1.0)).collect()
}

/// Puts weights of chosen columns back into their places, for rows of their full length.
pub(super) fn scatter(weights: &[f64], columns: &[usize], fit: RowScaling, features: usize) -> Vec<f64> {
    let longer = match fit {
        RowScaling::Within(radius) => radius,
        _ => 1.0,
    };
    let mut out = vec![0f64; features];
    columns.iter().zip(weights).for_each(|(c, w)| out[*c] = w / longer);
    out
}
