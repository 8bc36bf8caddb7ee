//! From a record to a row: a map that looks at one record and at public facts, nothing else.
//!
//! Numbers are clamped and mapped to -1 ... 1, categories become columns of 0 and 1, a constant is appended, and the row is scaled
//! into the unit ball. Whatever is wrong with a cell has a fixed answer: a missing or unreadable number is the middle of its range, an
//! unlisted category is none of the listed ones, a record that can't be read is the null record. Nobody is told.

use super::cells::{CellKind, RowForm};
use super::scattering::Scattering;
use super::{Cell, Record};
use crate::error::{Error, Result};
use crate::schema::{Feature, Features, ImageEncoder, Scaling, Schema, TargetValues, UnitOfPrivacy};
use std::collections::HashMap;

/// Label of a row that counts. Not 0, which the kernel puts in the place of labels that are no numbers.
pub const COUNTS: f32 = 1.0;

/// Label of a record that adds nothing: outside of the range of every loss.
pub const UNKNOWN: f32 = -9.0;

/// A row, ready for the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Values of all features, for dense rows.
    pub dense: Vec<f64>,
    /// Index-value pairs, for sparse rows.
    pub pairs: Vec<(u32, f64)>,
    /// A cell of each column, for models of cells; empty for the null record.
    pub cells: Vec<u8>,
    /// Class number, or target in [-1, 1], or `COUNTS` where there is no target, or `UNKNOWN`.
    pub label: f32,
    /// The target in its own units, where it is a number.
    pub target: f64,
}

enum Rule {
    Number { min: f64, range: f64, log: bool },
    Category { values: Lookup, two: bool },
}

/// Finds listed values as text, or as numbers if the cell is one.
struct Lookup {
    /// Few texts are compared one by one, many are hashed.
    few: Vec<(Vec<u8>, usize)>,
    text: HashMap<Vec<u8>, usize>,
    /// Bits of numbers. A list: labels have few values, and reading them must not cost more than the rows.
    number: Vec<(u64, usize)>,
}

impl Lookup {
    fn new(values: &[String]) -> Lookup {
        let text: HashMap<Vec<u8>, usize> = values.iter().enumerate().map(|(i, v)| (v.as_bytes().to_vec(), i)).collect();
        let few = if values.len() <= 4 { text.iter().map(|(t, i)| (t.clone(), *i)).collect() } else { Vec::new() };
        let mut number: Vec<(u64, usize)> = Vec::new();
        for (i, v) in values.iter().enumerate() {
            if let Ok(x) = v.parse::<f64>()
                && x.is_finite()
                && number.iter().all(|n| n.0 != (x + 0.0).to_bits())
            {
                number.push(((x + 0.0).to_bits(), i));
            }
        }
        Lookup { few, text, number }
    }

    fn find(&self, cell: Cell<'_>) -> Option<usize> {
        match cell {
            Cell::Missing => self.find_text(b""),
            Cell::Number(x) => self.find_number(x),
            Cell::Text(t) => self.find_text(t).or_else(|| {
                // "1.0" and "+1" are 1.
                let x = if self.number.is_empty() { None } else { number(cell) };
                x.and_then(|x| self.find_number(x))
            }),
        }
    }

    fn find_text(&self, text: &[u8]) -> Option<usize> {
        if self.few.is_empty() {
            return self.text.get(text).copied();
        }
        self.few.iter().find(|f| f.0 == text).map(|f| f.1)
    }

    fn find_number(&self, x: f64) -> Option<usize> {
        let bits = (x + 0.0).to_bits();
        self.number.iter().find(|n| n.0 == bits).map(|n| n.1)
    }
}

/// A cell as a number, if it is one.
pub fn number(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        Cell::Number(x) => Some(x),
        Cell::Text(t) => std::str::from_utf8(t).ok().and_then(|t| t.trim().parse().ok()),
    }
    .filter(|x: &f64| !x.is_nan())
}

enum Label {
    Classes(Lookup),
    Positive(Lookup),
    Bounds(f64, f64),
    /// No target: a row counts if a cell of it can be read.
    Any,
}

/// Encodes records of one reader.
pub struct Encoder {
    columns: Vec<(usize, usize, Rule)>,
    target: Option<usize>,
    unit: Option<usize>,
    label: Label,
    dimension: usize,
    intercept: bool,
    sphere: bool,
    sparse: bool,
    /// What features are divided by before the constant is appended.
    divide: f64,
    /// Square of the longest row before the constant is appended.
    longest_square: f64,
    /// Cells of rows of numbers are clipped at this size.
    largest: f64,
    /// Least value and range of each column, where all are plain numbers in the order of the header.
    plain: Option<(Vec<f64>, Vec<f64>)>,
    /// Rows are not divided by a length.
    full_length: bool,
    /// Cells of rows: where each column is, and its rule.
    cells: Option<Vec<(usize, CellRule)>>,
    /// Rows have features.
    features: bool,
    /// Pictures become scattering features.
    scattering: Option<Scattering>,
}

/// How a value becomes a cell.
struct CellRule {
    kind: CellKind,
    values: Lookup,
}

impl CellRule {
    fn apply(&self, cell: Cell<'_>) -> u8 {
        match self.kind {
            CellKind::Category { .. } => self.kind.of_category(self.values.find(cell)),
            CellKind::Number { .. } => self.kind.of_number(number(cell)).unwrap_or_default(),
        }
    }
}

fn missing_column(name: &str) -> Error {
    Error::misuse(format!("the file has no column {name:?} that the schema names: check the header, or the schema"))
}

/// Far from where a square overflows.
const LARGEST_CELL: f64 = 1e150;

impl Encoder {
    /// For a schema and the columns of a file. A header unlike the schema is a misuse; it is public.
    pub fn new(schema: &Schema, header: &[String], labelled: bool) -> Result<Encoder> {
        let find = |name: &str| header.iter().position(|h| h == name).ok_or_else(|| missing_column(name));
        let mut columns = Vec::new();
        let mut offset = 0;
        let (mut divide, mut longest_square, mut largest) = (1.0, 0.0, LARGEST_CELL);
        match &schema.features {
            Features::Table(list) => {
                for (name, feature) in list {
                    let rule = match feature {
                        Feature::Ignore => continue,
                        Feature::Number { min, max, log } => Rule::Number { min: *min, range: max - min, log: *log },
                        Feature::Category(values) => Rule::Category { values: Lookup::new(values), two: values.len() == 2 },
                    };
                    columns.push((find(name)?, offset, rule));
                    offset += feature.width();
                }
            }
            Features::Sparse { row_norm, bound, .. } | Features::Dense { row_norm, bound, .. } => {
                longest_square = row_norm * row_norm;
                largest = bound.unwrap_or(largest);
            }
            Features::Image { max, .. } => {
                divide = *max;
                longest_square = (schema.dimension() - usize::from(schema.intercept)) as f64;
            }
        }
        let table = matches!(schema.features, Features::Table(_));
        if table {
            longest_square = columns.len() as f64;
        }
        let target = match &schema.target.column {
            Some(name) if table && labelled => Some(find(name)?),
            _ => None,
        };
        let unit = match &schema.unit {
            UnitOfPrivacy::Column { column, .. } if labelled => Some(find(column)?),
            _ => None,
        };
        let label = match &schema.target.values {
            TargetValues::Classes(values) => Label::Classes(Lookup::new(values)),
            TargetValues::Positive(values) => Label::Positive(Lookup::new(values)),
            TargetValues::Bounds(low, high) => Label::Bounds(*low, *high),
            TargetValues::None => Label::Any,
        };
        Ok(Encoder {
            target,
            unit,
            label,
            dimension: schema.dimension(),
            intercept: schema.intercept,
            sphere: schema.scaling == Scaling::Sphere,
            sparse: is_sparse(schema),
            plain: if is_sparse(schema) { None } else { plain(&columns) },
            columns,
            divide,
            longest_square,
            largest,
            full_length: false,
            cells: None,
            features: true,
            scattering: scattering_of(schema),
        })
    }

    /// The same for rows of another form.
    pub fn of_form(self, form: RowForm<'_>, header: &[String]) -> Result<Encoder> {
        let Some(grid) = form.grid() else { return Ok(self) };
        let rule = |c: &super::cells::CellColumn| {
            let at = header.iter().position(|h| *h == c.name);
            let values = match &c.kind {
                CellKind::Category { values, .. } => Lookup::new(values),
                CellKind::Number { .. } => Lookup::new(&[]),
            };
            at.map(|at| (at, CellRule { kind: c.kind.clone(), values })).ok_or_else(|| missing_column(&c.name))
        };
        Ok(Encoder { cells: Some(grid.columns.iter().map(rule).collect::<Result<_>>()?), features: form.has_features(), ..self })
    }

    /// The same, without the last step: rows that are not divided by a length. Not for the kernel.
    pub fn at_full_length(self) -> Encoder {
        Encoder { full_length: true, ..self }
    }

    /// Whether rows of numbers are their own encoding: the kernel scales them into the unit ball, and that is all.
    pub fn as_is(&self) -> bool {
        let labelled = !matches!(self.label, Label::Any);
        let whole = self.divide == 1.0 && self.longest_square == 1.0 && self.largest == LARGEST_CELL;
        labelled && !self.intercept && !self.sphere && whole && self.columns.is_empty() && self.cells.is_none()
    }

    /// Whether rows are index-value pairs.
    pub fn sparse(&self) -> bool {
        self.sparse
    }

    /// Which column holds the unit of privacy.
    pub fn unit_column(&self) -> Option<usize> {
        self.unit
    }

    /// Encodes one record; `label` is the cell of a label file, where there is one.
    pub fn encode(&self, record: Record<'_>, label: Option<Cell<'_>>, row: &mut Row) {
        row.pairs.clear();
        row.dense.clear();
        row.cells.clear();
        (row.label, row.target) = (UNKNOWN, f64::NAN);
        if let Some(columns) = &self.cells {
            self.encode_cells(columns, record, label, row);
        }
        if self.features {
            self.encode_features(record, label, row);
        }
    }

    fn encode_features(&self, record: Record<'_>, label: Option<Cell<'_>>, row: &mut Row) {
        let own = self.dimension - usize::from(self.intercept);
        if !self.sparse {
            row.dense.resize(own, 0.0);
        }
        let mut cell = label;
        let record = match record {
            Record::Labelled(own, values) => {
                cell = cell.or(Some(own));
                Record::Dense(values)
            }
            other => other,
        };
        match record {
            Record::Broken => {
                // The null record: no features, no label.
                row.dense.resize(if self.sparse { 0 } else { self.dimension }, 0.0);
                return;
            }
            Record::Cells(cells) => {
                for (column, offset, rule) in &self.columns {
                    let found = rule.apply(cells.get(*column).copied().unwrap_or(Cell::Missing));
                    if let Some((at, value)) = found
                        && value != 0.0
                    {
                        self.put(row, offset + at, value);
                    }
                }
                cell = cell.or_else(|| self.target.and_then(|t| cells.get(t).copied()));
            }
            // A row of numbers of a table, in the order of its header.
            Record::Dense(values) if !self.columns.is_empty() => match &self.plain {
                Some((least, range)) if values.len() >= least.len() => {
                    for (((out, x), min), range) in row.dense.iter_mut().zip(values).zip(least).zip(range) {
                        *out = if x.is_nan() { 0.0 } else { along(*x, *min, *range) };
                    }
                }
                _ => {
                    for (column, offset, rule) in &self.columns {
                        let cell = values.get(*column).map_or(Cell::Missing, |x| Cell::Number(*x));
                        if let Some((at, value)) = rule.apply(cell)
                            && value != 0.0
                        {
                            self.put(row, offset + at, value);
                        }
                    }
                }
            },
            Record::Dense(values) if self.sparse => {
                for (i, x) in values.iter().take(own).enumerate() {
                    let x = clamped(*x, self.largest);
                    if x != 0.0 {
                        row.pairs.push((i as u32, x / self.divide));
                    }
                }
            }
            Record::Dense(values) if self.scattering.is_some() => {
                if let Some(scattering) = &self.scattering {
                    let pixels: Vec<f64> = values.iter().map(|x| clamped(*x, self.divide).max(0.0) / self.divide).collect();
                    scattering.features(&pixels, &mut row.dense);
                }
            }
            Record::Dense(values) => {
                row.dense.iter_mut().zip(values).for_each(|(out, x)| *out = clamped(*x, self.largest));
                if self.divide != 1.0 {
                    row.dense.iter_mut().for_each(|x| *x /= self.divide);
                }
            }
            Record::Sparse(text, pairs) => {
                if self.sparse {
                    let inside = |p: &(u32, f64)| (p.0 as usize) < own;
                    let clamped = |p: &(u32, f64)| (p.0, clamped(p.1, self.largest));
                    match pairs.iter().fold(true, |all, p| all & inside(p)) {
                        true => row.pairs.extend(pairs.iter().map(clamped)),
                        false => row.pairs.extend(pairs.iter().filter(|p| inside(p)).map(clamped)),
                    }
                    if self.divide != 1.0 {
                        row.pairs.iter_mut().for_each(|p| p.1 /= self.divide);
                    }
                } else {
                    for (i, x) in pairs.iter().filter(|p| (p.0 as usize) < own) {
                        row.dense[*i as usize] = clamped(*x, self.largest) / self.divide;
                    }
                }
                cell = cell.or(Some(text));
            }
            Record::Labelled(..) => {}
        }
        self.scale(row, own);
        match (&self.label, cell) {
            (Label::Any, _) => row.label = if self.readable(record) { COUNTS } else { UNKNOWN },
            (_, Some(cell)) => (row.label, row.target) = self.label(cell),
            (_, None) => {}
        }
    }

    /// Cells and label of a record of a table; a record that can't be read has no cells.
    fn encode_cells(&self, columns: &[(usize, CellRule)], record: Record<'_>, label: Option<Cell<'_>>, row: &mut Row) {
        let at = |column: usize| match record {
            Record::Cells(cells) => cells.get(column).copied().unwrap_or(Cell::Missing),
            Record::Dense(values) => values.get(column).map_or(Cell::Missing, |x| Cell::Number(*x)),
            Record::Sparse(..) | Record::Labelled(..) | Record::Broken => Cell::Missing,
        };
        // Cells are of tables, which have no records of the other kinds.
        if matches!(record, Record::Sparse(..) | Record::Labelled(..) | Record::Broken) {
            return;
        }
        row.cells.extend(columns.iter().map(|(column, rule)| rule.apply(at(*column))));
        if let Some(cell) = label.or_else(|| self.target.map(at)) {
            (row.label, row.target) = self.label(cell);
        }
    }

    /// Whether a cell of the record says something: nothing but missing cells would pull a point to the middle of its bounds.
    fn readable(&self, record: Record<'_>) -> bool {
        match record {
            Record::Broken => false,
            Record::Cells(cells) => self.columns.iter().any(|(column, _, rule)| {
                let cell = cells.get(*column).copied().unwrap_or(Cell::Missing);
                match rule {
                    Rule::Number { .. } => number(cell).is_some(),
                    Rule::Category { values, .. } => values.find(cell).is_some(),
                }
            }),
            Record::Dense(values) | Record::Labelled(_, values) => values.iter().any(|x| !x.is_nan()),
            // A row without pairs is all zeros.
            Record::Sparse(_, pairs) => pairs.is_empty() || pairs.iter().any(|p| !p.1.is_nan()),
        }
    }

    fn put(&self, row: &mut Row, at: usize, value: f64) {
        if self.sparse {
            row.pairs.push((at as u32, value));
        } else {
            row.dense[at] = value;
        }
    }

    /// Cuts the features at their longest norm, appends the constant, and scales into the unit ball. The kernel checks the result
    /// again, on the integers.
    fn scale(&self, row: &mut Row, own: usize) {
        let square = if self.sparse { square_sum(&row.pairs, |p| p.1) } else { square_sum(&row.dense, |x| *x) };
        let longest = self.longest_square;
        let clamped = if square > longest { (longest / square).sqrt() } else { 1.0 };
        let one = f64::from(u8::from(self.intercept));
        let size = square.min(longest) + one;
        let factor = match self.full_length {
            true => 1.0,
            false => 1.0 / if self.sphere && size > 0.0 { size } else { longest + one }.sqrt(),
        };
        if self.sparse {
            row.pairs.iter_mut().for_each(|p| p.1 *= clamped * factor);
        } else {
            row.dense.iter_mut().for_each(|x| *x *= clamped * factor);
        }
        match (self.intercept, self.sparse) {
            (true, true) => row.pairs.push((own as u32, factor)),
            (true, false) => row.dense.push(factor),
            (false, _) => {}
        }
    }

    /// Label and target of a cell.
    pub fn label(&self, cell: Cell<'_>) -> (f32, f64) {
        match &self.label {
            Label::Classes(values) => (values.find(cell).map_or(UNKNOWN, |c| c as f32), f64::NAN),
            Label::Positive(values) => (if values.find(cell).is_some() { 1.0 } else { 0.0 }, f64::NAN),
            Label::Any => (UNKNOWN, f64::NAN),
            Label::Bounds(low, high) => match number(cell) {
                None => (UNKNOWN, f64::NAN),
                Some(x) => {
                    let y = x.max(*low).min(*high);
                    (((y - low) / (high - low) * 2.0 - 1.0).max(-1.0).min(1.0) as f32, x)
                }
            },
        }
    }
}

/// A number clamped at a size. One that is not one is 0: there are no bounds to take the middle of.
#[inline]
fn clamped(x: f64, largest: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.max(-largest).min(largest) }
}

/// Sum of squares, in lanes that do not wait for each other.
#[inline(always)]
fn square_sum<T>(values: &[T], number: impl Fn(&T) -> f64) -> f64 {
    let (blocks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, x)| *lane += number(x) * number(x));
    }
    let tail: f64 = rest.iter().map(|x| number(x) * number(x)).sum();
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + tail
}

/// Where a number is in its range: -1 at the least, 1 at the most.
#[inline]
fn along(x: f64, min: f64, range: f64) -> f64 {
    2.0 * ((x - min).max(0.0).min(range) / range) - 1.0
}

/// Least values and ranges, if every column is a plain number and the next one of its row.
fn plain(columns: &[(usize, usize, Rule)]) -> Option<(Vec<f64>, Vec<f64>)> {
    let own = columns.iter().enumerate().map(|(i, c)| match c {
        (column, offset, Rule::Number { min, range, log: false }) if *column == i && *offset == i => Some((*min, *range)),
        _ => None,
    });
    own.collect::<Option<Vec<_>>>().map(|list| list.into_iter().unzip())
}

impl Rule {
    /// Position inside of the feature's columns, and value.
    fn apply(&self, cell: Cell<'_>) -> Option<(usize, f64)> {
        match self {
            Rule::Number { min, range, log } => {
                let x = number(cell).map_or(0.0, |x| match log {
                    true => 2.0 * ((x - min).max(0.0).min(*range).ln_1p() / range.ln_1p()) - 1.0,
                    false => along(x, *min, *range),
                });
                Some((0, x))
            }
            Rule::Category { values, two: true } => values.find(cell).map(|i| (0, i as f64)),
            Rule::Category { values, two: false } => values.find(cell).map(|i| (i, 1.0)),
        }
    }
}

/// The map of pictures to scattering features, where the schema asks for it.
pub fn scattering_of(schema: &Schema) -> Option<Scattering> {
    let Features::Image { shape, encoder: Some(encoder), .. } = &schema.features else { return None };
    match shape.as_slice() {
        [height, width, rest @ ..] if encoder.scatters() => {
            let own = Scattering::new(*height, *width, rest.iter().product())?;
            Some(own.with_mirror_image(*encoder == ImageEncoder::MirroredScattering))
        }
        _ => None,
    }
}

/// Whether rows are kept as index-value pairs: by public facts, never by looking.
pub fn is_sparse(schema: &Schema) -> bool {
    match &schema.features {
        Features::Sparse { dimension, .. } => *dimension > 256,
        Features::Table(columns) => {
            let used = columns.iter().filter(|c| c.1 != Feature::Ignore).count();
            schema.dimension() > 256 && 8 * used < schema.dimension()
        }
        _ => false,
    }
}

/// What an encoded feature is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The encoded cell times this, plus `shift`, lies between -1 and 1 (or is 0 or 1, in a group).
    pub scale: f64,
    /// See `scale`.
    pub shift: f64,
    /// Columns of one category belong together: at most one of them is 1.
    pub group: Option<usize>,
    /// The constant.
    pub constant: bool,
}

/// What each encoded feature is.
pub fn columns(schema: &Schema) -> Vec<Column> {
    let ball = schema.scaling == Scaling::Ball;
    let one = f64::from(u8::from(schema.intercept));
    let plain = |scale: f64| Column { scale, shift: 0.0, group: None, constant: false };
    let mut out = Vec::new();
    let longest = match &schema.features {
        Features::Table(columns) => {
            let longest = columns.iter().filter(|c| c.1 != Feature::Ignore).count() as f64;
            let scale = if ball { (longest + one).sqrt() } else { 1.0 };
            for (group, (_, feature)) in columns.iter().enumerate() {
                match feature {
                    Feature::Ignore => {}
                    Feature::Number { .. } => out.push(plain(scale)),
                    // 0 and 1 become -1 and 1.
                    Feature::Category(values) if values.len() == 2 => {
                        out.push(Column { scale: 2.0 * scale, shift: -1.0, ..plain(scale) });
                    }
                    Feature::Category(values) => {
                        out.extend(values.iter().map(|_| Column { group: Some(group), ..plain(scale) }));
                    }
                }
            }
            longest
        }
        Features::Image { .. } => {
            let pixels = schema.dimension() - usize::from(schema.intercept);
            out.resize(pixels, plain(if ball { (pixels as f64 + one).sqrt() } else { 1.0 }));
            pixels as f64
        }
        Features::Sparse { dimension, row_norm, bound } | Features::Dense { dimension, row_norm, bound } => {
            // A cell is at most as long as its row.
            let longest = row_norm * row_norm;
            let largest = bound.unwrap_or(*row_norm).min(*row_norm);
            out.resize(*dimension, plain(if ball { (longest + one).sqrt() / largest } else { 1.0 }));
            longest
        }
    };
    if schema.intercept {
        let scale = if ball { (longest + 1.0).sqrt() } else { 1.0 };
        out.push(Column { scale, shift: 0.0, group: None, constant: true });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
        [dataset]
        name = "t"
        [target]
        column = "y"
        classes = ["no", "yes"]
        [features.a]
        type = "number"
        min = 10
        max = 20
        [features.b]
        type = "category"
        values = ["x", "y", "z"]
        [features.c]
        type = "category"
        values = ["0", "1"]
        [features.d]
        type = "number"
        min = 0
        max = 99
        scale = "log"
        [encoding]
        scaling = "ball"
    "#;

    fn row(cells: &[&str]) -> Row {
        let schema = Schema::parse(SCHEMA).unwrap();
        let header = ["a", "b", "c", "d", "y"].map(String::from);
        let encoder = Encoder::new(&schema, &header, true).unwrap();
        let cells: Vec<Cell<'_>> =
            cells.iter().map(|c| if c.is_empty() { Cell::Missing } else { Cell::Text(c.as_bytes()) }).collect();
        let mut row = Row::default();
        encoder.encode(Record::Cells(&cells), None, &mut row);
        row
    }

    #[test]
    fn cells_follow_their_rules() {
        let k = 5f64.sqrt();
        let close = |row: &Row, expected: [f64; 7]| {
            row.dense.iter().zip(expected).all(|(a, b)| (a * k - b).abs() < 1e-12) && row.dense.len() == 7
        };
        assert!(close(&row(&["15", "y", "1", "99", "yes"]), [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]));
        assert_eq!(row(&["15", "y", "1", "99", "yes"]).label, 1.0);
        // Clamped, unlisted, as a number, missing.
        assert!(close(&row(&["-1e9", "w", "0.0", "", "no"]), [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        assert!(close(&row(&["inf", "x", "", "nan", "maybe"]), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        assert_eq!(row(&["inf", "x", "", "nan", "maybe"]).label, UNKNOWN);
        assert!(close(&row(&["abc", "z", "2", "9", ""]), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]));
    }

    #[test]
    fn rows_are_in_the_unit_ball() {
        for text in [SCHEMA.to_string(), SCHEMA.replace("ball", "sphere")] {
            let schema = Schema::parse(&text).unwrap();
            let header = ["y", "d", "c", "b", "a"].map(String::from);
            let encoder = Encoder::new(&schema, &header, true).unwrap();
            let mut row = Row::default();
            for record in [
                Record::Cells(&[
                    Cell::Number(1.0),
                    Cell::Number(1e308),
                    Cell::Number(1.0),
                    Cell::Text(b"x"),
                    Cell::Number(1e308),
                ]),
                Record::Cells(&[]),
                Record::Broken,
                Record::Dense(&[f64::NAN, f64::INFINITY, -1e308, 1.0]),
                Record::Sparse(Cell::Missing, &[(0, f64::INFINITY), (4_000_000_000, 1.0), (2, f64::NAN)]),
            ] {
                encoder.encode(record, None, &mut row);
                let size = row.dense.iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!(size <= 1.0 + 1e-12 && row.dense.len() == schema.dimension(), "{record:?}: {size}");
            }
        }
    }
}
