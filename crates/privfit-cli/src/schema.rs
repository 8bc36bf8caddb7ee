//! `privfit schema`: draft public facts, check them, and look at data with the owner's eyes.

use crate::{Failure, print_line};
use clap::{Args, Subcommand};
use privfit::Schema;
use privfit::data::load::{Source, open};
use privfit::data::{Cell, Reader, Record, csv::Csv, gz::maybe_gz, parquet::ParquetFile};
use privfit::schema::{Feature, Features, TargetValues};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  privfit schema init visits.csv > visits.toml     names and types only; bounds are left as \"?\"
  privfit schema check visits.toml
  privfit schema validate --schema visits.toml --data visits.csv     for the data owner only

A schema:
  [dataset]
  name = \"visits\"
  unit = \"row\"                        # or { column = \"patient\", max_rows = 5 } with units = N
  [target]
  column = \"ill\"
  classes = [\"no\", \"yes\"]             # or positive = [\"yes\"], or bounds = [0.0, 100.0]
  [features.age]
  type = \"number\"
  min = 0
  max = 120
  [features.ward]
  type = \"category\"
  values = [\"A\", \"B\"]                 # anything else is none of them
  [features.note]
  type = \"ignore\"
Without [target] one point stands for all rows: their mean, or their geometric median (--loss geometric-median).
Files without columns: [features] kind = \"sparse\" (LIBSVM) or \"dense\" (NumPy), with dimension and row_norm, or kind = \"image\"
(IDX), with shape and max.")]
pub(crate) struct SchemaVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Draft a schema from the names of the columns; no bound is read off the data
    Init {
        /// Table to draft for: CSV, CSV.gz or Parquet
        file: PathBuf,
    },
    /// Check the public facts
    Check {
        /// Schema file
        schema: PathBuf,
    },
    /// Buy bounds that nobody knows: private quantiles, paid for
    Bounds(Box<crate::schema_bounds::Bounds>),
    /// Full diagnostics for the data owner: confidential
    Validate {
        /// Schema file
        #[arg(long)]
        schema: PathBuf,
        /// Files with records
        #[arg(long, num_args = 1.., required = true)]
        data: Vec<PathBuf>,
        /// Write the diagnostics to this file, readable by its owner only
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

impl SchemaVerb {
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.verb, Verb::Init { .. })
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Init { file } => init(&file),
            Verb::Check { schema } => check(&schema),
            Verb::Bounds(verb) => verb.run(),
            Verb::Validate { schema, data, out } => validate(&schema, data, out),
        }
    }
}

fn read_schema(path: &PathBuf) -> Result<Schema, Failure> {
    Ok(Schema::parse(&crate::fit::read_text(path, "schema")?)?)
}

fn init(path: &PathBuf) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::misuse(format!("{} is a directory: give a file of it", path.display())));
    }
    let opened = privfit::small_file::open(path);
    let file = opened.map_err(|e| Failure::misuse(format!("cannot open {}: {e}; check the path", path.display())))?;
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let mut reader: Box<dyn Reader> = if name.ends_with(".parquet") || name.ends_with(".pq") {
        Box::new(ParquetFile::open(file)?)
    } else {
        Box::new(Csv::open(maybe_gz(Box::new(file))?)?)
    };
    let columns = reader.columns().to_vec();
    // The type of a column is drafted from its first rows: the owner looks at the draft before it counts as public.
    let mut votes = vec![(0u32, 0u32); columns.len()];
    let mut seen = 0;
    reader.read(&mut |record| {
        if let (Record::Cells(cells), true) = (record, seen < 1000) {
            seen += 1;
            for (vote, cell) in votes.iter_mut().zip(cells) {
                let number = match cell {
                    Cell::Missing => continue,
                    Cell::Number(_) => true,
                    Cell::Text(t) => std::str::from_utf8(t).is_ok_and(|t| t.trim().parse::<f64>().is_ok()),
                };
                if number { vote.0 += 1 } else { vote.1 += 1 }
            }
        }
    })?;
    let numeric: Vec<bool> = votes.iter().map(|v| v.0 > v.1).collect();
    let stem = name.split('.').next().unwrap_or("data").to_string();
    let quote = |text: &str| toml::Value::String(text.into()).to_string();
    let key = |text: &str| {
        let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if bare { text.to_string() } else { quote(text) }
    };
    let mut out = String::from(
        "# Public facts: replace every \"?\" from documentation or domain knowledge, never from the private rows.\n",
    );
    out.push_str(&format!("[dataset]\nname = {}\nunit = \"row\"\n\n", quote(&stem)));
    out.push_str("# Without [target] one point stands for all rows: their mean or geometric median.\n");
    out.push_str("[target]\ncolumn = \"?\"\nclasses = [\"?\"]\n");
    for (column, numeric) in columns.iter().zip(numeric) {
        out.push_str(&format!("\n[features.{}]\n", key(column)));
        out.push_str(if numeric {
            "type = \"number\"\nmin = \"?\"\nmax = \"?\"\n"
        } else {
            "type = \"category\"\nvalues = [\"?\"]\n"
        });
    }
    print_line(out.trim_end());
    crate::note(
        "types are a guess from the first rows: look at them before you publish the schema; remove the target from [features]",
    );
    Ok(())
}

fn check(path: &PathBuf) -> Result<(), Failure> {
    let schema = read_schema(path)?;
    let task = match &schema.target.values {
        TargetValues::Classes(c) => format!("{} classes", c.len()),
        TargetValues::Positive(_) => "2 classes".into(),
        TargetValues::Bounds(low, high) => format!("a number from {low} to {high}"),
        TargetValues::None => {
            print_line(&format!(
                "{}: {} encoded features, no [target]: mean or geometric median",
                schema.name,
                schema.dimension()
            ));
            return Ok(());
        }
    };
    let name = privfit::foreign::one_line(&schema.name);
    print_line(&format!("{name}: {} encoded features, predicts {task}", schema.dimension()));
    Ok(())
}

/// What the rules of `fit` will do to the cells, with row numbers. For the owner of the data.
fn validate(schema_path: &PathBuf, files: Vec<PathBuf>, out: Option<PathBuf>) -> Result<(), Failure> {
    let schema = read_schema(schema_path)?;
    let mut report = String::from("CONFIDENTIAL: computed from private rows without protection; for the data owner only\n");
    let mut rows = 0u64;
    let source = Source { files, labels: Vec::new() };
    for path in &source.files {
        let mut reader = open(path, &schema)?;
        let header = reader.columns().to_vec();
        let mut broken: (u64, Vec<u64>) = (0, Vec::new());
        let mut notes: Vec<(String, u64, Vec<u64>)> = Vec::new();
        let mut note = |what: String, row: u64| match notes.iter_mut().find(|n| n.0 == what) {
            Some(n) => {
                n.1 += 1;
                if n.2.len() < 5 {
                    n.2.push(row);
                }
            }
            None => notes.push((what, 1, vec![row])),
        };
        let columns: Vec<(usize, &String, &Feature)> = match &schema.features {
            Features::Table(list) => {
                list.iter().filter_map(|(name, f)| header.iter().position(|h| h == name).map(|at| (at, name, f))).collect()
            }
            _ => Vec::new(),
        };
        if let Features::Table(list) = &schema.features {
            for (name, feature) in list {
                if *feature != Feature::Ignore && !header.contains(name) {
                    report.push_str(&format!("{}: no column {name:?}\n", path.display()));
                }
            }
        }
        reader.read(&mut |record| {
            rows += 1;
            match record {
                Record::Broken => {
                    broken.0 += 1;
                    if broken.1.len() < 5 {
                        broken.1.push(rows);
                    }
                }
                Record::Cells(cells) => {
                    for (at, name, feature) in &columns {
                        let cell = cells.get(*at).copied().unwrap_or(Cell::Missing);
                        let number = match cell {
                            Cell::Missing => None,
                            Cell::Number(x) => Some(x),
                            Cell::Text(t) => std::str::from_utf8(t).ok().and_then(|t| t.trim().parse::<f64>().ok()),
                        };
                        match (feature, number) {
                            (Feature::Number { .. }, None) if cell == Cell::Missing => note(format!("{name}: missing"), rows),
                            (Feature::Number { .. }, None) => note(format!("{name}: not a number"), rows),
                            (Feature::Number { min, .. }, Some(x)) if x < *min => note(format!("{name}: below min"), rows),
                            (Feature::Number { max, .. }, Some(x)) if x > *max => note(format!("{name}: above max"), rows),
                            (Feature::Category(values), _) => {
                                let known = match cell {
                                    Cell::Text(t) => values.iter().any(|v| v.as_bytes() == t),
                                    Cell::Number(x) => values.iter().any(|v| v.parse() == Ok(x)),
                                    Cell::Missing => values.iter().any(String::is_empty),
                                };
                                if !known && number.is_none_or(|x| !values.iter().any(|v| v.parse() == Ok(x))) {
                                    note(format!("{name}: a value that is not listed"), rows);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        })?;
        if broken.0 > 0 {
            report.push_str(&format!("{}: {} records can't be read (rows {:?} ...)\n", path.display(), broken.0, broken.1));
        }
        for (what, count, at) in notes {
            report.push_str(&format!("{}: {what}: {count} rows ({at:?} ...)\n", path.display()));
        }
    }
    report.push_str(&format!("{rows} rows read"));
    match out {
        None => print_line(&report),
        Some(path) => {
            use std::io::Write;
            #[cfg(unix)]
            use std::os::unix::fs::OpenOptionsExt;
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            options.mode(0o600);
            let written = options.open(&path).and_then(|mut f| writeln!(f, "{report}"));
            written.map_err(|e| crate::unwritable(&path, &e))?;
        }
    }
    Ok(())
}
