//! Knowledge transfer on a private support: the columns are chosen privately, a convex teacher is trained on them, and its answers,
//! with noise, teach a student on public rows; or the teacher itself is released, with noise.
//!
//! *What it computes.* `sparsity` columns by the size of the gradient at zero weights (or, with `stable` > 0, first the set itself if it
//! is stable: propose, test, release). On them, the ridge minimiser; then either its weights plus Gaussian noise, or, with public
//! rows, what it predicts for them plus Gaussian noise, and least squares on these.
//!
//! *Privacy.* The published form trains a teacher under a sparsity constraint, which is not a convex set: one record can swap the
//! columns and move the teacher by a constant, where the proof says 1/n (`published/knowledge_transfer.rs` and its attack). On columns
//! that were released, the teacher's problem is strongly convex, and it moves by at most 2 L/ridge, plus twice the tolerance of the
//! solver. Predictions move by at most the largest singular value of the public rows times that, bounded from the rows themselves;
//! rows are divided by that bound first, so that the plan does not depend on which columns were chosen.
//!
//! *Accuracy.* Least squares on answers with noise has at least the error of the teacher with noise, so that public rows buy nothing but
//! answers that look like data; the default is the teacher itself. `noisy-thresholding` is better where columns are few.
//!
//! *Needs.* A smooth loss with one score, one row to a unit, the true number of rows, delta > 0.
//!
//! *Reference.* Repair of Wang and Gu 2020 (knowledge transfer), after Kifer, Smith, Thakurta 2012.

use super::Capabilities;
use super::support::{Screening, calibrated_with, fit, narrowed, one_score, scatter, share, sparsity, tight_clip, unit_factors};
use super::teacher::{Answers, Teacher, student};
use super::{Method, Noise, Plan, Problem, needs_smooth, rounded};
use crate::error::{Error, Result};
use crate::method::settings::settings;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{Exponential, Loss, RowScaling, Run, SelectColumns, StabilityTest};

settings! {
    /// Settings of knowledge transfer on chosen columns.
    pub(crate) struct TransferSupportSettings {
        /// columns that are chosen
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// part of the budget for the choice
        share: f64 = 0.5, 0.01..=0.99;
        /// epsilon of a test that releases a stable choice as it is; 0 for none
        stable: f64 = 0.0, 0.0..=100.0;
        /// cells are clipped at this size
        cap: Option<f64> = None, 1e-4..=1.0;
        /// strength of the ridge on the chosen columns, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
        /// public rows that are generated for the student; 0 for none
        rows: u64 = 0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "transfer-support",
    alias: "KT-PS",
    needs: "smooth loss with one score, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "repair of Wang, Gu 2020",
    theorem: "Columns are chosen privately first. On them the teacher's objective is ridge-strongly convex: one record moves \
              the teacher by at most 2 L/ridge plus 2 tau/ridge, and its answers for public rows by at most their largest \
              singular value times that. Gaussian noise covers the answers; the student sees nothing else. Stages are composed \
              numerically.",
    settings: TransferSupportSettings::SETTINGS,
    published: false,
    can: Capabilities { one_score: true, ..Capabilities::BY_THEOREM },
    plan,
};

struct TransferSupport {
    screening: Screening,
    loss: Loss,
    teacher: Teacher,
    answers: Answers,
    fit: RowScaling,
    features: usize,
    event: Event,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = &tight_clip(problem);
    problem.needs_delta("transfer-support")?;
    problem.needs_rows("transfer-support")?;
    needs_smooth(problem, "transfer-support")?;
    let loss = one_score(problem, "transfer-support")?;
    let settings = TransferSupportSettings::parse(&problem.settings)?;
    let count = sparsity(problem, settings.sparsity);
    let part = settings.share;
    let cap = settings.cap.unwrap_or(problem.largest_cell());
    // A tenth of delta is for a set that passes the test although it is not stable.
    let stable =
        if settings.stable > 0.0 { Some(StabilityTest::new(settings.stable, 0.1 * problem.target.delta)?) } else { None };
    let columns = count + usize::from(problem.constant().is_some());
    let answers = Answers::new(problem, settings.rows);
    // The test comes off first, twice under replace-one; the rest is divided between choice and teacher.
    let mut rest = problem.clone();
    if let Some(test) = stable {
        let spent = privfit_kernel::account::epsilon(&test.event(), problem.adjacency, 0.5 * problem.target.delta)?.bound.upper;
        rest.target.epsilon -= spent;
        rest.target.delta *= 0.5;
        if !(rest.target.epsilon > 0.0) {
            return Err(Error::misuse(format!("the test alone costs epsilon {}: give a smaller stable", rounded(spent))));
        }
    }
    let inner = narrowed(&share(&rest, 1.0 - part)?, columns);
    let teacher = Teacher::new(&inner, loss.clone(), settings.ridge, answers.count())?;
    let choice = |m: &Exponential| Screening::event(m, count, stable);
    let (mechanism, event) = calibrated_with(
        problem,
        (part, count as f64),
        |nm| Ok(Exponential::for_gradients(loss.lipschitz(), 1.0, cap, nm)?),
        choice,
        &teacher.event(),
    )?;
    let constant = problem.constant();
    let screening = Screening { mechanism, count, features: problem.features, constant, stable };
    let fit = fit(problem, columns);
    Ok(Box::new(TransferSupport { screening, loss, teacher, answers, fit, features: problem.features, event }))
}

impl Plan for TransferSupport {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("columns chosen", self.screening.count.to_string()),
            ("scale of the noise of a gradient coordinate", rounded(self.screening.mechanism.scale())),
        ];
        out.extend(self.teacher.describe());
        out.extend(self.answers.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.teacher.gradient_noise()
    }

    fn noise(&self) -> Noise {
        self.teacher.noise()
    }

    fn noisy_columns(&self) -> Option<usize> {
        Some(self.screening.count + usize::from(self.screening.constant.is_some()))
    }

    fn steps(&self) -> u64 {
        2
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let columns = self.screening.run(run, &self.loss)?;
        progress();
        let rows = self.answers.rows(&columns);
        let released = run.select_columns(SelectColumns { columns: &unit_factors(&columns), fit: self.fit }, |run| {
            self.teacher.release(run, None, rows.as_ref())
        })?;
        progress();
        let weights = match rows {
            None => released,
            Some(rows) => student(&rows, &released, columns.len()),
        };
        Ok(scatter(&weights, &columns, self.fit, self.features))
    }
}
