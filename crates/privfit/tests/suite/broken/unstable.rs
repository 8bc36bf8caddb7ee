//! A choice that one record can flip, with noise as if it were fixed.

use super::{Before, Case, axis, clipped, neighbours, norm, sum};
use privfit::audit::Pair;
use privfit::data::encode::Row;
use privfit::kernel::account::Adjacency;

/// Public points that are answered.
const POINTS: usize = 8;

/// Half of the records vote for one side, half but one for the other; the last one decides.
fn deciding(case: &Case) -> Pair {
    let d = case.dimension;
    let others = (1..case.rows).map(|i| axis(d, i % 2, 1.0, if i % 2 == 1 { 1.0 } else { -1.0 })).collect();
    neighbours(case, "telling", others, axis(d, 0, 1.0, -1.0), axis(d, 1, 1.0, 1.0))
}

/// Bug 7: a teacher without privacy labels public points, and the student's noise is for a teacher who stays the same (DPSL-KT style).
/// A record that flips the teacher flips every answer. Found by a pair that flips a label.
pub(super) const TEACHER: Case = Case {
    number: 7,
    name: "answers of a teacher without privacy",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let vote = rows.iter().map(|r| f64::from(r.label)).sum::<f64>();
        let answer = if vote > 0.0 { 1.0 } else { -1.0 };
        // Published: one record is one part in twenty of the teacher.
        Before::covered(vec![answer; POINTS], if fixed { 2.0 * (POINTS as f64).sqrt() } else { 2.0 / 20.0 })
    },
    pair: deciding,
};

/// The published form of knowledge transfer for sparse models: the teacher has one column, the one with the largest gradient, and the
/// sensitivity of its answers is taken from a theorem for convex sets, 1/n times a constant. Sets of columns are not convex: one record
/// swaps the column. Wang and Gu 2020. Found by a pair at a tie.
pub(super) const KNOWLEDGE_TRANSFER: Case = Case {
    number: 14,
    name: "published knowledge transfer",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let total = sum(rows.iter().map(clipped), 2);
        let column = usize::from(total[1].abs() > total[0].abs());
        // Public points with cells of size 1/sqrt(points): answers of a unit weight have length 1.
        let cell = 1.0 / (POINTS as f64).sqrt();
        let answers = (0..POINTS).map(|i| if column == 0 || i % 2 == 0 { cell } else { -cell }).collect();
        Before::covered(answers, if fixed { 2.0 } else { 2.0 * 2f64.sqrt() / 20.0 })
    },
    pair: deciding,
};

/// The published form of a private Oja iteration: what is released is the leading direction, with noise for the step of one record, as
/// if the direction itself could not turn. Two directions that are equally strong turn by a right angle with one record. Found by a
/// pair at a tie.
pub(super) const OJA: Case = Case {
    number: 15,
    name: "published leading direction",
    adjacency: Adjacency::ZeroOut,
    rows: 20,
    dimension: 2,
    trials: 1,
    before: |rows, fixed| {
        let mut matrix = [0.0; 3];
        for row in rows.iter().map(|r: &Row| clipped(r)) {
            matrix = [matrix[0] + row[0] * row[0], matrix[1] + row[0] * row[1], matrix[2] + row[1] * row[1]];
        }
        let mut v = vec![1.0, 1.0 - 1e-9];
        for _ in 0..2000 {
            v = vec![matrix[0] * v[0] + matrix[1] * v[1] + 1e-12 * v[0], matrix[1] * v[0] + matrix[2] * v[1] + 1e-12 * v[1]];
            let size = norm(&v).max(1e-300);
            v.iter_mut().for_each(|x| *x /= size);
        }
        Before::covered(v, if fixed { 2.0 } else { 2.0 / 20.0 })
    },
    pair: deciding,
};
