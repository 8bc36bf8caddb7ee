//! Noisy thresholding: the columns with the largest gradients are chosen by noisy scores, a few at a time, and the weights of those
//! chosen so far follow a noisy gradient on them alone.
//!
//! *What it computes.* w = 0. In each round `sparsity`/rounds columns that are not yet chosen are added, by the size of their gradient at
//! w; then the gradient on all chosen columns is released with Gaussian noise and w moves against it. A last round moves w only. With
//! rounds = 1 this is one choice of all columns and one look at their values.
//!
//! *Privacy.* Scores: derivatives are clipped at c = `clip`, cells at `cap`, both on the integers, so one record moves each score by at most c cap
//! (replace-one 2 c cap); sizes of scores move by no more. A choice by Gumbel noise of scale b has losses in a window of 2 c cap/b,
//! and choosing k at once is k such choices. Values: leaving columns out is a map of each record by itself; what is left of a row is
//! clipped to length 1 after division by a public radius, so a gradient moves by at most c (2c). Choices and Gaussians are composed
//! numerically. Nothing depends on the length of a whole row: the bound on a cell is enough, which the published knowledge transfer
//! wanted to show and could not (`published/knowledge_transfer.rs`).
//!
//! *Accuracy.* Choosing few columns at a time lets each choice look at what is still unexplained. Seven tenths of a round's budget go to
//! the choice. Cells in scores are clipped at half of their bound, derivatives of numbers at a quarter of the bounds of the target: less
//! signal, much less noise; found on generated data.
//!
//! *Needs.* Any loss with one score to a class or a number, one row to a unit, delta > 0; cells with a bound much below the length of a
//! row (for rows such as words see `hard-thresholding`). Time: a pass over the non-zeros and one over the columns for each round.
//!
//! *Reference.* After Cai, Wang, Zhang 2021 (noisy iterative thresholding); one-shot choice of Durfee and Rogers 2019.

use super::Capabilities;
use super::hard_thresholding::{constant_rate, usual_rate};
use super::support::{fit, sparsity, unit_factors};
use super::{Method, Noise, Plan, Problem, head_losses, rounded};
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::schema::Task;
use privfit_kernel::account::{Event, calibrate_near};
use privfit_kernel::engine::Needs;
use privfit_kernel::{ChooseLargest, Exponential, Gaussian, Loss, Mechanism, RowScaling, Run, SelectColumns};

settings! {
    /// Settings of noisy thresholding.
    pub(crate) struct NoisyThresholdingSettings {
        /// columns that are chosen
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// rounds in which they are chosen
        rounds: Option<u64> = None, 1.0..=1e7;
        /// part of a round's budget for the choice
        share: f64 = 0.7, 0.01..=0.99;
        /// cells are clipped at this size in scores
        cap: Option<f64> = None, 1e-4..=1.0;
        /// derivatives are clipped at this size
        clip: Option<f64> = None, 1e-6..=1e6;
        /// length of a step, for the average gradient
        learning_rate: Option<f64> = None, 1e-9..=1e9;
        /// rows on chosen columns are clipped to this length; 0 for a usual one
        radius: f64 = 0.0, 0.0..=1.0;
    }
}

/// Row of the list.
pub const METHOD: Method = Method {
    name: "noisy-thresholding",
    alias: "NoisyIHT",
    needs: "any loss with one score, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "after Cai, Wang, Zhang 2021; exact selection and composition",
    theorem: "Scores: one record moves each by at most c cap, so that choosing k columns with Gumbel noise of scale b is k \
              choices with losses in a window of width 2 c cap/b. Values: gradients on the chosen columns are clipped to length c, \
              with Gaussian noise. Replace-one doubles both. Choices and Gaussians are composed numerically.",
    settings: NoisyThresholdingSettings::SETTINGS,
    published: false,
    can: Capabilities { one_score: true, ..Capabilities::ANY },
    plan,
};

/// Rounds in which columns are chosen, unless fewer are wanted.
const ROUNDS: usize = 10;

struct NoisyThresholding {
    losses: Vec<Loss>,
    rounds: Vec<Round>,
    constant_rate: f64,
    rows: f64,
    features: usize,
    constant: Option<usize>,
    event: Event,
    cap: f64,
}

/// What one round does: columns that it adds, if any, and the step after that.
#[derive(Clone)]
struct Round {
    added: usize,
    /// Columns chosen by then, the constant included.
    columns: usize,
    choice: Option<Exponential>,
    step: Gaussian,
    fit: RowScaling,
    rate: f64,
}

/// How many columns each round adds: as even as whole numbers allow.
fn portions(count: usize, rounds: usize) -> Vec<usize> {
    (0..rounds).map(|r| (r + 1) * count / rounds - r * count / rounds).collect()
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("noisy-thresholding")?;
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse("noisy-thresholding has one row to a unit: use ").give("method", "noisy-gd"));
    }
    if problem.loss.multiclass {
        return Err(Error::misuse("noisy-thresholding has one score to a class: use ").give("loss", "logistic"));
    }
    let settings = NoisyThresholdingSettings::parse(&problem.settings)?;
    let losses = head_losses(problem)?;
    let bound = losses[0].lipschitz();
    let usual = if problem.task == Task::Number { bound.min(0.25) } else { bound };
    let clip = settings.clip.unwrap_or(usual).min(bound);
    let losses: Vec<Loss> = losses.iter().map(|l| l.clipped(clip)).collect();
    let count = sparsity(problem, settings.sparsity);
    let rounds = settings.rounds.map_or(count.min(ROUNDS), |given| given as usize);
    if rounds > count {
        return Err(Error::misuse(format!("rounds is {rounds}, and {count} columns are chosen: give at most as many")));
    }
    let share = settings.share;
    let cap = settings.cap.unwrap_or(0.5 * problem.largest_cell());
    // Classes say little each: where there are few records to a weight, shorter steps keep chance from being learnt.
    let records = problem.all_rows() / (20.0 * count as f64 * (problem.features.max(3) as f64).ln());
    let shorter = if problem.task == Task::Number { 1.0 } else { records.clamp(0.5, 1.0).powi(2) };
    let rate = settings.learning_rate.unwrap_or(shorter * usual_rate(problem, &losses[0]));
    let constant_rate = constant_rate(problem, &losses[0], rate);
    // Rows of length 1 on so many columns: each has about that part of the curvature.
    let on_sphere = |columns: usize| shorter * columns as f64 / losses[0].smoothness().min(1.0);
    let given = settings.learning_rate.is_some();
    let radius = settings.radius;
    if radius > 0.0 && radius < 1e-3 {
        return Err(Error::misuse(format!("radius is {radius}: give a number from 0.001 to 1, or 0 for a usual one")));
    }
    let constant = problem.constant();
    // One more round for values alone, where there is more than one.
    let last = usize::from(rounds > 1);
    let all = (rounds + last) as f64 * losses.len() as f64;
    let rounds_of = |nm: f64| -> Result<Vec<Round>> {
        let mut columns = usize::from(constant.is_some());
        let mut out = Vec::new();
        for added in portions(count, rounds).into_iter().chain((0..last).map(|_| 0)) {
            columns += added;
            let (for_choice, for_step) = if added > 0 { (share, 1.0 - share) } else { (0.0, 1.0) };
            let choice = match added {
                0 => None,
                k => Some(Exponential::for_gradients(clip, 1.0, cap, nm * (all * k as f64 / for_choice).sqrt())?),
            };
            let step = Gaussian::for_gradients(clip, nm * (all / for_step).sqrt())?;
            let fit = if radius > 0.0 { RowScaling::Within(radius) } else { fit(problem, columns) };
            let rate = if fit == RowScaling::Sphere && !given { rate.min(on_sphere(columns)) } else { rate };
            out.push(Round { added, columns, choice, step, fit, rate });
        }
        Ok(out)
    };
    let heads = losses.len() as u64;
    let event_of = |rounds: &[Round]| {
        let one = |r: &Round| {
            let choice = r.choice.map(|c| c.event().repeated(r.added as u64));
            choice.into_iter().chain([r.step.event(r.columns)])
        };
        let head = Event::Compose(rounds.iter().flat_map(one).collect());
        if heads == 1 { head } else { head.repeated(heads) }
    };
    // Multipliers are made for a sum that is one Gaussian with the whole budget, nearly.
    let guess = problem.single_noise()?;
    let multiplier = calibrate_near(problem.target, |nm| rounds_of(nm).map(|r| event_of(&r)), problem.adjacency, guess)?;
    let rounds = rounds_of(multiplier)?;
    let event = event_of(&rounds);
    Ok(Box::new(NoisyThresholding {
        losses,
        rounds,
        constant_rate,
        rows: problem.all_rows(),
        features: problem.features,
        constant,
        event,
        cap,
    }))
}

impl Plan for NoisyThresholding {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("columns chosen", self.rounds.iter().map(|r| r.added).sum::<usize>().to_string()),
            ("rounds", self.rounds.len().to_string()),
            ("clip", rounded(self.losses[0].lipschitz())),
            ("cells clipped in scores at", rounded(self.cap)),
            ("learning rate", rounded(self.rounds[self.rounds.len() - 1].rate)),
        ];
        if let Some(choice) = self.rounds[0].choice {
            out.push(("scale of the noise of a score", rounded(choice.scale())));
        }
        out.push(("noise of a step, standard deviation", rounded(self.rounds[0].step.standard_deviation())));
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.rounds[0].step.standard_deviation() / (self.rounds.len() as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        let way: f64 = self.rounds.iter().map(|r| r.rate).sum();
        Noise::Gradient { deviation: self.gradient_noise(), ridge: self.rows / way }
    }

    fn noisy_columns(&self) -> Option<usize> {
        self.rounds.last().map(|r| r.columns)
    }

    fn steps(&self) -> u64 {
        (self.rounds.len() * self.losses.len()) as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            weights.extend(self.one(run, loss, progress)?);
        }
        Ok(weights)
    }
}

impl NoisyThresholding {
    /// Weights of one score.
    fn one(&self, run: &mut Run<'_>, loss: &Loss, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        let mut w = vec![0f64; self.features];
        let zero = vec![0f64; self.features];
        let mut columns: Vec<usize> = self.constant.into_iter().collect();
        for round in &self.rounds {
            if let Some(choice) = &round.choice {
                let support = run.at(choice, |run, scale| {
                    let arrival_times = run.draw(&scale, self.features)?;
                    let values = everyone.gradient_coordinates(&arrival_times, &w, loss, &zero)?;
                    run.execute(ChooseLargest {
                        arrival_times,
                        values: &values,
                        mechanism: choice,
                        count: round.added,
                        except: &columns,
                    })
                })?;
                columns.extend(support.indices());
            }
            let longer = match round.fit {
                RowScaling::Within(radius) => radius,
                _ => 1.0,
            };
            // Rows there are shorter by the radius, so weights are longer by it.
            let inner: Vec<f64> = columns.iter().map(|c| w[*c] * longer).collect();
            let gradient = run.select_columns(SelectColumns { columns: &unit_factors(&columns), fit: round.fit }, |run| {
                run.at(&round.step, |run, scale| {
                    let noise = run.draw(&scale, inner.len())?;
                    let sum = run.everyone()?.gradient_sum(&noise, &inner, loss)?;
                    run.release(noise, &sum)
                })
            })?;
            for (c, g) in columns.iter().zip(&gradient) {
                let rate = if Some(*c) == self.constant { self.constant_rate.min(round.rate) } else { round.rate };
                w[*c] -= rate * g * longer / self.rows;
            }
            progress();
        }
        Ok(w)
    }
}
