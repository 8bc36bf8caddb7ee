//! Accounting requests: a described computation in JSON, a certified number out.
//!
//! The format is that of the published accounting vectors, one request, a list of them, or `{"vectors": [...]}`:
//!
//! ```
//! let text = r#"{"query": "epsilon", "adjacency": "add_remove", "delta": 1e-5,
//!     "mechanisms": [{"type": "gaussian", "noise_multiplier": 1.0, "count": 1000,
//!                     "sampling": "poisson", "sampling_probability": 0.01}]}"#;
//! let requests = privfit::request::parse(text)?;
//! let reply = requests[0].answer()?;
//! assert!(reply.upper < 1.83 && reply.accountant == "pld");
//! # Ok::<(), privfit::request::Problem>(())
//! ```

use crate::strict_json::Json;
use privfit_kernel::account::{
    ALL, Adjacency, Bound, Event, Objective, Target, calibrate_bounds, delta, epsilon, epsilon_at_orders, optimal_epsilon, renyi,
    simple_epsilon,
};
use std::fmt;

/// Keys that belong to answers; they may stand in a request and mean nothing there.
const ANSWER_KEYS: [&str; 8] = [
    "expected",
    "tolerance",
    "note",
    "notes",
    "dp_accounting_0_6_0",
    "reference_method",
    "agreement_rel",
    "certified_lower_bound",
];

/// Why a request cannot be answered: one sentence, what is allowed, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl From<privfit_kernel::account::Error> for Problem {
    fn from(error: privfit_kernel::account::Error) -> Self {
        Problem(error.to_string())
    }
}

fn problem<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(text.into()))
}

/// Which number is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Smallest epsilon at a delta.
    Epsilon,
    /// Smallest delta at an epsilon.
    Delta,
    /// Smallest noise at both.
    Noise,
    /// Renyi divergence at an order.
    Renyi,
}

impl Query {
    /// Reads a query by its name.
    pub fn parse(text: &str) -> Result<Query, Problem> {
        match text {
            "epsilon" => Ok(Query::Epsilon),
            "delta" => Ok(Query::Delta),
            "sigma" | "noise" => Ok(Query::Noise),
            "rdp" => Ok(Query::Renyi),
            _ => problem(format!("query is {text:?}: use epsilon, delta, noise (or sigma) or rdp")),
        }
    }

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Query::Epsilon => "epsilon",
            Query::Delta => "delta",
            Query::Noise => "noise",
            Query::Renyi => "rdp",
        }
    }
}

/// A mechanism as described; noise that is asked for is left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The mechanism without sampling or repetition.
    pub kind: Kind,
    /// How it meets the records.
    pub sampling: Sampling,
    /// How often.
    pub count: u64,
}

/// Mechanisms that a request can name.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Gaussian noise; standard deviation over one record's bound, none if asked for.
    Gaussian(Option<f64>),
    /// Laplace noise; scale over one record's bound, none if asked for.
    Laplace(Option<f64>),
    /// Objective perturbation with these public facts; the standard deviation of its linear term over one record's gradient bound, none if
    /// asked for.
    Objective(Option<f64>, Objective),
    /// A finished event.
    Fixed(Event),
}

/// Samplers that a request can name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// Every record, every time.
    All,
    /// Each record with this probability.
    Poisson(f64),
    /// A uniform subset: batch of rows.
    FixedSize(u64, u64),
    /// Disjoint batches in shuffled order: batches, epochs.
    Shuffled(u64, u64),
}

/// A question about a described computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Name of the request, if it has one.
    pub id: Option<String>,
    /// What is asked.
    pub query: Query,
    /// `tight`, or the name of a method.
    pub route: String,
    /// What a neighbour is.
    pub adjacency: Adjacency,
    /// What is done, in order.
    pub mechanisms: Vec<Described>,
    /// Given epsilon.
    pub epsilon: Option<f64>,
    /// Given delta.
    pub delta: Option<f64>,
    /// Given rho.
    pub rho: Option<f64>,
    /// Given order.
    pub order: Option<f64>,
    /// Listed orders.
    pub orders: Vec<f64>,
    /// Factor on a noise answer.
    pub sensitivity: f64,
}

/// A certified answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Name of the request, if it has one.
    pub id: Option<String>,
    /// What was asked.
    pub query: Query,
    /// What a neighbour is.
    pub adjacency: Adjacency,
    /// The answer: the upper bound.
    pub value: f64,
    /// The truth is at least this.
    pub lower: f64,
    /// The truth is at most this.
    pub upper: f64,
    /// Who proved it.
    pub accountant: String,
}

/// An object whose keys are used up one by one; what is left is unknown.
struct Fields<'a> {
    place: &'a str,
    fields: Vec<(String, Json)>,
}

impl Fields<'_> {
    fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.fields.iter().position(|(k, _)| k == key)?;
        Some(self.fields.remove(at).1)
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>, Problem> {
        match self.take(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Number(x)) => Ok(Some(x)),
            Some(_) => problem(format!("{} has a {key} that is no number: give a number", self.place)),
        }
    }

    fn integer(&mut self, key: &str) -> Result<Option<u64>, Problem> {
        match self.number(key)? {
            None => Ok(None),
            Some(x) if (1.0..=9e15).contains(&x) && x.fract() == 0.0 => Ok(Some(x as u64)),
            Some(x) => problem(format!("{} has {key} = {x}: give a whole number from 1 to 9e15", self.place)),
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, Problem> {
        match self.take(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Text(t)) => Ok(Some(t)),
            Some(_) => problem(format!("{} has a {key} that is no text: give a text in quotes", self.place)),
        }
    }

    fn need<T>(&self, key: &str, value: Option<T>) -> Result<T, Problem> {
        value.ok_or_else(|| Problem(format!("{} lacks {key}: add it", self.place)))
    }

    fn finish(self, allowed: &str) -> Result<(), Problem> {
        match self.fields.iter().find(|(k, _)| !ANSWER_KEYS.contains(&k.as_str())) {
            None => Ok(()),
            Some((key, _)) => problem(format!("{} has the unknown key {key:?}: use {allowed}", self.place)),
        }
    }
}

/// Reads one request, a list of requests, or an object with `vectors`.
pub fn parse(text: &str) -> Result<Vec<Request>, Problem> {
    let json = Json::parse(text).map_err(|e| Problem(format!("the request is not valid JSON ({e}): correct it")))?;
    let list = match json {
        Json::List(list) => list,
        Json::Object(fields) if fields.iter().any(|(k, _)| k == "vectors") => {
            let mut fields = Fields { place: "the file", fields };
            let vectors = fields.take("vectors");
            for key in ["format", "set", "count", "conventions"] {
                fields.take(key);
            }
            fields.finish("format, set, count, conventions and vectors")?;
            match vectors {
                Some(Json::List(list)) => list,
                _ => return problem("vectors is no list: give a list of requests"),
            }
        }
        one => vec![one],
    };
    if list.is_empty() {
        return problem("there is no request in the list: give at least one");
    }
    list.into_iter().map(one).collect()
}

fn one(json: Json) -> Result<Request, Problem> {
    let Json::Object(fields) = json else {
        return problem("a request is no object: give {\"query\": ..., \"mechanisms\": [...]}");
    };
    let mut fields = Fields { place: "the request", fields };
    let id = fields.text("id")?;
    let place = id.as_ref().map_or("the request".to_string(), |id| format!("request {id:?}"));
    let mut fields = Fields { place: &place, fields: fields.fields };
    let query = fields.text("query")?;
    let query = Query::parse(&fields.need("query", query)?)?;
    let route = fields.text("route")?.unwrap_or_else(|| "tight".into());
    let adjacency = fields.text("adjacency")?;
    let adjacency = fields.need("adjacency", adjacency)?.parse()?;
    let mechanisms = match fields.take("mechanisms") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::List(list)) => list.into_iter().map(|m| mechanism(m, &place)).collect::<Result<_, _>>()?,
        Some(_) => return problem(format!("{place} has mechanisms that are no list: give a list")),
    };
    let orders = match fields.take("orders") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::List(list)) => list
            .into_iter()
            .map(|o| match o {
                Json::Number(x) => Ok(x),
                _ => problem(format!("{place} has an order that is no number: give numbers above 1")),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return problem(format!("{place} has orders that are no list: give a list of numbers above 1")),
    };
    let request = Request {
        query,
        route,
        adjacency,
        mechanisms,
        epsilon: fields.number("epsilon")?,
        delta: fields.number("delta")?,
        rho: fields.number("rho")?,
        order: fields.number("order")?,
        orders,
        sensitivity: fields.number("sensitivity")?.unwrap_or(1.0),
        id: id.clone(),
    };
    fields.finish("id, query, route, adjacency, mechanisms, epsilon, delta, rho, order, orders and sensitivity")?;
    Ok(request)
}

fn mechanism(json: Json, place: &str) -> Result<Described, Problem> {
    let Json::Object(fields) = json else {
        return problem(format!("{place} has a mechanism that is no object: give {{\"type\": \"gaussian\", ...}}"));
    };
    let place = format!("a mechanism of {place}");
    let mut f = Fields { place: &place, fields };
    let kind = f.text("type")?;
    let kind = f.need("type", kind)?;
    let described = match kind.as_str() {
        "gaussian" => {
            let over_replace = f.number("noise_over_replace_sensitivity")?;
            let multiplier = f.number("noise_multiplier")?;
            if over_replace.is_some() && multiplier.is_some() {
                return problem(format!("{place} has noise_multiplier and noise_over_replace_sensitivity: give one of them"));
            }
            Kind::Gaussian(over_replace.map(|x| 2.0 * x).or(multiplier))
        }
        "laplace" => Kind::Laplace(f.number("scale_over_sensitivity")?),
        "pure" | "approx" => {
            let epsilon = f.number("epsilon")?;
            let epsilon = f.need("epsilon", epsilon)?;
            let delta = f.number("delta")?.unwrap_or(0.0);
            Kind::Fixed(if delta == 0.0 { Event::pure(epsilon) } else { Event::Approx { epsilon, delta } })
        }
        "discrete_gaussian" => {
            let (sigma, sensitivity) = (f.integer("sigma_int")?, f.integer("sensitivity_int")?);
            let (sigma, sensitivity) = (f.need("sigma_int", sigma)?, f.need("sensitivity_int", sensitivity)?);
            let dimension = f.integer("dimension")?.unwrap_or(1);
            Kind::Fixed(Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity: 2 * sensitivity, dimension })
        }
        "exponential" => {
            let epsilon = f.number("epsilon")?;
            Kind::Fixed(Event::Exponential { epsilon: f.need("epsilon", epsilon)?, replace_factor: 2.0 })
        }
        "objective" => {
            let noise = f.number("noise_multiplier")?;
            let log_determinant = f.number("log_determinant")?;
            let degrees = f.integer("degrees")?.unwrap_or(1);
            let replace_factor = f.number("replace_factor")?.unwrap_or(2.0);
            let output = f.number("output_noise_multiplier")?.unwrap_or(f64::INFINITY);
            let grid_sigma = f.integer("grid_sigma")?.unwrap_or(0);
            Kind::Objective(
                noise,
                Objective {
                    noise_multiplier: noise.unwrap_or(1.0),
                    replace_factor,
                    degrees: u32::try_from(degrees).unwrap_or(u32::MAX),
                    log_determinant: f.need("log_determinant", log_determinant)?,
                    output_noise_multiplier: output,
                    grid_sigma,
                    dimension: f.integer("dimension")?.unwrap_or(1),
                },
            )
        }
        "zcdp" => {
            let rho = f.number("rho")?;
            Kind::Fixed(Event::ZeroConcentrated { rho: f.need("rho", rho)? })
        }
        "gdp" => {
            let mu = f.number("mu")?;
            Kind::Fixed(Event::GaussianDp { mu: f.need("mu", mu)? })
        }
        other => {
            return problem(format!(
                "the mechanism {other:?} is unknown: use gaussian, laplace, pure, approx, discrete_gaussian, exponential, objective, zcdp or gdp"
            ));
        }
    };
    let sampling = match f.text("sampling")?.as_deref() {
        None | Some("none") => Sampling::All,
        Some("poisson") => {
            let rate = f.number("sampling_probability")?;
            Sampling::Poisson(f.need("sampling_probability", rate)?)
        }
        Some("fixed_size_without_replacement") => {
            let (batch, rows) = (f.integer("batch_size")?, f.integer("dataset_size")?);
            Sampling::FixedSize(f.need("batch_size", batch)?, f.need("dataset_size", rows)?)
        }
        Some("shuffled_disjoint_batches") => {
            let (batches, epochs) = (f.integer("steps_per_epoch")?, f.integer("epochs")?);
            Sampling::Shuffled(batches.unwrap_or(1), f.need("epochs", epochs)?)
        }
        Some(other) => {
            return problem(format!(
                "the sampling {other:?} is unknown: use none, poisson, fixed_size_without_replacement or shuffled_disjoint_batches"
            ));
        }
    };
    let count = f.integer("count")?.unwrap_or(1);
    f.finish("the keys of its type, count, sampling and the keys of its sampling")?;
    Ok(Described { kind: described, sampling, count })
}

impl Described {
    fn event(&self, open: f64) -> Event {
        let base = match &self.kind {
            Kind::Gaussian(noise) => Event::gaussian(noise.unwrap_or(open)),
            Kind::Laplace(noise) => Event::laplace(noise.unwrap_or(open)),
            Kind::Objective(noise, facts) => {
                Event::ObjectivePerturbation(Objective { noise_multiplier: noise.unwrap_or(open), ..*facts })
            }
            Kind::Fixed(event) => event.clone(),
        };
        let event = Box::new(base);
        let once = match self.sampling {
            Sampling::All => *event,
            Sampling::Poisson(rate) => Event::Poisson { rate, event },
            Sampling::FixedSize(batch, rows) => Event::FixedSize { batch, rows, event },
            Sampling::Shuffled(batches, epochs) => Event::Shuffled { batches, epochs, event },
        };
        if self.count == 1 { once } else { once.repeated(self.count) }
    }

    fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Gaussian(None) | Kind::Laplace(None) | Kind::Objective(None, _))
    }
}

impl Request {
    /// The computation as an event; open noise takes the given value.
    pub fn event(&self, open: f64) -> Result<Event, Problem> {
        let mut events: Vec<Event> = self.mechanisms.iter().map(|m| m.event(open)).collect();
        if let Some(rho) = self.rho {
            events.push(Event::ZeroConcentrated { rho });
        }
        match events.len() {
            0 => problem("the request describes no mechanism: add mechanisms, or rho"),
            1 => Ok(events.remove(0)),
            _ => Ok(Event::Compose(events)),
        }
    }

    fn given(&self, what: &'static str, value: Option<f64>) -> Result<f64, Problem> {
        value.ok_or_else(|| Problem(format!("the query {} needs {what}: add it", self.query.name())))
    }

    /// The certified answer.
    pub fn answer(&self) -> Result<Reply, Problem> {
        let open = self.mechanisms.iter().any(Described::is_open);
        if open != (self.query == Query::Noise) {
            return problem(if open {
                "a noise is left open but not asked for: give its number, or ask for the noise"
            } else {
                "the noise is asked for but every mechanism has one: set the open one to null"
            });
        }
        let reply = |value: f64, lower: f64, accountant: &str| {
            Ok(Reply {
                id: self.id.clone(),
                query: self.query,
                adjacency: self.adjacency,
                value,
                lower,
                upper: value,
                accountant: accountant.into(),
            })
        };
        let bounded = |bound: Bound, accountant: &str| reply(bound.upper, bound.lower, accountant);
        match (self.query, self.route.as_str()) {
            (Query::Epsilon, "tight") => {
                let answer = epsilon(&self.event(1.0)?, self.adjacency, self.given("delta", self.delta)?)?;
                bounded(answer.bound, answer.accountant)
            }
            (Query::Delta, "tight") => {
                let answer = delta(&self.event(1.0)?, self.adjacency, self.given("epsilon", self.epsilon)?)?;
                bounded(answer.bound, answer.accountant)
            }
            (Query::Noise, "tight") => {
                let target = Target { epsilon: self.given("epsilon", self.epsilon)?, delta: self.given("delta", self.delta)? };
                if !(self.sensitivity >= f64::MIN_POSITIVE && self.sensitivity.is_finite()) {
                    return problem(format!("sensitivity is {}: give a positive finite number", self.sensitivity));
                }
                self.event(1.0)?.validate()?;
                let bound = calibrate_bounds(target, |x| self.event(x), self.adjacency)?;
                let name = if target.delta == 0.0 {
                    "pure"
                } else {
                    epsilon(&self.event(bound.upper)?, self.adjacency, target.delta)?.accountant
                };
                reply(bound.upper * self.sensitivity, bound.lower * self.sensitivity, name)
            }
            (Query::Renyi, "tight" | "rdp_value" | "rdp") => {
                let value = renyi(&self.event(1.0)?, self.adjacency, self.given("order", self.order)?)?;
                if value == f64::INFINITY {
                    return problem("the Renyi divergence of this event has no known bound: ask for epsilon with route tight");
                }
                reply(value, 0.0, "rdp")
            }
            (Query::Epsilon, "rdp_listed_orders") => {
                if self.orders.is_empty() {
                    return problem("the route rdp_listed_orders needs orders: add a list of numbers above 1");
                }
                let delta = self.given("delta", self.delta)?;
                let value = epsilon_at_orders(&self.event(1.0)?, self.adjacency, delta, &self.orders)?;
                if value == f64::INFINITY {
                    return problem("no listed order has a known bound: list whole orders, or use route tight");
                }
                reply(value, 0.0, "rdp")
            }
            (Query::Epsilon, "zcdp_optimal" | "zcdp_simple") => {
                let event = self.event(1.0)?;
                let rho = privfit_kernel::account::ConcentratedAccountant.rho(&event, self.adjacency)?;
                let delta = self.given("delta", self.delta)?;
                if !(delta > 0.0 && delta < 1.0) {
                    return problem(format!("delta is {delta}: give a number above 0 and below 1"));
                }
                if self.route == "zcdp_simple" {
                    reply(simple_epsilon(rho, delta), 0.0, "zcdp_simple")
                } else {
                    reply(optimal_epsilon(rho, delta), 0.0, "zcdp")
                }
            }
            (query, route) => {
                let route = if route == "pure_basic" { "pure" } else { route };
                let Some(accountant) = ALL.iter().find(|a| a.name() == route) else {
                    return problem(format!(
                        "route is {:?}: use tight, pure_basic, gaussian, objective, pld, rdp, rdp_value, rdp_listed_orders, zcdp, zcdp_optimal or zcdp_simple",
                        self.route
                    ));
                };
                let bound = match query {
                    Query::Epsilon => accountant.epsilon(&self.event(1.0)?, self.adjacency, self.given("delta", self.delta)?)?,
                    Query::Delta => accountant.delta(&self.event(1.0)?, self.adjacency, self.given("epsilon", self.epsilon)?)?,
                    Query::Noise | Query::Renyi => {
                        return problem(format!("the query {} has no route {route:?}: use tight", query.name()));
                    }
                };
                bounded(bound, accountant.name())
            }
        }
    }
}
