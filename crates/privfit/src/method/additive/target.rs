//! What is asked about the target before the first step: where scores begin.
//!
//! *Claim.* A unit adds the mean over its rows of (y, y^2) for a number y in [-1, 1], of -1 or 1 for one of two classes, or of the indicators of several classes: vectors of length sqrt 2
//! or less. It moves the sum by as much when it becomes null, and by twice that when it becomes another one.

use crate::method::offset::each_label;
use crate::schema::Task;
use privfit_kernel::{Contribution, Sink, Unit, UnitRandomness};

/// Numbers of the release, for so many scores.
pub(super) fn dimension(outputs: usize) -> usize {
    if outputs == 1 { 2 } else { outputs }
}

/// What each unit adds.
pub(super) fn contribution(task: Task, outputs: usize) -> Contribution {
    let dimension = dimension(outputs);
    match task {
        Task::Classes(classes) if outputs > 1 => {
            Contribution { name: "target", dimension, parameters: vec![classes as f64], add: add_class }
        }
        Task::Classes(_) => Contribution { name: "target", dimension, parameters: Vec::new(), add: add_sign },
        _ => Contribution { name: "target", dimension, parameters: Vec::new(), add: add_moments },
    }
}

/// A target in [-1, 1] and its square.
fn add_moments(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_label(unit, -1.0..=1.0, |y, weight| {
        sink.add(0, weight * y);
        sink.add(1, weight * y * y);
    });
}

/// The second of two classes as 1, the first as -1.
fn add_sign(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_label(unit, 0.0..=1.0, |y, weight| sink.add(0, weight * (2.0 * y - 1.0)));
}

/// A count for each class.
fn add_class(p: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    each_label(unit, 0.0..=p[0] as f32 - 1.0, |y, weight| sink.add(y as usize, weight));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{dataset, schema};
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Entropy, Gaussian, Mechanism, Run};

    /// The same seed gives the same noise, so that differences of releases are what a unit adds: its closed form, and at most sqrt 2 (replace-one 2 sqrt 2), although the
    /// mechanism here would let ten times as much through.
    #[test]
    fn a_unit_adds_the_mean_of_its_rows() {
        type Expected = (&'static [f64], &'static [f64]);

        let number: [Expected; 5] = [
            (&[8.0], &[1.0, 1.0]),
            (&[0.0], &[-1.0, 1.0]),
            (&[6.0, 4.0, f64::NAN], &[0.25, 0.125]),
            (&[8.0, 8.0, 8.0], &[1.0, 1.0]),
            (&[f64::NAN], &[0.0, 0.0]),
        ];
        let two: [Expected; 4] =
            [(&[0.0], &[-1.0, 0.0]), (&[1.0, 1.0, 0.0], &[1.0 / 3.0, 0.0]), (&[7.0], &[0.0, 0.0]), (&[1.0], &[1.0, 0.0])];
        let three: [Expected; 4] = [
            (&[2.0], &[0.0, 0.0, 1.0]),
            (&[0.0, 1.0, 0.0], &[2.0 / 3.0, 1.0 / 3.0, 0.0]),
            (&[3.0], &[0.0, 0.0, 0.0]),
            (&[0.0], &[1.0, 0.0, 0.0]),
        ];
        for (target, task, outputs, cases) in [
            ("bounds = [0, 8]", Task::Number, 1, &number[..]),
            ("classes = [0, 1]", Task::Classes(2), 1, &two),
            ("classes = [0, 1, 2]", Task::Classes(3), 3, &three),
        ] {
            let schema = schema(1, "unit = { column = \"u\", max_rows = 3 }\nunits = 3", target);
            let contribution = contribution(task, outputs);
            let wide = Gaussian::new(20.0, 1.0, 10).unwrap();
            let event = wide.event(contribution.dimension);
            let release = |unit: &[f64]| -> Vec<f64> {
                let mut rows = vec![vec![1.0, 0.1, 1.0], vec![2.0, -0.4, 0.0]];
                rows.extend(unit.iter().map(|y| vec![3.0, 0.3, *y]));
                let (entropy, engine) = (Entropy::simulated(8), Threads::new(1));
                let data = dataset(&schema, 1, true, &rows, &entropy);
                let mut run = Run::begin(&data, &engine, &entropy, &event).unwrap();
                let everyone = run.everyone().unwrap();
                run.at(&wide, |run, scale| {
                    let noise = run.draw(&scale, contribution.dimension)?;
                    let sum = everyone.sum(&noise, &contribution)?;
                    run.release(noise, &sum)
                })
                .unwrap()
            };
            let difference = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
            let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let null = release(&[]);
            let all: Vec<Vec<f64>> = cases.iter().map(|(unit, _)| difference(&release(unit), &null)).collect();
            for ((unit, expected), found) in cases.iter().zip(&all) {
                assert!(length(&difference(found, expected)) < 1e-3, "{target} {unit:?}: {found:?}");
                assert!(all.iter().all(|other| length(&difference(found, other)) <= 8f64.sqrt() + 1e-3));
            }
        }
    }
}
