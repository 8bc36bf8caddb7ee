//! Knowledge transfer as published, and hard thresholding without any privacy, its baseline.
//!
//! A teacher under a sparsity constraint is trained on all records, and its answers for public rows get noise for a sensitivity of
//! sqrt(2 s) gamma / (n ridge). The proof of that bound uses a variational inequality, which holds for convex sets; weights with at most s
//! non-zeros are not one. One record can swap the columns and move the teacher by a constant: the true sensitivity does not fall
//! with n, no epsilon holds, and an attack on the support is right every time (`tests/suite/sparse.rs`). No guarantee, then.

use super::super::Capabilities;
use super::printed::knowledge_transfer_deviation;
use super::{published_loss, split_budget};
use crate::error::Result;
use crate::method::block_learner::learner;
use crate::method::settings::settings;
use crate::method::support::{one_score, sparsity};
use crate::method::teacher::{Answers, student};
use crate::method::vector_noise::VectorNoise;
use crate::method::{Method, Plan, Problem, rounded};
use crate::schema::Task;
use crate::solve::iterative_hard_thresholding::keep_largest;
use privfit_kernel::Numerics;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{Average, Batch, Learner, Project, PublicRows, Run, Sensitive, SparseModel, Train};

settings! {
    /// Settings of the published knowledge transfer.
    pub(crate) struct KnowledgeTransferSettings {
        /// weights of teacher and student
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// ridge of the average loss
        ridge: Option<f64> = None, 1e-9..=1e6;
        /// public rows that are generated for the student; as many as records by default
        rows: Option<u64> = None, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "published-knowledge-transfer",
    alias: "printed DPSL-KT",
    needs: "loss with one score, delta > 0",
    guarantee: "printed: (epsilon, delta), replace-one; in truth none",
    source: "Wang, Gu 2020, algorithm 1",
    theorem: super::THEOREM,
    settings: KnowledgeTransferSettings::SETTINGS,
    published: true,
    can: Capabilities { one_score: true, numerics: Numerics::Bounded, ..Capabilities::PUBLISHED },
    plan,
};

settings! {
    /// Settings of hard thresholding without noise.
    pub(crate) struct BaselineSettings {
        /// weights that are kept
        sparsity: Option<u64> = None, 1.0..=1e7;
        /// ridge of the average loss
        ridge: f64 = 0.0, 0.0..=1e6;
    }
}

/// Row of the list.
pub(crate) const BASELINE: Method = Method {
    name: "hard-thresholding-without-noise",
    alias: "IGHT",
    needs: "loss with one score",
    guarantee: "none: no noise at all",
    source: "Jain, Tewari, Kar 2014; the baseline without privacy",
    theorem: super::THEOREM,
    settings: BaselineSettings::SETTINGS,
    published: true,
    can: Capabilities { one_score: true, ..Capabilities::PUBLISHED },
    plan: baseline,
};

struct Transfer {
    learner: Learner<SparseModel>,
    student: Option<(VectorNoise, f64, PublicRows, f64)>,
    count: usize,
    constant: Option<usize>,
    features: usize,
    event: Event,
}

/// Teachers are not clipped, so this is only to make the type of an average.
const UNCUT: f64 = 1e12;

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    let (_, epsilon, delta) = split_budget(&problem, "published-knowledge-transfer")?;
    let loss = one_score(&problem, "published-knowledge-transfer")?;
    let settings = KnowledgeTransferSettings::parse(&problem.settings)?;
    let count = sparsity(&problem, settings.sparsity);
    let cell = problem.largest_cell();
    let ridge = settings.ridge.unwrap_or(0.1 * cell * cell);
    let answers = Answers::new(&problem, settings.rows.unwrap_or(problem.rows.min(1_000_000)));
    let columns: Vec<usize> = (0..problem.features).collect();
    let (Some(rows), Some(m)) = (answers.rows(&columns), answers.count()) else {
        return Err(crate::error::Error::misuse("published-knowledge-transfer needs public rows: add ").give("set", "rows=1000"));
    };
    // Cells of generated rows are spread evenly over their range, and were divided by a bound on their singular values.
    let scale = rows.largest_cell() / cell;
    let n = problem.rows.max(1) as f64;
    // A gradient coordinate: the largest derivative times the largest cell; for residuals the publication writes a constant, here 1.
    let gamma = cell * if problem.task == Task::Number { 1.0 } else { loss.lipschitz() };
    let deviation =
        knowledge_transfer_deviation(m as f64, cell * cell / 3.0, count as f64, gamma, n, epsilon, delta, ridge) * scale;
    let noise = VectorNoise::new(false, (deviation, deviation), 1e6 * deviation, 1.0, m)?;
    Ok(Box::new(Transfer {
        learner: learner(&problem, count, ridge)?,
        student: Some((noise, deviation, rows, scale)),
        count,
        constant: problem.constant(),
        features: problem.features,
        event: Event::NotPrivate {
            why: "a teacher under a sparsity constraint: one record can swap its columns, whatever the number of records".into(),
        },
    }))
}

fn baseline(problem: &Problem) -> Result<Box<dyn Plan>> {
    let problem = published_loss(problem);
    one_score(&problem, "hard-thresholding-without-noise")?;
    let settings = BaselineSettings::parse(&problem.settings)?;
    let count = sparsity(&problem, settings.sparsity);
    let ridge = settings.ridge;
    Ok(Box::new(Transfer {
        learner: learner(&problem, count, ridge)?,
        student: None,
        count,
        constant: problem.constant(),
        features: problem.features,
        event: Event::NotPrivate { why: "a baseline without noise".into() },
    }))
}

impl Transfer {
    fn teacher<'d>(&self, run: &mut Run<'d>, parts: &[Batch<'d>]) -> privfit_kernel::Result<Sensitive<Vec<f64>>> {
        let models = run.execute(Train { parts, learner: &self.learner, progress: &|| {} })?;
        run.execute(Average { models, radius: UNCUT, dimension: self.features })
    }
}

impl Plan for Transfer {
    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("weights kept", self.count.to_string())];
        if let Some((_, deviation, rows, scale)) = &self.student {
            out.push(("answers for generated rows", rows.len().to_string()));
            out.push(("noise of an answer, standard deviation", rounded(deviation / scale)));
        }
        out
    }

    fn gradient_noise(&self) -> f64 {
        0.0
    }

    fn steps(&self) -> u64 {
        1
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        let parts = run.parts(1)?;
        let mut weights = match &self.student {
            None => {
                let teacher = self.teacher(run, &parts)?;
                run.reveal(teacher)?
            }
            Some((noise, _, rows, _)) => {
                let answers = noise.release(run, rows.len(), |run| {
                    let teacher = self.teacher(run, &parts)?;
                    run.execute(Project { value: teacher, rows, longest: UNCUT })
                })?;
                student(rows, &answers, self.count + usize::from(self.constant.is_some()))
            }
        };
        progress();
        keep_largest(&mut weights, self.count, self.constant);
        Ok(weights)
    }
}
