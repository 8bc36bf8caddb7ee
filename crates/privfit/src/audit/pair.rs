//! Neighbouring data sets, made of public facts: records that a schema allows, and a few that it does not.

use crate::data::cells::RowForm;
use crate::data::encode::{Encoder, Row};
use crate::data::generate::Random;
use crate::data::{Cell, Record};
use crate::error::Result;
use crate::schema::{Feature, Features, Schema, TargetValues, UnitOfPrivacy};
use privfit_kernel::account::Adjacency;

/// Two data sets that differ in one record, or in one unit with all of its rows.
#[derive(Clone, Debug)]
pub struct Pair {
    /// How it was made.
    pub kind: &'static str,
    /// With the record.
    pub a: Vec<Row>,
    /// Without it, or with another one in its place.
    pub b: Vec<Row>,
}

/// How pairs are made.
pub const KINDS: [&str; 6] = ["random", "vertex", "aligned", "outlier", "duplicate", "one against none"];

/// Where the cells of a record lie.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Anywhere,
    /// Each cell at one of its ends.
    Vertex,
    Top,
    Bottom,
    Middle,
    /// Outside of the bounds, missing, or not a number.
    Outside,
}

/// Makes encoded rows of a schema. With a unit column every unit has as many rows as it may have, all alike: no other rows of a unit
/// move a sum further.
pub struct RowMaker {
    schema: Schema,
    encoder: Encoder,
    /// Rows to a unit.
    to_unit: usize,
}

impl RowMaker {
    /// For a schema, and for the form of rows that a plan reads.
    pub fn new(schema: &Schema, form: RowForm<'_>) -> Result<RowMaker> {
        let mut header: Vec<String> = match &schema.features {
            Features::Table(list) => list.iter().map(|f| f.0.clone()).collect(),
            _ => Vec::new(),
        };
        header.extend(schema.target.column.clone());
        let to_unit = match &schema.unit {
            UnitOfPrivacy::Row => 1,
            UnitOfPrivacy::Column { column, max_rows } => {
                header.push(column.clone());
                *max_rows
            }
        };
        let encoder = Encoder::new(schema, &header, true)?.of_form(form, &header)?;
        Ok(RowMaker { schema: schema.clone(), encoder, to_unit })
    }

    /// The record that says nothing.
    pub fn null(&self) -> Row {
        let mut row = Row::default();
        self.encoder.encode(Record::Broken, None, &mut row);
        row
    }

    /// A record; `class` numbers the label, or is its place between the bounds.
    fn row(&self, random: &mut Random, place: Place, class: usize) -> Row {
        let mut row = Row::default();
        let label = self.label(place, class, random);
        let number = |random: &mut Random, min: f64, max: f64| match place {
            Place::Anywhere => min + (max - min) * random.uniform(),
            Place::Vertex => [min, max][random.below(2)],
            Place::Top => max,
            Place::Bottom => min,
            Place::Middle => 0.5 * (min + max),
            Place::Outside => [1e300, -1e300, f64::INFINITY, f64::NAN, 3.0 * max - min, 5e-324][random.below(6)],
        };
        match &self.schema.features {
            Features::Table(list) => {
                let mut cells: Vec<Cell<'_>> = Vec::new();
                for (_, feature) in list {
                    cells.push(match feature {
                        Feature::Number { min, max, .. } => Cell::Number(number(random, *min, *max)),
                        Feature::Category(values) => match place {
                            Place::Top => Cell::Text(values[values.len() - 1].as_bytes()),
                            Place::Bottom => Cell::Text(values[0].as_bytes()),
                            Place::Outside | Place::Middle => Cell::Missing,
                            _ => Cell::Text(values[random.below(values.len())].as_bytes()),
                        },
                        Feature::Ignore => Cell::Missing,
                    });
                }
                self.encoder.encode(Record::Cells(&cells), label, &mut row);
            }
            Features::Sparse { dimension, row_norm, bound } | Features::Dense { dimension, row_norm, bound } => {
                let most = bound.unwrap_or(*row_norm).min(1e9);
                // Long rows have a few cells, so that vertices are as long as the schema allows.
                let some = (*dimension).min(if most == *row_norm { 4 } else { 64 });
                let from = if place == Place::Top || place == Place::Bottom { 0 } else { random.below(*dimension - some + 1) };
                let mut cells = vec![0.0; *dimension];
                cells[from..from + some].iter_mut().for_each(|c| *c = number(random, -most, most));
                self.encoder.encode(Record::Dense(&cells), label, &mut row);
            }
            Features::Image { max, shape, .. } => {
                let cells: Vec<f64> = (0..shape.iter().product()).map(|_| number(random, 0.0, *max)).collect();
                self.encoder.encode(Record::Dense(&cells), label, &mut row);
            }
        }
        row
    }

    fn label(&self, place: Place, class: usize, random: &mut Random) -> Option<Cell<'_>> {
        match &self.schema.target.values {
            TargetValues::Classes(values) => Some(Cell::Text(values[class % values.len()].as_bytes())),
            TargetValues::Positive(values) if class % 2 == 1 => Some(Cell::Text(values[0].as_bytes())),
            TargetValues::Positive(_) => Some(Cell::Missing),
            TargetValues::Bounds(low, high) => Some(Cell::Number(match (place, class % 2) {
                (Place::Anywhere, _) => low + (high - low) * random.uniform(),
                (Place::Outside, _) => [1e300, f64::NAN, -1e300][random.below(3)],
                (_, 1) => *high,
                _ => *low,
            })),
            TargetValues::None => None,
        }
    }

    /// A record of any place and label.
    fn any(&self, random: &mut Random, place: Place) -> Row {
        let class = random.below(12);
        self.row(random, place, class)
    }

    /// A pair of that kind (`KINDS`) with so many units; `others` stand in for generated ones.
    pub fn pair(&self, kind: &'static str, rows: usize, adjacency: Adjacency, random: &mut Random, others: &[Row]) -> Pair {
        let place = match kind {
            "random" => Place::Anywhere,
            "outlier" => Place::Outside,
            _ => Place::Vertex,
        };
        let target = self.any(random, place);
        let other = match kind {
            "aligned" => {
                let end = [Place::Top, Place::Bottom][random.below(2)];
                self.any(random, end)
            }
            _ => self.any(random, place),
        };
        let mut a: Vec<Row> = (0..rows)
            .map(|i| match kind {
                "one against none" => self.null(),
                "duplicate" => target.clone(),
                "aligned" => other.clone(),
                _ if !others.is_empty() => others[i % others.len()].clone(),
                "vertex" => self.any(random, Place::Vertex),
                _ => self.any(random, Place::Anywhere),
            })
            .collect();
        self.finish(kind, &mut a, target, other, adjacency, random)
    }

    fn finish(
        &self,
        kind: &'static str,
        a: &mut [Row],
        target: Row,
        other: Row,
        adjacency: Adjacency,
        random: &mut Random,
    ) -> Pair {
        let rows = a.len();
        // One record more or less must not move the others to other indices.
        let at = if adjacency == Adjacency::AddRemove { rows - 1 } else { random.below(rows) };
        a[at] = target;
        let mut b = a.to_vec();
        match adjacency {
            Adjacency::ZeroOut => b[at] = self.null(),
            Adjacency::ReplaceOne => b[at] = other,
            Adjacency::AddRemove => {
                b.pop();
            }
        }
        let units = |rows: &[Row]| rows.iter().flat_map(|row| std::iter::repeat_n(row.clone(), self.to_unit)).collect();
        Pair { kind, a: units(a), b: units(&b) }
    }

    /// Pairs whose worlds are far apart for most methods: one steep record among dull ones, or alone, with either label.
    pub fn telling(&self, rows: usize, adjacency: Adjacency, others: &[Row]) -> Vec<Pair> {
        let mut random = Random::new(7);
        let mut out = Vec::new();
        for class in 0..2 {
            for crowd in [Some(Place::Middle), Some(Place::Top), None] {
                let target = self.row(&mut random, Place::Top, class);
                let opposite = if crowd == Some(Place::Top) { Place::Bottom } else { Place::Top };
                let other = self.row(&mut random, opposite, 1 - class);
                let dull = crowd.map_or_else(|| self.null(), |place| self.row(&mut random, place, 1 - class));
                let mut a: Vec<Row> =
                    (0..rows).map(|i| if others.is_empty() { dull.clone() } else { others[i % others.len()].clone() }).collect();
                out.push(self.finish("telling", &mut a, target, other, adjacency, &mut random));
            }
        }
        out
    }
}
