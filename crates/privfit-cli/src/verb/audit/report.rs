//! What an audit found, for people and for programs.

use crate::ui::plot::{bar, histograms};
use crate::ui::{Failure, Format, print_line};
use privfit::Error;
use privfit::audit::shipped::Question;
use privfit::audit::{FALSE_ALARM, Shipped, Subject, canaries, distribution, precision, sensitivity};
use serde_json::{Value, json};

/// Width of plots.
const WIDTH: usize = 60;

/// Lines of text, an object, and what does not hold.
pub(crate) struct Report {
    lines: Vec<String>,
    json: Value,
    violations: Vec<String>,
}

/// Prints, and fails if the claim does not hold.
pub(crate) fn conclude(mut report: Report, format: Format) -> Result<(), Failure> {
    report.json["violations"] = json!(report.violations);
    report.json["violated"] = json!(!report.violations.is_empty());
    match format {
        Format::Json => print_line(&report.json.to_string()),
        Format::Text => report.lines.iter().for_each(|l| print_line(l)),
    }
    match report.violations.first() {
        None => {
            if format == Format::Text {
                print_line("verdict    no contradiction found (which proves nothing)");
            }
            Ok(())
        }
        Some(first) => Err(Failure(Error::refused(format!(
            "the claim does not hold: {first}; do not release anything made by this method before it is repaired"
        )))),
    }
}

/// A number, or null if it is infinite.
fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

impl Report {
    pub(crate) fn new(audit: &str, subject: &Shipped, counts: &[(&str, u64)]) -> Report {
        let claim = subject.claim();
        let mut json = json!({
            "audit": audit, "method": subject.prepared().method.name, "loss": subject.prepared().problem.loss.name,
            "claim": {"epsilon": number(claim.epsilon()), "delta": claim.delta, "adjacency": claim.adjacency.name(), "mu": claim.mu},
        });
        let mut lines = vec![format!("method     {}", subject.name())];
        let mu = claim.mu.map_or(String::new(), |mu| format!(", mu {mu:.4}"));
        lines.push(format!("claim      epsilon {:.4} at delta {:e}, {}{mu}", claim.epsilon(), claim.delta, claim.adjacency));
        for (name, count) in counts {
            json[*name] = json!(count);
        }
        lines.push(format!(
            "made       {}",
            counts.iter().map(|(n, c)| format!("{c} {}", n.replace('_', " "))).collect::<Vec<_>>().join(", ")
        ));
        Report { lines, json, violations: Vec::new() }
    }

    pub(crate) fn sensitivity(mut self, found: &sensitivity::Finding) -> Report {
        self.lines.push(format!("{:<26} {:<18} {:>8}  movement over sensitivity", "value", "pair", "values"));
        let mut list = Vec::new();
        for ((what, pair), line) in &found.lines {
            self.lines.push(format!("{what:<26} {pair:<18} {:>8}  {} {:.4}", line.values, bar(line.largest, 24), line.largest));
            list.push(json!({"value": what, "pair": pair, "values": line.values, "largest": number(line.largest),
                "violations": line.violations}));
        }
        let unequal =
            if found.unequal == 0 { "equal in all pairs".into() } else { format!("differs in {} pairs", found.unequal) };
        self.lines.push(format!("everything else that is put out: {unequal}"));
        self.lines.push("false alarms: none by chance; a pair is compared at one transcript, before noise".into());
        self.json["values"] = json!(list);
        self.json["largest"] = number(found.largest());
        self.json["unequal"] = json!(found.unequal);
        self.json["false_alarm"] = json!(0.0);
        self.violations.extend(found.first.clone());
        self
    }

    pub(crate) fn distribution(mut self, found: &distribution::Finding) -> Report {
        let judged = if found.shift_judged { "" } else { " (not judged: a release is not one Gaussian)" };
        self.lines.push(format!(
            "at least   epsilon {:.4}, mu {:.4}, shift {:.4} deviations{judged}",
            found.epsilon, found.mu, found.shift
        ));
        self.histograms("with", "without", &found.scores);
        self.lines.push(format!("chance of a false alarm: {FALSE_ALARM:e}"));
        self.json["lower_bound"] =
            json!({"epsilon": number(found.epsilon), "mu": number(found.mu), "shift": number(found.shift)});
        self.json["shift_judged"] = json!(found.shift_judged);
        self.json["false_alarm"] = json!(FALSE_ALARM);
        self.violations.extend(found.violations.iter().cloned());
        self
    }

    fn histograms(&mut self, a: &str, b: &str, scores: &(Vec<f64>, Vec<f64>)) {
        let [with, without] = histograms(&scores.0, &scores.1, WIDTH);
        self.lines.push(format!("{a:<10} {with}"));
        self.lines.push(format!("{b:<10} {without}"));
    }

    pub(crate) fn canaries(question: &Question, found: &canaries::Finding) -> Report {
        let (epsilon, delta) = found.claimed;
        let mut out = Report { lines: Vec::new(), json: Value::Null, violations: found.violations.clone() };
        out.lines.push(format!("method     {} with loss {}", question.method, found.loss));
        out.lines.push(format!("claim      epsilon {epsilon:.4} at delta {delta:e}, {}", question.adjacency));
        out.lines.push(format!("made       one run with {} canaries", found.canaries));
        out.lines.push(format!("at least   epsilon {:.4} for any mechanism (95 %)", found.epsilon));
        out.lines.push(format!(
            "           epsilon {:.4}, mu {:.4} if its curve is Gaussian (95 %)",
            found.gaussian.1, found.gaussian.0
        ));
        out.lines.push(format!(
            "           epsilon {:.4}, mu {:.4} if noise is independent in each coordinate (1 - {FALSE_ALARM:e})",
            found.pooled.epsilon, found.pooled.mu
        ));
        out.histograms("present", "absent", &found.scores);
        out.lines.push(format!("chance of a false alarm: {:e} for any mechanism", canaries::LOOSE));
        let guesses = |g: &privfit::audit::one_run::Guesses| json!({"named": g.named, "right": g.right});
        out.json = json!({
            "audit": "canaries", "method": question.method, "loss": found.loss, "canaries": found.canaries,
            "claim": {"epsilon": number(epsilon), "delta": delta, "adjacency": question.adjacency.name()},
            "lower_bound": {"epsilon": found.epsilon, "gaussian_mu": found.gaussian.0, "gaussian_epsilon": found.gaussian.1,
                "pooled_epsilon": found.pooled.epsilon, "pooled_mu": found.pooled.mu},
            "guesses": {"epsilon_delta": guesses(&found.guesses.0), "curve": guesses(&found.guesses.1)},
            "false_alarm": canaries::LOOSE,
        });
        out
    }

    pub(crate) fn precision(grids: &[(String, precision::Grid)], inverse: &precision::Inverse) -> Report {
        let mut out = Report { lines: Vec::new(), json: Value::Null, violations: Vec::new() };
        let mut list = Vec::new();
        for (name, grid) in grids {
            out.lines.push(format!("{name:<42} {:>6} numbers, {} off the grid", grid.numbers, grid.off));
            list.push(json!({"subject": name, "releases": grid.releases, "numbers": grid.numbers, "off": grid.off}));
            if grid.off > 0 {
                out.violations.push(format!("{} numbers released by {name} are off their grid", grid.off));
            }
        }
        out.lines.push(format!("linear term of {}, {} fits: on its grid under", inverse.method, inverse.fits));
        out.lines.push(format!("  the true data   {} {:.4}", bar(inverse.own, WIDTH / 2), inverse.own));
        out.lines.push(format!("  a neighbour     {} {:.4}", bar(inverse.neighbour, WIDTH / 2), inverse.neighbour));
        out.lines.push(format!("rates must differ by less than {}", precision::Inverse::ALLOWED));
        if inverse.violated() {
            out.violations.push(format!(
                "minus the gradient at the release of {} is on the noise grid for the true data only",
                inverse.method
            ));
        }
        out.json = json!({
            "audit": "precision", "grids": list,
            "inverse": {"method": inverse.method, "fits": inverse.fits, "own": inverse.own, "neighbour": inverse.neighbour,
                "allowed": precision::Inverse::ALLOWED},
        });
        out
    }
}
