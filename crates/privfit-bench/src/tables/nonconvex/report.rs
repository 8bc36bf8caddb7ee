//! The finished tables as Markdown and as plots.

use super::super::Options;
use super::cases::{PASSES, SMOOTHING, smoothed};
use super::lines::{Line, Lines};
use super::printed::{FACTORS, LOGISTIC, NETWORKS, SMOOTHED, WITHOUT};
use crate::Failure;
use crate::chart::{Chart, Series, write as write_chart};

const HOW: &str = "\
How to read it. *Claimed* is the epsilon in the publication, or the one that was asked for; *true* the one that the noise guarantees by our accountant, at delta 1e-5 (*none*: no finite one). Tables 4.2 and 4.3 are under replace-one, as \
published; MNIST under zero-out. Numbers after ± are one standard error over the runs; those of a publication in brackets are its standard deviations. The published \"test error\" of tables 4.2 and 4.3 can't be a part of wrong \
predictions (without privacy it is above that of the larger class); it has the size of a cross-entropy and is compared with one. *Passes* are records read over records, *gradients* the gradients that were computed for each record, two for \
each that a step of recursive momentum reads. Processor seconds are those of a fit on one thread, without the plan. Gradient norms are of the average loss with the regulariser of strength 0.001, on the rows for training; weights are those of rows of norm 1, so \
that published norms, of rows as they were, are not comparable in size. `objective` has no regulariser of this kind, because it needs convexity.

Settings that are not defaults (the `setting` column of the file) were chosen on every fifth row for training. No test row was looked at for them.

`adaptive-gd` takes as many steps as its budget pays for, so that it has no fixed number of passes.\n\nWhat is not here. The whole of CIFAR-10 and of the test rows of MNIST can't be had: MNIST is tested on the 5,000 test digits with even numbers, and the networks of CIFAR-10 were not run. Published RRPSGD takes one record a step; \
`random-round-sgd` takes 1,024 and runs up to eight passes. Figures of the thesis have no printed numbers; the plots here show what they are about, from our runs.

";

fn number(x: f64, digits: usize) -> String {
    if x.is_finite() { format!("{x:.digits$}") } else { "–".into() }
}

fn with_error(mean: f64, error: f64, digits: usize) -> String {
    if error > 0.0 { format!("{mean:.digits$} ± {error:.digits$}") } else { number(mean, digits) }
}

fn epsilon(x: f64) -> String {
    if x.is_finite() { format!("{:.3}", x) } else { "none".into() }
}

/// Writes everything, and returns a summary in a few lines.
pub(super) fn write(options: &Options, lines: &Lines) -> Result<String, Failure> {
    let mut text = String::from("# Losses that are not convex: published, rerun, and ours\n\n");
    text += "Made by `privfit-bench tables nonconvex --shared ../shared --out bench/nonconvex` from `cells.csv`.\n\n";
    text += HOW;
    for set in ["a9a", "ijcnn1", "Synthetic-L"] {
        text += &logistic(set, lines);
    }
    text += &smoothing_of_tables(lines);
    text += &softmax(lines);
    text += &networks(lines);
    text += &factors();
    text += &curves(options, lines)?;
    let page = options.out.join("README.md");
    std::fs::write(&page, text)
        .map_err(|e| Failure::misuse(format!("cannot write {}: {e}; give another --out", page.display())))?;
    Ok(format!("tables  {}", page.display()))
}

/// Methods of the table of a set with two classes, in its order.
const ROWS: [&str; 14] = [
    "recursive-momentum",
    "recursive-momentum tuned",
    "recursive-momentum 5 gradients",
    "recursive-momentum joint",
    "noisy-sgd",
    "noisy-gd 5 passes",
    "noisy-gd",
    "noisy-gd as DP-GD",
    "adaptive-gd",
    "random-round-sgd",
    "objective",
    "published-dp-srm",
    "published-dp-srm gamma 0.1",
    "storm-without-noise",
];

fn logistic(set: &str, lines: &Lines) -> String {
    if !ROWS.iter().any(|m| lines.has(set, m, 0.2)) {
        return String::new();
    }
    let number_of = match set {
        "a9a" => "Table 4.2, a9a",
        "ijcnn1" => "Table 4.3, ijcnn1",
        _ => "The same on generated rows (Synthetic-L)",
    };
    let mut out = format!(
        "## {number_of}\n\n| claimed | method | true | cross-entropy | wrong, % | gradient norm | passes | gradients | processor s |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for claimed in [0.2, 0.5] {
        for (_, _, method, p) in LOGISTIC.iter().filter(|p| p.0 == set && p.1 == claimed) {
            out += &format!(
                "| {claimed} | {method}, published | – | {:.4} ({:.4}) | – | {:.4} ({:.4}) | {} | – | {:.3} |\n",
                p[0], p[1], p[4], p[5], p[2], p[3]
            );
        }
        for line in ROWS.iter().filter_map(|m| lines.find(set, m, claimed)) {
            out += &format!(
                "| {claimed} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                line.name,
                epsilon(line.get("true_epsilon")),
                with_error(line.get("cross_entropy"), line.get("cross_entropy_error"), 4),
                with_error(100.0 * line.get("wrong"), 100.0 * line.get("wrong_error"), 2),
                with_error(line.get("gradient_norm"), line.get("gradient_norm_error"), 4),
                number(line.get("passes"), 1),
                number(line.get("gradients"), 1),
                number(line.get("seconds"), 3),
            );
        }
    }
    if let Some((_, without)) = WITHOUT.iter().find(|w| w.0 == set) {
        out += &format!("\nPublished without privacy: {without}.\n");
    }
    out + "\n"
}

fn smoothing_of_tables(lines: &Lines) -> String {
    let mut out = String::new();
    for set in ["a9a", "ijcnn1", "Synthetic-L"] {
        for claimed in [0.2, 0.5] {
            let found: Vec<Line> = SMOOTHING.iter().filter_map(|s| lines.find(set, &smoothed(*s), claimed)).collect();
            if found.len() == SMOOTHING.len() {
                let cells: Vec<String> =
                    found.iter().map(|l| with_error(l.get("cross_entropy"), l.get("cross_entropy_error"), 4)).collect();
                out += &format!("| {set} | {claimed} | {} | {} |\n", cells.join(" | "), verdict(&found, "cross_entropy"));
            }
        }
    }
    if out.is_empty() {
        return out;
    }
    format!(
        "## Smoothing on tables: cross-entropy of `noisy-sgd` at the same true epsilon\n\n| set | epsilon | s = 0 | 1 | 2 | 3 | does the best of them help? |\n|---|---|---|---|---|---|---|\n{out}\n"
    )
}

/// Whether the best strength above 0 is better than none by two standard errors of the difference.
fn verdict(found: &[Line], column: &str) -> &'static str {
    let error = format!("{column}_error");
    let Some((plain, others)) = found.split_first() else { return "" };
    let best = others.iter().min_by(|a, b| a.get(column).total_cmp(&b.get(column)));
    let Some(best) = best else { return "" };
    let gap = plain.get(column) - best.get(column);
    let noise = 2.0 * (plain.get(&error).powi(2) + best.get(&error).powi(2)).sqrt();
    match gap {
        g if g > noise => "yes",
        g if g < -noise => "no, it harms",
        _ => "no difference",
    }
}

fn softmax(lines: &Lines) -> String {
    let cell = |name: &str, at: f64| {
        lines.find("MNIST", name, at).map_or("–".to_string(), |l| {
            let percent = with_error(100.0 * (1.0 - l.get("wrong")), 100.0 * l.get("wrong_error"), 2);
            format!("{percent} [{}]", epsilon(l.get("true_epsilon")))
        })
    };
    let mut names: Vec<String> = vec!["noisy-gd".into(), "recursive-momentum".into()];
    names.extend(SMOOTHING.map(smoothed));
    names.extend([0.0, 3.0].map(|s| format!("published-dp-lssgd s={s}")));
    if !names.iter().any(|n| lines.has("MNIST", n, 0.1)) {
        return String::new();
    }
    let mut out = String::from(
        "## Table 5.2, softmax on the pixels of MNIST\n\nAccuracy in per cent, with the true epsilon in brackets; claimed epsilon above.\n\n| method | 0.1 | 0.15 | 0.2 | 0.25 | 0.3 |\n|---|---|---|---|---|---|\n",
    );
    for (i, strength) in SMOOTHING.iter().enumerate() {
        let cells: Vec<String> = SMOOTHED.iter().map(|(_, row)| format!("{:.2}", row[i])).collect();
        out += &format!("| DP-LSSGD s={strength}, published | {} |\n", cells.join(" | "));
    }
    for name in &names {
        let cells: Vec<String> = SMOOTHED.iter().map(|(at, _)| cell(name, *at)).collect();
        out += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    for at in [0.1, 0.2, 0.3] {
        let found: Vec<Line> = SMOOTHING.iter().filter_map(|s| lines.find("MNIST", &smoothed(*s), at)).collect();
        if found.len() == SMOOTHING.len() {
            out += &format!(
                "\nDoes smoothing help `noisy-sgd` at epsilon {at}? Accuracy: {}. Cross-entropy: {}.\n",
                verdict(&found, "wrong"),
                verdict(&found, "cross_entropy")
            );
        }
    }
    out + "\n"
}

fn networks(lines: &Lines) -> String {
    let found: Vec<Line> = ["MNIST", "MNIST features"]
        .iter()
        .flat_map(|set| [0.1, 0.3, 1.2, 3.0, 7.0].map(|at| (set, at)))
        .filter_map(|(set, at)| lines.find(set, "network", at))
        .collect();
    if found.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## Networks: error in per cent\n\n| set | epsilon | method | error | processor s |\n|---|---|---|---|---|\n",
    );
    for (set, at, [sgd, srm, without]) in NETWORKS {
        out += &format!("| {set} | {at} | published: DP-SGD / DP-SRM / without privacy | {sgd} / {srm} / {without} | – |\n");
    }
    for line in found {
        let how = if line.set == "MNIST" { "the published layers with tanh, on pixels" } else { "scores of scattering features" };
        let wrong = with_error(100.0 * line.get("wrong"), 100.0 * line.get("wrong_error"), 2);
        out += &format!("| MNIST | {} | `network`, {how} | {wrong} | {:.1} |\n", line.get("claimed"), line.get("seconds"));
    }
    out + "\n"
}

/// Tables 5.3 and 5.4: sums over a ring of 1,000 places.
fn factors() -> String {
    let mut out = String::from(
        "## Tables 5.3 and 5.4: means of the factors of smoothing, and of their squares\n\n| s | gamma, published | here | beta, published | here |\n|---|---|---|---|---|\n",
    );
    for (strength, gamma, beta) in FACTORS {
        let factor = |k: u32| 1.0 / (1.0 + 2.0 * strength * (1.0 - (std::f64::consts::TAU * f64::from(k) / 1000.0).cos()));
        let mean = |power: i32| (0..1000).map(|k| factor(k).powi(power)).sum::<f64>() / 1000.0;
        out += &format!("| {strength} | {gamma} | {:.4} | {beta} | {:.4} |\n", mean(1), mean(2));
    }
    out + "\nThey are the same at every dimension, so that what smoothing takes from the noise does not grow with it, as the text has it.\n\n"
}

fn curves(options: &Options, lines: &Lines) -> Result<String, Failure> {
    let mut out = String::from("## Curves\n\n");
    let mut draw = |stem: String, chart: Chart| -> Result<(), Failure> {
        if chart.series.iter().all(|s| s.points.is_empty()) {
            return Ok(());
        }
        let title = chart.title.clone();
        write_chart(&chart, &options.out.join("plots").join(&stem)).map_err(Failure::misuse)?;
        out += &format!("- [{title}](plots/{stem}.svg)\n");
        Ok(())
    };
    for (set, figure) in [("a9a", "4.1"), ("ijcnn1", "4.2"), ("Synthetic-L", "")] {
        for (column, what, part) in
            [("cross_entropy", "cross-entropy of test rows", "left"), ("gradient_norm", "gradient norm", "right")]
        {
            for at in [0.2, 0.5] {
                let series = ["recursive-momentum", "noisy-sgd"].map(|name| Series {
                    name: name.into(),
                    dashed: false,
                    points: PASSES
                        .iter()
                        .filter_map(|p| {
                            lines
                                .find(set, &format!("{name} {p} passes"), at)
                                .map(|l| (*p, l.get(column), l.get(&format!("{column}_error"))))
                        })
                        .collect(),
                });
                let published =
                    LOGISTIC.iter().filter(|p| p.0 == set && p.1 == at && column == "cross_entropy" && p.2 == "DP-SRM");
                let levels = published.map(|p| (format!("DP-SRM, published, {} passes", p.3[2]), p.3[0])).collect();
                let about = if figure.is_empty() { String::new() } else { format!(" (about figure {figure}, {part})") };
                let title = format!("{set}, epsilon {at}: {what}{about}");
                let chart = Chart { title, x: "passes".into(), y: what.into(), log_x: false, levels, series: series.into() };
                draw(format!("{}-{column}-{at}", set.to_lowercase()), chart)?;
            }
        }
    }
    let accuracy = |name: &str, dashed: bool| Series {
        name: name.into(),
        dashed,
        points: SMOOTHED
            .iter()
            .filter_map(|(at, _)| lines.find("MNIST", name, *at))
            .map(|l| (l.get("true_epsilon"), 100.0 * (1.0 - l.get("wrong")), 100.0 * l.get("wrong_error")))
            .collect(),
    };
    let mut series: Vec<Series> = SMOOTHING.iter().map(|s| accuracy(&smoothed(*s), false)).collect();
    series.push(accuracy("noisy-gd", false));
    series.extend([0.0, 3.0].map(|s| accuracy(&format!("published-dp-lssgd s={s}"), true)));
    let title = "MNIST, softmax: accuracy at the true epsilon (about figures 5.2 and 5.3)".to_string();
    let chart = Chart { title, x: "epsilon".into(), y: "accuracy, %".into(), log_x: true, levels: vec![], series };
    draw("mnist-smoothing".into(), chart)?;
    let wrong = |set: &str, name: &str| Series {
        name: name.into(),
        dashed: false,
        points: [0.1, 0.3, 1.2, 3.0, 7.0]
            .iter()
            .filter_map(|at| lines.find(set, "network", *at).map(|l| (*at, 100.0 * l.get("wrong"), 100.0 * l.get("wrong_error"))))
            .collect(),
    };
    let printed = |name: &str, column: usize| Series {
        name: name.into(),
        dashed: true,
        points: NETWORKS.iter().filter(|n| n.0 == "MNIST").map(|n| (n.1, n.2[column], 0.0)).collect(),
    };
    let mut series = vec![wrong("MNIST", "layers on pixels"), wrong("MNIST features", "scattering features")];
    if series.iter().any(|s| !s.points.is_empty()) {
        series.extend([printed("DP-SGD, published", 0), printed("DP-SRM, published", 1)]);
    }
    let title = "MNIST, networks: error (about figures 4.3 and 5.5)".to_string();
    let chart = Chart { title, x: "epsilon".into(), y: "error, %".into(), log_x: true, levels: vec![], series };
    draw("mnist-networks".into(), chart)?;
    Ok(out)
}
