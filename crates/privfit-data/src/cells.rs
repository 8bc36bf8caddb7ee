//! Public cells of the columns of a table: intervals of numbers, categories, and what is missing. Which cell a value falls into depends on that value and on public
//! facts, nothing else.
//!
//! A number column has the union of two grids, one of equal widths and one of equal ratios on both sides of an anchor: 0 if it is within the bounds, the lower bound otherwise. So a
//! bound that is ten times too wide leaves cells where the values are. The anchor is a cell of its own, because many columns are 0 for most rows. A missing or unreadable number
//! is a cell of its own, and so is a category that is not listed.

use crate::error::{Error, Result};
use crate::schema::{Feature, Features, Schema};
use serde::{Deserialize, Serialize};

/// Most cells of a column: one byte is left for null rows.
const MOST: usize = 255;

/// Equal ratios begin at this part of the range.
const SMALLEST: f64 = 1e-4;

/// The cells of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CellKind {
    /// A number: values up to each line, the anchor by itself, and the missing ones last.
    Number {
        /// Bounds; numbers beyond are clamped.
        bounds: (f64, f64),
        /// The value with a cell of its own.
        anchor: f64,
        /// Where cells end, ascending.
        lines: Vec<f64>,
    },
    /// One of these values; unlisted ones last.
    Category {
        /// The values, in the order of the cells where `cell` is empty.
        values: Vec<String>,
        /// The cell of each value, where there are more values than cells.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cell: Vec<u8>,
        /// Whether the cells have an order: all values are numbers.
        ordered: bool,
    },
}

/// The cells of a column, with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellColumn {
    /// Name of the column.
    pub name: String,
    /// Its cells.
    pub kind: CellKind,
}

/// What a row is for a method: features, the cells of a table, or both. A public part of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowForm<'a> {
    /// Numbers within the unit ball.
    Features,
    /// A cell of each column.
    Cells(&'a CellGrid),
    /// Features, and a cell of each column beside them.
    Both(&'a CellGrid),
}

impl<'a> RowForm<'a> {
    /// The cells, where there are any.
    pub fn grid(self) -> Option<&'a CellGrid> {
        match self {
            RowForm::Features => None,
            RowForm::Cells(grid) | RowForm::Both(grid) => Some(grid),
        }
    }

    /// Whether there are features.
    pub fn has_features(self) -> bool {
        !matches!(self, RowForm::Cells(_))
    }
}

impl<'a> From<Option<&'a CellGrid>> for RowForm<'a> {
    /// Cells in the place of features, where there is a grid.
    fn from(grid: Option<&'a CellGrid>) -> RowForm<'a> {
        grid.map_or(RowForm::Features, RowForm::Cells)
    }
}

/// The cells of all columns of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellGrid {
    /// Column after column.
    pub columns: Vec<CellColumn>,
}

impl CellGrid {
    /// The cells of a schema, with about so many lines of either grid in a number column.
    pub fn new(schema: &Schema, lines: usize) -> Result<CellGrid> {
        let Features::Table(list) = &schema.features else {
            return Err(Error::misuse("cells are those of the columns of a table: describe [features.NAME] in the schema"));
        };
        let column = |(name, feature): &(String, Feature)| {
            let kind = match feature {
                Feature::Ignore => return None,
                Feature::Number { min, max, .. } => number(*min, *max, lines.clamp(2, 100)),
                Feature::Category(values) => category(values),
            };
            Some(CellColumn { name: name.clone(), kind })
        };
        Ok(CellGrid { columns: list.iter().filter_map(column).collect() })
    }

    /// How many cells each column has.
    pub fn counts(&self) -> Vec<usize> {
        self.columns.iter().map(|c| c.kind.count()).collect()
    }

    /// Whether it could have been made from a schema; a model file is read with it.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        let Features::Table(list) = &schema.features else { return Err(unlike()) };
        let used: Vec<&(String, Feature)> = list.iter().filter(|c| c.1 != Feature::Ignore).collect();
        let alike = |(column, (name, feature)): (&CellColumn, &&(String, Feature))| {
            let fits = match (&column.kind, feature) {
                (CellKind::Number { bounds, anchor, lines }, Feature::Number { min, max, .. }) => {
                    let inside = |x: &f64| x >= min && x <= max;
                    *bounds == (*min, *max) && inside(anchor) && lines.iter().all(inside) && lines.is_sorted_by(|a, b| a < b)
                }
                (CellKind::Category { values, cell, .. }, Feature::Category(listed)) => {
                    let mut same = values.clone();
                    let mut other = listed.clone();
                    same.sort();
                    other.sort();
                    same == other && (cell.is_empty() || cell.len() == values.len())
                }
                _ => false,
            };
            fits && column.name == *name && (1..=MOST).contains(&column.kind.count())
        };
        match used.len() == self.columns.len() && !used.is_empty() && self.columns.iter().zip(&used).all(alike) {
            true => Ok(()),
            false => Err(unlike()),
        }
    }
}

fn unlike() -> Error {
    Error::misuse("the cells of the model are not those of its schema: train again")
}

fn number(low: f64, high: f64, lines: usize) -> CellKind {
    let anchor = if low <= 0.0 && 0.0 <= high { 0.0 } else { low };
    let (range, n) = (high - low, lines as f64);
    let mut all: Vec<f64> = (1..lines).map(|i| low + range * i as f64 / n).collect();
    let sides = usize::from(high > anchor) + usize::from(low < anchor);
    for (side, sign) in [(high - anchor, 1.0), (anchor - low, -1.0)] {
        let from = SMALLEST * range;
        if side > from {
            let count = lines / sides.max(1);
            let ratio = |i: usize| from * (side / from).powf(i as f64 / count as f64);
            all.extend((0..count).map(|i| anchor + sign * ratio(i)));
        }
    }
    all.retain(|x| *x > low && *x < high);
    all.sort_by(f64::total_cmp);
    all.dedup();
    CellKind::Number { bounds: (low, high), anchor, lines: all }
}

fn category(listed: &[String]) -> CellKind {
    let as_number = |v: &String| v.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let mut values = listed.to_vec();
    let numbers: Option<Vec<f64>> = listed.iter().map(as_number).collect();
    let ordered = listed.len() > 2 && numbers.is_some();
    if ordered {
        values.sort_by(|a, b| as_number(a).unwrap_or(0.0).total_cmp(&as_number(b).unwrap_or(0.0)));
    }
    // Neighbours share a cell where there are more values than cells.
    let n = values.len();
    let cell = if n < MOST { Vec::new() } else { (0..n).map(|i| (i * (MOST - 1) / n) as u8).collect() };
    CellKind::Category { values, cell, ordered }
}

impl CellKind {
    /// How many cells.
    pub fn count(&self) -> usize {
        match self {
            CellKind::Number { lines, .. } => lines.len() + 4,
            CellKind::Category { values, cell, .. } => cell.iter().max().map_or(values.len(), |most| usize::from(*most) + 1) + 1,
        }
    }

    /// The cell of a number; none for categories.
    pub fn of_number(&self, x: Option<f64>) -> Option<u8> {
        let CellKind::Number { bounds: (low, high), anchor, lines } = self else { return None };
        let Some(x) = x.filter(|x| !x.is_nan()) else { return Some((self.count() - 1) as u8) };
        let x = x.max(*low).min(*high);
        let below = lines.partition_point(|line| *line <= x);
        Some(match x.total_cmp(anchor) {
            _ if x == *anchor => below + 1,
            std::cmp::Ordering::Less => below,
            _ => below + 2,
        } as u8)
    }

    /// The cell of the category with that index in the list of values; none for one that is not listed.
    pub fn of_category(&self, index: Option<usize>) -> u8 {
        match (self, index) {
            (CellKind::Category { cell, .. }, Some(i)) if cell.is_empty() => i as u8,
            (CellKind::Category { cell, .. }, Some(i)) => cell[i],
            _ => (self.count() - 1) as u8,
        }
    }

    /// Which cell is the anchor of a number.
    pub fn anchor_cell(&self) -> Option<usize> {
        match self {
            CellKind::Number { anchor, lines, .. } => Some(lines.partition_point(|line| line <= anchor) + 1),
            CellKind::Category { .. } => None,
        }
    }

    /// A number that stands for each cell but the last: the middle of an interval, or the number that a category is.
    pub fn middles(&self) -> Option<Vec<f64>> {
        match self {
            CellKind::Number { bounds: (low, high), anchor, lines } => {
                let at = lines.partition_point(|line| line <= anchor);
                let edge = |i: usize| if i == 0 { *low } else { lines.get(i - 1).copied().unwrap_or(*high) };
                let middle = |a: f64, b: f64| a + (b - a) / 2.0;
                let mut out = Vec::with_capacity(lines.len() + 3);
                for i in 0..=lines.len() {
                    match i == at {
                        true => out.extend([middle(edge(i), *anchor), *anchor, middle(*anchor, edge(i + 1))]),
                        false => out.push(middle(edge(i), edge(i + 1))),
                    }
                }
                Some(out)
            }
            CellKind::Category { values, cell, ordered: true } if cell.is_empty() => {
                values.iter().map(|v| v.trim().parse().ok()).collect()
            }
            CellKind::Category { .. } => None,
        }
    }

    /// A cell for people.
    pub fn cell_name(&self, cell: usize) -> String {
        if cell + 1 >= self.count() {
            return match self {
                CellKind::Number { .. } => "missing".into(),
                CellKind::Category { .. } => "unlisted".into(),
            };
        }
        match self {
            CellKind::Number { bounds: (low, high), anchor, lines } => {
                let at = lines.partition_point(|line| line <= anchor);
                let edge = |i: usize| if i == 0 { *low } else { lines.get(i - 1).copied().unwrap_or(*high) };
                match cell {
                    c if c == at + 1 => format!("{anchor}"),
                    c if c == at => format!("{} to {anchor}", edge(at)),
                    c if c == at + 2 => format!("{anchor} to {}", edge(at + 1)),
                    c if c < at => format!("{} to {}", edge(c), edge(c + 1)),
                    c => format!("{} to {}", edge(c - 2), edge(c - 1)),
                }
            }
            CellKind::Category { values, cell: cells, .. } if cells.is_empty() => values.get(cell).cloned().unwrap_or_default(),
            CellKind::Category { values, cell: cells, .. } => {
                let own = values.iter().zip(cells).filter(|(_, c)| usize::from(**c) == cell);
                own.map(|(v, _)| v.as_str()).collect::<Vec<_>>().join(" | ")
            }
        }
    }

    /// Whether the cells but the last have an order.
    pub fn ordered(&self) -> bool {
        match self {
            CellKind::Number { .. } => true,
            CellKind::Category { ordered, .. } => *ordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: &CellKind, x: f64) -> usize {
        usize::from(kind.of_number(Some(x)).unwrap())
    }

    /// Cells follow numbers in order, the anchor has its own, and the middle of a cell falls into that cell.
    #[test]
    fn cells_of_numbers_are_in_order() {
        for (low, high) in
            [(0.0, 1.0), (-3.0, 7.0), (5.0, 6.0), (-9.0, -1.0), (0.0, 1e9), (-1e-9, 1e9), (1e300, 1.1e300), (-7.0, 0.0)]
        {
            for lines in [2, 8, 64, 100] {
                let kind = number(low, high, lines);
                let CellKind::Number { anchor, lines, .. } = &kind else { unreachable!() };
                assert!(kind.count() <= MOST, "{low} {high}: {}", kind.count());
                let middles = kind.middles().unwrap();
                assert_eq!(middles.len() + 1, kind.count());
                assert!(middles.is_sorted(), "{low} {high} {middles:?}");
                assert_eq!(cell(&kind, *anchor), kind.anchor_cell().unwrap());
                let mut before = 0;
                for i in 0..=5000 {
                    let x = low + (high - low) * f64::from(i) / 5000.0;
                    let now = cell(&kind, x);
                    assert!(now >= before && now < kind.count() - 1);
                    before = now;
                }
                for (i, x) in middles.iter().enumerate() {
                    let empty = lines.contains(x) || *x == *anchor || *x == low || *x == high;
                    assert!(empty || cell(&kind, *x) == i, "{low} {high}: {x} in {} not {i}", cell(&kind, *x));
                }
                assert_eq!(cell(&kind, f64::INFINITY), cell(&kind, high));
                assert_eq!(cell(&kind, f64::NEG_INFINITY), cell(&kind, low));
                for missing in [None, Some(f64::NAN)] {
                    assert_eq!(kind.of_number(missing), Some((kind.count() - 1) as u8));
                }
            }
        }
    }

    #[test]
    fn categories_have_cells_and_numbers_an_order() {
        let list = |values: &[&str]| values.iter().map(|v| v.to_string()).collect::<Vec<_>>();
        let hours = category(&list(&["0", "1", "10", "2"]));
        assert_eq!(hours.middles(), Some(vec![0.0, 1.0, 2.0, 10.0]));
        assert!(hours.count() == 5 && hours.of_category(None) == 4 && hours.ordered());
        assert!(!category(&list(&["a", "1"])).ordered() && !category(&list(&["0", "1"])).ordered());
        let many: Vec<String> = (0..1000).map(|i| format!("v{i}")).collect();
        let kind = category(&many);
        assert_eq!(
            (kind.count(), kind.of_category(Some(0)), kind.of_category(Some(999)), kind.of_category(None)),
            (255, 0, 253, 254)
        );
        assert_eq!(category(&many[..254]).count(), 255);
        assert_eq!(category(&many[..255]).count(), 255);
    }
}
