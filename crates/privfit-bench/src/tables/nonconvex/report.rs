//! The finished tables as Markdown and as plots.

use super::super::Options;
use super::cases::{SMOOTHING, smoothed};
use super::figures;
use super::lines::{Line, Lines};
use super::points::Points;
use super::printed::{FACTORS, LOGISTIC, NETWORKS, SMOOTHED, WITHOUT};
use crate::Failure;

const HOW: &str = "\
How to read it. *Claimed* is the epsilon in the publication, or the one that was asked for; *true* the one that the noise guarantees by our accountant, at delta 1e-5 (*none*: no finite one). Tables 4.2 and 4.3 are under replace-one, as \
published; MNIST under zero-out. Numbers after ± are one standard error over the runs; those of a publication in brackets are its standard deviations. The published \"test error\" of tables 4.2 and 4.3 can't be a part of wrong \
predictions (without privacy it is above that of the larger class); it has the size of a cross-entropy and is compared with one. *Passes* are records read over records, *gradients* the gradients that were computed for each record, two for \
each that a step of recursive momentum reads. Processor seconds are those of a fit on one thread, without the plan. Gradient norms are of the average loss with the regulariser of strength 0.001, on the rows for training; weights are those of rows of norm 1, so \
that published norms, of rows as they were, are not comparable in size. `objective` has no regulariser of this kind, because it needs convexity.

Settings that are not defaults (the `setting` column of the file) were chosen on every fifth row for training. No test row was looked at for them.

`adaptive-gd` takes as many steps as its budget pays for, so that it has no fixed number of passes.\n\nWhat is not here. The whole of CIFAR-10 and of the test rows of MNIST can't be had: MNIST is tested on the 5,000 test digits with even numbers, and of CIFAR-10 there is half. Published RRPSGD takes one record a step; \
`random-round-sgd` takes 1,024 and runs up to eight passes. Figures of the thesis have no printed numbers; ours show the same from our runs. When `network` takes correlated noise, and what showed that: [correlated.md](correlated.md).

";

const NETWORKS_HOW: &str = "\
## Networks: error in per cent

One fit each, by settings that no test row was looked at for; the published numbers are means of thirty fits with the best settings of a grid. The network of MNIST is the published one with tanh in the place of rectifiers. CIFAR-10 is half of its \
pictures, 25,000 for training and 5,000 for testing, in JPEG: fewer than were published with, so that the same epsilon is harder. CNN5 has the published layers, with tanh. CNN6 trains dense layers on convolutions \
that pictures of CIFAR-100 trained; these can't be had, and what stands in are scattering features, which no picture trained, with scores alone on top. Recursive momentum has two fifths of the passes of DP-SGD, because its \
step computes and stores two gradients of each record: fresh part 0.3, change clip a tenth of the clip, and the learning rate of DP-SGD, not chosen on any rows. \
Where it is far behind, no test was made of shorter steps, which would leave more of the changes within their clip.

| set | epsilon | method | true epsilon | error | passes | processor s |
|---|---|---|---|---|---|---|
";

const NETWORKS_SAID: &str = "
In plain words: on MNIST both methods are below the published errors of both at every epsilon, recursive momentum behind DP-SGD and in more processor time, though in fewer passes: what was published of its speed does not show here. On the pixels of CIFAR-10 DP-SGD with half \
of the pictures is below published DP-SGD at all three epsilons and below published DP-SRM at 6 alone; recursive momentum is far behind. Scattering features do not make up for layers from CIFAR-100 and for the other half of the pictures: eight to thirteen points are missing.

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
pub(super) fn write(options: &Options, lines: &Lines, points: &Points) -> Result<String, Failure> {
    let mut text = String::from("# Losses that are not convex: published, rerun, and ours\n\n");
    text += "Made by `privfit-bench tables nonconvex --shared ../shared --out bench/nonconvex` from `cells.csv`.\n\n";
    text += HOW;
    for set in ["a9a", "ijcnn1", "Synthetic-L"] {
        text += &logistic(set, lines);
    }
    text += &shown(lines);
    text += &smoothing_of_tables(lines);
    text += &softmax(lines);
    text += &networks(lines, points);
    text += &factors();
    text += &figures::write(options, lines, points)?;
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

/// What tables 4.2 and 4.3 say about recursive momentum, in plain words.
fn shown(lines: &Lines) -> String {
    let mut out = String::new();
    for name in ["recursive-momentum", "recursive-momentum 5 gradients"] {
        for (set, claimed, _, published) in LOGISTIC.iter().filter(|p| p.2 == "DP-SRM") {
            let find = |name: &str| lines.find(set, name, *claimed);
            let Some(own) = find(name) else { continue };
            let loss = own.get("cross_entropy");
            let below = |other: Option<Line>| {
                other.map_or("–".into(), |other| {
                    let error = (own.get("cross_entropy_error").powi(2) + other.get("cross_entropy_error").powi(2)).sqrt();
                    let gap = other.get("cross_entropy") - loss;
                    format!("{} ({gap:+.4} ± {error:.4})", if gap > 0.0 { "yes" } else { "**no**" })
                })
            };
            let gap = published[0] - loss;
            out += &format!(
                "| {set} | {claimed} | {name} | {:.1} / {:.1} | {} ({gap:+.4}) | {} | {} | {} | {:.3} / {:.3} = {:.0} |\n",
                own.get("passes"),
                own.get("gradients"),
                if gap >= 0.0 { "yes" } else { "**no**" },
                below(find("noisy-gd 5 passes")),
                below(find("noisy-sgd")),
                below(find("objective")),
                published[3],
                own.get("seconds"),
                published[3] / own.get("seconds"),
            );
        }
    }
    if out.is_empty() {
        return out;
    }
    format!(
        "## What these two tables say of recursive momentum\n\nCross-entropy of test rows at the same true epsilon; in brackets how much lower it is, with one standard error. Passes are records read, gradients what was computed of each. Processor seconds \
         are not of one machine: the published ones are those of the thesis, ours those of a fit on one thread here.\n\n| set | epsilon | setting | passes / gradients | at or below published DP-SRM? | below `noisy-gd` of 5 passes? | below `noisy-sgd` of 5 passes? | below `objective`? | processor s, published / ours |\n\
         |---|---|---|---|---|---|---|---|---|\n{out}\nIn plain words: in five passes recursive momentum is below the published numbers and far below gradient descent with five full gradients. It is not below `objective`, \
         which is better on all four (it solves a convex problem, without the regulariser, and reads the rows as often as its minimiser likes), and no better than `noisy-sgd`, which takes half as many gradients. \
         With at most five gradients of each record, the two of a step counted, it is not below the published number on ijcnn1 at epsilon 0.5.\n\n"
    )
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

/// Sets of networks as they are called in print, as `pictures.rs` calls them, and what our rows are.
const OURS: [(&str, &str, &str); 3] = [
    ("MNIST", "mnist-pixels", "the published layers with tanh"),
    ("CIFAR-10", "cifar-pixels", "the published layers of CNN5 with tanh, half of the pictures"),
    ("CIFAR-10, layers from CIFAR-100", "cifar", "scores of scattering features, half of the pictures"),
];

fn networks(lines: &Lines, points: &Points) -> String {
    let mut out = String::from(NETWORKS_HOW);
    for (set, at, [sgd, srm, without]) in NETWORKS {
        out +=
            &format!("| {set} | {at} | published: DP-SGD / DP-SRM / without privacy | – | {sgd} / {srm} / {without} | – | – |\n");
        for (_, own, what) in OURS.iter().filter(|o| o.0 == *set) {
            for name in ["DP-SGD", "recursive momentum"] {
                let Some(last) = points.last(own, "test", name, *at) else { continue };
                out += &format!(
                    "| {set} | {at} | {name}, {what} | {} | {:.2} | {:.1} | {:.1} |\n",
                    epsilon(last.get("true_epsilon")),
                    100.0 * last.get("wrong"),
                    last.get("passes"),
                    last.get("seconds")
                );
            }
        }
    }
    for (set, how) in [
        ("MNIST", "`network` with samples, else by default, on pixels"),
        ("MNIST features", "`network` with samples, else by default, scores of scattering features"),
    ] {
        for line in [0.1, 0.3, 1.2, 3.0, 7.0].iter().filter_map(|at| lines.find(set, "network", *at)) {
            out += &format!(
                "| MNIST | {} | {how} | {} | {} | {} | {:.1} |\n",
                line.get("claimed"),
                epsilon(line.get("true_epsilon")),
                with_error(100.0 * line.get("wrong"), 100.0 * line.get("wrong_error"), 2),
                number(line.get("passes"), 1),
                line.get("seconds")
            );
        }
    }
    out + NETWORKS_SAID
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
