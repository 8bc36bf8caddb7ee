//! `privfit-bench tables sparse`: the figures and tables on sparse learning, the published methods rerun, and ours.

mod cases;
mod cell;
mod methods;
mod printed;
mod report;

use super::record::Records;
use super::{Options, each_on_two_cores};
use crate::progress::Bar;
use crate::{Failure, print_line};
use cases::Case;
use methods::{Candidate, Kind};

/// Without privacy there is no epsilon.
fn claimed(candidate: &Candidate, case: &Case) -> Vec<f64> {
    if candidate.kind == Kind::Baseline { vec![f64::INFINITY] } else { case.epsilons.clone() }
}

/// Cells of a case that are not there yet.
fn missing(case: &Case, records: &Records) -> Vec<(&'static Candidate, f64)> {
    let cells = methods::of(case).flat_map(|c| claimed(c, case).into_iter().map(move |e| (c, e)));
    cells.filter(|(c, e)| !records.has(&case.name, case.loss, *e, c.name)).collect()
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let made = std::fs::create_dir_all(options.out.join("plots"));
    made.map_err(|e| Failure::misuse(format!("cannot make {}: {e}; give another --out", options.out.display())))?;
    let records = Records::open(&options.out.join("cells.csv"));
    let mut cases: Vec<Case> = cases::all(options.quick).into_iter().filter(|c| options.wants(&c.name)).collect();
    // What takes long comes last, so that a run that is stopped has most of the tables.
    cases.sort_by_key(|c| c.large);
    let total: usize = cases.iter().map(|c| missing(c, &records).len()).sum();
    let bar = Bar::new(total as u64, true, "cells");
    for case in &cases {
        let cells = missing(case, &records);
        if cells.is_empty() {
            continue;
        }
        let data = case.load(&options.shared, methods::most_seeds(case))?;
        each_on_two_cores(cells, |(candidate, epsilon)| {
            let done = records.add(cell::compute(case, &data, candidate, epsilon));
            bar.step();
            done
        })?;
    }
    bar.finish();
    records.sort()?;
    print_line(&report::write(options, &records)?);
    Ok(())
}
