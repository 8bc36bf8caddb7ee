//! Private labels of public points by an ensemble, and a linear student of them.
//!
//! *What it computes.* A teacher on each of many disjoint parts of the records; for public points, the counts of their labels with noise, where the most frequent
//! one is frequent enough. A linear model is trained on these answers.
//!
//! *Privacy.* One unit is in one part, and changes one teacher, whatever it is. Under zero-out and replace-one alike the largest count moves by at most 1 and all
//! counts by at most sqrt 2 in L2. With tests of deviation s1 and answers of deviation s2 the whole has mu^2 = points/s1^2 + 2 answers/s2^2, whatever the votes are
//! (`query/confident.rs`). The student sees public points and released counts alone.
//!
//! *Accuracy.* Noise is a matter of the number of parts: a count has the same noise whether 20 or 2,000 vote.
//!
//! *Needs.* Classes, public points, delta > 0; zero-out or replace-one.
//!
//! *Reference.* Papernot et al. 2018 (Confident-GNMax); Nissim, Raskhodnikova, Smith 2007 (sample and aggregate).

pub(crate) mod encoder;
pub(crate) mod plan;
pub(crate) mod student;
pub(crate) mod teacher;

use super::settings::Teachers;
use super::{Capabilities, Method, Plan, Problem};
use crate::error::{Error, Result};
use crate::loss::Link;
use plan::{Ensemble, EnsembleSettings};
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{PublicRows, Run};
use std::sync::Arc;

/// Row of the list.
pub const METHOD: Method = Method {
    name: "private-labels",
    alias: "PATE, Confident-GNMax",
    needs: "classes, public points, delta > 0, zero-out or replace-one",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson 2018, by its data-independent bound",
    theorem: "Records are dealt to parts by unit index, so one record changes the teacher of one part, altogether perhaps: the largest count of votes by at most 1, \
              and all counts by at most sqrt 2 in L2, under zero-out and replace-one alike. Gaussian noise covers both. All tests and as many answers as there may be \
              are charged, whatever the votes are: mu^2 = tests/s1^2 + 2 answers/s2^2. The student is trained on released counts and public points.",
    settings: EnsembleSettings::SETTINGS,
    published: false,
    can: Capabilities {
        tunable: false,
        of_points: true,
        also: &[(
            plan::COMMAND,
            "Here a command of the user is the teacher of each part. It runs without a network, without the files of the records, and where no other part can see it or be seen; whatever it does besides writing its labels \
             shows nowhere, and every part takes the same time. If it reads something that was made of the records, besides the rows of its part, this theorem does not hold.",
        )],
        ..Capabilities::ANY
    },
    plan: prepare,
};

/// The method that trains a student of this kind on labelled rows; none for the linear one, which comes with the labels.
pub fn student_method(kind: &str) -> Result<Option<&'static str>> {
    match kind {
        // Curves and layers are not better than lines on a few hundred points, as far as was measured.
        "auto" | "logistic" => Ok(None),
        "additive" => Ok(Some(super::additive::METHOD.name)),
        "network" => Ok(Some(super::network::METHOD.name)),
        _ => Err(Error::misuse("").naming("student").text(format!(" is {kind:?}: give auto, logistic, additive or network"))),
    }
}

struct PrivateLabels {
    ensemble: Ensemble,
    points: Arc<PublicRows>,
}

fn prepare(problem: &Problem) -> Result<Box<dyn Plan>> {
    let ensemble = Ensemble::new(problem)?;
    if !matches!(problem.loss.link, Link::LogOdds(_) | Link::Softmax) || problem.scores() > 1 && !problem.loss.multiclass {
        return Err(Error::misuse(format!("a student of labels has probabilities, and {} has none: use ", problem.loss.name))
            .give("loss", crate::loss::usual_name(problem.task)));
    }
    let points = problem.auxiliary.clone().unwrap_or_else(|| Arc::new(PublicRows::new(Vec::new(), problem.features)));
    Ok(Box::new(PrivateLabels { ensemble, points }))
}

impl Plan for PrivateLabels {
    fn event(&self) -> &Event {
        self.ensemble.event()
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        self.ensemble.describe()
    }

    fn gradient_noise(&self) -> f64 {
        // A share of votes is known to its noise over the parts; the student sees so many of them.
        self.ensemble.votes().deviation() / f64::from(self.ensemble.parts()) * (self.points.len() as f64).sqrt()
    }

    fn steps(&self) -> u64 {
        self.ensemble.steps()
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        if self.ensemble.teachers() == Teachers::Command {
            return Err(Error::misuse("teachers of a command are for private labels, which have a command"));
        }
        let encoder = self.ensemble.encoder(&self.points);
        let answers = self.ensemble.answer(run, (&self.points, &encoder), None, progress)?;
        Ok(student::weights(&self.ensemble, &encoder, &self.points, &answers))
    }
}
