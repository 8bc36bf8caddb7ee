//! `privfit schema validate`: what the rules of `fit` will do to each cell and to each label, with row numbers. For the data owner only: all of
//! it is computed from private rows without protection, and so is the exit code. With `--out` everything goes into that file, and the
//! exit code is the same for every data set.

use crate::ui::{Failure, print_line};
use privfit::Schema;
use privfit::data::encode::{Encoder, UNKNOWN};
use privfit::data::load::{Source, labels_apart, open, open_labels};
use privfit::data::picture::{Pictures, is_pictures};
use privfit::data::{Cell, Record};
use privfit::schema::{Feature, Features, TargetValues, UnitOfPrivacy};
use std::path::PathBuf;

/// Problems of one file: what it is, how often, and the first rows or pictures that have it.
#[derive(Default)]
struct Notes(Vec<(String, u64, Vec<String>)>);

impl Notes {
    fn add(&mut self, what: String, row: impl ToString) {
        match self.0.iter_mut().find(|n| n.0 == what) {
            Some(n) => {
                n.1 += 1;
                if n.2.len() < 5 {
                    n.2.push(row.to_string());
                }
            }
            None => self.0.push((what, 1, vec![row.to_string()])),
        }
    }

    /// The lines of a file, after which the next one starts.
    fn write(&mut self, path: &std::path::Path, report: &mut String) {
        for (what, count, at) in self.0.drain(..) {
            report.push_str(&format!("{}: {what}: {count} rows ([{}] ...)\n", path.display(), at.join(", ")));
        }
    }
}

/// A number as the encoder reads it.
fn number(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        Cell::Number(x) => Some(x),
        Cell::Text(t) => std::str::from_utf8(t).ok().and_then(|t| t.trim().parse::<f64>().ok()),
    }
    .filter(|x| !x.is_nan())
}

/// What is wrong with a cell of a column, if anything.
fn problem(feature: &Feature, cell: Cell<'_>) -> Option<&'static str> {
    match (feature, number(cell)) {
        (Feature::Number { .. }, None) if cell == Cell::Missing => Some("missing"),
        (Feature::Number { .. }, None) => Some("not a number"),
        (Feature::Number { min, .. }, Some(x)) if x < *min => Some("below min"),
        (Feature::Number { max, .. }, Some(x)) if x > *max => Some("above max"),
        (Feature::Category(values), found) => {
            let known = match cell {
                Cell::Text(t) => values.iter().any(|v| v.as_bytes() == t),
                Cell::Number(_) => false,
                Cell::Missing => values.iter().any(String::is_empty),
            };
            let known = known || found.is_some_and(|x| values.iter().any(|v| v.parse() == Ok(x)));
            (!known).then_some("a value that is not listed")
        }
        _ => None,
    }
}

/// Labels against the target of the schema, by the encoder's own rule.
struct Labels {
    encoder: Encoder,
    values: TargetValues,
    name: String,
    rows: u64,
    known: u64,
    /// Rows of each class.
    counts: Vec<u64>,
}

impl Labels {
    fn new(schema: &Schema) -> Result<Labels, Failure> {
        // Labels are read without the columns, so that a missing column does not hide them.
        let features = Features::Dense { dimension: 1, row_norm: 1.0, bound: None };
        let bare = Schema { features, unit: UnitOfPrivacy::Row, ..schema.clone() };
        let name = schema.target.column.as_ref().map_or("target".into(), |c| format!("target {c:?}"));
        let counts = vec![0; schema.class_names().len()];
        Ok(Labels {
            encoder: Encoder::new(&bare, &[], true)?,
            values: schema.target.values.clone(),
            name,
            rows: 0,
            known: 0,
            counts,
        })
    }

    fn add(&mut self, cell: Cell<'_>, row: u64, notes: &mut Notes) {
        if let Some(what) = self.problem(cell) {
            notes.add(format!("{}: {what}", self.name), row);
        }
    }

    /// Counts a label, and says what is wrong with it.
    fn problem(&mut self, cell: Cell<'_>) -> Option<&'static str> {
        self.rows += 1;
        let (label, target) = self.encoder.label(cell);
        self.known += u64::from(label != UNKNOWN);
        if let Some(count) = self.counts.get_mut(label as usize).filter(|_| label >= 0.0) {
            *count += 1;
        }
        Some(match &self.values {
            TargetValues::Classes(_) | TargetValues::Bounds(..) if cell == Cell::Missing && label == UNKNOWN => "missing",
            TargetValues::Classes(_) if label == UNKNOWN => "a label that is none of the classes",
            TargetValues::Bounds(..) if label == UNKNOWN => "not a number",
            TargetValues::Bounds(low, _) if target < *low => "below its bounds",
            TargetValues::Bounds(_, high) if target > *high => "above its bounds",
            _ => return None,
        })
    }

    /// Adds the last lines, and gives what is wrong with all rows together.
    fn finish(&self, schema: &Schema, report: &mut String) -> Option<String> {
        if self.values == TargetValues::None {
            return None;
        }
        report.push_str(&format!("{}: {} of {} rows have a label that the schema knows", self.name, self.known, self.rows));
        let classes: Vec<String> = schema.class_names().iter().zip(&self.counts).map(|(n, c)| format!("{n:?} {c}")).collect();
        report.push_str(&if classes.is_empty() { "\n".into() } else { format!(" ({})\n", classes.join(", ")) });
        let listed = match &self.values {
            TargetValues::Positive(values) if self.counts[1] == 0 => format!("positive = {values:?}"),
            TargetValues::Classes(values) if self.known == 0 => format!("classes = {values:?}"),
            TargetValues::Bounds(low, high) if self.known == 0 => format!("bounds = [{low:?}, {high:?}]"),
            _ => return None,
        };
        Some(format!("no label of these files is one of {listed}: a model would learn nothing; correct [target] of the schema"))
    }
}

pub(crate) fn validate(schema: &Schema, source: Source, out: Option<PathBuf>) -> Result<(), Failure> {
    let mut report = String::from("CONFIDENTIAL: computed from private rows without protection; for the data owner only\n");
    let mut rows = 0u64;
    let mut labels = Labels::new(schema)?;
    let mut notes = Notes::default();
    if schema.target.values == TargetValues::None && !source.labels.is_empty() {
        return Err(Failure::misuse("the schema has no [target], so there are no labels: leave out --labels, or add [target]"));
    }
    for path in &source.files {
        if is_pictures(path) {
            rows += pictures(schema, path, &mut labels, &mut notes)?;
            notes.write(path, &mut report);
            continue;
        }
        let mut reader = open(path, schema)?;
        let header = reader.columns().to_vec();
        let place = |name: &String| header.iter().position(|h| h == name);
        let mut columns: Vec<(usize, &String, &Feature)> = Vec::new();
        let mut target = None;
        if let Features::Table(list) = &schema.features {
            let used = list.iter().filter(|(_, f)| *f != Feature::Ignore);
            columns.extend(used.clone().filter_map(|(name, f)| Some((place(name)?, name, f))));
            let unit = match &schema.unit {
                UnitOfPrivacy::Column { column, .. } => Some(column),
                UnitOfPrivacy::Row => None,
            };
            for name in used.map(|c| &c.0).chain(&schema.target.column).chain(unit).filter(|name| !header.contains(name)) {
                report.push_str(&format!("{}: no column {name:?}\n", path.display()));
            }
            target = schema.target.column.as_ref().map(place);
        }
        reader.read(&mut |record| {
            rows += 1;
            match record {
                Record::Broken => notes.add("a record that can't be read".into(), rows),
                Record::Cells(cells) => {
                    let cell = |at: usize| cells.get(at).copied().unwrap_or(Cell::Missing);
                    for (at, name, feature) in &columns {
                        if let Some(what) = problem(feature, cell(*at)) {
                            notes.add(format!("{name}: {what}"), rows);
                        }
                    }
                    match target {
                        Some(Some(at)) => labels.add(cell(at), rows, &mut notes),
                        Some(None) => labels.rows += 1,
                        None => {}
                    }
                }
                Record::Dense(values) => {
                    if values.iter().any(|x| x.is_nan()) {
                        notes.add("a cell that is not a number".into(), rows);
                    }
                    norm(schema, values.iter().copied(), rows, &mut notes);
                }
                // Files of these were looked at above.
                Record::Labelled(..) => {}
                Record::Sparse(cell, pairs) => {
                    norm(schema, pairs.iter().map(|p| p.1), rows, &mut notes);
                    if schema.target.values != TargetValues::None {
                        labels.add(cell, rows, &mut notes);
                    }
                }
            }
        })?;
        notes.write(path, &mut report);
    }
    for path in &source.labels {
        let mut row = 0;
        open_labels(path, schema)?.read(&mut |record| {
            row += 1;
            let cell = match record {
                Record::Dense(values) => values.first().map_or(Cell::Missing, |x| Cell::Number(*x)),
                Record::Cells(cells) => cells.first().copied().unwrap_or(Cell::Missing),
                _ => Cell::Missing,
            };
            labels.add(cell, row, &mut notes);
        })?;
        notes.write(path, &mut report);
    }
    let apart = labels_apart(&source, schema);
    let mut wrong = None;
    if apart && source.labels.is_empty() && schema.target.values != TargetValues::None {
        report.push_str("labels were not looked at: they are in files of their own, give them with --labels FILE\n");
    } else {
        if apart && labels.rows != rows {
            report.push_str(&format!("there are {rows} rows and {} labels: give files that belong together\n", labels.rows));
        }
        wrong = labels.finish(schema, &mut report);
    }
    report.push_str(&format!("{rows} rows read"));
    match (out, wrong) {
        (None, wrong) => {
            print_line(&report);
            wrong.map_or(Ok(()), |wrong| Err(Failure::misuse(wrong)))
        }
        (Some(path), wrong) => {
            if let Some(wrong) = wrong {
                report.push_str(&format!("\n{wrong}"));
            }
            write(&path, &report)
        }
    }
}

/// Pictures of a folder or zip file, each by its path, and the folders that are no class. Gives their number.
fn pictures(schema: &Schema, path: &std::path::Path, labels: &mut Labels, notes: &mut Notes) -> Result<u64, Failure> {
    // Refuses a place without any.
    open(path, schema)?;
    let Some(mut pictures) = Pictures::open(path, schema)? else { return Ok(0) };
    let target = schema.target.values != TargetValues::None;
    let mut count = 0;
    pictures.examine(&mut |file, folder, problem| {
        count += 1;
        let file = format!("{:?}", String::from_utf8_lossy(file));
        if let Some(problem) = problem {
            notes.add(problem.text().into(), &file);
        }
        if let Some(what) = target.then(|| labels.problem(Cell::Text(folder))).flatten() {
            notes.add(format!("folder {:?}: {what}", String::from_utf8_lossy(folder)), &file);
        }
    });
    Ok(count)
}

/// Whether a row is longer than it may be.
fn norm(schema: &Schema, cells: impl Iterator<Item = f64>, row: u64, notes: &mut Notes) {
    if let Features::Dense { row_norm, .. } | Features::Sparse { row_norm, .. } = &schema.features
        && cells.map(|x| x * x).sum::<f64>().sqrt() > *row_norm * (1.0 + 1e-6)
    {
        notes.add("longer than row_norm, so it is scaled down".into(), row);
    }
}

/// Into a new file that its owner alone can read.
fn write(path: &std::path::Path, report: &str) -> Result<(), Failure> {
    use std::io::Write;
    #[cfg(unix)]
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let written = options.open(path).and_then(|mut f| writeln!(f, "{report}"));
    written.map_err(|e| crate::ui::unwritable(path, &e))
}
