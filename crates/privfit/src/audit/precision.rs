//! What finite precision gives away. Released numbers must be whole multiples of a public unit, whatever the data are; a number off
//! that grid has low bits that tell where it came from. And a minimiser with a random linear term must not tell the term: it is
//! minus the gradient there, it lies on a grid, and so it does so for the true data only (`objective` adds output noise for that).

use super::shipped::{Question, Shipped};
use super::subject::Subject;
use crate::data::encode::Row;
use crate::data::generate::Random;
use crate::error::{Error, Result};
use crate::loss;
use crate::method::{self, Settings};
use crate::schema::{Schema, Task};
use privfit_kernel::account::Event;
use privfit_kernel::engine::Threads;
use privfit_kernel::{Entropy, LinearTerm, Loss, Run};

/// Residues of released numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grid {
    /// Vectors looked at.
    pub releases: u64,
    /// Numbers looked at.
    pub numbers: u64,
    /// Numbers that are no whole multiple of the unit.
    pub off: u64,
}

/// Whether a number is a whole multiple of a unit, as exactly as doubles can say.
pub fn on_grid(x: f64, unit: f64) -> bool {
    let whole = (x / unit).round();
    [whole, whole.next_up().round(), whole.next_down().round()].iter().any(|w| w * unit == x)
}

/// Looks at everything that a shipped method releases on several data sets.
pub fn grid(subject: &Shipped, worlds: &[Vec<Row>], progress: &dyn Fn()) -> Result<Grid> {
    let mut out = Grid::default();
    let (entropy, engine) = (Entropy::system()?, Threads::new(1));
    let plan = &subject.prepared().plan;
    for rows in worlds {
        let data = subject.dataset(rows)?;
        let mut run = Run::begin(&data, &engine, &entropy, plan.event())?;
        run.keep_releases();
        plan.run(&mut run, &|| {})?;
        for captured in run.captured_releases() {
            out.releases += 1;
            out.numbers += captured.numbers.len() as u64;
            out.off += captured.numbers.iter().filter(|x| !on_grid(**x, captured.unit)).count() as u64;
        }
        progress();
    }
    Ok(out)
}

/// How often minus the gradient at the release is on the grid of the linear term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inverse {
    /// The method.
    pub method: &'static str,
    /// Fits.
    pub fits: u64,
    /// Rate under the true data.
    pub own: f64,
    /// Rate under the neighbour.
    pub neighbour: f64,
}

impl Inverse {
    /// The difference that is allowed: rates of 300 fits are within it by chance, and an attack that works has nearly 1.
    pub const ALLOWED: f64 = 0.1;

    /// Whether the linear term shows.
    pub fn violated(&self) -> bool {
        (self.own - self.neighbour).abs() >= Inverse::ALLOWED
    }
}

/// This near to a multiple of the unit counts as on the grid: by chance with 0.35^d.
const NEAR: f64 = 0.175;

/// Gradient at a point.
pub type Gradient<'a> = &'a dyn Fn(&[f64]) -> Vec<f64>;

/// Makes fits, and looks for the linear term under both data sets.
pub fn inverse(
    fits: u64,
    fit: &mut dyn FnMut() -> Result<Vec<f64>>,
    own: Gradient<'_>,
    neighbour: Gradient<'_>,
    unit: f64,
) -> Result<Inverse> {
    let near = |g: &[f64]| {
        g.iter().all(|g| {
            let q = g / unit;
            (q - q.round()).abs() <= NEAR
        })
    };
    let (mut hits, mut others) = (0u64, 0u64);
    for _ in 0..fits {
        let theta = fit()?;
        hits += u64::from(near(&own(&theta)));
        others += u64::from(near(&neighbour(&theta)));
    }
    Ok(Inverse {
        method: method::objective::METHOD.name,
        fits,
        own: hits as f64 / fits as f64,
        neighbour: others as f64 / fits as f64,
    })
}

/// Gradient of a sum of losses with a ridge, in plain doubles.
pub fn gradient(loss: &Loss, rows: &[(Vec<f64>, f32)], ridge: f64, theta: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = theta.iter().map(|t| ridge * t).collect();
    let mut derivative = [0f64];
    for (x, label) in rows {
        let score: f64 = x.iter().zip(theta).map(|(x, t)| x * t).sum();
        loss.derivatives(&[score], &[*label], &mut derivative);
        let clipped = derivative[0].clamp(-loss.lipschitz(), loss.lipschitz());
        out.iter_mut().zip(x).for_each(|(g, x)| *g += clipped * x);
    }
    out
}

/// Rows of the inverse test: 200 of length below 1, three features, two classes.
pub fn inverse_rows() -> Vec<Row> {
    let mut random = Random::new(9);
    (0..200)
        .map(|_| {
            let dense: Vec<f64> = (0..3).map(|_| 1.1 * random.uniform() - 0.55).collect();
            let label = if random.uniform() < 1.0 / (1.0 + (-4.0 * dense[0]).exp()) { 1.0 } else { 0.0 };
            Row { dense, label, ..Row::default() }
        })
        .collect()
}

/// The test on the shipped objective perturbation, with logistic loss. `progress` is called once a fit.
pub fn objective(epsilon: f64, delta: f64, fits: u64, progress: &dyn Fn()) -> Result<Inverse> {
    let schema = Schema::parse(
        "[dataset]\nname = \"inverse\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 3\nrow_norm = 1.0\n\
         intercept = false\n",
    )?;
    let ridge = 4.0;
    let question = Question {
        method: method::objective::METHOD.name.into(),
        loss: Some(loss::usual_name(Task::Classes(2)).into()),
        schema: Some(schema),
        rows: 200,
        epsilon,
        delta,
        settings: Settings([("ridge".to_string(), ridge)].into()),
        ..Question::default()
    };
    let subject = Shipped::new(&question)?;
    let rows = inverse_rows();
    // The kernel's rows are on a grid too; an attacker who knows the data knows those. The owner may look at them.
    let stored = {
        let data = subject.dataset(&rows)?;
        let (entropy, engine) = (Entropy::simulated(1), Threads::new(1));
        let nothing = Event::NotPrivate { why: "nothing is released".into() };
        let message = Run::begin(&data, &engine, &entropy, &nothing)?.close(Vec::new())?;
        let run = Run::begin(&data, &engine, &entropy, &nothing)?;
        let local = run.local(&message, |_, unit| {
            let mut x = vec![0.0; 3];
            unit.each(0, |j, v| x[j] = v);
            (x, unit.label(0))
        });
        let mut stored = Vec::new();
        data.deliver(local, |_, row| stored.push(row))?;
        stored
    };
    let loss = subject.prepared().problem.build_loss(1)?;
    let Event::Compose(events) = subject.prepared().plan.event() else {
        return Err(Error::misuse("the plan of objective has another shape: adapt this audit"));
    };
    let multiplier = events.iter().find_map(|e| match e {
        Event::ObjectivePerturbation(o) => Some(o.noise_multiplier),
        _ => None,
    });
    let Some(multiplier) = multiplier else {
        return Err(Error::misuse("the plan of objective has another shape: adapt this audit"));
    };
    let unit = LinearTerm::gaussian(multiplier).scale(&loss, 1.0, 3) * 0.5f64.powi(40);
    let without = &stored[..stored.len() - 1];
    let mut world = subject.open(&rows)?;
    let mut fit = || {
        progress();
        world().map(|r| r.numbers)
    };
    inverse(fits, &mut fit, &|t| gradient(&loss, &stored, ridge, t), &|t| gradient(&loss, without, ridge, t), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_seen_at_every_size() {
        let unit = 0.1 * 0.5f64.powi(40);
        for z in [0i64, 1, -7, 1 << 30, -(1 << 45) - 12345, (1 << 62) + 4097] {
            assert!(on_grid(z as f64 * unit, unit), "{z}");
            if z.unsigned_abs() < 1 << 45 {
                assert!(!on_grid((z as f64 + 0.25) * unit, unit), "{z}");
            }
        }
    }
}
