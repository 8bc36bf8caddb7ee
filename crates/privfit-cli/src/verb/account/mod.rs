//! `privfit account`: the privacy calculator.

mod compare;

use crate::args::settings::settings;
use crate::args::table::PlannedTable;
use crate::ui::{Failure, Format, print_line};
use clap::Args;
use privfit::account::Objective;
use privfit::constraint::Constraint;
use privfit::request::{Described, Kind, Query, Reply, Request, Sampling, parse};
use serde_json::json;
use std::io::Read;

/// Largest request that is read.
const LARGEST_REQUEST: u64 = 16 << 20;

/// Epsilon, delta, noise or Renyi divergence of a described computation
///
/// Prints a certified upper bound (and the lower bound beside it), the accountant that proved it and the adjacency it holds for.
/// Nothing private is read.
#[derive(Args)]
#[command(after_help = "Examples:
  epsilon of 1000 noisy steps on samples of 1 %:
    privfit account --noise-multiplier 1.0 --sampling-rate 0.01 --steps 1000 --delta 1e-5
  the noise that meets a target:
    privfit account --query noise --sampling-rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5
  delta at a given epsilon, replace-one:
    privfit account --query delta --noise-multiplier 4 --epsilon 1 --adjacency replace-one
  noise of an objective perturbation:
    privfit account --query noise --mechanism objective --log-determinant 0.1 --epsilon 1 --delta 1e-6
  Renyi divergence at order 8:
    privfit account --query rdp --noise-multiplier 1 --sampling-rate 0.01 --order 8
  every method by its forecast, before anything is spent:
    privfit account --rows 50000 --features 30 --loss logistic --epsilon 1
  many questions from a file, or from standard input with '-':
    privfit account --request questions.json --format json

A request file holds one object, a list of them, or {\"vectors\": [...]}:
  {\"query\": \"epsilon\", \"adjacency\": \"add_remove\", \"delta\": 1e-5, \"mechanisms\": [{\"type\": \"gaussian\",
   \"noise_multiplier\": 1.0, \"count\": 1000, \"sampling\": \"poisson\", \"sampling_probability\": 0.01}]}")]
pub(crate) struct Account {
    /// File of requests in JSON ('-': standard input); takes the place of the flags below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mechanism", "noise_multiplier", "sampling_rate", "batch", "rows", "epochs", "steps", "epsilon", "delta", "order", "rho", "query", "log_determinant", "degrees", "features", "loss", "classes", "set", "constraint"])]
    request: Option<String>,

    /// What is asked: epsilon, delta, noise or rdp
    #[arg(long, default_value = "epsilon")]
    query: String,

    /// gaussian, laplace, pure, zcdp or objective
    #[arg(long, default_value = "gaussian")]
    mechanism: String,

    /// Noise scale over the bound of one record's contribution
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    noise_multiplier: Option<f64>,

    /// Poisson sampling: probability of each record in each step
    #[arg(long, alias = "rate", value_name = "Q", conflicts_with_all = ["batch", "epochs"], allow_negative_numbers = true)]
    sampling_rate: Option<f64>,

    /// Fixed-size batches: records drawn in each step (needs --rows)
    #[arg(long, value_name = "B", requires = "rows", conflicts_with = "epochs")]
    batch: Option<u64>,

    /// Records in all, for --batch and for comparing methods
    #[arg(long, value_name = "N")]
    rows: Option<u64>,

    /// Compare methods for a table with so many columns of numbers (a category counts once for each value)
    #[arg(long, value_name = "D", conflicts_with_all = ["mechanism", "noise_multiplier", "sampling_rate", "batch", "epochs", "steps", "order", "rho", "query", "accountant"])]
    features: Option<u64>,

    /// Compare methods for this loss (see `privfit methods`)
    #[arg(long, value_name = "L", requires = "features")]
    loss: Option<String>,

    /// Number of classes [default: 2, or 3 for softmax]
    #[arg(long, value_name = "K", requires = "features")]
    classes: Option<u64>,

    /// A setting of methods or loss, like sparsity=20, for comparing methods
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "features")]
    set: Vec<String>,

    /// none, l2:R, l1:R, box:LOW:HIGH or simplex:R, for comparing methods
    #[arg(long, requires = "features")]
    constraint: Option<String>,

    /// Shuffled disjoint batches: passes over the data; nothing is amplified
    #[arg(long, value_name = "E", conflicts_with = "steps")]
    epochs: Option<u64>,

    /// How often the mechanism is applied
    #[arg(long, value_name = "T", default_value_t = 1)]
    steps: u64,

    /// Given epsilon (for delta and noise; of one application for --mechanism pure)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,

    /// Given delta (for epsilon and noise)
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,

    /// Given order (for rdp)
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    order: Option<f64>,

    /// Given rho (for --mechanism zcdp)
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    rho: Option<f64>,

    /// Objective perturbation: log(1 + smoothness / ridge), once for each degree of freedom
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    log_determinant: Option<f64>,

    /// Objective perturbation: dimensions that one record's gradient spans (classes less one for softmax)
    #[arg(long, value_name = "K", default_value_t = 1)]
    degrees: u32,

    /// What a neighbour is: zero-out, replace-one or add-remove
    #[arg(long, value_name = "A", default_value = "zero-out")]
    adjacency: String,

    /// tight, or one method: pure, gaussian, pld, rdp, zcdp
    #[arg(long, value_name = "NAME", default_value = "tight")]
    accountant: String,

    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Account {
    /// A comparison of methods for people; an answer about a mechanism is read to its end.
    pub(crate) fn is_listing(&self) -> bool {
        self.features.is_some() && self.format == Format::Text
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let format = self.format;
        if let Some(features) = self.features {
            return self.facts(features)?.run(format);
        }
        let (requests, many) = match &self.request {
            Some(path) => {
                let text = read(path)?;
                let many = !text.trim_start().starts_with('{') || text.contains("\"vectors\"");
                (parse(&text).map_err(|p| Failure::misuse(p.0))?, many)
            }
            None => (vec![self.described()?], false),
        };
        // All answers first: a wrong request among many leaves no half of an answer behind.
        let replies: Vec<Reply> = requests
            .iter()
            .map(|r| {
                r.answer().map_err(|p| match &r.id {
                    Some(id) if !p.0.contains(id.as_str()) => Failure::misuse(format!("request {id:?}: {p}")),
                    _ => Failure::misuse(p.0),
                })
            })
            .collect::<Result<_, _>>()?;
        match format {
            Format::Json if many => {
                let list: Vec<_> = replies.iter().map(as_json).collect();
                print_line(&serde_json::to_string_pretty(&list).unwrap_or_default());
            }
            Format::Json => print_line(&serde_json::to_string_pretty(&as_json(&replies[0])).unwrap_or_default()),
            Format::Text => replies.iter().for_each(|r| print_line(&as_text(r))),
        }
        Ok(())
    }

    /// What is compared.
    fn facts(&self, features: u64) -> Result<PlannedTable, Failure> {
        let missing = |what: &str| Failure::misuse(format!("comparing methods needs --{what}: add it"));
        Ok(PlannedTable {
            rows: self.rows.ok_or_else(|| missing("rows"))?,
            features,
            loss: self.loss.clone().ok_or_else(|| missing("loss"))?,
            classes: self.classes,
            epsilon: self.epsilon.ok_or_else(|| missing("epsilon"))?,
            delta: self.delta,
            adjacency: self.adjacency.parse().map_err(privfit::Error::from)?,
            settings: settings(&self.set)?,
            constraint: (self.constraint.as_deref()).map_or(Ok(Constraint::None), Constraint::parse)?,
        })
    }

    fn described(&self) -> Result<Request, Failure> {
        let misuse = |p: privfit::request::Problem| Failure::misuse(p.0);
        let query = Query::parse(&self.query).map_err(misuse)?;
        let adjacency = self.adjacency.parse().map_err(privfit::Error::from)?;
        let open = query == Query::Noise;
        let need = |what: &str, value: Option<f64>| {
            let or = ", or compare methods by --rows, --features, --loss and --epsilon";
            let or = if what == "noise-multiplier" { or } else { "" };
            value.ok_or_else(|| Failure::misuse(format!("--mechanism {} needs --{what}: add it{or}", self.mechanism)))
        };
        let noise = if open {
            if self.noise_multiplier.is_some() {
                return Err(Failure::misuse("--query noise finds the noise: leave out --noise-multiplier"));
            }
            None
        } else if matches!(self.mechanism.as_str(), "gaussian" | "laplace" | "objective") {
            Some(need("noise-multiplier", self.noise_multiplier)?)
        } else {
            None
        };
        let mut epsilon = self.epsilon;
        let kind = match self.mechanism.as_str() {
            "gaussian" => Kind::Gaussian(noise),
            "laplace" => Kind::Laplace(noise),
            "pure" => {
                let one = need("epsilon", self.epsilon)?;
                epsilon = None;
                Kind::Fixed(privfit::account::Event::pure(one))
            }
            "zcdp" => Kind::Fixed(privfit::account::Event::ZeroConcentrated { rho: need("rho", self.rho)? }),
            "objective" => {
                let facts = Objective {
                    noise_multiplier: noise.unwrap_or(1.0),
                    replace_factor: 2.0,
                    degrees: self.degrees,
                    log_determinant: need("log-determinant", self.log_determinant)?,
                    output_noise_multiplier: f64::INFINITY,
                    grid_sigma: 0,
                    dimension: 1,
                };
                Kind::Objective(noise, facts)
            }
            other => {
                return Err(Failure::misuse(format!(
                    "the mechanism {other:?} is unknown: use gaussian, laplace, pure, zcdp or objective"
                )));
            }
        };
        let sampling = match (self.sampling_rate, self.batch, self.epochs) {
            (Some(rate), _, _) => Sampling::Poisson(rate),
            (_, Some(batch), _) => Sampling::FixedSize(batch, self.rows.unwrap_or(batch)),
            (_, _, Some(epochs)) => Sampling::Shuffled(1, epochs),
            _ => Sampling::All,
        };
        if self.steps == 0 {
            return Err(Failure::misuse("--steps is 0: give a whole number of at least 1"));
        }
        Ok(Request {
            id: None,
            query,
            route: self.accountant.clone(),
            adjacency,
            mechanisms: vec![Described { kind, sampling, count: self.steps }],
            epsilon,
            delta: self.delta,
            rho: None,
            order: self.order,
            orders: Vec::new(),
            sensitivity: 1.0,
        })
    }
}

/// Reads a request of bounded size.
fn read(path: &str) -> Result<String, Failure> {
    let mut text = Vec::new();
    let result = if path == "-" {
        std::io::stdin().lock().take(LARGEST_REQUEST + 1).read_to_end(&mut text)
    } else {
        privfit::small_file::open(path.as_ref()).and_then(|f| f.take(LARGEST_REQUEST + 1).read_to_end(&mut text))
    };
    if let Err(error) = result {
        return Err(Failure::misuse(format!(
            "cannot read the request {path:?} ({error}): give a readable file, or '-' for standard input"
        )));
    }
    if text.len() as u64 > LARGEST_REQUEST {
        return Err(Failure::misuse(format!("the request {path:?} is larger than 16 MiB: split it")));
    }
    String::from_utf8(text).map_err(|_| Failure::misuse(format!("the request {path:?} is not UTF-8 text: save it as UTF-8")))
}

fn as_json(reply: &Reply) -> serde_json::Value {
    let mut out = json!({
        "query": reply.query.name(),
        "value": reply.value,
        "lower": reply.lower,
        "upper": reply.upper,
        "accountant": reply.accountant,
        "adjacency": reply.adjacency.name(),
    });
    if let (Some(id), Some(object)) = (&reply.id, out.as_object_mut()) {
        object.insert("id".into(), json!(id));
    }
    out
}

/// At most four decimals (four significant digits for small numbers), rounded up.
fn rounded_up(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = if value >= 0.01 { 4 } else { 3 - value.log10().floor() as i32 };
    let scale = 10f64.powi(digits);
    // A value that is a short decimal already stays what it is.
    let up =
        if (value * scale - (value * scale).round()).abs() < 1e-9 { (value * scale).round() } else { (value * scale).ceil() };
    if value >= 0.01 {
        let text = format!("{:.4}", up / scale);
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        format!("{:.3e}", up / scale)
    }
}

fn rounded_down(value: f64) -> String {
    let digits = if value >= 0.01 { 4 } else { 3 - value.log10().floor() as i32 };
    let scale = 10f64.powi(digits);
    let down = (value * scale).floor() / scale;
    if value >= 0.01 { format!("{down:.4}") } else { format!("{down:.3e}") }
}

fn as_text(reply: &Reply) -> String {
    let name = reply.id.as_ref().map_or(String::new(), |id| format!("{id}: "));
    let below = if reply.lower > 0.0 && reply.lower < reply.upper * 0.999_999 {
        format!(" and at least {}", rounded_down(reply.lower))
    } else {
        String::new()
    };
    format!(
        "{name}{} is at most {}{below} ({}, by the {} accountant)",
        reply.query.name(),
        rounded_up(reply.upper),
        reply.adjacency,
        reply.accountant
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_numbers_are_rounded_up() {
        assert_eq!(rounded_up(1.82824), "1.8283");
        assert_eq!(rounded_up(1.0), "1");
        assert_eq!(rounded_up(1.50000000001), "1.5001");
        assert_eq!(rounded_up(1.5), "1.5");
        assert_eq!(rounded_up(4.2434e-6), "4.244e-6");
        assert_eq!(rounded_up(0.0), "0");
        assert_eq!(rounded_down(1.82829), "1.8282");
    }
}
