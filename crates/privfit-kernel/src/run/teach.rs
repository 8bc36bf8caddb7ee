//! Teachers: models on parts and their average, a vector seen through public rows, and what leaves a plan that promises nothing.

use super::support::SparseModel;
use super::{Batch, Objective, Problem, Run};
use crate::account::Event;
use crate::error::{Error, Result};
use crate::query::operator::{PublicRows, norm_bound};
use crate::value::{Sensitive, Theorem};

/// Bound on what float errors add to the distance of two vectors seen through rows of so many cells: each product is off by u times its
/// number of terms, relative to sizes whose squares add up to at most features x norm^2 x longest^2; twice, and the cut besides.
pub fn products_error(features: usize, norm: f64, longest: f64) -> f64 {
    let k = features as f64;
    4.0 * (k + 8.0) * f64::EPSILON * k.sqrt() * norm * longest
}

impl<'d> Run<'d> {
    /// Average of the models of all parts, each cut to a ball. One unit is in one part, whose model may change altogether, under every
    /// adjacency alike: the average moves by at most 2 radius / parts. Halving that for zero-out would be wrong. A model that is
    /// missing or not finite is the zero vector.
    pub fn average(
        &mut self,
        models: Vec<Sensitive<Option<SparseModel>>>,
        radius: f64,
        dimension: usize,
    ) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        self.of_one_partition(&models)?;
        if models.is_empty() || !(radius > 0.0 && radius.is_finite()) {
            return Err(Error::domain("radius", radius, "give a positive radius, and at least one model"));
        }
        let parts = models.len() as f64;
        let mut mean = vec![0f64; dimension];
        for model in models {
            let mut model = model.value.unwrap_or_default();
            model.retain(|p| (p.0 as usize) < dimension);
            model.sort_by_key(|p| p.0);
            model.dedup_by_key(|p| p.0);
            let largest = model.iter().fold(0.0f64, |m, p| m.max(p.1.abs()));
            if !model.iter().all(|p| p.1.is_finite()) || largest == 0.0 {
                continue;
            }
            let length = largest * model.iter().map(|p| (p.1 / largest).powi(2)).sum::<f64>().sqrt();
            let factor = (radius / length).min(1.0) / parts;
            model.iter().for_each(|(i, x)| mean[*i as usize] += x * factor);
        }
        // Float errors: of each model's factor, and of sums of so many terms of at most radius / parts.
        let apart = 2.0 * radius / parts * (1.0 + 1e-8) + 4.0 * parts * f64::EPSILON * radius;
        let claim = Theorem {
            reason: "one unit changes the model of one part, and each model lies in a ball: 2 radius / parts",
            zero_out: apart,
            replace_one: apart,
        };
        Ok(Sensitive { value: mean, run: self.id, part: None, claim: Some(claim), order_dependent: false })
    }

    /// Minimises a strongly convex sum plus `lasso` times the L1 norm, on everyone. One unit moves the minimiser by its gradient bound
    /// over the ridge, because the ridge makes the sum strongly convex whatever public convex terms are added to it.
    pub fn minimize_elastic(&mut self, on: &Batch<'d>, problem: Problem<'_>, lasso: f64) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        if on.run != self.id || !on.chosen.is_all() {
            return Err(Error::Mismatch { what: "use everyone() of this run" });
        }
        self.may_depend_on_order()?;
        if !(problem.ridge >= f64::MIN_POSITIVE && problem.ridge.is_finite() && lasso >= 0.0 && lasso.is_finite()) {
            return Err(Error::domain("ridge", problem.ridge, "give a positive ridge, and a lasso of at least 0"));
        }
        problem.loss.validate()?;
        if !problem.loss.smoothness.is_finite() {
            return Err(Error::domain("smoothness", problem.loss.smoothness, "use a loss with a bounded second derivative"));
        }
        let dimension = self.data.dimension * problem.loss.outputs;
        let objective = Objective {
            data: self.data,
            chosen: None,
            engine: self.engine,
            problem,
            linear: vec![0.0; dimension],
            linear_bound: 0.0,
            linear_grid: 0.0,
        };
        let value = objective.solve_elastic(lasso)?;
        let moved = problem.loss.lipschitz * self.data.row_norm * self.data.rows_per_unit as f64 / problem.ridge;
        let slack = 2.0 * problem.tolerance / problem.ridge;
        let claim = Theorem {
            reason: "strong convexity by the ridge, with an L1 term: gradient difference / ridge, twice the tolerance for the solver",
            zero_out: moved + slack,
            replace_one: 2.0 * moved + slack,
        };
        Ok(Sensitive { value, run: self.id, part: None, claim: Some(claim), order_dependent: true })
    }

    /// A vector seen through public rows: one number for each row. Distances grow by at most the largest singular value of the rows,
    /// which is bounded here, from the rows themselves. The vector is cut to `longest`, a public length, so that the float error
    /// of the products has a public bound.
    pub fn through(&self, value: Sensitive<Vec<f64>>, rows: &PublicRows, longest: f64) -> Result<Sensitive<Vec<f64>>> {
        self.same_process()?;
        let Some(theorem) = value.claim.clone() else {
            return Err(Error::Mismatch { what: "no theorem bounds this vector" });
        };
        if rows.features != value.value.len() || value.run != self.id {
            return Err(Error::Mismatch { what: "public rows and vector have different lengths, or runs" });
        }
        if !(longest > 0.0 && longest.is_finite()) {
            return Err(Error::domain("longest", longest, "give a positive finite number"));
        }
        let norm = norm_bound(rows);
        let length = value.value.iter().map(|w| w * w).sum::<f64>().sqrt();
        let factor = if length > longest { longest / length } else { 1.0 };
        let cut: Vec<f64> = value.value.iter().map(|w| w * factor).collect();
        let error = products_error(rows.features, norm, longest);
        let claim = Theorem {
            reason: "the claim of the vector times the largest singular value of public rows, and the float error of the products",
            zero_out: theorem.zero_out * norm + error,
            replace_one: theorem.replace_one * norm + error,
        };
        Ok(Sensitive { value: rows.times(&cut), claim: Some(claim), ..value })
    }

    /// Hands out a value without noise: only under a plan that says that nothing is guaranteed.
    pub fn reveal<T>(&mut self, value: Sensitive<T>) -> Result<T> {
        self.same_process()?;
        if value.run != self.id || !matches!(self.planned, Event::NotPrivate { .. }) {
            return Err(Error::Mismatch { what: "a value without noise may leave only a run that is planned as not private" });
        }
        self.reveals();
        Ok(value.value)
    }
}
