//! Knowledge transfer from a convex teacher: an elastic net takes the place of the sparsity constraint.
//!
//! *What it computes.* The minimiser of the sum of losses + (ridge/2) |w|^2 + lasso |w|_1 over all columns, to a certified subgradient;
//! its weights plus Gaussian noise, of which the largest are kept. With public rows: its answers for them plus Gaussian noise, and
//! hard thresholding on these.
//!
//! *Privacy.* The ridge makes the objective strongly convex, the L1 term is convex and public, so one record moves the minimiser by at
//! most L/ridge (2L/ridge for replace-one), plus twice the tolerance of the solver. A sparsity constraint in the place of the L1 term
//! has no such bound (`published/knowledge_transfer.rs`).
//!
//! *Accuracy.* The noise has a length of sqrt(columns), so this is for rows of length 1 with few large cells, and many records.
//!
//! *Needs.* A smooth loss with one score, one row to a unit, the true number of rows, delta > 0.
//!
//! *Reference.* Repair of Wang and Gu 2020; output perturbation of Chaudhuri, Monteleoni, Sarwate 2011.

use super::Capabilities;
use super::support::{one_score, sparsity, tight_clip};
use super::teacher::{Answers, Teacher, student};
use super::{Method, Noise, Plan, Problem, needs_smooth, rounded};
use crate::error::Result;
use crate::method::settings::settings;
use crate::solve::iterative_hard_thresholding::keep_largest;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{PublicRows, Run};

settings! {
    /// Settings of knowledge transfer from a convex teacher.
    pub(crate) struct TransferConvexSettings {
        /// weights that are kept
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// strength of the ridge, in sum form
        ridge: Option<f64> = None, 1e-12..=1e15;
        /// strength of the L1 term, in sum form
        lasso: Option<f64> = None, 0.0..=1e12;
        /// public rows that are generated for the student; 0 for none
        rows: u64 = 0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "transfer-convex",
    alias: "KT-CS",
    needs: "smooth loss with one score, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "repair of Wang, Gu 2020, by an elastic net",
    theorem: "The objective is ridge-strongly convex whatever public convex term, such as an L1 norm, is added: one record \
              moves its minimiser by at most L/ridge (replace-one 2 L/ridge), plus twice the solver's tolerance. Gaussian \
              noise covers that distance.",
    settings: TransferConvexSettings::SETTINGS,
    published: false,
    can: Capabilities { one_score: true, ..Capabilities::BY_THEOREM },
    plan,
};

struct TransferConvex {
    teacher: Teacher,
    lasso: f64,
    rows: Option<PublicRows>,
    answers: Answers,
    count: usize,
    constant: Option<usize>,
    event: Event,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = &tight_clip(problem);
    problem.needs_delta("transfer-convex")?;
    problem.needs_rows("transfer-convex")?;
    needs_smooth(problem, "transfer-convex")?;
    let loss = one_score(problem, "transfer-convex")?;
    let settings = TransferConvexSettings::parse(&problem.settings)?;
    let count = sparsity(problem, settings.sparsity);
    // Gradients of columns that say nothing are sums of n random signs times a cell.
    let usual = (problem.rows.max(1) as f64 * (2.0 * problem.features as f64).ln()).sqrt() * 0.5 * loss.lipschitz();
    let lasso = settings.lasso.unwrap_or(0.5 * usual * problem.largest_cell().min(0.3));
    let answers = Answers::new(problem, settings.rows);
    let teacher = Teacher::new(problem, loss, settings.ridge, answers.count())?;
    let columns: Vec<usize> = (0..problem.features).collect();
    let (rows, event) = (answers.rows(&columns), teacher.event());
    Ok(Box::new(TransferConvex { teacher, lasso, rows, answers, count, constant: problem.constant(), event }))
}

impl Plan for TransferConvex {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Totals
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("weights kept", self.count.to_string()), ("lasso", rounded(self.lasso))];
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

    fn steps(&self) -> u64 {
        1
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let released = self.teacher.release(run, Some(self.lasso), self.rows.as_ref())?;
        progress();
        let mut weights = match &self.rows {
            None => released,
            Some(rows) => student(rows, &released, self.count + usize::from(self.constant.is_some())),
        };
        keep_largest(&mut weights, self.count, self.constant);
        Ok(weights)
    }
}
