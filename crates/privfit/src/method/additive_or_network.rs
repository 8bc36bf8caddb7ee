//! An additive model and a network of the same table, of which the one that is right more often is released.
//!
//! *What it computes.* With a part of the budget an additive model is trained (`additive`), with most of the rest a network (`network`). Then the records that each of them has right are counted, with noise, and the model
//! with the larger number leaves. Which of the two is better follows from how columns act together, and no public fact says that: on generated tables of four classes a network is up to four points
//! better, and up to five points worse.
//!
//! *Privacy.* The counts are two sums of numbers in [0, 1], one for each record, clipped at 1 on the integers, with discrete Gaussian noise: sensitivity 1 (replace-one 2). Models, both counts and the choice are
//! functions of releases, all of which are in the event; the model that does not leave costs as much as the one that does. Noise of the additive model and of the counts is that of a fixed part of mu^2 each, and the noise
//! of the network is calibrated so that all releases together meet the target.
//!
//! *Accuracy.* An additive model of so many rows loses little when most of the budget goes elsewhere: what it can't say is not a matter of noise. The noise of each count is far below the
//! differences that matter. Records are those of the training, on which a network is a little better than on others, the more so the larger mu is: it must lead by a public number of records, and where it leads by less the
//! additive model is published. Held-out records would need no lead, but so few of them as can be spared tell less.
//!
//! *Needs.* A table with more than two classes, delta > 0, zero-out or replace-one, units of one row. Memory: features and cells of all rows. Time: that of both.
//!
//! *Reference.* Ours.

use super::network::{Beside, Networks, networks_beside};
use super::settings::settings;
use super::{Capabilities, Learned, Method, Noise, Plan, Problem, Settings, additive, network, rounded};
use crate::checkpoint::{Checkpoints, State};
use crate::data::cells::RowForm;
use crate::error::{Error, Result};
use crate::measure::{Kind, Measures, SumNoise};
use crate::memory::{MemoryConditions, MemoryPart};
use crate::model::Model;
use crate::schema::Task;
use privfit_kernel::account::Event;
use privfit_kernel::engine::Needs;
use privfit_kernel::{Gaussian, Numerics, Run};

settings! {
    /// Settings of the choice.
    pub(crate) struct ChoiceSettings {
        /// part of the squared privacy loss for the additive model
        additive_share: f64 = 0.15, 0.01..=0.95;
        /// number of steps of the additive model
        additive_steps: u64 = 200, 1.0..=100_000.0;
        /// number of steps of the network
        steps: Option<u64> = None, 1.0..=1e7;
        /// probability that an example takes part in a step of the network
        sampling_rate: Option<f64> = None, 1e-6..=1.0;
    }
}

/// Row of the list.
pub(crate) const METHOD: Method = Method {
    name: "additive-or-network",
    alias: "better of two models",
    needs: "a table with more than two classes, delta > 0, units of one row",
    guarantee: "(epsilon, delta), zero-out and replace-one",
    source: "an additive model, a network, and a noisy count of right answers for each",
    theorem: "An additive model and a network are trained one after the other, and the records that each of them has right are counted with Gaussian noise; one record moves a count by at most 1 (replace-one 2). Of the additive \
              model, counts of the cells of F columns move by sqrt F when one record becomes null (replace-one sqrt 2F), and gradients and sums over leaves, clipped to length C on the integers, by at most C (replace-one 2 C). \
              Each step of the network takes every record with probability q, secretly and independently, and releases the sum of gradients, each brought to length C or below, with Gaussian noise; what single precision can do \
              to the sum of a block is bounded and added to C. The privacy loss of all releases is composed numerically, whichever of the two models leaves.",
    settings: ChoiceSettings::SETTINGS,
    published: false,
    can: Capabilities {
        releases_gradients: true,
        many_steps: true,
        tunable: false,
        of_cells: true,
        of_layers: true,
        resumable: true,
        numerics: Numerics::Bounded,
        also: network::METHOD.can.also,
        ..Capabilities::ANY
    },
    plan,
};

/// Part of mu^2 for each count of right answers.
const COUNTS: f64 = 0.005;
/// Part of all records by which a network must lead, over mu. On generated tables with a mu of 0.6 networks had up to 0.7 points more of the records of the training right than of others.
const LEAD: f64 = 0.01;

struct Either {
    additive: additive::Additive,
    network: Networks,
    count: SumNoise,
    share: f64,
    /// Records by which the network must lead.
    lead: f64,
}

fn plan(problem: &Problem) -> Result<Box<dyn Plan>> {
    let settings = ChoiceSettings::parse(&problem.settings)?;
    if !matches!(problem.task, Task::Classes(3..)) {
        return Err(Error::misuse("the choice between an additive model and a network is for more than two classes: use ")
            .give("method", additive::METHOD.name));
    }
    if problem.layers.is_some() || problem.pretrained.is_some() {
        return Err(
            Error::misuse("layers are given, and so is a choice that has its own: use ").give("method", network::METHOD.name)
        );
    }
    problem.needs_delta(METHOD.name)?;
    let single = problem.single_noise()?;
    // Each has settings of its own.
    let with = |list: &[(&str, Option<f64>)]| {
        let given = list.iter().filter_map(|(name, value)| Some((name.to_string(), (*value)?)));
        Problem { settings: Settings(given.collect()), ..problem.clone() }
    };
    let additive = with(&[("steps", Some(settings.additive_steps as f64))]);
    let additive = additive::planned(&additive, Some(single / settings.additive_share.sqrt()))?;
    let network = with(&[("steps", settings.steps.map(|n| n as f64)), ("sampling_rate", settings.sampling_rate)]);
    let count = SumNoise::Gaussian(Gaussian::new(Kind::Score.length(), single / COUNTS.sqrt(), problem.rows)?);
    let beside = Beside {
        before: vec![additive.event().clone()],
        after: vec![count.event(Kind::Score), count.event(Kind::Score)],
        share: settings.additive_share + 2.0 * COUNTS,
    };
    let lead = LEAD * problem.rows as f64 / single;
    Ok(Box::new(Either { additive, network: networks_beside(&network, &beside)?, count, share: settings.additive_share, lead }))
}

impl Either {
    /// Both models, then the better one.
    fn train(&self, run: &mut Run<'_>, progress: &dyn Fn(), kept: Option<&mut dyn Checkpoints>) -> Result<Learned> {
        let mut kept = kept.map(|kept| AfterTheFirst::new(kept, self.additive.steps()));
        // Another process has trained it, if it has taken a step of the network.
        let first = match kept.as_ref().and_then(|kept| kept.first.clone()) {
            Some(numbers) => numbers,
            None => self.additive.run(run, progress)?,
        };
        if let Some(kept) = &mut kept {
            kept.first = Some(first.clone());
        }
        let second = self.network.descend(run, progress, kept.as_mut().map(|kept| kept as &mut dyn Checkpoints))?;
        let (Learned::Additive(additive), Learned::Network(network)) =
            (self.additive.learned(first), self.network.learned(second))
        else {
            return Err(Error::Host);
        };
        let (additive, network) = (Model::Additive(additive), Model::Network(network));
        let mut right = |model: &Model| -> Result<f64> {
            let measures = Measures::of(Kind::Score, model)?;
            Ok(self.count.release(run, &measures)?.first().copied().unwrap_or(0.0))
        };
        let (one, other) = (right(&additive)?, right(&network)?);
        match if other > one + self.lead { network } else { additive } {
            Model::Additive(model) => Ok(Learned::Additive(model)),
            Model::Network(model) => Ok(Learned::Network(model)),
            Model::Linear(_) | Model::Point(_) => Err(Error::Host),
        }
    }
}

/// Checkpoints of the network, with the numbers of the additive model, all of them released, as their last list.
struct AfterTheFirst<'a> {
    kept: &'a mut dyn Checkpoints,
    /// Steps before those of the network.
    before: u64,
    found: Option<State>,
    first: Option<Vec<f64>>,
}

impl<'a> AfterTheFirst<'a> {
    fn new(kept: &'a mut dyn Checkpoints, before: u64) -> AfterTheFirst<'a> {
        let mut found = kept.found();
        let first = found.as_mut().and_then(|state| {
            state.steps = state.steps.saturating_sub(before);
            state.numbers.pop()
        });
        AfterTheFirst { kept, before, found, first }
    }
}

impl Checkpoints for AfterTheFirst<'_> {
    fn due(&self, steps: u64) -> bool {
        self.kept.due(self.before + steps)
    }

    fn found(&mut self) -> Option<State> {
        self.found.take()
    }

    fn keep(&mut self, mut state: State) -> Result<()> {
        state.steps += self.before;
        state.numbers.extend(self.first.clone());
        self.kept.keep(state)
    }
}

impl Plan for Either {
    fn event(&self) -> &Event {
        self.network.event()
    }

    fn needs(&self) -> Needs {
        self.network.needs()
    }

    fn keeps_keys(&self) -> bool {
        self.network.keeps_keys()
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let words = |(name, value): (&str, String)| format!("{name} {value}");
        let additive: Vec<String> = self.additive.describe().into_iter().map(words).collect();
        let mut out = vec![
            ("additive model", format!("with {} of the squared privacy loss: {}", rounded(self.share), additive.join("; "))),
            ("noise of each number of right answers, standard deviation", rounded(self.count.deviation(Kind::Score))),
            ("right answers by which the network must lead", rounded(self.lead)),
        ];
        out.extend(self.network.describe());
        out
    }

    fn gradient_noise(&self) -> f64 {
        self.network.gradient_noise()
    }

    /// What is released is hardly worse than the additive model.
    fn noise(&self) -> Noise {
        self.additive.noise()
    }

    fn steps(&self) -> u64 {
        self.additive.steps() + self.network.steps()
    }

    fn memory(&self, conditions: &MemoryConditions, rows: u64) -> Option<Vec<MemoryPart>> {
        // The additive model has a factor of two bytes for each row while it is trained, and little else; the network comes later.
        let own = MemoryPart::new("factors of rows in the additive model", 2 * rows);
        self.network.memory(conditions, rows).map(|parts| parts.into_iter().chain([own]).collect())
    }

    fn at_once(&self) -> Option<usize> {
        self.network.at_once()
    }

    fn limit_at_once(&mut self, most: usize) {
        self.network.limit_at_once(most);
    }

    fn row_form(&self) -> RowForm<'_> {
        RowForm::Both(self.additive.grid())
    }

    fn run(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Vec<f64>> {
        Ok(self.learn(run, progress)?.numbers())
    }

    fn learn(&self, run: &mut Run<'_>, progress: &dyn Fn()) -> Result<Learned> {
        self.train(run, progress, None)
    }

    fn learn_kept(&self, run: &mut Run<'_>, progress: &dyn Fn(), kept: &mut dyn Checkpoints) -> Result<Learned> {
        self.train(run, progress, Some(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::csv::Csv;
    use crate::data::load::load_from;
    use crate::job::fit::Prepared;
    use crate::method::testing::{plan, schema};
    use privfit_kernel::Entropy;
    use privfit_kernel::account::{Adjacency, epsilon};
    use privfit_kernel::engine::Threads;

    fn prepared(rows: u64, epsilon: f64, settings: &[(&str, f64)]) -> Prepared {
        plan(&schema(2, "", "classes = [\"p\", \"q\", \"r\"]"), METHOD.name, "softmax", rows, epsilon, settings)
    }

    /// A third of the rows have a class of their own. Of the others the class is whether the signs of both columns agree, which no sum of curves can tell, or whether one column is near the middle.
    fn lines(rows: u32, together: bool) -> String {
        let row = |i: u32| {
            let [x, z] = [37, 53].map(|step| f64::from((i * step) % 211) / 105.5 - 1.0);
            let inside = if together { x * z > 0.0 } else { x.abs() < 0.5 };
            format!("{x},{z},{}\n", ["p", "q", "r"][if i.is_multiple_of(3) { 2 } else { usize::from(inside) }])
        };
        (0..rows).map(row).collect()
    }

    fn released(prepared: &Prepared, text: &str) -> Model {
        let (entropy, engine) = (Entropy::simulated(4), Threads::new(2));
        let mut reader = Csv::open(Box::new(std::io::Cursor::new(format!("a,b,y\n{text}").into_bytes()))).unwrap();
        let data = load_from(&mut reader, &prepared.job().schema, prepared.plan.row_form(), &entropy).unwrap();
        prepared.train(&data, &engine, &entropy, &|| {}).unwrap().model
    }

    /// What columns say together is learned by a network alone, and what one of them says by an additive model, if the network has few steps.
    #[test]
    fn the_better_one_is_released() {
        // So few rows that no trees are grown, which would see both columns.
        let with = |steps: f64| prepared(1500, 20.0, &[("steps", steps), ("sampling_rate", 0.2)]);
        assert!(matches!(released(&with(800.0), &lines(1500, true)), Model::Network(_)));
        assert!(matches!(released(&with(5.0), &lines(1500, false)), Model::Additive(_)));
    }

    /// Everything together meets the target: the additive model has its part of mu^2, each count of right answers a two hundredth, and the network the rest.
    #[test]
    fn parts_add_up() {
        let few = [("steps", 20.0), ("sampling_rate", 1.0), ("additive_share", 0.3), ("additive_steps", 10.0)];
        let whole = prepared(500, 1.0, &few);
        let Event::Compose(parts) = whole.plan.event() else { panic!("a composition") };
        assert_eq!(parts.len(), 4);
        let single = whole.problem.single_noise().unwrap();
        let of = |event: &Event| epsilon(event, Adjacency::ZeroOut, whole.problem.target.delta).unwrap().bound.upper;
        let part = |share: f64| of(&Event::gaussian(single / share.sqrt()));
        for (event, share) in [(&parts[0], 0.3), (&parts[1], 0.69), (&parts[2], COUNTS), (&parts[3], COUNTS)] {
            assert!((of(event) / part(share) - 1.0).abs() < 1e-3, "{share}: {} {}", of(event), part(share));
        }
        assert!((0.999..=1.0).contains(&of(whole.plan.event())));
    }

    #[test]
    fn others_are_refused_with_the_fix() {
        let refused = |classes: &str, layers: Option<Vec<String>>| {
            let job = prepared(500, 1.0, &[("steps", 5.0)]).job().clone();
            let job = crate::job::fit::Job { schema: schema(2, "", classes), layers, ..job };
            crate::job::fit::prepare(&job, 500, false).err().unwrap().to_string()
        };
        let two = refused("classes = [\"p\", \"q\"]", None);
        assert!(two.contains("use method = \"additive\""), "{two}");
        let layers = refused("classes = [\"p\", \"q\", \"r\"]", Some(vec!["dense 3".into()]));
        assert!(layers.contains("use method = \"network\""), "{layers}");
    }
}
