//! Features of cells from released shares: smooth functions of ranks, a straight line, and indicators. Everything here is computed from released numbers and public
//! facts; how many features a column has is public, and what a released number rules out is a feature of zeros.

use super::histogram::{ordered_shares, ranks, shares};
use crate::data::cells::{CellColumn, CellGrid, CellKind};
use privfit_kernel::{CellFeatures, ColumnFeatures, MOST_GROUPS, PairColumn, PairFeatures};
use std::f64::consts::FRAC_1_SQRT_2;

/// Cosines of a rank.
const COSINES: usize = 6;
/// Features of a number: a line and cosines, those of the rest beside the anchor, indicators of the anchor and of what is missing.
const OF_NUMBER: usize = 2 * (COSINES + 1) + 2;
/// Size of the line beside the first cosine.
const LINE: f64 = 0.7;
/// Least squared correlation of the line with the first cosine where what is straight becomes one feature.
const STRAIGHT: f64 = 0.8;
/// An anchor with more than this share has an indicator, and its column functions of the rest.
const HEAVY: f64 = 0.15;
/// Missing cells with more than this share have an indicator.
const MISSING: f64 = 0.01;
/// The longest row that is not clipped, over the root of the mean square.
const LONGEST: f64 = 0.8;
/// Size of the constant feature.
pub(super) const CONSTANT: f64 = 0.3;
/// Features of a column in a pair, at the most.
const IN_PAIR: usize = 12;
/// The same where all pairs are compared.
const IN_SCREEN: usize = 4;

/// What is known about a column after its counts are released.
pub(super) struct KnownColumn {
    /// Share of each cell.
    pub(super) shares: Vec<f64>,
    /// Rank of each cell among those that are not missing, where cells have an order.
    pub(super) ranks: Option<Vec<f64>>,
    /// Features of each cell, centred, in no particular unit.
    features: Vec<Vec<f64>>,
    /// Their mean square.
    square: f64,
    /// Features for pairs.
    in_pair: Vec<Vec<f64>>,
    in_screen: Vec<Vec<f64>>,
}

/// Features of a column: a public number.
pub(super) fn width(kind: &CellKind) -> usize {
    match kind {
        CellKind::Number { .. } => OF_NUMBER,
        CellKind::Category { ordered, .. } => kind.count() + if *ordered { COSINES } else { 0 },
    }
}

/// How many features of a column belong together, one group after the other: of a number the straight part, the other cosines, and what is beside its anchor; of
/// categories the indicators, and the cosines of an order.
pub(super) fn groups(kind: &CellKind) -> Vec<usize> {
    match kind {
        CellKind::Number { .. } => vec![1, COSINES, OF_NUMBER - COSINES - 1],
        CellKind::Category { ordered: true, .. } => vec![kind.count(), COSINES],
        CellKind::Category { .. } => vec![kind.count()],
    }
}

/// The groups of all features: those of columns, and one for each pair.
pub(super) fn all_groups(grid: &CellGrid, chosen: &[(usize, usize, f64)]) -> Vec<usize> {
    let width = |j: &usize| in_pair_width(&grid.columns[*j].kind);
    let pairs = chosen.iter().map(|(i, j, _)| width(i) * width(j));
    grid.columns.iter().flat_map(|c| groups(&c.kind)).chain(pairs).collect()
}

/// Features of a pair of any columns: a public number.
pub(super) fn pair_width(grid: &CellGrid) -> usize {
    let mut widths: Vec<usize> = grid.columns.iter().map(|c| in_pair_width(&c.kind)).collect();
    widths.sort_unstable();
    widths.iter().rev().take(2).product()
}

fn in_pair_width(kind: &CellKind) -> usize {
    match kind {
        CellKind::Number { .. } => COSINES + 1,
        CellKind::Category { .. } => (kind.count() - 1).min(IN_PAIR),
    }
}

/// Features of a column where all pairs are compared.
fn in_screen_width(kind: &CellKind) -> usize {
    match kind {
        CellKind::Number { .. } => IN_SCREEN + 1,
        CellKind::Category { ordered: true, .. } => IN_SCREEN,
        CellKind::Category { .. } => (kind.count() - 1).min(IN_PAIR),
    }
}

/// Coordinates of a release that compares all pairs.
pub(super) fn screen_dimension(grid: &CellGrid) -> usize {
    let widths: Vec<usize> = grid.columns.iter().map(|c| in_screen_width(&c.kind)).collect();
    let (sum, squares): (usize, usize) = (widths.iter().sum(), widths.iter().map(|w| w * w).sum());
    (sum * sum - squares) / 2
}

/// sqrt 2 cos(pi m rank) / m^power, for m from 1.
fn cosines(rank: f64, count: usize, power: f64) -> impl Iterator<Item = f64> {
    (1..=count).map(move |m| std::f64::consts::SQRT_2 * (std::f64::consts::PI * m as f64 * rank).cos() / (m as f64).powf(power))
}

/// Standard deviations from its mean beyond which a number counts as the last one inside: long tails have rows there.
const FARTHEST: f64 = 8.0;

/// Numbers in standard deviations from their mean, clipped, for cells of a share.
fn standardised(middles: &[f64], weights: &[f64]) -> Vec<f64> {
    // In units of the largest, so that squares stay finite.
    let largest = middles.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let scaled: Vec<f64> = middles.iter().map(|x| x / largest).collect();
    let mean: f64 = scaled.iter().zip(weights).map(|(x, w)| x * w).sum();
    let variance: f64 = scaled.iter().zip(weights).map(|(x, w)| w * (x - mean) * (x - mean)).sum();
    let deviation = variance.sqrt().max(1e-12);
    scaled.iter().map(|x| ((x - mean) / deviation).clamp(-FARTHEST, FARTHEST)).collect()
}

/// Shares among some cells; nothing elsewhere.
fn among(shares: &[f64], part: impl Fn(usize) -> bool) -> Vec<f64> {
    let sum: f64 = shares.iter().enumerate().filter(|(i, _)| part(*i)).map(|(_, s)| s).sum();
    let own = |(i, s): (usize, &f64)| if part(i) && sum > 0.0 { s / sum } else { 0.0 };
    shares.iter().enumerate().map(own).collect()
}

/// Subtracts the mean, and returns the mean square that is left.
fn centre(features: &mut [Vec<f64>], shares: &[f64]) -> f64 {
    let width = features.first().map_or(0, Vec::len);
    let mut square = 0.0;
    for f in 0..width {
        let mean: f64 = features.iter().zip(shares).map(|(v, s)| v[f] * s).sum();
        features.iter_mut().for_each(|v| v[f] -= mean);
        square += features.iter().zip(shares).map(|(v, s)| v[f] * v[f] * s).sum::<f64>();
    }
    square
}

/// Takes the line, which is the first feature, out of all others and gives it the squared length that they lose: what is straight is one feature, and the others are what bends.
fn straighten(features: &mut [Vec<f64>], shares: &[f64]) {
    let width = features.first().map_or(0, Vec::len);
    centre(features, shares);
    let product = |features: &[Vec<f64>], f: usize| features.iter().zip(shares).map(|(v, s)| s * v[0] * v[f]).sum::<f64>();
    let own = product(features, 0);
    let rank: f64 = features.iter().zip(shares).map(|(v, s)| s * v[1] * v[1]).sum();
    // A line that has little to do with ranks is mostly a tail.
    if !(own > 1e-12) || product(features, 1).powi(2) < STRAIGHT * own * rank {
        return;
    }
    let mut gained = 0.0;
    for f in 1..width {
        let part = product(features, f) / own;
        features.iter_mut().for_each(|v| v[f] -= part * v[0]);
        gained += part * part * own;
    }
    let longer = ((own + gained) / own).sqrt();
    features.iter_mut().for_each(|v| v[0] *= longer);
}

fn scale(features: &mut [Vec<f64>], by: f64) {
    features.iter_mut().flatten().for_each(|x| *x *= by);
}

impl KnownColumn {
    /// From the noisy counts of its cells.
    pub(super) fn new(column: &CellColumn, counts: &[f64], deviation: f64) -> KnownColumn {
        match &column.kind {
            CellKind::Number { .. } => KnownColumn::number(&column.kind, counts, deviation),
            CellKind::Category { .. } => KnownColumn::category(&column.kind, counts, deviation),
        }
    }

    fn number(kind: &CellKind, counts: &[f64], deviation: f64) -> KnownColumn {
        let (cells, anchor) = (kind.count(), kind.anchor_cell().unwrap_or(0));
        let missing = cells - 1;
        let others: Vec<usize> = (0..missing).filter(|i| *i != anchor).collect();
        let inner = ordered_shares(&others.iter().map(|i| counts[*i]).collect::<Vec<_>>(), deviation);
        let rest: f64 = others.iter().map(|i| counts[*i]).sum::<f64>().max(deviation);
        let single = |i: usize| counts[i].max(0.3 * deviation);
        let total = rest + single(anchor) + single(missing);
        let mut shares = vec![0.0; cells];
        others.iter().zip(&inner).for_each(|(i, s)| shares[*i] = s * rest / total);
        (shares[anchor], shares[missing]) = (single(anchor) / total, single(missing) / total);
        let mut middles = kind.middles().unwrap_or_default();
        middles.push(0.0);
        let functions = |part: &dyn Fn(usize) -> bool, count: usize, power: f64| -> Vec<Vec<f64>> {
            let own = among(&shares, part);
            let (ranks, line) = (ranks(&own), standardised(&middles, &own));
            let cell = |i: usize| -> Vec<f64> { [LINE * line[i]].into_iter().chain(cosines(ranks[i], count, power)).collect() };
            let mut all: Vec<Vec<f64>> = (0..cells).map(cell).collect();
            straighten(&mut all, &own);
            (0..cells).filter(|i| !part(*i)).for_each(|i| all[i].fill(0.0));
            all
        };
        let known = |i: usize| i != missing;
        let mut features = functions(&known, COSINES, 1.0);
        let beside = functions(&|i| known(i) && i != anchor, COSINES, 1.0);
        let heavy = if shares[anchor] > HEAVY { 1.0 } else { 0.0 };
        let often = if shares[missing] > MISSING { 1.0 } else { 0.0 };
        for (i, own) in features.iter_mut().enumerate() {
            own.extend(beside[i].iter().map(|x| 0.5 * heavy * x));
            own.extend([heavy * f64::from(u8::from(i == anchor)), often * f64::from(u8::from(i == missing))]);
        }
        let square = centre(&mut features, &shares);
        let ranked = ranks(&among(&shares, known));
        KnownColumn {
            in_pair: functions(&known, COSINES, 1.0),
            in_screen: functions(&known, IN_SCREEN, 0.5),
            ranks: Some(ranked),
            features,
            square,
            shares,
        }
    }

    fn category(kind: &CellKind, counts: &[f64], deviation: f64) -> KnownColumn {
        let (cells, ordered) = (kind.count(), kind.ordered());
        let unlisted = cells - 1;
        let shares = shares(counts, deviation);
        let root = |i: usize| (shares[i] + 0.25 / cells as f64).powf(-0.25);
        let mut features: Vec<Vec<f64>> =
            (0..cells).map(|i| (0..cells).map(|j| if i == j { root(i) } else { 0.0 }).collect()).collect();
        let listed = among(&shares, |i| i != unlisted);
        let ranked = ranks(&listed);
        let waves = |count: usize, power: f64| -> Vec<Vec<f64>> {
            let cell = |i: usize| if i == unlisted { vec![0.0; count] } else { cosines(ranked[i], count, power).collect() };
            (0..cells).map(cell).collect()
        };
        if ordered {
            let mut smooth = waves(COSINES, 1.0);
            let own = centre(&mut features, &shares);
            let other = centre(&mut smooth, &shares);
            // Either has half of the mean square.
            scale(&mut features, FRAC_1_SQRT_2);
            scale(&mut smooth, FRAC_1_SQRT_2 * (own / other.max(1e-12)).sqrt());
            features.iter_mut().zip(smooth).for_each(|(f, s)| f.extend(s));
        }
        let square = centre(&mut features, &shares);
        // In pairs: cosines of an order, or indicators of the most frequent values.
        let mut frequent: Vec<usize> = (0..unlisted).collect();
        frequent.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        frequent.truncate(IN_PAIR);
        let indicators = || -> Vec<Vec<f64>> {
            (0..cells).map(|i| frequent.iter().map(|j| if i == *j { root(i) } else { 0.0 }).collect()).collect()
        };
        let in_pair = if ordered && unlisted > IN_PAIR { waves(IN_PAIR, 1.0) } else { indicators() };
        let in_screen = if ordered { waves(IN_SCREEN, 0.5) } else { indicators() };
        KnownColumn { ranks: ordered.then_some(ranked), features, square, in_pair, in_screen, shares }
    }

    /// At most so many groups of neighbouring cells of about equal shares, those without an order as they come; the last cell has its own.
    pub(super) fn groups(&self, most: usize) -> Vec<u8> {
        let cells = self.shares.len();
        if cells <= most {
            return (0..cells as u8).collect();
        }
        let own = ranks(&self.shares);
        let group = |i: usize| if i + 1 == cells { most - 1 } else { ((own[i] * (most - 1) as f64) as usize).min(most - 2) };
        // Without gaps, so that every group has a cell.
        let mut seen: Vec<usize> = (0..cells).map(group).collect();
        seen.dedup();
        let place = |g: usize| seen.iter().position(|s| *s == g).unwrap_or(0) as u8;
        (0..cells).map(|i| place(group(i))).collect()
    }

    /// The mean of vectors of cells over groups, and the share of each group.
    fn grouped(&self, vectors: &[Vec<f64>], groups: &[u8]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let count = groups.iter().max().map_or(0, |g| usize::from(*g) + 1);
        let width = vectors.first().map_or(0, Vec::len);
        let (mut out, mut shares) = (vec![vec![0.0; width]; count], vec![0.0; count]);
        for ((v, s), g) in vectors.iter().zip(&self.shares).zip(groups) {
            let g = usize::from(*g);
            out[g].iter_mut().zip(v).for_each(|(o, x)| *o += s * x);
            shares[g] += s;
        }
        for (own, share) in out.iter_mut().zip(&shares) {
            own.iter_mut().for_each(|x| *x /= share.max(1e-300));
        }
        (out, shares)
    }

    /// For the comparison of all pairs: unit length in the mean over rows, so that all columns of a row have the length 1 together.
    pub(super) fn screened(&self, columns: usize) -> PairColumn {
        let groups = self.groups(16);
        let (mut vectors, shares) = self.grouped(&self.in_screen, &groups);
        let square = centre(&mut vectors, &shares);
        scale(&mut vectors, 1.0 / (square.max(1e-12) * columns as f64).sqrt());
        PairColumn { groups, vectors }
    }
}

/// Mean square of each feature of vectors.
fn mean_squares(vectors: &[Vec<f64>], shares: &[f64]) -> Vec<f64> {
    let width = vectors.first().map_or(0, Vec::len);
    (0..width).map(|f| vectors.iter().zip(shares).map(|(v, s)| s * v[f] * v[f]).sum()).collect()
}

/// Features, and what a run must know about them.
pub(super) struct Basis {
    pub(super) features: CellFeatures,
    /// What each is multiplied by.
    pub(super) scales: Vec<f64>,
    /// The mean square of each, or of the direction that it shares with another one.
    pub(super) squares: Vec<f64>,
}

/// The features of all columns, and of chosen pairs with a weight each, which have half of the squared length where there are any;
/// zeros up to the planned number.
pub(super) fn features(
    known: &[KnownColumn],
    emphasis: &[f64],
    chosen: &[(usize, usize, f64)],
    dimension: usize,
) -> privfit_kernel::Result<Basis> {
    // A block of mean square q has the length q^(1/4): long ones count for more, but less than they would.
    let mut columns: Vec<ColumnFeatures> = Vec::new();
    let (mut scales, mut squares): (Vec<f64>, Vec<f64>) = Default::default();
    for column in known {
        let (root, mut cells) = (column.square.max(1e-12).powf(-0.25), column.features.clone());
        scale(&mut cells, root);
        let first = squares.len();
        let of = |f: usize| emphasis.get(first + f).copied().unwrap_or(1.0);
        cells.iter_mut().for_each(|v| v.iter_mut().enumerate().for_each(|(f, x)| *x *= of(f)));
        squares.extend(mean_squares(&cells, &column.shares));
        scales.extend((0..squares.len() - first).map(|f| root * of(f)));
        columns.push(ColumnFeatures { cells });
    }
    let lengths: f64 = squares.iter().sum();
    let all = if chosen.is_empty() { lengths } else { 2.0 * lengths };
    let unit = (1.0 - CONSTANT * CONSTANT).sqrt() / (LONGEST * all.max(1e-12).sqrt());
    columns.iter_mut().for_each(|c| scale(&mut c.cells, unit));
    scales.iter_mut().for_each(|s| *s *= unit);
    squares.iter_mut().for_each(|q| *q *= unit * unit);
    let weights: f64 = chosen.iter().map(|c| c.2 * c.2).sum();
    let mut pairs: Vec<PairFeatures> = Vec::new();
    for (i, j, weight) in chosen {
        let (left, right) = (&known[*i], &known[*j]);
        let groups = [left.groups(MOST_GROUPS), right.groups(MOST_GROUPS)];
        let (mut a, own) = left.grouped(&left.in_pair, &groups[0]);
        let (mut b, other) = right.grouped(&right.in_pair, &groups[1]);
        centre(&mut a, &own);
        centre(&mut b, &other);
        let product = |x: &Vec<f64>, y: &Vec<f64>| -> Vec<f64> { x.iter().flat_map(|x| y.iter().map(move |y| x * y)).collect() };
        let mut products: Vec<Vec<f64>> = a.iter().flat_map(|x| b.iter().map(|y| product(x, y)).collect::<Vec<_>>()).collect();
        let shares: Vec<f64> = own.iter().flat_map(|x| other.iter().map(move |y| x * y)).collect();
        let square = centre(&mut products, &shares);
        let by = unit * weight * (lengths / (weights * square).max(1e-12)).sqrt();
        scale(&mut products, by);
        let own = mean_squares(&products, &shares);
        scales.resize(scales.len() + own.len(), by);
        squares.extend(own);
        pairs.push(PairFeatures { columns: [*i, *j], groups, pairs: products });
    }
    scales.resize(dimension - 1, 0.0);
    scales.push(CONSTANT);
    squares.resize(dimension - 1, 0.0);
    squares.push(CONSTANT * CONSTANT);
    Ok(Basis { features: CellFeatures::new(&columns, &pairs, CONSTANT)?.padded(dimension)?, scales, squares })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of any column: a straight line is one feature, nothing else has a part of it, and all features together are as long as before.
    #[test]
    fn what_is_straight_is_one_feature() {
        let shares = normal(&[4.0, 1.0, 0.5, 2.0, 0.0, 9.0]);
        let ranked = ranks(&shares);
        let line = [-2.0, -0.5, 0.1, 0.4, 3.0, 3.5];
        let mut features: Vec<Vec<f64>> =
            (0..6).map(|i| [line[i]].into_iter().chain(cosines(ranked[i], 4, 1.0)).collect()).collect();
        let before = centre(&mut features.clone(), &shares);
        straighten(&mut features, &shares);
        let product = |f: usize, g: usize| features.iter().zip(&shares).map(|(v, s)| s * v[f] * v[g]).sum::<f64>();
        assert!((1..5).all(|f| product(0, f).abs() < 1e-12));
        assert!(((0..5).map(|f| product(f, f)).sum::<f64>() - before).abs() < 1e-12);
        let slope = |i: usize| (features[i + 1][0] - features[i][0]) / (line[i + 1] - line[i]);
        assert!((0..5).all(|i| (slope(i) / slope(0) - 1.0).abs() < 1e-9));
        // A column with one value has no line, and stays as it is.
        let mut flat = vec![vec![1.0, 2.0]; 3];
        straighten(&mut flat, &[0.2, 0.3, 0.5]);
        assert!(flat.iter().flatten().all(|x| x.abs() < 1e-12));
    }

    fn normal(counts: &[f64]) -> Vec<f64> {
        let sum: f64 = counts.iter().sum();
        counts.iter().map(|c| c / sum).collect()
    }
}
