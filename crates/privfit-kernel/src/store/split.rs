//! Two disjoint sets of records: one to train on, one to try on. Which record is where is decided by coins that look at no record, so that
//! whatever is done with the first costs the records of the second nothing, and the other way round.

use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::memory::{grow, zeros};
use crate::rng::{Entropy, Rate, Stream, Words};

/// How much is held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeldOut {
    /// So many units, for a number of units that is public: a uniform choice of units.
    Units(usize),
    /// Each unit by a coin of its own. One more record leaves the coins of the others as they are.
    Each(Rate),
}

/// Records to train on and records to try on.
pub struct Split {
    pub(crate) train: Dataset,
    pub(crate) validation: Dataset,
    /// So many units were held out, and how many are left to train on is their number less that.
    pub(crate) by_count: bool,
}

impl Dataset {
    /// Divides the units. The coins stay secret.
    pub fn split(self, entropy: &Entropy, held_out: HeldOut) -> Result<Split> {
        let unit_count = self.unit_count();
        if unit_count != self.total() {
            return Err(Error::unsupported("held-out records of several processes", "hold out in one process"));
        }
        let mut rng = entropy.rng(Stream::Parts)?;
        let out = match held_out {
            HeldOut::Each(rate) => rate.draw(unit_count, &mut rng),
            HeldOut::Units(count) => {
                if count == 0 {
                    return Err(Error::domain("units to hold out", count, "give at least 1"));
                }
                // How many there are may be private: no error depends on it.
                let count = count.min(unit_count.saturating_sub(1));
                let mut order: Vec<usize> = Vec::new();
                grow(&mut order, unit_count);
                order.extend(0..unit_count);
                let mut out = zeros::<bool>(unit_count);
                for i in 0..count {
                    let other = i + below((unit_count - i) as u64, &mut rng) as usize;
                    order.swap(i, other);
                    out[order[i]] = true;
                }
                out
            }
        };
        let by_count = matches!(held_out, HeldOut::Units(_));
        let part = |wanted: bool| self.picked((0..unit_count).filter(|unit_index| out[*unit_index] == wanted));
        Ok(Split { train: part(false)?, validation: part(true)?, by_count })
    }
}

/// A uniform number below `count`, exactly.
pub(crate) fn below(count: u64, words: &mut impl Words) -> u64 {
    // Words at and beyond the largest multiple of count are drawn again.
    let spare = (u64::MAX % count + 1) % count;
    loop {
        let word = words.word();
        if word <= u64::MAX - spare {
            return word % count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatasetBuilder, RowShape};

    fn data(sparse: bool, rows_per_unit: Option<usize>) -> Dataset {
        let shape = RowShape { dimension: 3, row_norm: 1.0, sparse, rows_per_unit };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        for i in 0..200 {
            for _ in 0..if rows_per_unit.is_some() { i % 3 } else { 1 } {
                builder.row(&[i as f64 / 400.0, 0.0, 0.5], i as f32);
            }
            builder.end_unit();
        }
        builder.build()
    }

    #[test]
    fn every_unit_is_in_one_part_with_all_of_its_rows() {
        for (sparse, units) in [(false, None), (true, None), (false, Some(2)), (true, Some(2))] {
            for held_out in [HeldOut::Units(30), HeldOut::Each(Rate::new(0.15).unwrap())] {
                let whole = data(sparse, units);
                let rows = whole.labels.len();
                let split = whole.split(&Entropy::simulated(3), held_out).unwrap();
                assert_eq!(split.train.unit_count() + split.validation.unit_count(), 200);
                assert_eq!(split.train.labels.len() + split.validation.labels.len(), rows);
                if held_out == HeldOut::Units(30) {
                    assert_eq!(split.validation.unit_count(), 30);
                }
                let mut seen: Vec<f32> = Vec::new();
                for part in [&split.train, &split.validation] {
                    assert_ne!(part.id, 0);
                    for unit_index in 0..part.unit_count() {
                        let unit = part.unit(unit_index);
                        for row in 0..unit.rows() {
                            let label = unit.label(row);
                            let mut first = 0.0;
                            unit.each(row, |i, x| first += if i == 0 { x } else { 0.0 });
                            assert!((first - f64::from(label) / 400.0).abs() < 1e-3, "rows keep their labels");
                            seen.push(label);
                        }
                    }
                }
                seen.sort_by(f32::total_cmp);
                let mut again: Vec<f32> = data(sparse, units).labels.to_vec();
                again.sort_by(f32::total_cmp);
                assert_eq!(seen, again);
            }
        }
        assert!(data(false, None).split(&Entropy::simulated(1), HeldOut::Units(0)).is_err());
        assert_eq!(data(false, None).split(&Entropy::simulated(1), HeldOut::Units(200)).unwrap().train.unit_count(), 1);
    }

    /// Which units are held out depends on the seed and on nothing in the records.
    #[test]
    fn coins_look_at_no_record() {
        let marks = |change: bool| {
            let shape = RowShape { dimension: 1, row_norm: 1.0, sparse: false, rows_per_unit: None };
            let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
            (0..50).for_each(|i| builder.row(&[if change { 0.9 } else { -0.1 }], i as f32));
            builder.build().split(&Entropy::simulated(8), HeldOut::Units(10)).unwrap().validation.labels.to_vec()
        };
        assert_eq!(marks(false), marks(true));
        let mut rng = crate::NoiseRng::from_key([5; 32]);
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[below(7, &mut rng) as usize] += 1);
        assert!(counts.iter().all(|c| (f64::from(*c) - 10_000.0).abs() < 600.0), "{counts:?}");
    }
}
