//! Neighbouring pairs by the thousand, compared before noise: whatever meets noise moves by at most its sensitivity, and everything else is
//! the same to the bit. No statistics, so no false alarms.

use super::pair::{KINDS, Pair, RowMaker};
use super::subject::Subject;
use crate::data::encode::Row;
use crate::data::generate::Random;
use crate::error::Result;
use std::collections::BTreeMap;

/// What pairs showed about one kind of value.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Values that were compared.
    pub values: u64,
    /// Largest distance over sensitivity.
    pub largest: f64,
    /// Values that moved too far, or whose public facts differ.
    pub violations: u64,
}

/// What all pairs showed.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Pairs compared.
    pub pairs: u64,
    /// By kind of value and kind of pair.
    pub lines: BTreeMap<(&'static str, &'static str), Line>,
    /// Pairs in which something differs that meets no noise.
    pub unequal: u64,
    /// The first violation, in words.
    pub first: Option<String>,
}

impl Finding {
    /// Whether anything moved that may not.
    pub fn violated(&self) -> bool {
        self.unequal > 0 || self.lines.values().any(|l| l.violations > 0)
    }

    /// Largest distance over sensitivity of all.
    pub fn largest(&self) -> f64 {
        self.lines.values().map(|l| l.largest).fold(0.0, f64::max)
    }

    /// Compares one more pair.
    pub fn add(&mut self, subject: &dyn Subject, pair: &Pair, seed: u64) -> Result<()> {
        let compared = subject.compare(&pair.a, &pair.b, seed)?;
        self.pairs += 1;
        for m in &compared.moved {
            let line = self.lines.entry((m.what, pair.kind)).or_default();
            line.values += 1;
            line.largest = line.largest.max(m.part);
            line.violations += u64::from(!m.holds);
            if !m.holds && self.first.is_none() {
                self.first =
                    Some(format!("{} of a pair of kind {:?} moved by {:.4} of its sensitivity", m.what, pair.kind, m.part));
            }
        }
        if !compared.equal {
            self.unequal += 1;
            self.first.get_or_insert_with(|| format!("something that meets no noise differs in a pair of kind {:?}", pair.kind));
        }
        Ok(())
    }
}

/// Compares pairs of all kinds, with generated records, or with one record of the given rows replaced. `progress` is called once a pair.
pub fn audit(
    subject: &dyn Subject,
    maker: &RowMaker,
    rows: usize,
    pairs: u64,
    others: &[Row],
    progress: &dyn Fn(),
) -> Result<Finding> {
    let mut random = Random::new(0xA0D1);
    let mut finding = Finding::default();
    for i in 0..pairs {
        let kind = KINDS[i as usize % KINDS.len()];
        let pair = maker.pair(kind, rows, subject.claim().adjacency, &mut random, others);
        finding.add(subject, &pair, i)?;
        progress();
    }
    Ok(finding)
}
