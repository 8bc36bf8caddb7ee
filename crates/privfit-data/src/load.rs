//! From files to records in the kernel: counts first (public), then reads every record once and encodes it as it comes.

use super::cells::RowForm;
use super::encode::{Encoder, Row, is_sparse};
use super::{
    Cell, Reader, Record,
    csv::Csv,
    gz::{gz, maybe_gz, maybe_gz_sized},
    idx::Idx,
    libsvm::Libsvm,
    npy::Npy,
    parquet::ParquetFile,
    picture::{Pictures, is_pictures},
};
use crate::error::{Error, Result};
use crate::schema::Task;
use crate::schema::{Features, Schema, UnitOfPrivacy};
use privfit_kernel::{Dataset, DatasetBuilder, Entropy, PublicRows, RowShape, grow};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Whatever hands out readers of records: files, or rows that are in memory already. Parts are read one after the other.
pub trait Records {
    /// Number of parts.
    fn parts(&self) -> usize;
    /// Opens one of them.
    fn open(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>>;
    /// Number of parts with labels, where they are kept apart from these records.
    fn label_parts(&self, schema: &Schema) -> usize;
    /// Opens one of those.
    fn open_labels(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>>;
    /// Whether labels are where the schema needs them: said before anything is counted or spent.
    fn check(&self, schema: &Schema) -> Result<()>;
    /// What is said of a part without records. Asked only where their number is public.
    fn empty(&self, _part: usize) -> Result<()> {
        Ok(())
    }
    /// Where these records stand, if other processes hold the others.
    fn share(&self) -> Option<UnitRange> {
        None
    }
    /// Directory whose disk is to hold the encoded rows; none for memory.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

/// Units of one process among those of all processes. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRange {
    /// Index of the first one, a multiple of 16384.
    pub first: u64,
    /// All units.
    pub total: u64,
}

/// Where encoded rows are collected.
pub fn builder(source: &dyn Records, shape: RowShape, entropy: &Entropy) -> Result<DatasetBuilder> {
    placed(source, DatasetBuilder::new(entropy, shape)?)
}

fn placed(source: &dyn Records, mut builder: DatasetBuilder) -> Result<DatasetBuilder> {
    if let Some(directory) = source.directory() {
        builder = builder.on_disk(directory)?;
    }
    let whole = |n: u64| usize::try_from(n).map_err(|_| Error::Host);
    Ok(match source.share() {
        Some(share) => builder.place(whole(share.first)?, whole(share.total)?)?,
        None => builder,
    })
}

/// Files with records.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Files with records; several are read one after the other.
    pub files: Vec<PathBuf>,
    /// Files with labels, for formats that keep them apart.
    pub labels: Vec<PathBuf>,
}

impl Records for Source {
    fn parts(&self) -> usize {
        self.files.len()
    }

    fn open(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        open_part(&self.files[part], schema)
    }

    fn label_parts(&self, _schema: &Schema) -> usize {
        self.labels.len()
    }

    fn open_labels(&self, part: usize, schema: &Schema) -> Result<Box<dyn Reader + '_>> {
        open_labels(&self.labels[part], schema)
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        check_labels(self, schema)
    }

    /// A folder without a picture is most likely the wrong one.
    fn empty(&self, part: usize) -> Result<()> {
        match is_pictures(&self.files[part]) {
            true => Err(no_pictures(&self.files[part])),
            false => Ok(()),
        }
    }
}

fn open_file(path: &Path) -> Result<File> {
    // Files are read twice, to count and to train; a pipe would be empty the second time.
    crate::small_file::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput => {
            Error::misuse(format!("{} is not a regular file: write the records to one", path.display()))
        }
        _ => Error::misuse(format!("cannot open {}: {e}; check the path", path.display())),
    })
}

/// Whether the name of a file ends like this, compressed or not.
fn named(path: &Path, ends: &[&str]) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name).to_string();
    ends.iter().any(|e| name.ends_with(e))
}

/// Opens one file by the kind of the schema and its name. A folder or zip file without a picture is a misuse.
pub fn open(path: &Path, schema: &Schema) -> Result<Box<dyn Reader>> {
    let reader = open_part(path, schema)?;
    match is_pictures(path) && reader.header_rows() == Some(0) {
        true => Err(no_pictures(path)),
        false => Ok(reader),
    }
}

fn no_pictures(path: &Path) -> Error {
    Error::misuse(format!(
        "there is no picture in {} (.jpg, .jpeg, .png): give a folder or zip file with a folder for each class",
        path.display()
    ))
}

fn open_part(path: &Path, schema: &Schema) -> Result<Box<dyn Reader>> {
    if let Some(pictures) = Pictures::open(path, schema)? {
        return Ok(Box::new(pictures));
    }
    let file = open_file(path)?;
    let shape = match &schema.features {
        Features::Image { shape, .. } => Some(shape.clone()),
        Features::Dense { dimension, .. } => Some(vec![*dimension]),
        _ => None,
    };
    if named(path, &[".npy"]) {
        let (input, size) = maybe_gz_sized(file)?;
        let Some(shape) = shape else { return Ok(Box::new(Npy::open(input, size)?)) };
        let array = Npy::open_items(input, size)?;
        check_shape(path, array.item(), &shape)?;
        return Ok(Box::new(array));
    }
    if let (Features::Image { .. }, Some(shape)) = (&schema.features, &shape) {
        let (input, size) = maybe_gz_sized(file)?;
        let items = Idx::open(input, size)?;
        check_shape(path, items.item(), shape)?;
        return Ok(Box::new(items));
    }
    match &schema.features {
        Features::Table(_) if named(path, &[".parquet", ".pq"]) => Ok(Box::new(ParquetFile::open(file)?)),
        Features::Table(_) => Ok(Box::new(Csv::open(maybe_gz(Box::new(file))?)?)),
        Features::Sparse { dimension, .. } => {
            // By its name: the first bytes of such a file are those of a record, and a record must not decide how others are read.
            let zipped = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
            Ok(Box::new(Libsvm::open(gz(Box::new(file), zipped), *dimension)?))
        }
        _ => Err(Error::misuse(format!(
            "{}: rows of numbers are read from NumPy files (.npy); give one, or describe columns in the schema",
            path.display()
        ))),
    }
}

/// Items of a header against the shape of the schema: the same dimensions in the same order, or one dimension for all of them. No order is
/// guessed, and a last dimension of 1 is none.
fn check_shape(path: &Path, item: &[u64], shape: &[usize]) -> Result<()> {
    let shape: Vec<u64> = shape.iter().map(|s| *s as u64).collect();
    let end = |dimensions: &[u64]| dimensions.iter().rposition(|d| *d != 1).map_or(0, |last| last + 1);
    let same = item[..end(item)] == shape[..end(&shape)];
    // One number may stand for all; there is only one order then.
    let flat = item.len() == 1 && item[0] == shape.iter().product::<u64>();
    match same || flat {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{}: items have the shape {item:?} and the schema has {shape:?}: give files of that shape, or correct [features]",
            path.display()
        ))),
    }
}

/// Opens a file of labels, by its name.
pub fn open_labels(path: &Path, schema: &Schema) -> Result<Box<dyn Reader>> {
    let wrong = || Error::misuse(format!("{} has no labels: give a file with one number for each record", path.display()));
    if is_pictures(path) {
        return Err(wrong());
    }
    if !matches!(schema.features, Features::Dense { .. } | Features::Image { .. }) {
        return open_part(path, schema);
    }
    let (input, size) = maybe_gz_sized(open_file(path)?)?;
    let (reader, item): (Box<dyn Reader>, usize) = match &schema.features {
        _ if named(path, &[".npy"]) => {
            let array = Npy::open(input, size)?;
            let width = array.width();
            (Box::new(array), width)
        }
        Features::Image { .. } => {
            let labels = Idx::open(input, size)?;
            let width = labels.width();
            (Box::new(labels), width)
        }
        _ => {
            return Err(Error::misuse(format!("{}: labels are read from NumPy files (.npy): give one", path.display())));
        }
    };
    if item == 1 { Ok(reader) } else { Err(wrong()) }
}

/// Number of records in all parts: a public fact under zero-out and replace-one. Where labels are kept apart there must be as many.
pub fn count(source: &dyn Records, schema: &Schema) -> Result<u64> {
    let mut total = 0u64;
    for part in 0..source.parts() {
        let records = records_of(source.open(part, schema)?.as_mut())?;
        if records == 0 {
            source.empty(part)?;
        }
        total = total.saturating_add(records);
    }
    let mut labels = 0u64;
    for part in 0..source.label_parts(schema) {
        labels = labels.saturating_add(records_of(source.open_labels(part, schema)?.as_mut())?);
    }
    match source.label_parts(schema) > 0 && labels != total {
        true => Err(unequal(total, labels)),
        false => Ok(total),
    }
}

/// Records of one reader: by its header, where that is known to be right, otherwise by reading all.
fn records_of(reader: &mut dyn Reader) -> Result<u64> {
    if let Some(rows) = reader.header_rows() {
        return Ok(rows);
    }
    let mut rows = 0;
    reader.read(&mut |_| rows += 1)?;
    Ok(rows)
}

fn unequal(rows: u64, labels: u64) -> Error {
    Error::misuse(format!("there are {rows} records and {labels} labels: give files that belong together"))
}

/// All labels that are kept apart, in their order.
pub fn read_labels(source: &dyn Records, schema: &Schema, encoder: &Encoder) -> Result<Option<Vec<(f32, f64)>>> {
    if source.label_parts(schema) == 0 {
        return Ok(None);
    }
    let mut out = Vec::new();
    for part in 0..source.label_parts(schema) {
        let mut reader = source.open_labels(part, schema)?;
        reader.read(&mut |record| {
            grow(&mut out, 1);
            out.push(match record {
                Record::Dense(values) => encoder.label(values.first().map_or(Cell::Missing, |x| Cell::Number(*x))),
                Record::Cells(cells) => encoder.label(cells.first().copied().unwrap_or(Cell::Missing)),
                _ => (super::encode::UNKNOWN, f64::NAN),
            });
        })?;
    }
    Ok(Some(out))
}

/// Most cells of public rows that are held in memory.
const PUBLIC_CELLS: usize = 1 << 28;

/// Encoded rows of files that are public, without labels.
pub fn public_features(files: &[PathBuf], schema: &Schema) -> Result<PublicRows> {
    public_rows(&Source { files: files.to_vec(), labels: Vec::new() }, schema)
}

/// Encoded rows that are public, without labels.
pub fn public_rows(source: &dyn Records, schema: &Schema) -> Result<PublicRows> {
    let features = schema.dimension();
    let mut cells: Vec<f64> = Vec::new();
    let mut row = Row::default();
    let mut full = false;
    for part in 0..source.parts() {
        let mut reader = source.open(part, schema)?;
        if reader.header_rows() == Some(0) {
            source.empty(part)?;
        }
        let encoder = Encoder::new(schema, reader.columns(), false)?;
        reader.read(&mut |record| {
            full |= cells.len() + features > PUBLIC_CELLS;
            if full {
                return;
            }
            encoder.encode(record, None, &mut row);
            let start = cells.len();
            cells.resize(start + features, 0.0);
            row.dense.iter().enumerate().for_each(|(i, x)| cells[start + i] = *x);
            row.pairs.iter().for_each(|(i, x)| cells[start + *i as usize] = *x);
        })?;
    }
    match full {
        true => Err(Error::misuse("the public rows have more than 268 million cells: give fewer of them")),
        false => Ok(PublicRows::new(cells, features)),
    }
}

/// Files whose labels are elsewhere need label files, and the other way round.
pub fn check_labels(source: &Source, schema: &Schema) -> Result<()> {
    let pictures = source.files.iter().filter(|p| is_pictures(p)).count();
    if pictures > 0 && pictures < source.files.len() {
        return Err(Error::misuse(
            "some of the data are pictures in folders, which have their labels there, and some are not: give one kind of them",
        ));
    }
    if schema.task() == Task::Location {
        return match source.labels.is_empty() {
            true => Ok(()),
            false => Err(Error::misuse("the schema has no [target], so there are no labels: leave out ")
                .naming("labels")
                .text(", or add [target]")),
        };
    }
    // Whether labels are apart is seen by the path, so that one that leads nowhere has to be said first.
    let nowhere = source.files.iter().find(|p| !p.exists() && !is_pictures(p));
    match (labels_apart(source, schema), source.labels.is_empty()) {
        (true, true) if let Some(path) = nowhere => {
            Err(Error::misuse(format!("there is no file or folder {}: check the path", path.display())))
        }
        (true, true) => Err(Error::misuse("these files hold no labels: give them with ").give("labels", "FILE")),
        (false, false) if pictures > 0 => {
            Err(Error::misuse("the folders that hold pictures are their labels: leave out ").naming("labels"))
        }
        (false, false) => Err(Error::misuse("these files hold their labels themselves: leave out ").naming("labels")),
        _ => Ok(()),
    }
}

/// Whether labels are in files of their own.
pub fn labels_apart(source: &Source, schema: &Schema) -> bool {
    match &schema.features {
        Features::Dense { .. } => true,
        Features::Image { .. } => !source.files.iter().any(|p| is_pictures(p)),
        _ => false,
    }
}

/// Reads and encodes everything. After the first record nothing but the host can fail.
///
/// `rows` is the number of records where it is public and known; where it is not, nothing is compared with it.
pub fn load(source: &dyn Records, schema: &Schema, form: RowForm<'_>, entropy: &Entropy, rows: Option<u64>) -> Result<Dataset> {
    source.check(schema)?;
    let rows_per_unit = rows_per_unit(schema);
    let mut builder = placed(source, empty(schema, form, entropy)?)?;
    let own = source.share().is_none();
    if let (None, Some(rows), true) = (rows_per_unit, rows, own) {
        builder.reserve(usize::try_from(rows).map_err(|_| Error::Host)?, 0)?;
    }
    let mut loader = Loader { builder, units: Units::default() };
    let mut labels: Option<std::vec::IntoIter<(f32, f64)>> = None;
    for part in 0..source.parts() {
        let mut reader = source.open(part, schema)?;
        let encoder = encoder(schema, form, reader.as_ref())?;
        if part == 0 {
            let all = read_labels(source, schema, &encoder)?;
            if let (Some(rows), Some(all), true) = (rows, &all, own)
                && all.len() as u64 != rows
            {
                return Err(unequal(rows, all.len() as u64));
            }
            labels = all.map(|l| l.into_iter());
        }
        loader.read(reader.as_mut(), &encoder, &mut labels)?;
    }
    loader.finish(rows_per_unit, entropy)
}

/// Encodes the records of one reader that holds its labels itself.
pub fn load_from(reader: &mut dyn Reader, schema: &Schema, form: RowForm<'_>, entropy: &Entropy) -> Result<Dataset> {
    let encoder = encoder(schema, form, reader)?;
    let mut loader = Loader { builder: empty(schema, form, entropy)?, units: Units::default() };
    loader.read(reader, &encoder, &mut None)?;
    loader.finish(rows_per_unit(schema), entropy)
}

/// What turns records of a reader into rows of a form.
pub fn encoder(schema: &Schema, form: RowForm<'_>, reader: &dyn Reader) -> Result<Encoder> {
    Encoder::new(schema, reader.columns(), true)?.of_form(form, reader.columns())
}

pub(crate) fn empty(schema: &Schema, form: RowForm<'_>, entropy: &Entropy) -> Result<DatasetBuilder> {
    let rows_per_unit = rows_per_unit(schema);
    let shape = RowShape { dimension: schema.dimension(), row_norm: 1.0, sparse: is_sparse(schema), rows_per_unit };
    Ok(match form {
        RowForm::Features => DatasetBuilder::new(entropy, shape)?,
        RowForm::Cells(grid) => DatasetBuilder::of_cells(entropy, &grid.counts(), rows_per_unit)?,
        RowForm::Both(grid) => DatasetBuilder::new(entropy, shape)?.and_cells(&grid.counts())?,
    })
}

pub(super) fn rows_per_unit(schema: &Schema) -> Option<usize> {
    match &schema.unit {
        UnitOfPrivacy::Row => None,
        UnitOfPrivacy::Column { max_rows, .. } => Some(*max_rows),
    }
}

struct Loader {
    builder: DatasetBuilder,
    units: Units,
}

/// Adds a row in the form that it has: one that can't be read has no cells, and is null where rows have them.
pub(crate) fn put(builder: &mut DatasetBuilder, row: &Row) {
    match row.pairs.is_empty() {
        true => builder.row_and_cells(&row.dense, &row.cells, row.label),
        false => builder.sparse_row_and_cells(&row.pairs, &row.cells, row.label),
    }
}

impl Loader {
    fn read(
        &mut self,
        reader: &mut dyn Reader,
        encoder: &Encoder,
        labels: &mut Option<std::vec::IntoIter<(f32, f64)>>,
    ) -> Result<()> {
        let unit_column = encoder.unit_column();
        let (as_is, sparse) = (encoder.as_is(), encoder.sparse());
        let mut row = Row::default();
        reader.read(&mut |record| {
            let label = labels.as_mut().map(|l| l.next().map_or(super::encode::UNKNOWN, |l| l.0));
            match (label, record) {
                (Some(label), Record::Dense(values)) if as_is && !sparse => return self.builder.row(values, label),
                (None, Record::Sparse(text, pairs)) if as_is && sparse => {
                    return self.builder.sparse_row(pairs, encoder.label(text).0);
                }
                _ => {}
            }
            encoder.encode(record, None, &mut row);
            row.label = label.unwrap_or(row.label);
            match (unit_column, record) {
                (None, _) => put(&mut self.builder, &row),
                (Some(column), Record::Cells(cells)) => self.units.keep(cells.get(column).copied(), &row),
                // A record that can't be read belongs to nobody and adds nothing.
                (Some(_), _) => {}
            }
        })
    }

    fn finish(mut self, rows_per_unit: Option<usize>, entropy: &Entropy) -> Result<Dataset> {
        if let Some(most) = rows_per_unit {
            self.units.build(&mut self.builder, most, entropy)?;
        }
        Ok(self.builder.build())
    }
}

/// Rows by unit, in the order in which units first appear.
#[derive(Default)]
struct Units {
    unit_count: HashMap<Vec<u8>, usize>,
    rows: Vec<Vec<Row>>,
}

impl Units {
    fn keep(&mut self, id: Option<Cell<'_>>, row: &Row) {
        let key = match id {
            // Records without an identity are one unit together: nobody can tell them apart.
            None | Some(Cell::Missing) => Vec::new(),
            Some(Cell::Text(t)) => t.to_vec(),
            Some(Cell::Number(x)) => x.to_string().into_bytes(),
        };
        let next = self.rows.len();
        let unit_index = *self.unit_count.entry(key).or_insert(next);
        if unit_index == next {
            grow(&mut self.rows, 1);
            self.rows.push(Vec::new());
        }
        grow(&mut self.rows[unit_index], 1);
        self.rows[unit_index].push(row.clone());
    }

    /// Hands over at most so many rows of each unit, chosen by coins that do not depend on the rows.
    fn build(self, builder: &mut DatasetBuilder, most: usize, entropy: &Entropy) -> Result<()> {
        let mut coins = entropy.for_units()?;
        for mut rows in self.rows {
            for i in 0..most.min(rows.len()) {
                let pick = i + coins.below((rows.len() - i) as u64) as usize;
                rows.swap(i, pick);
            }
            for row in rows.iter().take(most) {
                put(builder, row);
            }
            builder.end_unit();
        }
        Ok(())
    }
}
