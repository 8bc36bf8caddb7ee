//! Records that are in memory already: arrays, compressed rows and tables of whoever calls us. Nothing is copied as a whole; a block of
//! rows is put in order at a time, and the encoder takes it from there as it would take a file.

use super::encode::Encoder;
use super::load::Records;
use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use crate::schema::{Feature, Features, Schema};

/// Numbers in a block of rows.
const BLOCK: usize = 1 << 14;

/// Rows of numbers, in whatever order they lie.
pub trait Matrix: Sync {
    /// Number of rows. Public, as the length of a file is.
    fn rows(&self) -> usize;
    /// Numbers in a row.
    fn width(&self) -> usize;
    /// Copies rows, from this one on, as many as there is room for; row after row.
    fn copy(&self, start: usize, out: &mut [f64]);
}

/// Rows of index-value pairs.
pub trait Pairs: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Features of a row.
    fn width(&self) -> usize;
    /// Appends the pairs of a row, in any order; those of one index count together.
    fn copy(&self, row: usize, out: &mut Vec<(u32, f64)>);
}

/// A column of a table.
pub trait Column: Sync {
    /// Number of cells.
    fn rows(&self) -> usize;
    /// One of them.
    fn cell(&self, row: usize) -> Cell<'_>;
}

/// The rows of a source.
pub enum Rows<'a> {
    /// Rows of numbers.
    Dense(&'a dyn Matrix),
    /// Rows of index-value pairs.
    Sparse(&'a dyn Pairs),
    /// Columns with their names.
    Table(Vec<(String, &'a dyn Column)>),
}

/// Records in memory, with their labels unless the table holds them.
pub struct Memory<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// A label for each of them.
    pub labels: Option<&'a dyn Column>,
}

impl Memory<'_> {
    /// Number of records.
    pub fn count(&self) -> usize {
        match &self.rows {
            Rows::Dense(rows) => rows.rows(),
            Rows::Sparse(rows) => rows.rows(),
            Rows::Table(columns) => columns.first().map_or(0, |c| c.1.rows()),
        }
    }

    /// Whether each record brings its label along.
    fn together(&self, schema: &Schema) -> bool {
        match &self.rows {
            Rows::Dense(_) => false,
            Rows::Sparse(_) => matches!(schema.features, Features::Sparse { .. }),
            Rows::Table(_) => true,
        }
    }

    /// A reader of the rows, without labels where none are wanted.
    pub fn reader<'s>(&'s self, schema: &Schema, labelled: bool) -> Result<Box<dyn Reader + 's>> {
        let labels = if labelled { self.labels } else { None };
        let rows = self.count();
        match &self.rows {
            Rows::Dense(matrix) => {
                let names = names_of(schema, matrix.width())?;
                Ok(Box::new(Dense { names, rows: *matrix }))
            }
            Rows::Sparse(pairs) if matches!(schema.features, Features::Sparse { .. }) => {
                names_of(schema, pairs.width())?;
                Ok(Box::new(Sparse { rows: *pairs, labels }))
            }
            Rows::Sparse(pairs) => {
                let names = names_of(schema, pairs.width())?;
                Ok(Box::new(Whole { names, rows: *pairs }))
            }
            Rows::Table(columns) => {
                let mut names: Vec<String> = columns.iter().map(|c| c.0.clone()).collect();
                let mut cells: Vec<&dyn Column> = columns.iter().map(|c| c.1).collect();
                if let (Some(labels), Some(target)) = (labels, &schema.target.column) {
                    // The labels that were given win over a column of the same name.
                    names.insert(0, target.clone());
                    cells.insert(0, labels);
                }
                Ok(Box::new(Table { names, cells, rows }))
            }
        }
    }
}

/// Names of the columns of rows of numbers: those of the schema, in its order. The target has a name and no cell.
fn names_of(schema: &Schema, width: usize) -> Result<Vec<String>> {
    let wrong = |expected: usize| {
        Err(Error::misuse(format!("rows have {width} features and the schema has {expected}: give rows that belong to it")))
    };
    match &schema.features {
        Features::Table(columns) => {
            let used = columns.iter().filter(|c| c.1 != Feature::Ignore);
            let mut names: Vec<String> = match used.clone().count() == width {
                true => used.map(|c| c.0.clone()).collect(),
                false => columns.iter().map(|c| c.0.clone()).collect(),
            };
            if names.len() != width {
                return wrong(used_count(columns));
            }
            names.extend(schema.target.column.clone());
            Ok(names)
        }
        Features::Sparse { dimension, .. } | Features::Dense { dimension, .. } if *dimension != width => wrong(*dimension),
        Features::Image { shape, .. } if shape.iter().product::<usize>() != width => wrong(shape.iter().product()),
        _ => Ok(Vec::new()),
    }
}

fn used_count(columns: &[(String, Feature)]) -> usize {
    columns.iter().filter(|c| c.1 != Feature::Ignore).count()
}

impl Records for Memory<'_> {
    fn parts(&self) -> usize {
        1
    }

    fn open(&self, _part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        self.reader(schema, true)
    }

    fn label_parts(&self, schema: &Schema) -> usize {
        usize::from(self.labels.is_some() && !self.together(schema))
    }

    fn open_labels(&self, _part: usize, _schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        let rows = self.labels.map_or(0, |labels| labels.rows());
        Ok(Box::new(Table { names: Vec::new(), cells: self.labels.into_iter().collect(), rows }))
    }

    /// Lengths are public; that they agree is said before anything is spent.
    fn check(&self, schema: &Schema) -> Result<()> {
        let rows = self.count();
        if let Some(labels) = self.labels
            && labels.rows() != rows
        {
            return Err(Error::misuse(format!(
                "there are {rows} rows and {} labels: give as many of one as of the other",
                labels.rows()
            )));
        }
        // Widths and names, before anything is spent.
        let reader = self.reader(schema, true)?;
        Encoder::new(schema, reader.columns(), true).map(|_| ())
    }
}

struct Dense<'a> {
    names: Vec<String>,
    rows: &'a dyn Matrix,
}

impl Reader for Dense<'_> {
    fn columns(&self) -> &[String] {
        &self.names
    }

    fn header_rows(&self) -> Option<u64> {
        Some(self.rows.rows() as u64)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let (rows, width) = (self.rows.rows(), self.rows.width());
        let block = (BLOCK / width.max(1)).max(1);
        let mut numbers = vec![0.0; block.min(rows) * width];
        for start in (0..rows).step_by(block) {
            let numbers = &mut numbers[..block.min(rows - start) * width];
            self.rows.copy(start, numbers);
            numbers.chunks_exact(width.max(1)).for_each(|row| each(Record::Dense(row)));
        }
        Ok(())
    }
}

/// Pairs of one row, each index once and in order.
fn tidy(pairs: &mut Vec<(u32, f64)>) {
    if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
    }
}

struct Sparse<'a> {
    rows: &'a dyn Pairs,
    labels: Option<&'a dyn Column>,
}

impl Reader for Sparse<'_> {
    fn columns(&self) -> &[String] {
        &[]
    }

    fn header_rows(&self) -> Option<u64> {
        Some(self.rows.rows() as u64)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let mut pairs = Vec::new();
        for row in 0..self.rows.rows() {
            pairs.clear();
            self.rows.copy(row, &mut pairs);
            tidy(&mut pairs);
            each(Record::Sparse(self.labels.map_or(Cell::Missing, |l| l.cell(row)), &pairs));
        }
        Ok(())
    }
}

/// Pairs as rows of numbers, for schemas that have bounds for each.
struct Whole<'a> {
    names: Vec<String>,
    rows: &'a dyn Pairs,
}

impl Reader for Whole<'_> {
    fn columns(&self) -> &[String] {
        &self.names
    }

    fn header_rows(&self) -> Option<u64> {
        Some(self.rows.rows() as u64)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let (mut pairs, mut numbers) = (Vec::new(), vec![0.0; self.rows.width()]);
        for row in 0..self.rows.rows() {
            pairs.clear();
            self.rows.copy(row, &mut pairs);
            numbers.fill(0.0);
            for (i, x) in &pairs {
                if let Some(number) = numbers.get_mut(*i as usize) {
                    *number += x;
                }
            }
            each(Record::Dense(&numbers));
        }
        Ok(())
    }
}

struct Table<'a> {
    names: Vec<String>,
    cells: Vec<&'a dyn Column>,
    rows: usize,
}

impl Reader for Table<'_> {
    fn columns(&self) -> &[String] {
        &self.names
    }

    fn header_rows(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let mut cells = Vec::with_capacity(self.cells.len());
        for row in 0..self.rows {
            cells.clear();
            cells.extend(self.cells.iter().map(|c| c.cell(row)));
            each(Record::Cells(&cells));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::records;
    use super::*;

    struct Grid(usize, Vec<f64>);

    impl Matrix for Grid {
        fn rows(&self) -> usize {
            self.1.len() / self.0
        }

        fn width(&self) -> usize {
            self.0
        }

        fn copy(&self, start: usize, out: &mut [f64]) {
            out.copy_from_slice(&self.1[start * self.0..start * self.0 + out.len()]);
        }
    }

    /// The pairs of rows, as given.
    struct Listed(usize, Vec<Vec<(u32, f64)>>);

    impl Pairs for Listed {
        fn rows(&self) -> usize {
            self.1.len()
        }

        fn width(&self) -> usize {
            self.0
        }

        fn copy(&self, row: usize, out: &mut Vec<(u32, f64)>) {
            out.extend(&self.1[row]);
        }
    }

    struct Cells(Vec<&'static str>);

    impl Column for Cells {
        fn rows(&self) -> usize {
            self.0.len()
        }

        fn cell(&self, row: usize) -> Cell<'_> {
            Cell::Text(self.0[row].as_bytes())
        }
    }

    fn schema(features: &str) -> Schema {
        Schema::parse(&format!("[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n{features}")).unwrap()
    }

    const TABLE: &str = "[features.a]\ntype = \"number\"\nmin = 0\nmax = 1\n[features.b]\ntype = \"number\"\nmin = 0\nmax = 1";

    #[test]
    fn rows_come_out_in_order_and_in_blocks() {
        let grid = Grid(2, (0..40_000).map(f64::from).collect());
        let memory = Memory { rows: Rows::Dense(&grid), labels: None };
        let mut reader = memory.reader(&schema(TABLE), true).unwrap();
        assert_eq!(reader.columns(), ["a", "b", "y"]);
        assert_eq!(reader.header_rows(), Some(20_000));
        let mut next = 0.0;
        reader
            .read(&mut |record| {
                assert_eq!(record, Record::Dense(&[next, next + 1.0]));
                next += 2.0;
            })
            .unwrap();
        assert_eq!(next, 40_000.0);
    }

    #[test]
    fn pairs_are_sorted_added_up_or_spread_out() {
        let listed = Listed(2, vec![vec![(1, 2.0), (0, 1.0), (1, 0.5)], vec![]]);
        let memory = Memory { rows: Rows::Sparse(&listed), labels: None };
        let sparse = schema("[features]\nkind = \"sparse\"\ndimension = 2\nrow_norm = 1.0");
        let mut seen = Vec::new();
        memory.reader(&sparse, false).unwrap().read(&mut |r| seen.push(format!("{r:?}"))).unwrap();
        assert_eq!(seen, ["Sparse(Missing, [(0, 1.0), (1, 2.5)])", "Sparse(Missing, [])"]);
        assert_eq!(records(memory.reader(&schema(TABLE), false).unwrap().as_mut()).unwrap(), ["1|2.5", "0|0"]);
    }

    #[test]
    fn labels_that_are_given_win_over_a_column() {
        let (column, labels) = (Cells(vec!["p", "q"]), Cells(vec!["1", "0"]));
        let columns = vec![("a".to_string(), &column as &dyn Column), ("y".to_string(), &column)];
        let memory = Memory { rows: Rows::Table(columns), labels: Some(&labels) };
        let mut reader = memory.reader(&schema(TABLE), true).unwrap();
        assert_eq!(reader.columns(), ["y", "a", "y"]);
        assert_eq!(records(reader.as_mut()).unwrap(), ["1|p|p", "0|q|q"]);
        assert_eq!((memory.label_parts(&schema(TABLE)), memory.parts()), (0, 1));
    }

    #[test]
    fn what_does_not_fit_is_said_before_anything_is_read() {
        let (grid, labels) = (Grid(3, vec![0.0; 6]), Cells(vec!["1"]));
        let memory = Memory { rows: Rows::Dense(&grid), labels: None };
        assert!(matches!(memory.check(&schema(TABLE)), Err(Error::Misuse(text)) if text.contains("3 features")));
        let grid = Grid(2, vec![0.0; 4]);
        let memory = Memory { rows: Rows::Dense(&grid), labels: Some(&labels) };
        assert!(matches!(memory.check(&schema(TABLE)), Err(Error::Misuse(text)) if text.contains("2 rows and 1 labels")));
    }
}
