//! The order of releases: one list says what a run does, and the event of the plan is made from it.

use super::{basis, target};
use crate::data::cells::CellGrid;
use crate::error::Result;
use privfit_kernel::account::Event;
use privfit_kernel::{Gaussian, Mechanism};

/// Intervals of the sizes of residuals: each ends at 4/5 of the next.
pub(super) const RESIDUALS: usize = 25;

/// One kind of release, so many times in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Counts by cell, of all columns.
    Counts,
    /// Mean and mean square of the target, or counts of the classes.
    Target,
    /// Sizes of residuals, for the clip of what follows.
    Residuals,
    /// Steps on the features of columns.
    Steps(u64),
    /// Gradients of all products of two columns.
    Screen,
    /// No release: features that say something become longer.
    Emphasis,
    /// Steps on the features of columns and chosen pairs.
    PairSteps(u64),
    /// Sums over the leaves of a batch of trees, so many batches.
    Leaves(u64),
}

/// Parts of the squared privacy loss (mu^2) that stages have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) counts: f64,
    pub(super) target: f64,
    pub(super) residuals: f64,
    pub(super) screen: f64,
    pub(super) steps: f64,
    pub(super) leaves: f64,
}

/// Everything that shapes events: public.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) actions: Vec<Action>,
    pub(super) shares: Shares,
    pub(super) outputs: usize,
    /// Pairs that may be chosen.
    pub(super) pairs: usize,
    /// Trees of a batch, and questions of a tree.
    pub(super) batch: usize,
    pub(super) depth: usize,
    pub(super) rows: u64,
    /// Noise of counts, which replace-one moves by sqrt 2 and not by 2, over that of signed sums.
    pub(super) counts_factor: f64,
}

/// The mechanisms of a program.
#[derive(Clone, Copy)]
pub(super) struct Mechanisms {
    pub(super) counts: Gaussian,
    pub(super) target: Gaussian,
    pub(super) residuals: Gaussian,
    /// Noise multipliers: the clip is chosen on the way.
    pub(super) step: f64,
    pub(super) screen: f64,
    pub(super) leaves: f64,
}

impl Program {
    fn total(&self, wanted: fn(&Action) -> u64) -> f64 {
        self.actions.iter().map(wanted).sum::<u64>().max(1) as f64
    }

    /// Steps of both kinds.
    pub(super) fn steps(&self) -> u64 {
        self.total(|a| if let Action::Steps(n) | Action::PairSteps(n) = a { *n } else { 0 }) as u64
    }

    /// Batches of trees.
    pub(super) fn batches(&self) -> u64 {
        self.actions.iter().map(|a| if let Action::Leaves(n) = a { *n } else { 0 }).sum()
    }

    /// Features of all columns, the constant included; with pairs.
    pub(super) fn dimension(&self, grid: &CellGrid, pairs: bool) -> usize {
        let columns: usize = grid.columns.iter().map(|c| basis::width(&c.kind)).sum();
        columns + 1 + if pairs { self.pairs * basis::pair_width(grid) } else { 0 }
    }

    /// The mechanisms whose noise is `multiplier` for all releases together.
    pub(super) fn mechanisms(&self, grid: &CellGrid, multiplier: f64) -> Result<Mechanisms> {
        let Shares { counts, target, residuals, screen, steps, leaves } = self.shares;
        let part = |share: f64, times: f64| multiplier * (times / share.max(1e-9)).sqrt();
        let asked = self.total(|a| u64::from(*a == Action::Residuals));
        Ok(Mechanisms {
            counts: Gaussian::for_counts(grid.columns.len(), self.counts_factor * part(counts, 1.0), self.rows)?,
            target: Gaussian::new(std::f64::consts::SQRT_2, part(target, 1.0), self.rows)?,
            residuals: Gaussian::for_counts(1, self.counts_factor * part(residuals, asked), self.rows)?,
            step: part(steps, self.steps() as f64),
            screen: part(screen, 1.0),
            leaves: part(leaves, self.batches().max(1) as f64),
        })
    }

    /// What the program costs with such mechanisms.
    pub(super) fn event(&self, grid: &CellGrid, mechanisms: &Mechanisms) -> Result<Event> {
        let gradients = |multiplier: f64, dimension: usize| -> Result<Event> {
            Ok(Gaussian::for_gradients(1.0, multiplier)?.event(dimension))
        };
        let steps = |n: u64, pairs: bool| -> Result<Event> {
            Ok(gradients(mechanisms.step, self.dimension(grid, pairs) * self.outputs)?.repeated(n))
        };
        let event = |action: &Action| -> Result<Option<Event>> {
            Ok(Some(match action {
                Action::Counts => mechanisms.counts.event(grid.counts().iter().sum()),
                Action::Target => mechanisms.target.event(target::dimension(self.outputs)),
                Action::Residuals => mechanisms.residuals.event(RESIDUALS),
                Action::Steps(n) => steps(*n, false)?,
                Action::PairSteps(n) => steps(*n, true)?,
                Action::Screen => gradients(mechanisms.screen, basis::screen_dimension(grid))?,
                Action::Leaves(n) => gradients(mechanisms.leaves, self.batch * (1 << self.depth) * self.outputs)?.repeated(*n),
                Action::Emphasis => return Ok(None),
            }))
        };
        let events = self.actions.iter().filter_map(|action| event(action).transpose());
        Ok(Event::Compose(events.collect::<Result<_>>()?))
    }
}
