//! The figures of chapters 4 and 5, each named by its number, from our runs.

use super::super::Options;
use super::cases::{PASSES, SMOOTHING, smoothed};
use super::courses::{LENGTHS, OPTIMISERS, of_length, of_softmax, of_strength};
use super::lines::Lines;
use super::points::{Point, Points};
use super::printed::{LOGISTIC, NETWORKS, SMOOTHED};
use crate::Failure;
use crate::chart::{Chart, Series, write_panels};
use crate::tables::sets::Random;
use privfit::solve::laplacian::smooth;
use std::f64::consts::TAU;

/// Writes the pictures, and returns what each shows, a line each.
pub(super) fn write(options: &Options, lines: &Lines, points: &Points) -> Result<String, Failure> {
    let all: Vec<(&str, &str, Vec<Chart>)> = vec![
        (
            "figure-4-1",
            "a9a: cross-entropy of test rows (published: objective loss) and norm of the gradient over passes, recursive momentum beside `noisy-sgd`; every point is a fit of its own with all of epsilon.",
            logistic("a9a", lines),
        ),
        (
            "figure-4-2",
            "MNIST, network of four layers: test error of one fit under way, over steps and over processor seconds, at epsilon 3 and 1.2.",
            networks("mnist-pixels", "MNIST", &[3.0, 1.2], points),
        ),
        (
            "figure-4-3",
            "CIFAR-10, scores on scattering features in the place of CNN6: test error over steps and seconds, at epsilon 2 and 4.",
            networks("cifar", "CIFAR-10, layers from CIFAR-100", &[2.0, 4.0], points),
        ),
        ("figure-4-4", "The same as 4.1 for ijcnn1.", logistic("ijcnn1", lines)),
        (
            "figure-4-5",
            "Test error over steps and seconds: MNIST at epsilon 7, in the place of CNN6 at 8, CNN5 at 6, 8 and 10.",
            [
                networks("mnist-pixels", "MNIST", &[7.0], points),
                networks("cifar", "CIFAR-10, layers from CIFAR-100", &[8.0], points),
                networks("cifar-pixels", "CIFAR-10", &[6.0, 8.0, 10.0], points),
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
        (
            "figure-5-1",
            "MNIST: losses of a softmax model by DP-SGD on training and on validation rows, at several epsilons and a learning rate of 0.5, where noise is learned; test accuracy of the network over epsilon.",
            degraded(points),
        ),
        (
            "figure-5-2",
            "What smoothing does to noise: a sine with noise 0.1 (s = 10), and the middle row of a picture of 100 x 100, a product of sines with noise 0.2, smoothed as one row-major ring (s = 100).",
            illustrated(),
        ),
        (
            "figure-5-3",
            "MNIST, softmax: losses of training and of validation rows under way, s = 0, 1, 3, at epsilon 0.2 and 0.1; learning rate 0.125, which figure 5.4 favours.",
            losses(points),
        ),
        (
            "figure-5-4",
            "MNIST, softmax: accuracy of validation rows over the learning rate, s = 0, 1, 3, at epsilon 0.1 and 0.2.",
            lengths(points),
        ),
        (
            "figure-5-5",
            "MNIST, network: test accuracy under way of four optimisers, at epsilon 0.2, 0.4 and 1.2.",
            optimisers("mnist-pixels", &[0.2, 0.4, 1.2], points),
        ),
        (
            "figure-5-6",
            "CIFAR-10, CNN5 in the place of the published network: test accuracy under way of four optimisers, at epsilon 3.",
            optimisers("cifar-pixels", &[3.0], points),
        ),
        (
            "figure-5-7",
            "MNIST, network at epsilon 0.4, validation rows: strengths of smoothing, and lengths of a step with and without it; test accuracy of four optimisers over epsilon.",
            compared(points),
        ),
        ("table-5-2", "Table 5.2 as a picture: softmax on MNIST at the true epsilon.", vec![table(lines)]),
    ];
    let mut out = String::from(
        "## Figures\n\nEach is named by its number in the thesis. Figures of networks are one fit each, the published ones means of thirty or five.\n\n",
    );
    for (stem, what, charts) in all {
        let drawn: Vec<Chart> = charts.into_iter().filter(|c| c.series.iter().any(|s| !s.points.is_empty())).collect();
        if drawn.is_empty() {
            continue;
        }
        write_panels(&drawn, &options.out.join("plots").join(stem)).map_err(Failure::misuse)?;
        out += &format!("- [{stem}](plots/{stem}.svg): {what}\n");
    }
    Ok(out)
}

fn chart(title: impl Into<String>, x: &str, y: &str, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), x: x.into(), y: y.into(), log_x: false, levels: vec![], series }
}

fn series(name: impl Into<String>, points: Vec<(f64, f64, f64)>) -> Series {
    Series { name: name.into(), dashed: false, points }
}

/// Looks at a fit, as a line.
fn course(name: &str, looks: &[Point], x: &str, y: impl Fn(&Point) -> f64) -> Series {
    series(name, looks.iter().map(|p| (p.get(x), y(p), 0.0)).collect())
}

fn accuracy(p: &Point) -> f64 {
    100.0 * (1.0 - p.get("wrong"))
}

fn logistic(set: &str, lines: &Lines) -> Vec<Chart> {
    let mut out = Vec::new();
    for (column, what) in [("cross_entropy", "cross-entropy"), ("gradient_norm", "gradient norm")] {
        for at in [0.2, 0.5] {
            let error = format!("{column}_error");
            let one = |name: &str| {
                let found = PASSES.iter().filter_map(|p| Some((*p, lines.find(set, &format!("{name} {p} passes"), at)?)));
                series(name, found.map(|(p, l)| (p, l.get(column), l.get(&error))).collect())
            };
            let published = LOGISTIC.iter().filter(|p| p.0 == set && p.1 == at && column == "cross_entropy" && p.2 == "DP-SRM");
            let levels = published.map(|p| (format!("DP-SRM, published, {} passes", p.3[2]), p.3[0])).collect();
            let title = format!("{set}, epsilon {at}: {what}");
            out.push(Chart { levels, ..chart(title, "passes", what, ["recursive-momentum", "noisy-sgd"].map(one).into()) });
        }
    }
    out
}

fn networks(set: &str, printed: &str, epsilons: &[f64], points: &Points) -> Vec<Chart> {
    let mut out = Vec::new();
    for at in epsilons {
        for (x, name) in [("step", "steps"), ("seconds", "processor seconds")] {
            let lines = ["DP-SGD", "recursive momentum"].map(|method| {
                let looks = points.of(set, "test", method, *at);
                // The start is off the chart.
                let late = looks.len().min(2);
                course(method, &looks[late..], x, |p| 100.0 * p.get("wrong"))
            });
            let published = NETWORKS.iter().filter(|n| n.0 == printed && n.1 == *at);
            let levels =
                published.flat_map(|n| [("DP-SGD, published".into(), n.2[0]), ("DP-SRM, published".into(), n.2[1])]).collect();
            let short = if set == "cifar" { "scattering features of CIFAR-10" } else { printed };
            out.push(Chart { levels, ..chart(format!("{short}, epsilon {at}: test error"), name, "error, %", lines.into()) });
        }
    }
    out
}

const DIGITS: &str = "mnist-pixels";
/// Of the lengths of figure 5.4 the one with the most validation rows right at epsilon 0.1, for every strength.
const SHORT: f64 = 0.25;

fn degraded(points: &Points) -> Vec<Chart> {
    let loss = |column: &str| {
        let one = |at: f64| {
            let looks = points.of(DIGITS, "validation", &of_softmax(0.0, 1.0), at);
            course(&format!("epsilon {at}"), &looks, "passes", |p| p.get(column))
        };
        [0.05, 0.1, 0.2, 0.4].map(one).into()
    };
    let ends = [0.2, 0.4, 1.2, 3.0, 7.0]
        .iter()
        .filter_map(|at| Some((*at, accuracy(&points.last(DIGITS, "test", "DP-SGD", *at)?), 0.0)));
    vec![
        chart("softmax, DP-SGD: loss of training rows", "passes", "cross-entropy", loss("training_cross_entropy")),
        chart("softmax, DP-SGD: loss of validation rows", "passes", "cross-entropy", loss("cross_entropy")),
        Chart {
            log_x: true,
            ..chart("network, DP-SGD: test accuracy", "epsilon", "accuracy, %", vec![series("DP-SGD", ends.collect())])
        },
    ]
}

fn losses(points: &Points) -> Vec<Chart> {
    let mut out = Vec::new();
    for at in [0.2, 0.1] {
        for (column, what) in [("training_cross_entropy", "training rows"), ("cross_entropy", "validation rows")] {
            let one = |s: f64| {
                course(&format!("s = {s}"), &points.of(DIGITS, "validation", &of_softmax(s, SHORT), at), "passes", |p| {
                    p.get(column)
                })
            };
            out.push(chart(
                format!("softmax, epsilon {at}: loss of {what}"),
                "passes",
                "cross-entropy",
                [0.0, 1.0, 3.0].map(one).into(),
            ));
        }
    }
    out
}

fn lengths(points: &Points) -> Vec<Chart> {
    let of = |at: f64| {
        let one = |s: f64| {
            let found = LENGTHS.iter().filter_map(|length| {
                Some((*length, accuracy(&points.last(DIGITS, "validation", &of_softmax(s, *length), at)?), 0.0))
            });
            series(format!("s = {s}"), found.collect())
        };
        let title = format!("softmax, epsilon {at}: accuracy of validation rows");
        Chart { log_x: true, ..chart(title, "learning rate, over 0.5", "accuracy, %", [0.0, 1.0, 3.0].map(one).into()) }
    };
    [0.1, 0.2].map(of).into()
}

fn optimisers(set: &str, epsilons: &[f64], points: &Points) -> Vec<Chart> {
    let of = |at: &f64| {
        let lines = OPTIMISERS.map(|(name, _, _)| course(name, &points.of(set, "test", name, *at), "passes", accuracy));
        chart(format!("epsilon {at}: test accuracy"), "passes", "accuracy, %", lines.into())
    };
    epsilons.iter().map(of).collect()
}

fn compared(points: &Points) -> Vec<Chart> {
    let of = |name: String| course(&name, &points.of(DIGITS, "validation", &name, 0.4), "passes", accuracy);
    let lengths = [(0.0, 0.25), (1.0, 0.25), (0.0, 1.0), (1.0, 1.0)].map(|(s, length)| of(of_length(s, length)));
    let by_epsilon = OPTIMISERS.map(|(name, _, _)| {
        let found = [0.2, 0.4, 1.2].iter().filter_map(|at| Some((*at, accuracy(&points.last(DIGITS, "test", name, *at)?), 0.0)));
        series(name, found.collect())
    });
    vec![
        chart("strengths of smoothing: accuracy", "passes", "accuracy, %", SMOOTHING.map(|s| of(of_strength(s))).into()),
        chart("lengths of a step: accuracy", "passes", "accuracy, %", lengths.into()),
        Chart { log_x: true, ..chart("test accuracy", "epsilon", "accuracy, %", by_epsilon.into()) },
    ]
}

/// A sine, and a product of two, with noise, and smoothed: no data.
fn illustrated() -> Vec<Chart> {
    let mut random = Random(5 << 32);
    let mut made = |clear: Vec<f64>, noise: f64, strength: f64| {
        let noisy: Vec<f64> = clear.iter().map(|x| x + noise * random.normal()).collect();
        let mut smoothed = noisy.clone();
        smooth(&mut smoothed, strength);
        [("without noise", clear), ("with noise", noisy), ("smoothed", smoothed)]
    };
    let line =
        |(name, values): (&str, Vec<f64>)| series(name, values.iter().enumerate().map(|(i, y)| (i as f64, *y, 0.0)).collect());
    let sine = |i: usize| (TAU * i as f64 / 100.0).sin();
    let one = made((0..100).map(sine).collect(), 0.1, 10.0).map(line);
    let all = made((0..10_000).map(|i| sine(i / 100) * sine(i % 100)).collect(), 0.2, 100.0);
    let row = all.map(|(name, values)| line((name, values[2500..2600].to_vec())));
    vec![
        chart("a sine, s = 10", "place", "value", one.into()),
        chart("a row of a product of sines, s = 100", "place", "value", row.into()),
    ]
}

fn table(lines: &Lines) -> Chart {
    let one = |name: &str, dashed: bool| {
        let found = SMOOTHED.iter().filter_map(|(at, _)| lines.find("MNIST", name, *at));
        let points =
            found.map(|l| (l.get("true_epsilon"), 100.0 * (1.0 - l.get("wrong")), 100.0 * l.get("wrong_error"))).collect();
        Series { name: name.into(), dashed, points }
    };
    let mut series: Vec<Series> = SMOOTHING.iter().map(|s| one(&smoothed(*s), false)).collect();
    series.push(one("noisy-gd", false));
    series.extend([0.0, 3.0].map(|s| one(&format!("published-dp-lssgd s={s}"), true)));
    Chart { log_x: true, ..chart("MNIST, softmax: accuracy at the true epsilon", "epsilon", "accuracy, %", series) }
}
