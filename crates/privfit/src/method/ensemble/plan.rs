//! An ensemble: how many parts, which teachers, and what its answers cost. Complete before data are opened.

use super::encoder::Encoder;
use super::teacher::{label_of_command, label_of_number, learner};
use crate::data::encode::Column;
use crate::error::{Error, Result};
use crate::method::settings::{TEACHERS, Teachers, settings};
use crate::method::{Problem, rounded};
use crate::schema::Task;
use privfit_kernel::account::{Adjacency, Event, calibrate};
use privfit_kernel::{AskVotes, CommandLearner, ConfidentVotes, PublicRows, Run, Sensitive, Train, TrainByCommand};

settings! {
    /// Settings of private labels.
    pub(crate) struct EnsembleSettings {
        /// parts, each with a teacher
        parts: Option<u64> = None, 2.0..=1e6;
        /// most points that are answered
        answers: Option<u64> = None, 1.0..=1e6;
        /// part of all votes that the most frequent label needs for an answer; 0 answers every point
        agreement: f64 = 0.5, 0.0..=1.0;
        /// part of the budget for the test of that
        share: f64 = 0.1, 0.01..=0.9;
        /// what is trained on a part
        teachers: Teachers = Teachers::Linear, 0.0..=3.0;
        /// units of the layer that network teachers share
        width: u64 = 256, 1.0..=4096.0;
        /// strength of a teacher's ridge, relative to how far public points are apart
        ridge: f64 = 0.1, 1e-6..=1e6;
        /// directions of public points that rows of more than 256 features are projected on
        directions: u64 = 128, 2.0..=512.0;
        /// strength of the student's ridge, relative to what balances the noise of the answers
        student: f64 = 0.2, 1e-4..=1e4;
        /// features are public, and labels alone are private
        label_private: bool = false, 0.0..=1.0;
    }
}

/// The plan of an ensemble.
pub(crate) struct Ensemble {
    settings: EnsembleSettings,
    parts: u32,
    points: usize,
    classes: usize,
    columns: Vec<Column>,
    votes: ConfidentVotes,
    event: Event,
}

/// A line of plans whose teachers are trained by a command of the user; certificates follow it with a sentence.
pub(super) const COMMAND: &str = "command";

/// What an ensemble said of a point: noisy counts of its labels.
pub(crate) type Answer = Option<Vec<f64>>;

/// Parts that leave each enough rows.
pub(crate) fn usual_parts(rows: u64, teachers: Teachers, classes: usize) -> u64 {
    (rows / usual_rows(teachers, classes)).clamp(2, 1 << 16)
}

/// Rows that a part should have: enough for a teacher to be better than chance, and so few that votes outnumber noise.
fn usual_rows(teachers: Teachers, classes: usize) -> u64 {
    match teachers {
        // A command starts anew for each part.
        Teachers::Command => 400,
        _ => (10 * classes as u64).max(60),
    }
}

impl Ensemble {
    /// Plans: a pure function of public facts.
    pub(crate) fn new(problem: &Problem) -> Result<Ensemble> {
        let Task::Classes(classes) = problem.task else {
            return Err(Error::misuse("an ensemble votes on classes: give classes in [target]"));
        };
        problem.needs_delta("an ensemble")?;
        let settings = EnsembleSettings::parse(&problem.settings)?;
        if problem.adjacency == Adjacency::AddRemove {
            return Err(Error::misuse(
                "parts of an ensemble are lists of unit indices, and one unit more or less moves the indices after it into other parts, so that nothing is \
                 known under add-remove: use ",
            )
            .give("adjacency", "zero-out")
            .text(", or ")
            .give("adjacency", "replace-one"));
        }
        if settings.label_private && problem.adjacency != Adjacency::ReplaceOne {
            return Err(Error::misuse("where labels alone are private, neighbours have another label in one place: use ")
                .give("adjacency", "replace-one"));
        }
        let points = problem.auxiliary.as_ref().map_or(0, |rows| rows.len());
        if points == 0 {
            return Err(Error::misuse("an ensemble answers for public points, and none are given: add ").naming("auxiliary"));
        }
        let rows = problem.rows.max(2);
        let parts = settings.parts.unwrap_or(usual_parts(rows, settings.teachers, classes));
        if parts > rows {
            return Err(Error::misuse(format!("{parts} parts are more than there are units ({rows}): give fewer")));
        }
        let plan = |answers: u64, multiplier: f64| -> Result<ConfidentVotes> {
            let test = (settings.agreement > 0.0).then(|| {
                // Tests take their share of the sum of squares.
                let tests = points as f64 / answers as f64 * (1.0 - settings.share) / settings.share;
                (settings.agreement * parts as f64, (multiplier * tests.sqrt()).max(0.26))
            });
            Ok(ConfidentVotes::new(classes, (points as u64, answers), multiplier, test)?)
        };
        let met = |answers: u64| {
            let event = |multiplier: f64| plan(answers, multiplier).map(|votes| votes.event());
            plan(answers, calibrate(problem.target, event, problem.adjacency)?)
        };
        let all = points as u64;
        let answers = match (settings.answers, settings.agreement > 0.0) {
            (Some(answers), true) => answers.min(all),
            (_, false) => all,
            // As many as leave the noise of a count at a quarter of all votes: where three quarters agree it seldom decides.
            (None, true) => {
                let one = met(1)?.deviation();
                ((0.25 * parts as f64 / one).powi(2) as u64).clamp(1, all)
            }
        };
        let votes = met(answers)?;
        let event = votes.event();
        Ok(Ensemble { settings, parts: parts as u32, points, classes, columns: problem.columns.clone(), votes, event })
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    pub(crate) fn votes(&self) -> &ConfidentVotes {
        &self.votes
    }

    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    pub(crate) fn teachers(&self) -> Teachers {
        self.settings.teachers
    }

    pub(crate) fn steps(&self) -> u64 {
        u64::from(self.parts) + self.points as u64
    }

    /// Its parameters, for people.
    pub(crate) fn describe(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("parts with a teacher", self.parts.to_string()),
            ("teachers", TEACHERS[self.settings.teachers as usize].into()),
            ("answers at most", format!("{} of {} points", self.votes.answers(), self.points)),
            ("noise of a count of votes", rounded(self.votes.deviation())),
        ];
        if let Some((threshold, noise)) = self.votes.test() {
            out.push(("a point is answered from", format!("{} votes of the most frequent label", rounded(threshold))));
            out.push(("noise of that count", rounded(noise)));
        }
        if self.settings.teachers == Teachers::Command {
            out.push((
                COMMAND,
                "public, with all that it reads besides the rows of its part: declared by whoever gave it".into(),
            ));
        }
        if self.settings.label_private {
            out.push(("features", "public; labels alone are private".into()));
        }
        out
    }

    /// Share of the votes at which the answer is the ensemble's with 95 %, where all others vote for one other label.
    pub(crate) fn sure_at(&self) -> f64 {
        (0.5 + 0.5 * 1.645 * std::f64::consts::SQRT_2 * self.votes.deviation() / f64::from(self.parts)).min(1.0)
    }

    /// The student's ridge over the usual one.
    pub(crate) fn student_ridge(&self) -> f64 {
        self.settings.student
    }

    /// The encoder that teachers share, from public points.
    pub(crate) fn encoder(&self, points: &PublicRows) -> Encoder {
        let size = (self.settings.directions as usize, self.settings.width as usize);
        Encoder::new(points, &self.columns, self.settings.teachers, size)
    }

    /// Teachers on the parts, and what they answer for the points, in a public order of their own.
    pub(crate) fn answer(
        &self,
        run: &mut Run<'_>,
        (points, encoder): (&PublicRows, &Encoder),
        command: Option<&CommandLearner>,
        progress: &dyn Fn(),
    ) -> Result<Vec<Answer>> {
        let parts = run.parts(self.parts)?;
        match command {
            Some(command) => {
                let models = run.execute(TrainByCommand { parts: &parts, learner: command, progress })?;
                self.ask(run, &models, label_of_command, progress)
            }
            None => {
                let learner = learner(encoder, points, self.classes, self.settings.ridge);
                let models = run.execute(Train { parts: &parts, learner: &learner, progress })?;
                self.ask(run, &models, label_of_number, progress)
            }
        }
    }

    fn ask<M>(
        &self,
        run: &mut Run<'_>,
        models: &[Sensitive<Option<M>>],
        label: fn(&M, &[f32]) -> u32,
        progress: &dyn Fn(),
    ) -> Result<Vec<Answer>> {
        // Where answers do not last for all points, which ones come first is chance.
        let mut order: Vec<usize> = (0..self.points).collect();
        let mut word = run.public_word()?;
        for i in (1..order.len()).rev() {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(i, ((u128::from(word) * (i as u128 + 1)) >> 64) as usize);
        }
        let mut out: Vec<Answer> = vec![None; self.points];
        let mut open = run.execute(self.votes)?;
        for number in order {
            if !open.has_ended() {
                out[number] = run.execute(AskVotes { open: &mut open, models, label, point: &[number as f32] })?;
            }
            progress();
        }
        Ok(out)
    }
}
