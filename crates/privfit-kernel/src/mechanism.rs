//! Mechanisms: the sensitivity to one unit, how much noise covers it, and the event that says so. All public, all before data.

use crate::account::Event;
use crate::error::{Error, Result};
use crate::limits::ROW_LIMIT;
use crate::limits::{MOST_UNITS, OCCUPANCY};
use crate::norm::Brand;
use crate::norm::{L1, L2, LInf, Norm, root_up};
use crate::numerics::Numerics;
use crate::sampling::sampler::{Sampler, Shape};

/// How far one unit can move an integer value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensitivity {
    /// Its contribution becomes null.
    pub zero_out: u64,
    /// Its contribution becomes another one.
    pub replace_one: u64,
}

/// Noise scale in grid units, as a power of two, where nothing else limits it.
const BITS: u32 = 40;

/// What a grid was made for. A sensitivity holds for that kind of value only, so every sum demands its own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridKind {
    /// Contributions clipped in the norm of the noise.
    Clipped,
    /// Contributions of so many coordinates, clipped in L2 although the noise is calibrated in L1.
    Spherical { dimension: usize },
    /// Derivative times row, 16-bit.
    Gradient,
    /// A whole vector that a theorem bounds.
    Output { dimension: usize },
    /// Sums of blocks in floating point, with this relative error of a unit (its bits).
    Blocks { dimension: usize, error: u64 },
    /// Counts of units by cell, in so many columns.
    Counts { columns: usize },
    /// Votes of models on parts.
    Votes,
    /// Scores of a selection.
    Scores,
    /// Scores that are gradients: derivative times cell, cells clipped at this many units.
    GradientScores { cap: u64 },
    /// Votes of models on parts, as scores of a selection.
    VoteScores,
    /// So many chosen coordinates of such scores on a grid with so many bits, each times a whole number.
    Selected { count: usize, from: u32, source: ScoreKind, times: u64 },
}

/// What scores are sums of. It decides how far another record in the place of one moves them: by twice as much as a record that becomes
/// null, or by as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreKind {
    Clipped,
    Gradients { cap: u64 },
    Votes,
}

impl GridKind {
    /// How far finite precision is covered for such a value.
    pub(crate) fn numerics(&self) -> Numerics {
        match self {
            GridKind::Clipped
            | GridKind::Spherical { .. }
            | GridKind::Gradient
            | GridKind::Counts { .. }
            | GridKind::Votes
            | GridKind::Scores
            | GridKind::GradientScores { .. }
            | GridKind::VoteScores
            | GridKind::Selected { .. } => Numerics::Exact,
            GridKind::Output { .. } | GridKind::Blocks { .. } => Numerics::Bounded,
        }
    }

    /// For people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            GridKind::Clipped | GridKind::Spherical { .. } => "clipped sum",
            GridKind::Gradient => "gradient sum",
            GridKind::Output { .. } => "whole vector",
            GridKind::Blocks { .. } => "sum of blocks",
            GridKind::Counts { .. } => "counts by cell",
            GridKind::Votes => "votes",
            GridKind::Scores | GridKind::GradientScores { .. } => "choice by scores",
            GridKind::VoteScores => "choice by votes",
            GridKind::Selected { .. } => "chosen coordinates",
        }
    }

    /// What the scores of a selection are sums of; none for values that are no scores.
    pub(crate) fn scores(&self) -> Option<ScoreKind> {
        match self {
            GridKind::Scores => Some(ScoreKind::Clipped),
            GridKind::GradientScores { cap } => Some(ScoreKind::Gradients { cap: *cap }),
            GridKind::VoteScores => Some(ScoreKind::Votes),
            GridKind::Clipped
            | GridKind::Spherical { .. }
            | GridKind::Gradient
            | GridKind::Output { .. }
            | GridKind::Blocks { .. }
            | GridKind::Counts { .. }
            | GridKind::Votes
            | GridKind::Selected { .. } => None,
        }
    }
}

/// The grid of one release and the noise on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) shape: Shape,
    /// Noise scale is 2^bits grid units.
    pub(crate) bits: u32,
    pub(crate) sensitivity: Sensitivity,
    /// Bound on one contribution, in the norm it is clipped in.
    pub(crate) bound: u64,
    pub(crate) kind: GridKind,
    /// One grid unit in the caller's units.
    pub(crate) unit: f64,
    /// Bound on one contribution in the caller's units.
    pub(crate) clip: f64,
}

impl Grid {
    pub(crate) fn event(&self, dimension: u64) -> Event {
        let Sensitivity { zero_out: sensitivity, replace_one: replace_sensitivity } = self.sensitivity;
        match self.shape {
            Shape::Gaussian => Event::DiscreteGaussian { sigma: 1 << self.bits, sensitivity, replace_sensitivity, dimension },
            Shape::Laplace => Event::DiscreteLaplace { scale: 1 << self.bits, sensitivity, replace_sensitivity, dimension },
        }
    }
}

/// A mechanism that adds noise to an integer vector.
pub trait Mechanism {
    /// The norm of the sensitivity.
    type Norm: Norm;
    /// What a release of so many coordinates costs.
    fn event(&self, dimension: usize) -> Event;
    #[doc(hidden)]
    fn grid(&self) -> GridToken;
}

/// Opaque to everyone outside of the kernel.
#[doc(hidden)]
pub struct GridToken(pub(crate) Grid);

/// Sensitivity of clipped contributions.
fn twice(bound: u64) -> Sensitivity {
    Sensitivity { zero_out: bound, replace_one: 2 * bound }
}

/// A grid unit far from underflow and overflow.
fn usable(unit: f64) -> Result<f64> {
    if (1e-250..1e250).contains(&unit) {
        return Ok(unit);
    }
    Err(Error::domain("grid unit", unit, "give a clip or sensitivity between 1e-200 and 1e200"))
}

fn positive(what: &'static str, value: f64) -> Result<f64> {
    if value >= f64::MIN_POSITIVE && value.is_finite() {
        return Ok(value);
    }
    Err(Error::domain(what, value, "give a positive finite number"))
}

/// Bits that a coordinate of a whole vector may have on its grid: a double then holds it to 2^-7 of a unit.
const VALUE_BITS: f64 = 46.0;

/// How much further apart two vectors can be after each coordinate was divided by the grid unit and rounded: half a unit each, and
/// the error of the division, which a sixteenth covers.
pub(crate) fn rounding_l2(dimension: usize) -> u64 {
    let root = root_up(dimension as u128);
    root + root / 16 + 1
}

/// The same in L1.
pub(crate) fn rounding_l1(dimension: usize) -> u64 {
    let d = dimension as u64;
    d + d / 16 + 1
}

/// Bits of the noise scale that leave room for the sum of `rows` contributions in 64 bits. Utility only: a sum that wraps is
/// still private, because wrapping commutes with adding the noise.
fn bits_for(rows: u64, noise_multiplier: f64) -> u32 {
    let room = 61.0 - (rows.max(1) as f64 / noise_multiplier).log2().max(0.0);
    (BITS as f64).min(room).clamp(8.0, f64::from(BITS)) as u32
}

/// The integer bound whose noise multiplier 2^bits / bound is at least the one asked for.
fn bound_for(bits: u32, noise_multiplier: f64) -> Result<u64> {
    let scale = 2f64.powi(bits as i32);
    let bound = (scale / noise_multiplier).floor();
    if !(1.0..9e18).contains(&bound) {
        return Err(Error::domain("noise_multiplier", noise_multiplier, "give a number between 1e-6 and 1e11"));
    }
    let mut bound = bound as u64;
    while bound > 1 && scale / (bound as f64) < noise_multiplier {
        bound -= 1;
    }
    Ok(bound)
}

/// Exact discrete Gaussian noise for a bound in L2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    grid: Grid,
}

/// Exact discrete Laplace noise for a bound in L1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laplace {
    grid: Grid,
}

impl Gaussian {
    fn with(kind: GridKind, bits: u32, bound: u64, sensitivity: Sensitivity, clip: f64, unit: f64) -> Result<Gaussian> {
        Ok(Gaussian { grid: Grid { shape: Shape::Gaussian, bits, sensitivity, bound, kind, unit: usable(unit)?, clip } })
    }

    /// For sums of contributions clipped to `clip`; `rows` is a public number of contributions, for head-room only.
    pub fn new(clip: f64, noise_multiplier: f64, rows: u64) -> Result<Gaussian> {
        positive("clip", clip)?;
        positive("noise_multiplier", noise_multiplier)?;
        let bits = bits_for(rows, noise_multiplier);
        let bound = bound_for(bits, noise_multiplier)?;
        Gaussian::with(GridKind::Clipped, bits, bound, twice(bound), clip, clip / bound as f64)
    }

    /// For gradients of linear models, derivative times row, both 16-bit: the bound is a whole multiple of the row limit.
    pub fn for_gradients(clip: f64, noise_multiplier: f64) -> Result<Gaussian> {
        positive("clip", clip)?;
        positive("noise_multiplier", noise_multiplier)?;
        // Largest power of two whose derivative limit still fits in 16 bits.
        let bits = ((ROW_LIMIT * ROW_LIMIT) as f64 * noise_multiplier).log2().floor().clamp(16.0, 44.0) as u32;
        let derivative_limit = (bound_for(bits, noise_multiplier)? / ROW_LIMIT).min(ROW_LIMIT);
        if derivative_limit == 0 {
            return Err(Error::domain(
                "noise_multiplier",
                noise_multiplier,
                "give a number between 1e-4 and 1e8 for 16-bit gradients",
            ));
        }
        let bound = derivative_limit * ROW_LIMIT;
        Gaussian::with(GridKind::Gradient, bits, bound, twice(bound), clip, clip / bound as f64)
    }

    /// For a whole vector that a theorem bounds: neighbours are at most `zero_out` (or `replace_one`) apart in L2. Putting the
    /// vector on the grid costs sqrt(dimension) grid units more. Coordinates are clipped at `magnitude`, which keeps distances; the
    /// grid is so coarse that a coordinate has at most 46 bits on it, and the error of the division is part of the sensitivity.
    pub fn for_output(
        zero_out: f64,
        replace_one: f64,
        magnitude: f64,
        noise_multiplier: f64,
        dimension: usize,
    ) -> Result<Gaussian> {
        positive("sensitivity", zero_out)?;
        positive("sensitivity", replace_one)?;
        positive("magnitude", magnitude)?;
        positive("noise_multiplier", noise_multiplier)?;
        let room = VALUE_BITS - (magnitude / (zero_out * noise_multiplier)).log2().max(0.0);
        let bits = f64::from(BITS).min(room.floor());
        if bits < 12.0 {
            return Err(Error::domain("magnitude", magnitude, "give at most 1e11 standard deviations of the noise"));
        }
        Gaussian::rounded(
            GridKind::Output { dimension },
            bits as u32,
            zero_out,
            replace_one,
            magnitude,
            noise_multiplier,
            dimension,
            1,
        )
    }

    /// Sensitivity of vectors that are rounded, so many times.
    #[allow(clippy::too_many_arguments)]
    fn rounded(
        kind: GridKind,
        bits: u32,
        zero_out: f64,
        replace_one: f64,
        clip: f64,
        noise_multiplier: f64,
        dimension: usize,
        roundings: u64,
    ) -> Result<Gaussian> {
        let bound = bound_for(bits, noise_multiplier)?;
        // Units that are put on the grid by themselves are truncated, and may be shortened by a few steps.
        let rounding = if roundings == 1 { rounding_l2(dimension) } else { roundings * (rounding_l2(dimension) + 4) } + 1;
        if bound <= 2 * rounding {
            return Err(Error::domain(
                "noise_multiplier",
                noise_multiplier,
                "give a smaller number: the grid is too coarse for it",
            ));
        }
        // ceil(sensitivity / unit) <= bound - rounding.
        let unit = (zero_out / (bound - rounding - 1) as f64).next_up();
        let replaced = (replace_one / unit).ceil();
        if !(replaced < 2f64.powi(61)) {
            return Err(Error::domain("sensitivity", replace_one, "give at most 1e6 times the zero-out sensitivity"));
        }
        let sensitivity = Sensitivity { zero_out: bound, replace_one: (replaced as u64 + 1 + rounding).max(bound) };
        Gaussian::with(kind, bits, bound, sensitivity, clip, unit)
    }

    /// For sums of blocks in floating point (`query/blocks.rs`): clip, twice the error of a block, and the rounding of its units. `error` is the
    /// relative error of one unit, and at least that of a sum of so many terms in single precision, in whatever order: 2^-24 for each.
    pub fn for_blocks(clip: f64, error: f64, noise_multiplier: f64, rows: u64, dimension: usize) -> Result<Gaussian> {
        positive("clip", clip)?;
        // Numbers that single precision makes 0 are far below a part of the error of such a clip, and sums far from overflow.
        if !(1e-9..=1e20).contains(&clip) {
            return Err(Error::domain("clip", clip, "give a number from 1e-9 to 1e20: single precision has no more room"));
        }
        if !(error >= OCCUPANCY as f64 * 0.5f64.powi(24) && error < 0.01) {
            return Err(Error::domain("block error", error, "give a relative error from 8e-6 to 0.01"));
        }
        let block_error = clip * error * OCCUPANCY as f64;
        let bits = bits_for(rows, positive("noise_multiplier", noise_multiplier)?);
        let (zero_out, replace_one) = (clip + 2.0 * block_error, 2.0 * (clip + block_error));
        let kind = GridKind::Blocks { dimension, error: error.to_bits() };
        let mut gaussian =
            Gaussian::rounded(kind, bits, zero_out, replace_one, clip, noise_multiplier, dimension, OCCUPANCY as u64 + 2)?;
        // A unit by itself is clipped on the integers at its clip, without the rest.
        gaussian.grid.bound = (clip / gaussian.grid.unit).floor() as u64;
        Ok(gaussian)
    }

    /// For counts of units by cell in so many columns at once (`query/cell_counts.rs`): a unit has the length sqrt(columns), and another one in its
    /// place moves counts by sqrt(2 columns), because no entry is negative. `rows` is for head-room only.
    pub fn for_counts(columns: usize, noise_multiplier: f64, rows: u64) -> Result<Gaussian> {
        let bits = bits_for(rows, positive("noise_multiplier", noise_multiplier)?);
        let bound = bound_for(bits, noise_multiplier)?;
        let length = |weight: u64, times: u128| root_up(times * columns as u128 * u128::from(weight) * u128::from(weight));
        let mut weight = (bound as f64 / (columns.max(1) as f64).sqrt()) as u64 + 1;
        while weight > 0 && length(weight, 1) > bound {
            weight -= 1;
        }
        if weight == 0 || columns == 0 {
            return Err(Error::domain("columns", columns, "give at least one, and fewer or less noise"));
        }
        let sensitivity = Sensitivity { zero_out: length(weight, 1), replace_one: length(weight, 2) };
        Gaussian::with(GridKind::Counts { columns }, bits, weight, sensitivity, (columns as f64).sqrt(), 1.0 / weight as f64)
    }

    /// For votes of models that were trained on parts by unit index: one unit moves one vote from one label to another, under every
    /// adjacency alike. The sensitivity is sqrt 2, and halving it for zero-out would be wrong: the model may change altogether.
    pub fn for_votes(noise_multiplier: f64) -> Result<Gaussian> {
        let bound = bound_for(BITS, positive("noise_multiplier", noise_multiplier)?)?;
        let mut vote = (bound as f64 / std::f64::consts::SQRT_2) as u64 + 1;
        while vote > 0 && root_up(2 * u128::from(vote) * u128::from(vote)) > bound {
            vote -= 1;
        }
        if vote == 0 {
            return Err(Error::domain("noise_multiplier", noise_multiplier, "give a smaller number"));
        }
        Gaussian::with(GridKind::Votes, BITS, vote, Sensitivity { zero_out: bound, replace_one: bound }, 1.0, 1.0 / vote as f64)
    }

    /// One value in L-infinity after a selection of `count` coordinates: its L2 sensitivity is sqrt(count) as large, or that of a whole
    /// row if that is smaller. Values are multiplied by a whole number first, so that noise of a power of two fits closely.
    pub fn for_selected(scores: &Exponential, count: usize, noise_multiplier: f64) -> Result<Gaussian> {
        let from = scores.grid;
        let refuse = || Error::domain("noise_multiplier", noise_multiplier, "give a smaller number, or fewer coordinates");
        let widen = |sensitivity: u64| -> Result<u64> {
            let square = u128::from(sensitivity).checked_mul(u128::from(sensitivity)).and_then(|s| s.checked_mul(count as u128));
            let by_count = square.map(root_up).ok_or_else(refuse)?;
            Ok(match from.kind {
                // sensitivity = derivative x cap (twice that for replace-one); a row has at most the row limit in all.
                GridKind::GradientScores { cap } => by_count.min(sensitivity / cap * ROW_LIMIT),
                _ => by_count,
            })
        };
        let (zero_out, replace_one) = (widen(from.sensitivity.zero_out)?, widen(from.sensitivity.replace_one)?);
        let least = zero_out as f64 * positive("noise_multiplier", noise_multiplier)?;
        let bits = (least.log2() + 11.0).ceil().min(f64::from(Sampler::LARGEST));
        let scale = 2f64.powi(bits as i32);
        let times = (scale / least).floor();
        if !(bits >= 0.0 && times >= 1.0) {
            return Err(refuse());
        }
        let mut times = times as u64;
        while times > 1 && scale / ((zero_out * times) as f64) < noise_multiplier {
            times -= 1;
        }
        let sensitivity =
            Sensitivity { zero_out: zero_out * times, replace_one: replace_one.checked_mul(times).ok_or_else(refuse)? };
        let source = from.kind.scores().ok_or_else(refuse)?;
        let kind = GridKind::Selected { count, from: from.bits, source, times };
        Gaussian::with(kind, bits as u32, from.bound, sensitivity, from.clip, from.unit / times as f64)
    }

    /// The noise multiplier really used: a ratio of two integers, at least the one asked for.
    pub fn noise_multiplier(&self) -> f64 {
        2f64.powi(self.grid.bits as i32) / self.grid.sensitivity.zero_out as f64
    }

    /// Standard deviation of the noise in the caller's units.
    pub fn standard_deviation(&self) -> f64 {
        2f64.powi(self.grid.bits as i32) * self.grid.unit
    }
}

impl Laplace {
    /// For sums of contributions clipped to `clip` in L1.
    pub fn new(clip: f64, noise_multiplier: f64, rows: u64) -> Result<Laplace> {
        positive("clip", clip)?;
        positive("noise_multiplier", noise_multiplier)?;
        let bits = bits_for(rows, noise_multiplier);
        let bound = bound_for(bits, noise_multiplier)?;
        let grid = Grid {
            shape: Shape::Laplace,
            bits,
            sensitivity: twice(bound),
            bound,
            kind: GridKind::Clipped,
            unit: usable(clip / bound as f64)?,
            clip,
        };
        Ok(Laplace { grid })
    }

    /// Pure privacy for contributions clipped to `clip` in L2: an integer vector of L2 norm B has an L1 norm of at most
    /// sqrt(dimension) B. This takes the place of noise with a spherical gamma distribution, which has no exact sampler.
    pub fn spherical(clip: f64, noise_multiplier: f64, rows: u64, dimension: usize) -> Result<Laplace> {
        let mut out = Laplace::new(clip, noise_multiplier, rows)?;
        let wide = out.grid.bound;
        // Largest L2 bound whose L1 sensitivity still fits.
        let mut bound = (wide as f64 / (dimension as f64).sqrt()) as u64 + 1;
        let sensitivity_of = |b: u64| root_up(u128::from(b) * u128::from(b) * dimension as u128);
        while bound > 0 && sensitivity_of(bound) > wide {
            bound -= 1;
        }
        if bound == 0 {
            return Err(Error::domain("dimension", dimension, "too large for this noise: use less noise, or Gaussian noise"));
        }
        let sensitivity = sensitivity_of(bound);
        out.grid = Grid {
            bound,
            sensitivity: twice(sensitivity),
            kind: GridKind::Spherical { dimension },
            unit: usable(clip / bound as f64)?,
            ..out.grid
        };
        Ok(out)
    }

    /// For a whole vector that a theorem bounds in L2: in L1 neighbours are sqrt(dimension) times as far apart, and putting the
    /// vector on the grid costs a unit for each coordinate. Coordinates are clipped at `magnitude`.
    pub fn for_output(
        zero_out: f64,
        replace_one: f64,
        magnitude: f64,
        noise_multiplier: f64,
        dimension: usize,
    ) -> Result<Laplace> {
        positive("sensitivity", zero_out)?;
        positive("magnitude", magnitude)?;
        positive("noise_multiplier", noise_multiplier)?;
        let root = (dimension as f64).sqrt().next_up();
        let room = VALUE_BITS - (magnitude / (zero_out * root * noise_multiplier)).log2().max(0.0);
        let bits = f64::from(BITS).min(room.floor()).max(1.0) as u32;
        let bound = bound_for(bits, noise_multiplier)?;
        let rounding = rounding_l1(dimension) + 1;
        let unit = (zero_out * root / bound.saturating_sub(rounding + 1) as f64).next_up();
        let replaced = (replace_one * root / unit).ceil();
        if bits < 12 || bound <= 2 * rounding || !(replaced < 2f64.powi(61)) {
            return Err(Error::domain("sensitivity", zero_out, "the grid is too coarse for this vector: use Gaussian noise"));
        }
        let grid = Grid {
            shape: Shape::Laplace,
            bits,
            sensitivity: Sensitivity { zero_out: bound, replace_one: (replaced as u64 + 1 + rounding).max(bound) },
            bound,
            kind: GridKind::Output { dimension },
            unit: usable(unit)?,
            clip: magnitude,
        };
        Ok(Laplace { grid })
    }

    /// The noise multiplier really used.
    pub fn noise_multiplier(&self) -> f64 {
        2f64.powi(self.grid.bits as i32) / self.grid.sensitivity.zero_out as f64
    }
}

impl Mechanism for Gaussian {
    type Norm = L2;
    fn event(&self, dimension: usize) -> Event {
        self.grid.event(dimension as u64)
    }
    fn grid(&self) -> GridToken {
        GridToken(self.grid)
    }
}

impl Mechanism for Laplace {
    type Norm = L1;
    fn event(&self, dimension: usize) -> Event {
        self.grid.event(dimension as u64)
    }
    fn grid(&self) -> GridToken {
        GridToken(self.grid)
    }
}

/// The exponential mechanism on integer scores: probability proportional to e^(score / 2^bits).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    pub(crate) grid: Grid,
}

impl Exponential {
    /// For scores of which one unit moves each by at most `clip`; `noise_multiplier` is the Gumbel scale over that. The grid is so coarse that
    /// no sum of scores wraps, however many units there are: wrapping is harmless for added noise, which wraps with it, and not for a
    /// comparison.
    pub fn new(clip: f64, noise_multiplier: f64) -> Result<Exponential> {
        let grid = Grid { kind: GridKind::Scores, ..Laplace::new(clip, noise_multiplier, MOST_UNITS as u64)?.grid };
        Ok(Exponential { grid })
    }

    /// For scores that are coordinates of gradients of linear models, derivative times cell: cells are clipped at `cap` (at most the row
    /// norm) on the integers, so one unit moves each score by at most lipschitz x cap.
    pub fn for_gradients(lipschitz: f64, row_norm: f64, cap: f64, noise_multiplier: f64) -> Result<Exponential> {
        positive("lipschitz", lipschitz)?;
        positive("row_norm", row_norm)?;
        positive("noise_multiplier", noise_multiplier)?;
        let cap = (positive("cap", cap)? / row_norm * ROW_LIMIT as f64).ceil().clamp(1.0, ROW_LIMIT as f64) as u64;
        let bits = ((ROW_LIMIT * cap) as f64 * noise_multiplier).log2().floor().clamp(8.0, 44.0) as u32;
        let derivative_limit = (bound_for(bits, noise_multiplier)? / cap).min(ROW_LIMIT);
        if derivative_limit < 64 {
            return Err(Error::domain("noise_multiplier", noise_multiplier, "give a number between 1e-4 and 1e8"));
        }
        let bound = derivative_limit * cap;
        let unit = usable(lipschitz * row_norm / (derivative_limit * ROW_LIMIT) as f64)?;
        let kind = GridKind::GradientScores { cap };
        let grid = Grid { shape: Shape::Laplace, bits, sensitivity: twice(bound), bound, kind, unit, clip: bound as f64 * unit };
        Ok(Exponential { grid })
    }

    /// For votes of models that were trained on parts: whatever a model says of a coordinate, it says it with one vote, so that one
    /// unit moves each count by at most one, under every adjacency alike.
    pub fn for_votes(noise_multiplier: f64) -> Result<Exponential> {
        let bound = bound_for(BITS, positive("noise_multiplier", noise_multiplier)?)?;
        let sensitivity = Sensitivity { zero_out: bound, replace_one: bound };
        let unit = usable(1.0 / bound as f64)?;
        let grid = Grid { shape: Shape::Laplace, bits: BITS, sensitivity, bound, kind: GridKind::VoteScores, unit, clip: 1.0 };
        Ok(Exponential { grid })
    }

    /// Scale of the Gumbel noise that the race stands for, in the caller's units.
    pub fn scale(&self) -> f64 {
        2f64.powi(self.grid.bits as i32) * self.grid.unit
    }

    /// One choice: losses lie in a window of width 2 sensitivity / scale.
    pub fn event(&self) -> Event {
        let Sensitivity { zero_out, replace_one } = self.grid.sensitivity;
        let scale = 2f64.powi(self.grid.bits as i32);
        Event::Exponential {
            epsilon: (2.0 * zero_out as f64 / scale).next_up(),
            replace_factor: (replace_one as f64 / zero_out as f64).next_up(),
        }
    }
}

impl Mechanism for Exponential {
    type Norm = LInf;
    fn event(&self, _dimension: usize) -> Event {
        Exponential::event(self)
    }
    fn grid(&self) -> GridToken {
        GridToken(self.grid)
    }
}

/// A mechanism inside of one run, with a brand: values summed for it and noise drawn for it belong together, and the compiler
/// knows. Made by `Run::at` only.
pub struct Scale<'id, N: Norm> {
    pub(crate) grid: Grid,
    pub(crate) run: u64,
    pub(crate) brand: Brand<'id, N>,
}

impl<N: Norm> Scale<'_, N> {
    /// Bound on one contribution in the caller's units.
    pub fn clip(&self) -> f64 {
        self.grid.clip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N-7: rounding only makes it safer, and the event holds the numbers really used.
    #[test]
    fn multipliers_are_at_least_what_was_asked() {
        for nm in [0.3, 1.0, 1.1, 2.0, 37.5, 1234.5] {
            for clip in [1e-3, 1.0, 80.0] {
                for rows in [10, 1_000_000, 10_000_000_000] {
                    let g = Gaussian::new(clip, nm, rows).unwrap();
                    assert!(g.noise_multiplier() >= nm && g.noise_multiplier() < nm * 1.001, "{nm} {rows}");
                    let l = Laplace::new(clip, nm, rows).unwrap();
                    assert!(l.noise_multiplier() >= nm && l.noise_multiplier() < nm * 1.001);
                    let s = Laplace::spherical(clip, nm, rows, 50).unwrap();
                    assert!(s.noise_multiplier() >= nm && s.noise_multiplier() < nm * 1.01);
                    let gap = (s.grid.clip / s.grid.unit) * 50f64.sqrt();
                    assert!(gap <= s.grid.sensitivity.zero_out as f64 * (1.0 + 1e-12));
                }
                let g = Gaussian::for_gradients(clip, nm).unwrap();
                assert!(g.noise_multiplier() >= nm && g.noise_multiplier() < nm * 1.0002, "{nm}: {}", g.noise_multiplier());
                assert!(g.grid.bound / ROW_LIMIT <= ROW_LIMIT && g.grid.bound.is_multiple_of(ROW_LIMIT));
            }
        }
        assert!(
            Gaussian::new(1.0, 0.0, 1).is_err()
                && Gaussian::new(f64::NAN, 1.0, 1).is_err()
                && Gaussian::new(1.0, 1e30, 1).is_err()
        );
    }

    /// Correction A12 (ii): the sensitivity of a vector that is put on the grid as a whole is larger than the theorem says by sqrt(d) grid steps.
    #[test]
    fn output_sensitivity_includes_the_grid() {
        for (delta, d) in [(1e-9, 1usize), (2e-9, 100), (0.3, 1_000_000)] {
            let g = Gaussian::for_output(delta, 2.0 * delta, 1e3 * delta, 1.5, d).unwrap();
            let needed = (delta / g.grid.unit).ceil() + (d as f64).sqrt().ceil();
            assert!(g.grid.sensitivity.zero_out as f64 >= needed, "{delta} {d}");
            let needed = (2.0 * delta / g.grid.unit).ceil() + (d as f64).sqrt().ceil();
            assert!(g.grid.sensitivity.replace_one as f64 >= needed);
            assert!(g.noise_multiplier() >= 1.5);
        }
        // Coordinates that are large against the noise: a coarser grid, so that a double still resolves it.
        let g = Gaussian::for_output(2e-9, 2e-9, 100.0, 50.0, 100).unwrap();
        assert!(100.0 / g.grid.unit <= 2f64.powi(47) && g.noise_multiplier() >= 50.0);
        assert!(Gaussian::for_output(1e-30, 1e-30, 1.0, 1.0, 100).is_err());
        assert!(
            Gaussian::for_output(1e-9, 1e6, 1.0, 1.0, 1).is_err(),
            "a replace sensitivity beyond 64 bits is refused, not wrapped"
        );
    }
}
