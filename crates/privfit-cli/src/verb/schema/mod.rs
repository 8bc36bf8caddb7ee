//! `privfit schema`: draft public facts, check them, and look at data with the owner's eyes.

mod bounds;
mod images;
mod validate;

use crate::ui::{Failure, print_line};
use clap::{Args, Subcommand};
use privfit::Schema;
use privfit::data::load::Source;
use privfit::data::{Cell, Reader, Record, csv::Csv, gz::maybe_gz, parquet::ParquetFile};
use privfit::schema::{TargetValues, key, quote};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  privfit schema init visits.csv > visits.toml     # names and types only; bounds are left as \"?\"
  privfit schema check visits.toml
  privfit schema validate --schema visits.toml --data visits.csv     # for the data owner only

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
(IDX, NumPy, pictures), with shape and max. Pictures are JPEG or PNG files in a folder for each class, as they are or in a zip file
(cifar.zip/train is a folder in one); shape = [32, 32, 3] is height, width, colours. One that can't be read or has another size is a null
record; with resize = true it is cropped and resized. The number of files is public like that of rows; their names are not released.")]
pub(crate) struct SchemaVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Draft a schema from the names of the columns; no bound is read off the data
    Init {
        /// What to draft for: CSV, CSV.gz, Parquet, IDX images, or a folder or zip file of pictures
        file: PathBuf,
    },
    /// Check the public facts
    Check {
        /// Schema file
        schema: PathBuf,
    },
    /// Buy bounds that nobody knows: private quantiles, paid for
    Bounds(Box<bounds::Bounds>),
    /// Full diagnostics for the data owner: confidential
    ///
    /// Features and target of every row against the schema. Exits 2 if no row has a label that the schema knows; with --out it exits 0
    /// whatever it found, because an exit code is seen by more people than the file.
    Validate {
        /// Schema file
        #[arg(long)]
        schema: PathBuf,
        /// Files with records
        #[arg(long, num_args = 1.., required = true)]
        data: Vec<PathBuf>,
        /// Files with labels, for formats that keep them apart
        #[arg(long, num_args = 1..)]
        labels: Vec<PathBuf>,
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
            Verb::Validate { schema, data, labels, out } => {
                validate::validate(&read_schema(&schema)?, Source { files: data, labels }, out)
            }
        }
    }
}

fn read_schema(path: &PathBuf) -> Result<Schema, Failure> {
    Ok(Schema::parse(&crate::args::files::read_text(path, "schema")?)?)
}

fn init(path: &PathBuf) -> Result<(), Failure> {
    if let Some(draft) = images::draft(path)? {
        print_line(&draft);
        crate::ui::note("look at the draft before you publish it as a schema: the classes are yours to list");
        return Ok(());
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
    let mut out = head(&name);
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
    crate::ui::note(
        "types are a guess from the first rows: look at them before you publish the schema; remove the target from [features]",
    );
    Ok(())
}

/// The first lines of a draft for a file.
fn head(name: &str) -> String {
    let stem = name.split('.').next().unwrap_or("data");
    format!(
        "# Public facts: replace every \"?\" from documentation or domain knowledge, never from the private rows.\n\
         [dataset]\nname = {}\nunit = \"row\"\n\n",
        quote(stem)
    )
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
