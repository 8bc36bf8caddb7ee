//! The methods that are compared, and what each is tried with.

use super::cases::{Case, Part};
use crate::tables::cell::Point;
use privfit::method::find;

/// What a method is in the comparison.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Without privacy.
    Baseline,
    /// From the publications, corrected where that was needed; at the best point of a grid.
    Rival,
    /// From the publications, with the printed noise: no guarantee.
    NotPrivate,
    /// Ours, with default settings.
    Ours,
    /// Not a sparse method; with default settings, on texts.
    General,
}

/// One line of the tables.
pub(super) struct Candidate {
    /// Name in the tables.
    pub(super) title: &'static str,
    /// Name of the method here.
    pub(super) name: &'static str,
    /// Name in the published tables; empty if it is not there.
    pub(super) printed: &'static str,
    pub(super) kind: Kind,
}

const fn candidate(title: &'static str, name: &'static str, printed: &'static str, kind: Kind) -> Candidate {
    Candidate { title, name, printed, kind }
}

/// Every method of every table: one more is one more line here.
pub(super) const ALL: &[Candidate] = &[
    candidate("IGHT (no privacy)", "hard-thresholding-without-noise", "IGHT", Kind::Baseline),
    candidate("Frank-Wolfe", "frank-wolfe", "Frank-Wolfe", Kind::Rival),
    candidate("Two stage", "two-stage", "Two stage", Kind::Rival),
    candidate("DP-IGHT corrected", "hard-thresholding", "DP-IGHT", Kind::Rival),
    candidate("DPSL-KT printed (NOT private)", "published-knowledge-transfer", "DPSL-KT", Kind::NotPrivate),
    candidate("noisy-thresholding", "noisy-thresholding", "", Kind::Ours),
    candidate("weighted-columns", "weighted-columns", "", Kind::Ours),
    candidate("transfer-support", "transfer-support", "", Kind::Ours),
    candidate("transfer-blocks", "transfer-blocks", "", Kind::Ours),
    candidate("transfer-convex", "transfer-convex", "", Kind::Ours),
    candidate("objective", "objective", "", Kind::General),
    candidate("noisy-gd", "noisy-gd", "", Kind::General),
    candidate("auto", "auto", "", Kind::General),
];

impl Candidate {
    /// Fits at an epsilon. The headline has more, what takes long has fewer.
    pub(super) fn seeds(&self, case: &Case, epsilon: f64) -> usize {
        let headline = case.name == "chapter 3 linear n=800 d=1000" && [0.8, 2.0, 5.0].contains(&epsilon);
        match self.kind {
            _ if case.quick => 1,
            Kind::NotPrivate if case.part == Part::Figure && case.large => 1,
            Kind::NotPrivate if case.part == Part::Figure => 2,
            Kind::Baseline if !case.drawn() => 1,
            // The comparison that this table is for.
            _ if case.part == Part::Defaults && (self.kind == Kind::General || self.name == "weighted-columns") => 25,
            _ if headline || (self.kind == Kind::Baseline && case.name == "chapter 3 linear n=800 d=1000") => 20,
            _ => case.seeds,
        }
    }
}

/// Most fits of one method at one epsilon.
pub(super) fn most_seeds(case: &Case) -> usize {
    of(case).flat_map(|c| case.epsilons.iter().map(|e| c.seeds(case, *e))).max().unwrap_or(1)
}

/// Those that belong to a case.
pub(super) fn of(case: &Case) -> impl Iterator<Item = &'static Candidate> {
    let (texts, third, numbers) = (case.part == Part::Defaults, case.third, case.loss == "linear");
    // It divides rows by their own length, which a number depends on.
    ALL.iter().filter(move |c| !(numbers && c.name == "weighted-columns")).filter(move |c| match c.kind {
        Kind::Baseline | Kind::Rival | Kind::Ours => true,
        // Chapter 2 is before it; without public rows, wide texts would need generated ones of gigabytes.
        Kind::NotPrivate => third && !texts,
        Kind::General => texts,
    })
}

/// Whether the method, or the one that is chosen, can be told how many columns there are to be.
pub(super) fn takes_sparsity(name: &str) -> bool {
    name == "auto" || find(name).is_some_and(|m| m.has("sparsity"))
}

/// Points at which a method is run, of which the best counts. `rate` is the usual one, `cell` the largest size of a cell, `radii`
/// are near that of the truth.
pub(super) fn grid(candidate: &Candidate, case: &Case, epsilon: f64, rate: f64, cell: f64, radii: &[f64]) -> Vec<Point> {
    let usual = vec![Point::default()];
    if case.part == Part::Defaults || case.quick {
        return usual;
    }
    let mut out = Vec::new();
    // Short numbers in the record.
    let short = |x: f64| format!("{x:.1e}").parse().unwrap_or(x);
    match candidate.name {
        "hard-thresholding" => {
            for steps in [1.0, 3.0, 8.0] {
                for factor in [0.2, 0.5, 1.0, 2.0] {
                    out.push(Point { settings: vec![("steps", steps), ("learning_rate", short(factor * rate))], vertex: None });
                }
            }
        }
        "frank-wolfe" => {
            let steps: &[f64] = if case.large { &[10.0, 40.0] } else { &[10.0, 20.0, 40.0, 80.0] };
            for steps in steps {
                for radius in radii {
                    out.push(Point { settings: vec![("steps", *steps)], vertex: Some(short(*radius)) });
                }
            }
        }
        "published-knowledge-transfer" => {
            // In figures by the rule of its theorem, with a constant that does well, because bounds on singular values of
            // generated rows take long.
            let distribution = (case.sparsity as f64 * case.features.ln() * (1.0 / case.delta).ln()).sqrt();
            let rule = 3.0 * (distribution / (case.rows * epsilon)).sqrt();
            let ridges: &[f64] = if case.part == Part::Figure { &[rule] } else { &[0.05, 0.2, 1.0] };
            out.extend(ridges.iter().map(|r| Point { settings: vec![("ridge", short(r * cell * cell))], vertex: None }));
        }
        _ => return usual,
    }
    out
}
