//! Private bounds: for numeric columns whose range nobody knows, quantiles with noise, for a part of the budget.
//!
//! *Claim.* Released is one vector of counts with discrete Gaussian noise: for each such column, how many records fall between neighbouring
//! edges of a fixed public list (1, 1.5, 2, 3, 5, 7 times powers of ten, both signs). A record is in one bucket of each of the f columns,
//! or in none where its cell is no number, so that its L2 norm is at most the root of f; the kernel clips at that on the integers and charges
//! twice the sensitivity for replace-one. Bounds are read off the noisy counts alone. The schema that comes out says what was released, and every
//! certificate of a model that uses it repeats it.

use super::facts::PublicFacts;
use super::output::Output;
use super::release::Release;
use crate::data::encode::{COUNTS, number};
use crate::data::load::{Records, builder};
use crate::data::{Cell, Record};
use crate::error::{Error, Result};
use crate::schema::private_bounds::BoundsPlan;
use crate::schema::{Schema, UnitOfPrivacy, quote};
use privfit_kernel::account::{Adjacency, Event, Target, calibrate};
use privfit_kernel::engine::{Engine, Needs};
use privfit_kernel::{Contribution, Dataset, Entropy, Gaussian, Mechanism, RowShape, Run, Sink, Unit, UnitRandomness};
use toml_edit::{DocumentMut, Item};

/// The noise for so many columns, a function of public facts.
fn noise(columns: usize, target: Target, adjacency: Adjacency, rows: u64) -> Result<(Gaussian, Event)> {
    let dimension = columns * (edges().len() + 1);
    let clip = (columns as f64).sqrt() * (1.0 + 1e-9);
    let of = |nm: f64| Gaussian::new(clip, nm, rows);
    let noise = of(calibrate(target, |nm| of(nm).map(|g| g.event(dimension)), adjacency)?)?;
    let event = noise.event(dimension);
    Ok((noise, event))
}

/// The event of a plan for so many columns.
pub(crate) fn event(columns: usize, plan: &BoundsPlan) -> Result<Event> {
    if columns == 0 || columns > 1_000_000 {
        return Err(Error::misuse("bounds are released for at least one column, and at most a million"));
    }
    Ok(noise(columns, Target { epsilon: plan.epsilon, delta: plan.delta }, plan.adjacency, plan.rows)?.1)
}

/// Steps of the edges in a decade.
const STEPS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// Powers of ten of the edges.
const DECADES: std::ops::RangeInclusive<i32> = -4..=12;

/// Edges of the buckets, from the lowest.
fn edges() -> Vec<f64> {
    let sizes = DECADES.flat_map(|e| STEPS.map(|s| format!("{s}e{e}").parse::<f64>().unwrap_or(0.0)));
    let up: Vec<f64> = sizes.collect();
    up.iter().rev().map(|x| -x).chain([0.0]).chain(up.iter().copied()).collect()
}

/// A column with an open bound.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    name: String,
    min: bool,
    max: bool,
}

/// A schema with open bounds.
#[derive(Clone, Debug)]
pub struct Draft {
    text: String,
    open: Vec<Open>,
    schema: Schema,
}

/// The text with every open bound of a numeric column replaced; comments and order stay. Text that is no TOML stays as it is, for the
/// schema to say what is wrong with it.
fn fill(text: &str, mut value: impl FnMut(&str, bool) -> Option<f64>) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return text.into() };
    let Some(features) = document.get_mut("features").and_then(Item::as_table_like_mut) else { return text.into() };
    for (name, column) in features.iter_mut() {
        let Some(column) = column.as_table_like_mut() else { continue };
        for key in ["min", "max"] {
            let open = column.get_mut(key).and_then(Item::as_value_mut).filter(|v| v.as_str() == Some("?"));
            if let Some(open) = open
                && let Some(number) = value(name.get(), key == "min")
            {
                let around = open.decor().clone();
                *open = number.into();
                *open.decor_mut() = around;
            }
        }
    }
    document.to_string()
}

impl Draft {
    /// Reads a schema whose numeric columns may have "?" for min and max. Everything else must be there.
    pub fn parse(text: &str) -> Result<Draft> {
        let mut open: Vec<Open> = Vec::new();
        // Any bounds will do to check all the rest.
        let filled = fill(text, |name, min| {
            match open.iter_mut().find(|o| o.name == name) {
                Some(o) => (o.min, o.max) = (o.min | min, o.max | !min),
                None => open.push(Open { name: name.into(), min, max: !min }),
            }
            Some(if min { -1e300 } else { 1e300 })
        });
        let schema = Schema::parse(&filled)?;
        if open.is_empty() {
            return Err(Error::misuse(
                "no numeric column of the schema has an open bound: put min = \"?\" or max = \"?\" where one is",
            ));
        }
        if schema.private_bounds.is_some() {
            return Err(Error::misuse(
                "bounds of this schema were released already: release all open ones at once, from the draft without [private_bounds]",
            ));
        }
        if schema.unit != UnitOfPrivacy::Row {
            return Err(Error::misuse("bounds are released for unit = \"row\" only: take them from documentation instead"));
        }
        Ok(Draft { text: text.into(), open, schema })
    }

    /// The public facts, with bounds that mean nothing where they are open.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Columns whose bounds are open.
    pub fn columns(&self) -> Vec<&str> {
        self.open.iter().map(|o| o.name.as_str()).collect()
    }
}

/// A release of bounds, complete before data are opened.
pub struct BoundsRelease {
    draft: Draft,
    facts: PublicFacts,
    edges: Vec<f64>,
    noise: Gaussian,
    event: Event,
    beyond: f64,
}

/// Plans. `beyond` is the part of the records that may lie outside at either end.
pub fn prepare(draft: Draft, facts: PublicFacts, beyond: f64) -> Result<BoundsRelease> {
    if facts.target.delta == 0.0 {
        return Err(Error::misuse("private bounds need a delta above 0: 1/rows^2 is a common choice"));
    }
    if !(0.0..=0.25).contains(&beyond) {
        return Err(Error::misuse("").naming("beyond").text(format!(" is {beyond}: give a number from 0 to 0.25")));
    }
    let (noise, event) = noise(draft.open.len(), facts.target, facts.adjacency, facts.rows)?;
    Ok(BoundsRelease { draft, facts, edges: edges(), noise, event, beyond })
}

fn add(_: &[f64], unit: Unit<'_>, _: &mut UnitRandomness<'_>, sink: &mut Sink<'_>) {
    unit.each(0, |i, x| sink.add(i, x));
}

impl Release for BoundsRelease {
    fn kind(&self) -> &'static str {
        "bounds"
    }

    fn facts(&self) -> &PublicFacts {
        &self.facts
    }

    fn event(&self) -> &Event {
        &self.event
    }

    fn needs(&self) -> Needs {
        Needs::Sums
    }

    fn steps(&self) -> u64 {
        1
    }

    fn statement(&self) -> serde_json::Value {
        let facts = &self.facts;
        serde_json::json!({
            "draft": self.draft.text, "rows": facts.rows, "epsilon": facts.target.epsilon, "delta": facts.target.delta,
            "beyond": self.beyond, "event": self.event,
        })
    }

    fn open(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        let data = self.records(source, entropy)?;
        self.facts.same_count(&data)?;
        Ok(data)
    }

    fn run(&self, data: Dataset, engine: &dyn Engine, entropy: &Entropy, progress: &dyn Fn()) -> Result<Output> {
        let mut run = Run::begin(&data, engine, entropy, &self.event)?.under(self.facts.adjacency);
        let counts = self.release(&mut run)?;
        let released = run.close(counts)?;
        progress();
        Ok(Output::Bounds(self.text(released.value(), released.event())))
    }

    fn read(&self, bytes: &[u8]) -> Result<Output> {
        let damaged = |_| Error::damaged("the released schema is not text: fetch the ledger again");
        Ok(Output::Bounds(String::from_utf8(bytes.to_vec()).map_err(damaged)?))
    }
}

impl BoundsRelease {
    /// Each record becomes its buckets.
    pub(crate) fn records(&self, source: &dyn Records, entropy: &Entropy) -> Result<Dataset> {
        let (columns, buckets) = (self.draft.open.len(), self.edges.len() + 1);
        let shape =
            RowShape { dimension: columns * buckets, row_norm: (columns as f64).sqrt(), sparse: true, rows_per_unit: None };
        let mut builder = builder(source, shape, entropy)?;
        for part in 0..source.parts() {
            let mut reader = source.open(part, &self.draft.schema)?;
            let mut places = Vec::new();
            for open in &self.draft.open {
                let place = reader.columns().iter().position(|c| *c == open.name);
                places.push(place.ok_or_else(|| {
                    Error::misuse(format!("the file has no column {:?} that the schema names: check the header", open.name))
                })?);
            }
            let mut pairs = Vec::new();
            reader.read(&mut |record| {
                pairs.clear();
                for (j, place) in places.iter().enumerate() {
                    let cell = match record {
                        Record::Cells(cells) => cells.get(*place).copied().unwrap_or(Cell::Missing),
                        Record::Dense(values) => values.get(*place).map_or(Cell::Missing, |x| Cell::Number(*x)),
                        _ => Cell::Missing,
                    };
                    if let Some(x) = number(cell) {
                        let bucket = self.edges.partition_point(|e| *e <= x);
                        pairs.push(((j * buckets + bucket) as u32, 1.0));
                    }
                }
                builder.sparse_row(&pairs, COUNTS);
            })?;
        }
        Ok(builder.build())
    }

    /// Columns whose bounds are released.
    pub fn columns(&self) -> Vec<&str> {
        self.draft.columns()
    }

    /// Standard deviation of the noise on a count.
    pub fn noise(&self) -> f64 {
        self.noise.standard_deviation()
    }

    /// All counts with noise: everything that leaves.
    pub(crate) fn release(&self, run: &mut Run<'_>) -> Result<Vec<f64>> {
        let dimension = self.draft.open.len() * (self.edges.len() + 1);
        let contribution = Contribution { name: "buckets", dimension, parameters: Vec::new(), add };
        let everyone = run.everyone()?;
        let counts = run.at(&self.noise, |run, scale| {
            let noise = run.draw(&scale, dimension)?;
            let value = everyone.sum(&noise, &contribution)?;
            run.release(noise, &value)
        })?;
        Ok(counts)
    }

    /// The schema from the noisy counts, and from nothing else.
    fn text(&self, counts: &[f64], event: &Event) -> String {
        let buckets = self.edges.len() + 1;
        let found: Vec<Option<(f64, f64)>> = counts.chunks(buckets).map(|c| self.between(c)).collect();
        let place = |name: &str| self.draft.open.iter().position(|o| o.name == name);
        let filled = fill(&self.draft.text, |name, min| {
            let (low, high) = place(name).and_then(|j| found[j])?;
            Some(if min { low } else { high })
        });
        let columns: Vec<String> = self.draft.open.iter().map(|o| quote(&o.name)).collect();
        let event = serde_json::to_string(event).unwrap_or_default();
        let plan = BoundsPlan {
            planner: crate::certificate::versions::PLANNER,
            epsilon: self.facts.target.epsilon,
            delta: self.facts.target.delta,
            adjacency: self.facts.adjacency,
            rows: self.facts.rows,
        };
        let plan = serde_json::to_string(&plan).unwrap_or_default();
        format!(
            "{}\n# These bounds were released from the private records, with noise. Certificates repeat it; do not remove it.\n[private_bounds]\n\
             columns = [{}]\nevent = '{event}'\nplan = '{plan}'\n",
            filled.trim_end(),
            columns.join(", ")
        )
    }

    /// The edges between which most records lie; none if noise hides them all.
    fn between(&self, counts: &[f64]) -> Option<(f64, f64)> {
        // Empty buckets hold noise: what is not clearly above it is left out. There are hundreds of them, so three deviations would not do.
        let least = 5.0 * self.noise.standard_deviation();
        let kept: Vec<f64> = counts.iter().map(|c| if *c > least { *c } else { 0.0 }).collect();
        let enough = self.beyond * kept.iter().sum::<f64>();
        let first_edge = |order: Vec<usize>| {
            let mut sum = 0.0;
            order.into_iter().find(|i| {
                sum += kept[*i];
                kept[*i] > 0.0 && sum > enough
            })
        };
        let (low, high) = (first_edge((0..kept.len()).collect())?, first_edge((0..kept.len()).rev().collect())?);
        let (low, high) = (low.min(high), low.max(high));
        let last = self.edges.len() - 1;
        Some((self.edges[low.saturating_sub(1)], self.edges[high.min(last)])).filter(|(low, high)| low < high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Reader;
    use crate::data::csv::Csv;
    use privfit_kernel::engine::Threads;
    use std::sync::Arc;

    struct Text(String);

    impl Records for Text {
        fn parts(&self) -> usize {
            1
        }

        fn open(&self, _: usize, _: &Schema) -> Result<Box<dyn Reader + '_>> {
            Ok(Box::new(Csv::open(Box::new(std::io::Cursor::new(self.0.clone().into_bytes())))?))
        }

        fn label_parts(&self, _: &Schema) -> usize {
            0
        }

        fn open_labels(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
            self.open(part, schema)
        }

        fn check(&self, _: &Schema) -> Result<()> {
            Ok(())
        }
    }

    const DRAFT: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n[features.age]\n\
        type = \"number\"\nmin = \"?\"\nmax = \"?\"   # nobody knows\n[features.\"net income\"]\ntype = \"number\"\nmin = \"?\"\nmax = 900000\n\
        [features.ward]\ntype = \"category\"\nvalues = [\"A\", \"B\"]\n";

    fn table(rows: u64, odd: &str) -> Text {
        let mut text = String::from("age,net income,ward,ill\n");
        for i in 0..rows {
            let income = i as i64 * 37 % 5000 - 400;
            text.push_str(&if i == 7 { format!("{odd}\n") } else { format!("{},{income},A,no\n", 17 + i % 74) });
        }
        Text(text)
    }

    fn plan(epsilon: f64, rows: u64) -> BoundsRelease {
        let draft = Draft::parse(DRAFT).unwrap();
        let asked = (epsilon, Some(1e-9));
        let facts = PublicFacts::new(draft.schema().clone(), (rows, false), Adjacency::ZeroOut, asked, false).unwrap();
        prepare(draft, facts, 0.005).unwrap()
    }

    fn run(plan: &BoundsRelease, rows: &Text, entropy: &Entropy) -> String {
        let data = plan.open(rows, entropy).unwrap();
        plan.run(data, &Threads::new(1), entropy, &|| {}).unwrap().into_bounds().unwrap()
    }

    #[test]
    fn bounds_hold_most_records_and_are_remembered() {
        let (rows, entropy) = (20_000, Entropy::simulated(3));
        let text = run(&plan(0.5, rows), &table(rows, "1e300,nan,B,yes"), &entropy);
        assert!(text.contains("min = 15.0\nmax = 100.0"), "{text}");
        assert!(text.contains("min = -500.0\nmax = 900000"), "only what was open changes: {text}");
        let schema = Schema::parse(&text).unwrap();
        let private_bounds = schema.private_bounds.unwrap();
        assert_eq!(private_bounds.columns, ["age", "net income"]);
        assert!(matches!(private_bounds.event, Event::NotPrivate { .. }), "a simulation stays one");
        // Noise that hides everything leaves the question open.
        let text = run(&plan(0.001, 40), &table(40, "1,1,A,no"), &entropy);
        assert!(text.contains("min = \"?\"") && Schema::parse(&text).is_err(), "{text}");
    }

    #[test]
    fn drafts_that_are_not_ready_are_refused() {
        let parse = |text: &str| Draft::parse(text).map(|_| ());
        for (from, to, words) in [
            ("min = \"?\"", "min = 0", "no numeric column"),
            ("[\"A\", \"B\"]", "[\"?\"]", "leaves public facts open"),
            ("name = \"visits\"", "unit = { column = \"id\", max_rows = 2 }\nunits = 9", "unit = \"row\" only"),
        ] {
            let text = DRAFT.replace(from, to);
            let text = if from.starts_with("min") { text.replace("max = \"?\"", "max = 9") } else { text };
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    /// One record moves the counts by at most the root of the number of columns, whatever it holds.
    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let plan = plan(1.0, 30);
        let engine = Threads::new(1);
        let mut transcript: Option<Arc<_>> = None;
        for odd in ["20,30,A,no", "", "1e308,-1e308,A,no", "x,y,z,w", "nan,inf,A,no", "-0.0,0,B,yes", "1,2"] {
            let entropy = Entropy::simulated(9);
            let data = plan.open(&table(30, odd), &entropy).unwrap();
            let mut run = match &transcript {
                None => Run::recorded(&data, &engine, &entropy, &plan.event).unwrap(),
                Some(transcript) => Run::replayed(&data, &engine, &entropy, &plan.event, transcript).unwrap(),
            };
            plan.release(&mut run).unwrap();
            match &transcript {
                None => transcript = Some(run.transcript().unwrap()),
                Some(_) => assert!(run.movements().unwrap().iter().all(|m| m.holds(Adjacency::ReplaceOne)), "{odd}"),
            }
        }
    }
}
