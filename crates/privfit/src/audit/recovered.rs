//! The exact attack on objective perturbation in one dimension. Whoever knows the records knows the gradient, and whoever holds the minimiser
//! t then holds the linear term: b = -(sum of derivatives + ridge t). In world W its density at the release is
//!
//! f_W(t) = phi(b_W(t) / s) / s x |db_W/dt|,    db_W/dt = -(sum of second derivatives + ridge),
//!
//! with s the deviation of the linear term. The logarithm of f_A / f_B is by Neyman and Pearson the best score there is, but for the output noise,
//! which is a twentieth of the linear term in its effect and is left out. A release is replaced by that one number, and the audit in two worlds
//! judges it as it judges any other: the score is fixed before, so that no more false alarms come with it.

use super::precision::gradient;
use super::shipped::{Question, Shipped};
use super::subject::{Claim, Comparison, Release, Subject, World};
use crate::data::encode::{Row, UNKNOWN};
use crate::error::{Error, Result};
use crate::loss;
use crate::method::{self, Settings};
use crate::schema::{Schema, Task};
use privfit_kernel::Loss;
use privfit_kernel::account::{Adjacency, Event};

/// Objective perturbation with one weight, whose releases are log-likelihood ratios of two worlds.
pub struct Recovered {
    subject: Shipped,
    claim: Claim,
    loss: Loss,
    ridge: f64,
    worlds: [Vec<(Vec<f64>, f32)>; 2],
}

impl Recovered {
    /// For logistic loss, so many rows and a ridge; the worlds are the rows that the attacker tells apart.
    pub fn new(epsilon: f64, adjacency: Adjacency, ridge: f64, a: &[Row], b: &[Row]) -> Result<Recovered> {
        let schema = Schema::parse(
            "[dataset]\nname = \"line\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 1\nrow_norm = 1.0\n\
             intercept = false\n[encoding]\nscaling = \"ball\"\n",
        )?;
        let subject = Shipped::new(&Question {
            method: method::objective::METHOD.name.into(),
            loss: Some(loss::usual_name(Task::Classes(2)).into()),
            schema: Some(schema),
            rows: a.len() as u64,
            epsilon,
            adjacency,
            settings: Settings([("ridge".to_string(), ridge)].into()),
            ..Question::default()
        })?;
        let loss = subject.prepared().problem.build_loss(1)?;
        // Records without a label add nothing.
        let known = |rows: &[Row]| rows.iter().filter(|r| r.label != UNKNOWN).map(|r| (r.dense.clone(), r.label)).collect();
        let claim = subject.claim().clone();
        Ok(Recovered { subject, claim, loss, ridge, worlds: [known(a), known(b)] })
    }

    /// The same attack on another claim, such as a wrong one.
    pub fn claiming(self, claim: Claim) -> Recovered {
        Recovered { claim, ..self }
    }

    /// The method itself, for other distinguishers.
    pub fn shipped(&self) -> &Shipped {
        &self.subject
    }

    /// Logarithm of the density of a release in a world, up to a constant that is the same in both.
    fn log_density(&self, world: usize, theta: f64) -> f64 {
        let derivative = |t: f64| gradient(&self.loss, &self.worlds[world], self.ridge, &[t])[0];
        let deviation = self.subject.prepared().plan.gradient_noise();
        // The loss is smooth but for its clip: a difference over a millionth is its second derivative.
        let step = 1e-6 * theta.abs().max(1.0);
        let curvature = ((derivative(theta + step) - derivative(theta - step)) / (2.0 * step)).max(self.ridge);
        curvature.ln() - 0.5 * (derivative(theta) / deviation).powi(2)
    }
}

impl Subject for Recovered {
    fn name(&self) -> String {
        "objective, its linear term recovered".into()
    }

    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn open<'a>(&'a self, rows: &'a [Row]) -> Result<World<'a>> {
        let mut world = self.subject.open(rows)?;
        Ok(Box::new(move || {
            let theta = world()?.numbers[0];
            Ok(Release { numbers: vec![self.log_density(0, theta) - self.log_density(1, theta)] })
        }))
    }

    fn compare(&self, _: &[Row], _: &[Row], _: u64) -> Result<Comparison> {
        Err(Error::misuse("this is an attack on releases: compare the method itself before noise"))
    }

    fn one_gaussian(&self) -> bool {
        false
    }

    fn executed(&self, rows: &[Row]) -> Result<Event> {
        self.subject.executed(rows)
    }
}
