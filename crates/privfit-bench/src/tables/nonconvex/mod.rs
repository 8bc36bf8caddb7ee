//! `privfit-bench tables nonconvex`: tables and figures on recursive momentum and on Laplacian smoothing, the published methods rerun with what they truly guarantee, and ours.

mod cases;
pub(super) mod cell;
mod courses;
mod figures;
mod lines;
mod points;
mod printed;
mod report;

use super::Options;
use crate::progress::Bar;
use crate::{Failure, print_line};
use lines::Lines;
use points::Points;

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let made = std::fs::create_dir_all(options.out.join("plots"));
    made.map_err(|e| Failure::misuse(format!("cannot make {}: {e}; give another --out", options.out.display())))?;
    let lines = Lines::open(&options.out.join("cells.csv"));
    let sets: Vec<_> = cases::SETS.iter().filter(|s| options.wants(s.name)).collect();
    let missing = |set: &cases::Entry| {
        let all = cases::of(set.name).into_iter().flat_map(|c| c.epsilons.clone().into_iter().map(move |e| (c.clone(), e)));
        all.filter(|(c, e)| !lines.has(set.name, &c.name, *e)).collect::<Vec<_>>()
    };
    let bar = Bar::new(sets.iter().map(|s| missing(s).len() as u64).sum(), true, "cells");
    for entry in sets {
        let cells = missing(entry);
        if cells.is_empty() {
            continue;
        }
        let set = (entry.load)(&options.shared)?;
        // One after the other: processor times are part of the tables.
        for (candidate, epsilon) in cells {
            lines.add(cell::compute(entry, &set, &candidate, epsilon, options.quick)?)?;
            bar.step();
        }
    }
    bar.finish();
    lines.sort()?;
    let points = Points::open(&options.out.join("points.csv"));
    courses::run(options, &points)?;
    print_line(&report::write(options, &lines, &points)?);
    Ok(())
}
