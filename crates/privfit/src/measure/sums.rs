//! Sums of measures over all units, with noise.
//!
//! *Claim.* Released is one vector of sums over all units, with discrete Gaussian noise (Laplace noise where delta is 0). A unit adds the
//! average of its rows' measures; each measure is in [0, 1], at most `Kind::most` of them are not 0, so that a unit's vector has an L2 norm
//! of at most the root of that number (and an L1 norm of at most the number itself). The kernel clips each vector at that on the integers and
//! charges twice the sensitivity for replace-one. Measures of a network are computed by functions of another form (`network.rs`), each record by
//! itself, and are clipped on the integers alike; they have Gaussian noise and zero-out or replace-one.

use super::network::NetworkMeasures;
use super::{Kind, Measure};
use crate::additive::flat;
use crate::data::encode::UNKNOWN;
use crate::error::{Error, Result};
use crate::loss;
use crate::model::LinearModel;
use crate::model::Model;
use privfit_kernel::account::{Adjacency, Event, Target, calibrate};
use privfit_kernel::engine::Needs;
use privfit_kernel::{Additive, Batch, Contribution, Gaussian, Laplace, Mechanism, Run, Sink, Unit, UnitRandomness};

/// What units add.
pub(crate) enum Measures {
    /// A function of one unit.
    EachUnit(Contribution),
    /// A network, which has single precision and lists of its own.
    Network(NetworkMeasures),
}

impl Measures {
    /// Of a model.
    pub(crate) fn of(kind: Kind, model: &Model) -> Result<Measures> {
        let Model::Network(model) = model else { return Ok(Measures::EachUnit(contribution(kind, model)?)) };
        let Some((network, prepared)) = model.network() else {
            return Err(Error::damaged("the parts of the network do not fit together: use the file as it was written"));
        };
        let loss = number_of(&model.loss);
        let measure = Measure { kind, loss, classes: model.classes, loss_parameters: &model.loss_parameters };
        Ok(Measures::Network(NetworkMeasures::new(&measure, network, prepared)))
    }
}

/// Number of a loss in the list of all.
fn number_of(loss: &str) -> usize {
    loss::ALL.iter().position(|l| l.name == loss).unwrap_or(0)
}

/// What one unit adds, for a model.
fn contribution(kind: Kind, model: &Model) -> Result<Contribution> {
    // How many features a row has, none where it has cells, and the numbers of the model.
    let (features, numbers) = match model {
        Model::Linear(m @ LinearModel { map: None, .. }) => (m.weights.first().map_or(0, Vec::len), m.weights.concat()),
        Model::Additive(m) => (0, m.to_list()),
        _ => {
            let text = "this model changes rows before they meet its weights, or has no target: use another method";
            return Err(Error::misuse(text));
        }
    };
    let number = number_of(model.loss());
    let losses = model.loss_parameters();
    let head = [kind as u8 as f64, number as f64, model.classes() as f64, features as f64, losses.len() as f64];
    let parameters = head.into_iter().chain(losses.iter().copied()).chain(numbers).collect();
    Ok(Contribution { name: "measures of a model", dimension: kind.dimension(), parameters, add })
}

fn add(parameters: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    let [kind, number, classes, features, count, rest @ ..] = parameters else { return };
    let (numbers, weights) = rest.split_at(*count as usize);
    let [kind, loss, classes] = [kind, number, classes].map(|x| *x as usize);
    let measure = Measure { kind: Kind::of(kind), loss, classes: classes, loss_parameters: numbers };
    let share = 1.0 / unit.rows().max(1) as f64;
    let (mut scores, mut cells) = (Vec::new(), Vec::new());
    for row in 0..unit.rows() {
        let label = unit.label(row);
        if label == UNKNOWN {
            continue;
        }
        if *features == 0.0 {
            unit.cells(row, &mut cells);
            if cells.is_empty() {
                continue;
            }
            flat::scores(weights, &cells, &mut scores);
        } else {
            scores.clear();
            scores.extend(weights.chunks(*features as usize).map(|w| unit.dot(row, w)));
        }
        measure.each(&scores, label, |i, value| sink.add(i, share * value));
    }
}

/// Noise on sums of measures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SumNoise {
    Gaussian(Gaussian),
    Laplace(Laplace),
}

impl SumNoise {
    /// The least noise that meets the target.
    pub(crate) fn meeting(kind: Kind, target: Target, adjacency: Adjacency, rows: u64) -> Result<SumNoise> {
        let of = |nm: f64| -> Result<SumNoise> {
            Ok(match target.delta == 0.0 {
                false => SumNoise::Gaussian(Gaussian::new(kind.length(), nm, rows)?),
                true => SumNoise::Laplace(Laplace::new(kind.most() * (1.0 + 1e-9), nm, rows)?),
            })
        };
        let event = |nm: f64| of(nm).map(|n| n.event(kind));
        of(calibrate(target, event, adjacency)?)
    }

    pub(crate) fn event(&self, kind: Kind) -> Event {
        match self {
            SumNoise::Gaussian(g) => g.event(kind.dimension()),
            SumNoise::Laplace(l) => l.event(kind.dimension()),
        }
    }

    /// What it asks of an engine.
    pub(crate) fn needs(&self) -> Needs {
        if matches!(self, SumNoise::Gaussian(_)) { Needs::Sums } else { Needs::Totals }
    }

    /// Standard deviation of one sum.
    pub(crate) fn deviation(&self, kind: Kind) -> f64 {
        match self {
            SumNoise::Gaussian(g) => g.standard_deviation(),
            SumNoise::Laplace(l) => l.noise_multiplier() * kind.most() * std::f64::consts::SQRT_2,
        }
    }

    /// Releases the sums over everyone.
    pub(crate) fn release(&self, run: &mut Run<'_>, measures: &Measures) -> Result<Vec<f64>> {
        let everyone = run.everyone()?;
        Ok(match (self, measures) {
            (SumNoise::Gaussian(g), Measures::EachUnit(contribution)) => noisy(run, &everyone, g, contribution)?,
            (SumNoise::Laplace(l), Measures::EachUnit(contribution)) => noisy(run, &everyone, l, contribution)?,
            (SumNoise::Gaussian(g), Measures::Network(network)) => run.at(g, |run, scale| {
                let blocks = network.blocks();
                let noise = run.draw(&scale, blocks.dimension)?;
                let value = everyone.sum_blocks(&noise, &blocks)?;
                run.release(noise, &value)
            })?,
            (SumNoise::Laplace(_), Measures::Network(_)) => return Err(needs_delta()),
        })
    }
}

fn noisy<M: Mechanism<Norm: Additive>>(
    run: &mut Run<'_>,
    on: &Batch<'_>,
    mechanism: &M,
    contribution: &Contribution,
) -> privfit_kernel::Result<Vec<f64>> {
    run.at(mechanism, |run, scale| {
        let noise = run.draw(&scale, contribution.dimension)?;
        let value = on.sum(&noise, contribution)?;
        run.release(noise, &value)
    })
}

pub(crate) fn needs_delta() -> Error {
    Error::misuse("sums over a network have Gaussian noise, which needs a delta above 0: ").give("delta", "1e-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive::{AdditiveModel, Curve};
    use crate::data::cells::CellGrid;
    use crate::data::encode::Row;
    use crate::network::{Layer, Network, NetworkModel, Shape};
    use crate::schema::Schema;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Dataset, DatasetBuilder, Entropy, RowShape};
    use std::sync::Arc;

    /// Of numbers in the place of pixels, with a layer before its scores.
    fn network(classes: usize, loss: &str) -> Model {
        let layers = [Layer::parse("dense 4").unwrap(), Layer::Tanh];
        let network = Network::new(Shape { height: 1, width: 1, channels: 3 }, &layers, classes, 2.0, 0.1).unwrap();
        let weights: Vec<f64> = (0..network.dimension()).map(|i| f64::from((i * 7 % 5) as i32 - 2) * 9.0).collect();
        Model::Network(Box::new(NetworkModel::new(&network, loss, Vec::new(), &weights)))
    }

    fn model(classes: usize, heads: usize, loss: &str) -> Model {
        let weights = (0..heads).map(|h| (0..3).map(|i| f64::from(3 * h as i32 - 2 * i) * 7.0).collect()).collect();
        Model::new(loss::find(loss).unwrap(), Vec::new(), classes, weights, None)
    }

    /// Units of up to two rows with every kind of label, and one unit that is replaced.
    fn data(changed: Option<Vec<(Vec<f64>, f32)>>, rows_per_unit: Option<usize>) -> Dataset {
        let shape = RowShape { dimension: 3, row_norm: 1.0, sparse: false, rows_per_unit };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for unit in 0..40i32 {
            let own: Vec<(Vec<f64>, f32)> = (0..if rows_per_unit.is_some() { 2 } else { 1 })
                .map(|r| (vec![f64::from(unit % 7 - 3) / 9.0, f64::from(r), 0.1], [0.0, 1.0, UNKNOWN][(unit % 3) as usize]))
                .collect();
            for (row, label) in changed.as_ref().filter(|_| unit == 11).unwrap_or(&own) {
                builder.row(row, *label);
            }
            builder.end_unit();
        }
        builder.build()
    }

    /// No neighbour moves the sums further than the noise was made for, whatever a record looks like.
    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let engine = Threads::new(1);
        let target = Target { epsilon: 1.0, delta: 1e-6 };
        for (kind, model) in [
            (Kind::Score, model(2, 1, "logistic")),
            (Kind::Score, model(0, 1, "squared")),
            (Kind::Classes, model(2, 1, "logistic")),
            (Kind::Classes, model(3, 3, "softmax")),
            (Kind::Classes, model(2, 1, "huber-svm")),
            (Kind::Number, model(0, 1, "squared")),
            (Kind::Number, model(0, 1, "poisson")),
            (Kind::Score, network(2, "softmax")),
            (Kind::Classes, network(3, "softmax")),
            (Kind::Number, network(0, "squared")),
        ] {
            // Sums over networks have Gaussian noise, and a row to a unit.
            let each_unit = !matches!(model, Model::Network(_));
            for delta in [1e-6, 0.0].into_iter().filter(|delta| each_unit || *delta > 0.0) {
                for rows_per_unit in [None, Some(2)].into_iter().filter(|rows| each_unit || rows.is_none()) {
                    let noise = SumNoise::meeting(kind, Target { delta, ..target }, Adjacency::ReplaceOne, 40).unwrap();
                    let event = noise.event(kind);
                    let measures = Measures::of(kind, &model).unwrap();
                    let entropy = || Entropy::simulated(5);
                    let (first, seed) = (data(None, rows_per_unit), entropy());
                    let mut run = Run::recorded(&first, &engine, &seed, &event).unwrap();
                    let out = noise.release(&mut run, &measures).unwrap();
                    let transcript: Arc<_> = run.transcript().unwrap();
                    let labels = [0.0, 1.0, 2.0, -1.0, -0.3, 77.0, UNKNOWN, f32::NAN];
                    let rows = [vec![1.0, 0.0, 0.0], vec![-9.0, 1e9, 3.0], vec![f64::NAN, 0.0, 0.0], vec![0.0; 3]];
                    let mut moved = 0;
                    for label in labels {
                        for row in &rows {
                            let mut other = vec![(row.clone(), label)];
                            if rows_per_unit.is_some() {
                                other.push((rows[0].clone(), 1.0));
                            }
                            let (second, seed) = (data(Some(other), rows_per_unit), entropy());
                            let mut run = Run::replayed(&second, &engine, &seed, &event, &transcript).unwrap();
                            assert_eq!(noise.release(&mut run, &measures).unwrap(), out);
                            for movement in run.movements().unwrap() {
                                assert!(movement.holds(Adjacency::ReplaceOne), "{kind:?} {label}: {movement:?}");
                                moved = moved.max(movement.moved);
                            }
                        }
                    }
                    assert!(moved > 0, "{kind:?}: some neighbour moves it");
                }
            }
        }
    }

    /// The same for rows of cells, null ones among them; and without noise the sums are those that are counted by hand.
    #[test]
    fn neighbours_of_cells_stay_within_the_sensitivity() {
        let text = "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features.a]\ntype = \"category\"\nvalues = [\"u\", \"v\"]\n\
                    [features.b]\ntype = \"category\"\nvalues = [\"w\", \"x\"]\n";
        let grid = CellGrid::new(&Schema::parse(text).unwrap(), 8).unwrap();
        let curve = |scores: [f64; 3]| Curve { shares: vec![1.0 / 3.0; 3], scores: vec![scores.to_vec()], noise: Vec::new() };
        // Class 1 where the first column is v.
        let model = Model::Additive(Box::new(AdditiveModel {
            loss: "logistic".into(),
            loss_parameters: vec![1.0, 1.0, 1.0, 1.0],
            classes: 2,
            offsets: vec![0.0],
            curves: vec![curve([-3.0, 3.0, 0.5]), curve([0.25, -0.25, 0.0])],
            grid: grid.clone(),
            pairs: Vec::new(),
            trees: Vec::new(),
            edits: Vec::new(),
        }));
        let data = |changed: Option<Option<([u8; 2], f32)>>, rows_per_unit: Option<usize>| {
            let mut builder = DatasetBuilder::of_cells(&Entropy::simulated(1), &grid.counts(), rows_per_unit).unwrap();
            for unit in 0..40u8 {
                let own = Some(([unit % 2, unit % 3], f32::from(unit % 2)));
                match changed.filter(|_| unit == 11).unwrap_or(own) {
                    Some((cells, label)) => builder.cell_row(&cells, label),
                    None => builder.null_cell_row(),
                }
                builder.end_unit();
            }
            builder.build()
        };
        let engine = Threads::new(1);
        let measures = Measures::of(Kind::Classes, &model).unwrap();
        for rows_per_unit in [None, Some(2)] {
            let noise =
                SumNoise::meeting(Kind::Classes, Target { epsilon: 1.0, delta: 1e-6 }, Adjacency::ReplaceOne, 40).unwrap();
            let event = noise.event(Kind::Classes);
            let (first, seed) = (data(None, rows_per_unit), Entropy::simulated(5));
            let mut run = Run::recorded(&first, &engine, &seed, &event).unwrap();
            let out = noise.release(&mut run, &measures).unwrap();
            let transcript: Arc<_> = run.transcript().unwrap();
            let mut moved = 0;
            for label in [0.0, 1.0, 77.0, UNKNOWN, f32::NAN] {
                for other in [Some(([1, 1], label)), Some(([0, 2], label)), Some(([9, 9], label)), None] {
                    let (second, seed) = (data(Some(other), rows_per_unit), Entropy::simulated(5));
                    let mut run = Run::replayed(&second, &engine, &seed, &event, &transcript).unwrap();
                    assert_eq!(noise.release(&mut run, &measures).unwrap(), out);
                    for movement in run.movements().unwrap() {
                        assert!(movement.holds(Adjacency::ReplaceOne), "{label}: {movement:?}");
                        moved = moved.max(movement.moved);
                    }
                }
            }
            assert!(moved > 0, "some neighbour moves it");
        }
        // Hardly any noise: 40 known labels, all of them right; a null row has none.
        for (changed, known) in [(None, 40.0), (Some(None), 39.0)] {
            let noise = SumNoise::meeting(Kind::Classes, Target { epsilon: 1e4, delta: 1e-6 }, Adjacency::ZeroOut, 40).unwrap();
            let (records, seed) = (data(changed, None), Entropy::simulated(5));
            let mut run = Run::begin(&records, &engine, &seed, &noise.event(Kind::Classes)).unwrap();
            let sums = noise.release(&mut run, &measures).unwrap();
            assert!((sums[0] - known).abs() < 0.5 && (sums[1] - known).abs() < 0.5, "{sums:?}");
        }
    }

    /// With hardly any noise the sums of a network are those that its scores have on public rows; a record without a label adds nothing.
    #[test]
    fn a_network_is_measured_by_its_scores() {
        let (model, records) = (network(3, "softmax"), data(None, None));
        let Model::Network(own) = &model else { unreachable!() };
        let (mut known, mut right) = (0.0, 0.0);
        for unit in 0..40i32 {
            let label = [0.0, 1.0, UNKNOWN][(unit % 3) as usize];
            let row = Row { dense: vec![f64::from(unit % 7 - 3) / 9.0, 0.0, 0.1], ..Row::default() };
            let mut scores = Vec::new();
            own.scores(&row, &mut scores);
            let best = (0..3).fold(0, |best, c| if scores[c] > scores[best] { c } else { best });
            known += f64::from(u8::from(label != UNKNOWN));
            right += f64::from(u8::from(best as f32 == label));
        }
        assert!(right > 0.0 && right < known, "{right} of {known}");
        let noise = SumNoise::meeting(Kind::Classes, Target { epsilon: 1e4, delta: 1e-6 }, Adjacency::ZeroOut, 40).unwrap();
        let (engine, seed) = (Threads::new(1), Entropy::simulated(5));
        let mut run = Run::begin(&records, &engine, &seed, &noise.event(Kind::Classes)).unwrap();
        let sums = noise.release(&mut run, &Measures::of(Kind::Classes, &model).unwrap()).unwrap();
        assert!((sums[0] - known).abs() < 0.5 && (sums[1] - right).abs() < 0.5, "{sums:?}: {right} of {known}");
    }
}
