//! An encoder that all teachers share. It is made from public points and the schema alone, so that it costs nothing, and a teacher with thirty rows does
//! not have to find it out for itself.
//!
//! Rows with many features are projected on the directions in which the public points differ most. Additive teachers see every number as steps at
//! quantiles of the public points as well; networks see a layer of rectified random directions. The teacher itself is linear in what comes out.

use crate::data::encode::Column;
use crate::method::settings::Teachers;
use crate::solve::eigen;
use privfit_kernel::PublicRows;

/// More features than this are projected.
const MOST: usize = 256;
/// Points that directions are made from.
const LOOKED_AT: usize = 1000;
/// Steps of a column for additive teachers.
const STEPS: usize = 8;

/// The encoder as numbers, in the order in which a teacher reads them (`View`).
pub(crate) struct Encoder {
    features: usize,
    /// Directions, one after the other; empty for rows as they are.
    directions: Vec<f64>,
    /// Column and place of each step.
    steps: Vec<(usize, f64)>,
    /// Weights of the random layer, with an offset at the end of each.
    layer: Vec<f64>,
    /// What of a step or a unit of the layer counts.
    size: f64,
}

/// Uniform numbers that are the same on every run.
struct Mix(u64);

impl Mix {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 * 0.5f64.powi(53)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Inner product, in lanes that do not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((first, rest), (second, other)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0f64; 8];
    for (x, y) in first.iter().zip(second) {
        lanes.iter_mut().zip(x.iter().zip(y)).for_each(|(lane, (x, y))| *lane += x * y);
    }
    lanes.iter().sum::<f64>() + rest.iter().zip(other).map(|(x, y)| x * y).sum::<f64>()
}

/// Leading directions of the rows, by subspace iteration; every one as long as a unit of the input.
fn leading(points: &PublicRows, count: usize) -> Vec<f64> {
    let (d, n) = (points.features(), points.len());
    let count = count.min(d).min(n);
    let wide = (count + 8).min(d);
    let mut mix = Mix(7);
    let mut basis: Vec<f64> = (0..wide * d).map(|_| mix.normal()).collect();
    for _ in 0..6 {
        orthonormal(&mut basis, d);
        let mut next = vec![0f64; wide * d];
        for row in points.iter().take(LOOKED_AT) {
            for (own, to) in basis.chunks(d).zip(next.chunks_mut(d)) {
                let along = dot(own, row);
                to.iter_mut().zip(row).for_each(|(t, x)| *t += along * x);
            }
        }
        basis = next;
    }
    orthonormal(&mut basis, d);
    // The best directions within the subspace, by the small matrix of second moments.
    let mut moments = vec![0f64; wide * wide];
    for row in points.iter().take(LOOKED_AT) {
        let along: Vec<f64> = basis.chunks(d).map(|b| dot(b, row)).collect();
        for i in 0..wide {
            moments[i * wide..(i + 1) * wide].iter_mut().zip(&along).for_each(|(m, y)| *m += along[i] * y);
        }
    }
    let (values, vectors) = eigen::symmetric(moments, wide);
    let mut order: Vec<usize> = (0..wide).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let mut out = vec![0f64; count * d];
    for (to, chosen) in out.chunks_mut(d).zip(order) {
        for (own, weight) in basis.chunks(d).zip(&vectors[chosen * wide..]) {
            to.iter_mut().zip(own).for_each(|(t, b)| *t += weight * b);
        }
    }
    out
}

/// Gram and Schmidt, twice for each.
fn orthonormal(basis: &mut [f64], d: usize) {
    for i in 0..basis.len() / d {
        let (before, rest) = basis.split_at_mut(i * d);
        let own = &mut rest[..d];
        for _ in 0..2 {
            for other in before.chunks(d) {
                let along = dot(other, own);
                own.iter_mut().zip(other).for_each(|(o, a)| *o -= along * a);
            }
        }
        let length = own.iter().map(|x| x * x).sum::<f64>().sqrt();
        own.iter_mut().for_each(|x| *x = if length > 1e-150 { *x / length } else { 0.0 });
    }
}

/// Root of the mean squared distance of rows from their mean.
pub(crate) fn spread(rows: &[f64], width: usize) -> f64 {
    let count = (rows.len() / width.max(1)).max(1) as f64;
    let mut mean = vec![0f64; width];
    rows.chunks(width.max(1)).for_each(|row| mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / count));
    let distance = |row: &[f64]| row.iter().zip(&mean).map(|(x, m)| (x - m).powi(2)).sum::<f64>();
    (rows.chunks(width.max(1)).map(distance).sum::<f64>() / count).sqrt()
}

impl Encoder {
    /// From public points and the columns of the schema; so many directions where there are too many features, and units of a layer for networks.
    pub(crate) fn new(points: &PublicRows, columns: &[Column], teachers: Teachers, (most, width): (usize, usize)) -> Encoder {
        let features = points.features();
        let many = features > MOST;
        let directions = if many { leading(points, most) } else { Vec::new() };
        let mut encoder = Encoder { features, directions, steps: Vec::new(), layer: Vec::new(), size: 0.0 };
        match teachers {
            Teachers::Additive => {
                let numeric = |j: &usize| columns.get(*j).is_some_and(|c| c.group.is_none() && !c.constant);
                for j in (0..features).filter(numeric) {
                    let mut cells: Vec<f64> = points.iter().map(|row| row[j]).collect();
                    cells.sort_by(f64::total_cmp);
                    let at = |k: usize| cells.get(k * cells.len() / (STEPS + 1)).copied().unwrap_or(0.0);
                    let mut own: Vec<f64> = (1..=STEPS).map(at).collect();
                    own.dedup();
                    encoder.steps.extend(own.into_iter().map(|t| (j, t)));
                }
                // As large as a category of such a table.
                encoder.size = 1.0 / (columns.len().max(1) as f64).sqrt();
            }
            Teachers::Network => {
                let mut mix = Mix(11);
                let (all, inputs) = (encoder.points(points), encoder.width());
                let encoded: Vec<&[f64]> = all.chunks(inputs).collect();
                let count = encoded.len().max(1) as f64;
                // Directions as wide as the points spread, offsets at points: units that tell points apart.
                let mean = |j: usize| encoded.iter().map(|z| z[j]).sum::<f64>() / count;
                let spread = |j: usize, m: f64| (encoded.iter().map(|z| (z[j] - m).powi(2)).sum::<f64>() / count).sqrt();
                let moments: Vec<(f64, f64)> = (0..inputs).map(|j| (mean(j), spread(j, mean(j)))).collect();
                let total = moments.iter().map(|m| m.1 * m.1).sum::<f64>().sqrt().max(1e-12);
                for _ in 0..width {
                    let own: Vec<f64> = moments.iter().map(|_| mix.normal() / total).collect();
                    let at = encoded.get((mix.uniform() * count) as usize).copied().unwrap_or_default();
                    let offset: f64 = own.iter().zip(at).map(|(a, z)| a * z).sum();
                    encoder.layer.extend(&own);
                    encoder.layer.push(-offset);
                }
                encoder.size = total / (width.max(1) as f64).sqrt();
            }
            Teachers::Linear | Teachers::Command => {}
        }
        encoder
    }

    /// Numbers that come out for a row.
    pub(crate) fn width(&self) -> usize {
        let inputs = if self.directions.is_empty() { self.features } else { self.directions.len() / self.features };
        inputs + self.steps.len() + if self.layer.is_empty() { 0 } else { self.layer.len() / (inputs + 1) }
    }

    /// The linear part of it alone: steps and layers are no features of a linear student.
    pub(crate) fn linear(&self) -> Encoder {
        Encoder { features: self.features, directions: self.directions.clone(), steps: Vec::new(), layer: Vec::new(), size: 0.0 }
    }

    /// Directions of the projection, if there is one.
    pub(crate) fn directions(&self) -> &[f64] {
        &self.directions
    }

    /// The encoder in a list, for teachers.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let counts = [self.features, self.directions.len(), self.steps.len(), self.layer.len()];
        let mut out: Vec<f64> = counts.iter().map(|n| *n as f64).collect();
        out.push(self.size);
        out.extend(&self.directions);
        self.steps.iter().for_each(|(column, at)| out.extend([*column as f64, *at]));
        out.extend(&self.layer);
        out
    }

    /// All points, encoded.
    pub(crate) fn points(&self, points: &PublicRows) -> Vec<f64> {
        let numbers = self.numbers();
        let view = View::new(&numbers).0;
        points.iter().flat_map(|row| view.encode(row)).collect()
    }
}

/// An encoder in a list of numbers.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) features: usize,
    size: f64,
    directions: &'a [f64],
    steps: &'a [f64],
    layer: &'a [f64],
}

impl<'a> View<'a> {
    /// The encoder at the beginning of a list, and the rest of the list.
    pub(crate) fn new(numbers: &'a [f64]) -> (View<'a>, &'a [f64]) {
        let count = |i: usize| numbers[i] as usize;
        let (directions, rest) = numbers[5..].split_at(count(1));
        let (steps, rest) = rest.split_at(2 * count(2));
        let (layer, rest) = rest.split_at(count(3));
        (View { features: count(0), size: numbers[4], directions, steps, layer }, rest)
    }

    /// What comes out for a row.
    pub(crate) fn encode(&self, row: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = match self.directions.is_empty() {
            true => row.to_vec(),
            false => self.directions.chunks(self.features).map(|b| dot(b, row)).collect(),
        };
        let inputs = out.len();
        out.extend(self.steps.chunks(2).map(|step| if row[step[0] as usize] > step[1] { self.size } else { 0.0 }));
        let units = self.layer.chunks(inputs + 1).map(|w| self.size * (dot(&w[..inputs], &out[..inputs]) + w[inputs]).max(0.0));
        let units: Vec<f64> = units.collect();
        out.extend(units);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::Random;

    /// Points in a plane of many dimensions are told apart as well in the directions that are left.
    #[test]
    fn leading_directions_hold_the_points() {
        let (d, n) = (300, 60);
        let mut random = Random::new(5);
        let plane: Vec<f64> = (0..2 * d).map(|_| random.normal() / (d as f64).sqrt()).collect();
        let mut cells = Vec::new();
        for _ in 0..n {
            let (a, b) = (random.normal(), random.normal());
            cells.extend((0..d).map(|j| a * plane[j] + b * plane[d + j]));
        }
        let points = PublicRows::new(cells, d);
        let encoder = Encoder::new(&points, &[], Teachers::Linear, (50, 0));
        assert!(encoder.width() == 50);
        let encoded = encoder.points(&points);
        for (row, z) in points.iter().zip(encoded.chunks(encoder.width())) {
            let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
            assert!((length(row) - length(z)).abs() < 1e-9 * length(row).max(1.0), "{} {}", length(row), length(z));
        }
    }

    /// Steps and layers come after the features, and the list of numbers is read as it was written.
    #[test]
    fn encoders_are_read_as_they_were_written() {
        let column = |constant| Column { scale: 1.0, shift: 0.0, group: None, constant };
        let points = PublicRows::new((0..40).map(|i| f64::from(i % 20) / 20.0).collect(), 2);
        for (teachers, width) in [(Teachers::Linear, 2), (Teachers::Additive, 2 + STEPS), (Teachers::Network, 2 + 5)] {
            let encoder = Encoder::new(&points, &[column(false), column(true)], teachers, (50, 5));
            let mut numbers = encoder.numbers();
            numbers.extend([7.0, 8.0]);
            let (view, rest) = View::new(&numbers);
            assert_eq!((encoder.width(), view.encode(&[0.3, 0.4]).len(), rest), (width, width, &[7.0, 8.0][..]));
        }
    }
}
