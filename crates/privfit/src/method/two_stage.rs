//! Two stages: votes of models on parts choose the columns, then objective perturbation on these.
//!
//! *What it computes.* The records are divided into parts, hard thresholding on each part names `sparsity` columns, and the columns with
//! the most votes are chosen by the exponential mechanism. On them, the minimiser of the perturbed objective of `objective` is released.
//!
//! *Privacy.* Parts go by unit index, so one record is in one part, whose model may change altogether: each count of votes moves by at most
//! one, under zero-out and replace-one alike, and halving that would be wrong. `sparsity` choices have losses in a window of
//! 2/scale each; leaving the other columns out is a map of each record by itself; then the curve of `objective` holds, on rows clipped to
//! the unit ball again. Both stages are composed numerically. The published form adds Laplace noise for the L1 norm of all votes,
//! and its second stage has constants for zero-out under replace-one; see `published/amp.rs` for those.
//!
//! *Accuracy.* Needs so many records that a part of sqrt(n) of them finds the columns by itself; where it does not,
//! `noisy-thresholding`, which looks at all records at once, is better by far.
//!
//! *Needs.* A smooth loss with one score, one row to a unit, the true number of rows, delta > 0. Time: hard thresholding on all parts.
//!
//! *Reference.* Kifer, Smith, Thakurta 2012, after Smith and Thakurta 2013; exact selection and curve of ours.

use super::Capabilities;
use super::block_learner::{learner, usual_parts};
use super::objective::ObjectiveSettings;
use super::support::{OnColumns, calibrated_with, fit, narrowed, one_score, share, sparsity, tight_clip};
use super::{Method, Noise, Plan, Problem, objective, rounded};
use crate::error::Result;
use crate::method::settings::settings;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{ChooseLargest, Exponential, Learner, Run, SparseModel, SupportVotes, Train};

settings! {
    /// Settings of the two-stage method.
    pub(crate) struct TwoStageSettings {
        /// columns that are chosen
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// parts that vote
        parts: Option<u64> = None, 2.0..=1e4;
        /// part of the budget for the votes
        share: f64 = 0.5, 0.01..=0.99;
        /// strength of the ridge on the chosen columns, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "two-stage",
    alias: "KST12 two stage",
    needs: "smooth loss with one score, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Kifer, Smith, Thakurta 2012, exact selection, objective perturbation of ours",
    theorem: "Votes: records are dealt to parts by unit_index, so one record changes the model of one part and each count of votes \
              by at most one, under every adjacency; choosing a column has losses in a window of width 2/scale. Then objective \
              perturbation on the chosen columns, with rows clipped to the unit ball again. Both are composed numerically.",
    settings: TwoStageSettings::SETTINGS,
    published: false,
    can: Capabilities { one_score: true, ..Capabilities::BY_THEOREM },
    plan,
};

struct TwoStage {
    learner: Learner<SparseModel>,
    mechanism: Exponential,
    parts: u32,
    count: usize,
    constant: Option<usize>,
    second: OnColumns,
    event: Event,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = &tight_clip(problem);
    problem.needs_delta("two-stage")?;
    objective::check(problem, "two-stage")?;
    one_score(problem, "two-stage")?;
    let settings = TwoStageSettings::parse(&problem.settings)?;
    let count = sparsity(problem, settings.sparsity);
    let parts = settings.parts.unwrap_or(usual_parts(problem)) as u32;
    let part = settings.share;
    let second = ObjectiveSettings { ridge: settings.ridge, ..ObjectiveSettings::default() };
    let columns = count + usize::from(problem.constant().is_some());
    let inner = objective::plan(&narrowed(&share(problem, 1.0 - part)?, columns), second)?;
    let votes = |m: &Exponential| m.event().repeated(count as u64);
    let (mechanism, event) =
        calibrated_with(problem, (part, count as f64), |nm| Ok(Exponential::for_votes(nm)?), votes, inner.event())?;
    let second = OnColumns { inner, fit: fit(problem, columns), features: problem.features };
    let learner = learner(problem, count, 1e-3)?;
    Ok(Box::new(TwoStage { learner, mechanism, parts, count, constant: problem.constant(), second, event }))
}

impl Plan for TwoStage {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("columns chosen", self.count.to_string()),
            ("parts that vote", self.parts.to_string()),
            ("scale of the noise of a count", rounded(self.mechanism.scale())),
        ];
        out.extend(self.second.inner.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.second.inner.gradient_noise()
    }

    fn noise(&self) -> Noise {
        self.second.inner.noise()
    }

    fn noisy_columns(&self) -> Option<usize> {
        Some(self.count + usize::from(self.constant.is_some()))
    }

    fn steps(&self) -> u64 {
        u64::from(self.parts) + self.second.inner.steps()
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let parts = run.parts(self.parts)?;
        let models = run.execute(Train { parts: &parts, learner: &self.learner, progress })?;
        let support = run.at(&self.mechanism, |run, scale| {
            let arrival_times = run.draw(&scale, self.second.features)?;
            let votes = run.execute(SupportVotes { arrival_times: &arrival_times, models: &models })?;
            let except: Vec<usize> = self.constant.into_iter().collect();
            run.execute(ChooseLargest {
                arrival_times,
                values: &votes,
                mechanism: &self.mechanism,
                count: self.count,
                except: &except,
            })
        })?;
        let columns: Vec<usize> = support.indices().iter().copied().chain(self.constant).collect();
        self.second.run(run, &columns, progress)
    }
}
