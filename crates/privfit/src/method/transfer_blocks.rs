//! Knowledge transfer from teachers on parts: each part has its own sparse teacher, their average, with noise, teaches a student or is
//! thresholded itself.
//!
//! *What it computes.* The records are divided into parts; hard thresholding on each gives a teacher, clipped to a ball of radius R; the
//! average of the teachers plus Gaussian noise is released and its largest weights are kept. With public rows: what the average
//! predicts for them plus Gaussian noise, and hard thresholding on these.
//!
//! *Privacy.* Parts go by unit index: one record changes one teacher, altogether perhaps, so that the average moves by at most 2R/parts under
//! zero-out and replace-one alike. Nothing is asked of the teachers: this keeps the idea of the published form, a teacher under a
//! sparsity constraint, whose own proof fails because such a constraint is not convex (`published/knowledge_transfer.rs`).
//!
//! *Accuracy.* The noise falls with the number of parts, and a part must have enough records to find the columns: many records.
//!
//! *Needs.* Any loss with one score and a derivative, one row to a unit, delta > 0.
//!
//! *Reference.* Repair of Wang and Gu 2020; sample and aggregate of Nissim, Raskhodnikova, Smith 2007.

use super::Capabilities;
use super::block_learner::{learner, usual_parts, usual_radius};
use super::support::{one_score, sparsity};
use super::teacher::{Answers, student};
use super::vector_noise::VectorNoise;
use super::{Method, Noise, Plan, Problem, rounded};
use crate::error::Result;
use crate::method::settings::settings;
use crate::solve::iterative_hard_thresholding::keep_largest;
use privfit_kernel::account::{Event, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Average, Learner, Project, PublicRows, Run, SparseModel, Train, products_error};

settings! {
    /// Settings of knowledge transfer by blocks.
    pub(crate) struct TransferBlocksSettings {
        /// weights that are kept
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// parts, each with a teacher
        parts: Option<u64> = None, 1.0..=1e4;
        /// teachers are clipped to this length
        radius: Option<f64> = None, 1e-6..=1e9;
        /// ridge of a teacher's average loss
        ridge: f64 = 1e-3, 0.0..=1e6;
        /// public rows that are generated for the student; 0 for none
        rows: u64 = 0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "transfer-blocks",
    alias: "KT-SA",
    needs: "loss with one score, one row to a unit, delta > 0",
    guarantee: "(epsilon, delta), all adjacencies",
    source: "repair of Wang, Gu 2020, by sample and aggregate",
    theorem: "Records are dealt to parts by unit_index, so one record changes the teacher of one part, altogether perhaps. Each \
              teacher lies in a ball of radius R, so that their average moves by at most 2 R/parts under zero-out and replace- \
              one alike. Gaussian noise covers it.",
    settings: TransferBlocksSettings::SETTINGS,
    published: false,
    can: Capabilities { smooth: false, one_score: true, ..Capabilities::BY_THEOREM },
    plan,
};

struct TransferBlocks {
    learner: Learner<SparseModel>,
    parts: u32,
    radius: f64,
    noise: VectorNoise,
    rows: Option<PublicRows>,
    answers: Answers,
    count: usize,
    constant: Option<usize>,
    features: usize,
    event: Event,
    all_rows: f64,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    problem.needs_delta("transfer-blocks")?;
    one_score(problem, "transfer-blocks")?;
    let settings = TransferBlocksSettings::parse(&problem.settings)?;
    let count = sparsity(problem, settings.sparsity);
    let parts = settings.parts.unwrap_or(usual_parts(problem)) as u32;
    let radius = settings.radius.unwrap_or(usual_radius(problem));
    let answers = Answers::new(problem, settings.rows);
    let released = answers.count().unwrap_or(problem.features);
    // Public rows are divided by a bound on their singular values.
    let error = if answers.count().is_some() { products_error(problem.features, 1.0 + 1e-6, radius) } else { 0.0 };
    let apart = 2.0 * radius / f64::from(parts) * (1.0 + 1e-5) + error;
    let noise_of = |nm: f64| VectorNoise::new(false, (apart, apart), 2.0 * radius, nm, released);
    let event_of = |nm: f64| noise_of(nm).map(|n| n.event(released));
    let noise = noise_of(calibrate(problem.target, event_of, problem.adjacency)?)?;
    let columns: Vec<usize> = (0..problem.features).collect();
    Ok(Box::new(TransferBlocks {
        learner: learner(problem, count, settings.ridge)?,
        parts,
        radius,
        noise,
        rows: answers.rows(&columns),
        answers,
        count,
        constant: problem.constant(),
        features: problem.features,
        event: noise.event(released),
        all_rows: problem.all_rows(),
    }))
}

impl TransferBlocks {
    fn deviation(&self) -> f64 {
        self.noise.multiplier() * 2.0 * self.radius / f64::from(self.parts)
    }
}

impl Plan for TransferBlocks {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("weights kept", self.count.to_string()),
            ("parts with a teacher", self.parts.to_string()),
            ("teachers clipped to a length of", rounded(self.radius)),
            ("noise, standard deviation", rounded(self.deviation())),
        ];
        out.extend(self.answers.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        // As for other noise on weights.
        0.1 * self.all_rows * self.deviation()
    }

    fn noise(&self) -> Noise {
        // Scores of size 1 on columns that fill their bounds take weights of length sqrt(d) / 0.15 and more: a ridge that leaves
        // those of the longest teacher.
        let ridge = 0.25 * 0.15 * self.all_rows / ((self.features as f64).sqrt() * self.radius);
        Noise::Weights { deviation: self.deviation(), ridge }
    }

    fn steps(&self) -> u64 {
        u64::from(self.parts)
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let released = self.answers.count().unwrap_or(self.features);
        let parts = run.parts(self.parts)?;
        let out = self.noise.release(run, released, |run| {
            let models = run.execute(Train { parts: &parts, learner: &self.learner, progress })?;
            let average = run.execute(Average { models, radius: self.radius, dimension: self.features })?;
            match &self.rows {
                None => Ok(average),
                Some(rows) => run.execute(Project { value: average, rows, longest: self.radius }),
            }
        })?;
        let mut weights = match &self.rows {
            None => out,
            Some(rows) => student(rows, &out, self.count + usize::from(self.constant.is_some())),
        };
        keep_largest(&mut weights, self.count, self.constant);
        Ok(weights)
    }
}
