//! Private Frank-Wolfe: in each step the best vertex of a polytope is chosen by noisy scores, and the weights move towards it.
//!
//! *What it computes.* w = 0 (simplex: its centre); in step t the vertex s with the least <s, gradient sum> is chosen by the
//! exponential mechanism among the vertices +-c e_j of the L1 ball (c e_j of the simplex), and w <- (1 - 2/(t+2)) w + 2/(t+2) s. After T
//! steps at most T weights differ from zero.
//!
//! *Privacy.* Derivatives are clipped at L and cells at `cap`, both on the integers and on both sides, so that one record moves each score by at
//! most c L cap, replace-one twice that. A choice with Gumbel noise of scale b has losses in a window of 2 c L cap/b; the accountant
//! composes T of them by the exact profile of bounded range. The published form has Laplace noise, twice as much of it, a
//! composition that overshoots, and cuts cells from above only; see `published/frank_wolfe.rs`.
//!
//! *Accuracy.* The noise grows like ln d only, so it is for many features and sparse weights; with few features or many records
//! `objective` is better. `cap` defaults to
//! 1.25/sqrt(columns before encoding), a little above a typical cell of a dense row on the sphere, and to 1 for sparse rows.
//!
//! *Needs.* Any loss, one row to a unit, a constraint l1:R or simplex:R (default l1:30), delta > 0. Time: a pass for each step;
//! for sparse rows and one score, the non-zero cells of the rows that have the chosen feature, since the kernel keeps the scores
//! up to date. Slopes are then a little stale, by rules that look at each record alone: the same privacy, margins off by 15 % and
//! derivatives by 1/256 of their bound at the most.
//!
//! *Reference.* Talwar, Thakurta, Zhang 2015; as P-FW in Iyengar et al. 2019.

use super::Capabilities;
use super::block_learner::usual_radius;
use super::support::sparsity;
use super::{Method, Noise, Plan, Problem, head_losses, rounded};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::method::settings::settings;
use crate::solve::iterative_hard_thresholding::keep_largest;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Choose, ChooseVertex, Exponential, Loss, Run, ScoreVertices};

settings! {
    /// Settings of private Frank-Wolfe.
    pub(crate) struct FrankWolfeSettings {
        /// number of steps
        steps: Option<u64> = None, 1.0..=1e6;
        /// cells are clipped at this size
        cap: Option<f64> = None, 1e-4..=1.0;
        /// weights that are kept in the end; all by default
        sparsity: Option<u64> = None, 1.0..=1e7;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "frank-wolfe",
    alias: "P-FW, DP-FW",
    needs: "any loss, one row to a unit, L1 ball or simplex, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "Talwar, Thakurta, Zhang 2015, exact selection, profile of bounded range",
    theorem: "A record moves the score of each vertex by at most c L cap (replace-one twice that), both factors clipped on the \
              integers. Choosing a vertex with Gumbel noise of scale b has privacy losses in a window of width 2 c L cap/b \
              (bounded range); T choices are composed numerically from the exact profile of bounded range.",
    settings: FrankWolfeSettings::SETTINGS,
    published: false,
    can: Capabilities { in_l1_ball: true, many_steps: true, ..Capabilities::ANY },
    plan,
};

pub(super) struct FrankWolfe {
    pub(super) losses: Vec<Loss>,
    pub(super) mechanism: Exponential,
    pub(super) steps: u64,
    pub(super) vertex: f64,
    pub(super) simplex: bool,
    /// Part of the way to the vertex in step t, counted from 1.
    pub(super) part: fn(u64) -> f64,
    pub(super) cap: f64,
    pub(super) event: Event,
    pub(super) features: usize,
    /// Keep scores from step to step: sparse rows.
    pub(super) keep: bool,
    /// Weights that are kept in the end.
    pub(super) kept: usize,
}

/// Size of a cell that public facts allow, or that clipping costs little.
pub(super) fn usual_cap(problem: &Problem) -> f64 {
    let largest = problem.largest_cell();
    if problem.sparse {
        return largest;
    }
    // Dense rows on the sphere have cells of about 1/sqrt(d); a category has a few large cells.
    let dense = problem.columns.iter().filter(|c| c.group.is_none()).count().max(1) as f64;
    let groups = problem.columns.iter().filter_map(|c| c.group).max().map_or(0.0, |g| g as f64 + 1.0);
    (1.25 / (dense + groups).sqrt()).min(largest)
}

pub(super) fn polytope(problem: &Problem, weights: Option<u64>) -> Result<(f64, bool)> {
    match problem.constraint {
        // So many weights of a usual length together.
        Constraint::None if weights.is_some() => Ok((usual_radius(problem) * (sparsity(problem, weights) as f64).sqrt(), false)),
        Constraint::None => Ok((30.0, false)),
        Constraint::L1(r) => Ok((r, false)),
        Constraint::Simplex(r) => Ok((r, true)),
        _ => Err(Error::misuse("frank-wolfe moves between vertices: give ")
            .give("constraint", "l1:R")
            .text(" or ")
            .give("constraint", "simplex:R")),
    }
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("frank-wolfe")?;
    let losses = head_losses(problem)?;
    if problem.rows_per_unit > 1 {
        return Err(Error::misuse("frank-wolfe has one row to a unit: use ").give("method", "noisy-gd"));
    }
    let settings = FrankWolfeSettings::parse(&problem.settings)?;
    let (vertex, simplex) = polytope(problem, settings.sparsity)?;
    let cap = settings.cap.unwrap_or(usual_cap(problem));
    // The noise of a choice grows like the root of the steps; more of them are worth it where scores stand out.
    let n = problem.rows.max(1) as f64;
    let signal = n / (problem.single_noise()? * (2.0 * problem.features as f64).ln());
    let steps = settings.steps.unwrap_or((signal / 8.0).clamp(8.0, 150.0).round() as u64);
    let heads = losses.len() as u64;
    let parts = |nm: f64| -> Result<(Exponential, Event)> {
        let mechanism = Exponential::for_gradients(losses[0].lipschitz(), 1.0, cap, nm)?;
        Ok((mechanism, mechanism.event().repeated(steps * heads)))
    };
    let multiplier = calibrate(problem.target, |nm| parts(nm).map(|p| p.1), problem.adjacency)?;
    let (mechanism, event) = parts(multiplier)?;
    let part = |t: u64| 2.0 / (t as f64 + 2.0);
    let kept = settings.sparsity.map_or(usize::MAX, |given| sparsity(problem, Some(given)));
    let (features, keep) = (problem.features, problem.sparse);
    Ok(Box::new(FrankWolfe { losses, mechanism, steps, vertex, simplex, part, cap, event, features, keep, kept }))
}

impl Plan for FrankWolfe {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![
            ("steps", self.steps.to_string()),
            ("vertices at", rounded(self.vertex)),
            ("cells clipped at", rounded(self.cap)),
            ("scale of the noise of a gradient coordinate", rounded(self.mechanism.scale())),
        ]
    }

    fn gradient_noise(&self) -> f64 {
        self.mechanism.scale() * (2.0 * self.features as f64).ln() / (self.steps as f64).sqrt()
    }

    fn noise(&self) -> Noise {
        // Weights as long as a vertex at the most: the ridge with which noise alone would get there.
        let deviation = self.gradient_noise();
        Noise::Gradient { deviation, ridge: deviation * (self.features as f64).sqrt() / self.vertex }
    }

    fn noisy_columns(&self) -> Option<usize> {
        // A step moves one column.
        Some(self.features.min(self.steps as usize))
    }

    fn steps(&self) -> u64 {
        self.steps * self.losses.len() as u64
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        for loss in &self.losses {
            let keep = self.keep && loss.outputs() == 1;
            let mut w =
                if keep { self.with_kept_scores(run, loss, progress)? } else { self.with_new_scores(run, loss, progress)? };
            keep_largest(&mut w, self.kept, None);
            weights.extend(w);
        }
        Ok(weights)
    }
}

impl FrankWolfe {
    fn start(&self, dimension: usize) -> Vec<f64> {
        vec![if self.simplex { self.vertex / dimension as f64 } else { 0.0 }; dimension]
    }

    /// Every step a pass over all rows, and a race of all vertices.
    fn with_new_scores(&self, run: &mut Run<'_>, loss: &Loss, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let dimension = self.features * loss.outputs();
        let mut w = self.start(dimension);
        let everyone = run.everyone()?;
        let vertices = if self.simplex { dimension } else { 2 * dimension };
        for step in 1..=self.steps {
            let chosen = run.at(&self.mechanism, |run, scale| {
                let arrival_times = run.draw(&scale, vertices)?;
                let scores = everyone.gradient_scores(&arrival_times, &w, loss)?;
                run.execute(Choose { arrival_times, scores: &scores, mechanism: &self.mechanism, count: 1 })
            })?;
            let at = chosen.indices()[0];
            let part = (self.part)(step);
            w.iter_mut().for_each(|w| *w *= 1.0 - part);
            w[at % dimension] += part * if at < dimension { self.vertex } else { -self.vertex };
            progress();
        }
        Ok(w)
    }

    /// Every step the rows that have the chosen feature, and a few trials.
    fn with_kept_scores(&self, run: &mut Run<'_>, loss: &Loss, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        let mut scores = run.execute(ScoreVertices {
            on: &everyone,
            mechanism: &self.mechanism,
            loss,
            simplex: self.simplex,
            start: &self.start(self.features),
        })?;
        for step in 1..=self.steps {
            let (at, negative) = run.execute(ChooseVertex { scores: &scores })?;
            scores.step(at, if negative { -self.vertex } else { self.vertex }, (self.part)(step))?;
            progress();
        }
        Ok(scores.weights())
    }
}
