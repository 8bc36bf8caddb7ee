//! `privfit model`: what the curves of an additive model say, and edits of them; the layers of a network. All look at released numbers only.

use crate::args::files::{read_model, say_if_not_private};
use crate::ui::layout::{table, width};
use crate::ui::style::Paint;
use crate::ui::{Failure, Format, print_line};
use clap::{Args, Subcommand};
use privfit::Artifact;
use privfit::additive::edit::{Direction, Edit};
use privfit::additive::{AdditiveModel, Curve};
use privfit::data::cells::CellKind;
use privfit::model::Model;
use privfit::network::{NetworkModel, PlacedLayer};
use privfit::publish::publish;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit model show model.json
  privfit model edit model.json --monotone age=up --out edited.json")]
pub(crate) struct ModelVerb {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the columns of an additive model, the most important first; or one curve, cell by cell; or the layers of a network
    #[command(after_help = "Examples:
  privfit model show model.json
  privfit model show model.json --column age
  privfit model show model.json --format json

Spread is how far a column moves a score: the root of the mean square of its curve over the rows, by the released shares. A score is the log-odds of
the second of two classes, that of its class where there are several, and for a number the log-odds of its place between its bounds.

Of a network every layer is listed with what comes out of it (height x width x channels, or a row of numbers) and how many weights it has.")]
    Show {
        /// A model file
        model: PathBuf,
        /// The curve of this column
        #[arg(long)]
        column: Option<String>,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Change curves by hand; costs nothing, and the certificate records it
    #[command(after_help = "Example:
  privfit model edit model.json --monotone age=up --smooth hours-per-week --drop race --clamp capital-gain=0:20000 --out edited.json

Edits look at released numbers only: the guarantee stays as it is, and `privfit certificate verify` checks the edited file. They are done in
the order drop, clamp, smooth, monotone, so that a curve that was made to go one way still does. Trees that ask about a column which is
dropped or made monotone are left out.")]
    Edit {
        /// A model file
        model: PathBuf,
        /// A column and where scores go with it: COLUMN=up or COLUMN=down
        #[arg(long, value_name = "COLUMN=WAY")]
        monotone: Vec<String>,
        /// A column whose neighbouring cells are averaged
        #[arg(long, value_name = "COLUMN")]
        smooth: Vec<String>,
        /// A column that says nothing any more
        #[arg(long, value_name = "COLUMN")]
        drop: Vec<String>,
        /// A column and the numbers between which it counts: COLUMN=LOW:HIGH
        #[arg(long, value_name = "COLUMN=LOW:HIGH")]
        clamp: Vec<String>,
        /// Leave out all trees, so that curves and pairs are the whole model
        #[arg(long)]
        drop_trees: bool,
        /// Where the edited model goes
        #[arg(long)]
        out: PathBuf,
    },
}

impl ModelVerb {
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.what, What::Show { format: Format::Text, .. })
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Show { model, column, format } => show(&read_model(&model)?, column.as_deref(), format),
            What::Edit { model, monotone, smooth, drop, clamp, drop_trees, out } => {
                let mut edits: Vec<Edit> = drop.into_iter().map(|column| Edit::Drop { column }).collect();
                for text in clamp {
                    edits.push(parse_clamp(&text)?);
                }
                edits.extend(smooth.into_iter().map(|column| Edit::Smooth { column }));
                for text in monotone {
                    edits.push(parse_monotone(&text)?);
                }
                edits.extend(drop_trees.then_some(Edit::DropTrees));
                edit(&model, &edits, &out)
            }
        }
    }
}

/// The last = divides, so that names may have one.
fn named<'t>(text: &'t str, flag: &str, example: &str) -> Result<(&'t str, &'t str), Failure> {
    text.rsplit_once('=').ok_or_else(|| Failure::misuse(format!("--{flag} {text} has no =: write it like --{flag} {example}")))
}

fn parse_monotone(text: &str) -> Result<Edit, Failure> {
    let (column, way) = named(text, "monotone", "age=up")?;
    let direction = match way {
        "up" => Direction::Up,
        "down" => Direction::Down,
        _ => return Err(Failure::misuse(format!("--monotone {text} goes no way: write {column}=up or {column}=down"))),
    };
    Ok(Edit::Monotone { column: column.into(), direction })
}

fn parse_clamp(text: &str) -> Result<Edit, Failure> {
    let (column, range) = named(text, "clamp", "income=0:100000")?;
    let numbers = range.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let Some((low, high)) = numbers else {
        return Err(Failure::misuse(format!("--clamp {text} has no two numbers: write it like --clamp {column}=0:100000")));
    };
    Ok(Edit::Clamp { column: column.into(), low, high })
}

fn edit(model: &Path, edits: &[Edit], out: &Path) -> Result<(), Failure> {
    if edits.is_empty() {
        return Err(Failure::misuse("no edit is given: add one, like --monotone age=up, or look with `privfit model show`"));
    }
    let artifact = read_model(model)?;
    crate::args::ledger::check_places(&[model.to_path_buf()], &[], &Default::default(), out)?;
    let edited = artifact.edited(edits)?;
    publish(out, edited.to_json()?.as_bytes())?;
    edits.iter().for_each(|e| print_line(&format!("edited     {}", e.text())));
    print_line("guarantee  that of the model before: edits look at released numbers only");
    print_line(&format!("model      {}", out.display()));
    print_line(&format!("next       privfit certificate verify {}", crate::ui::style::shell(out)));
    Ok(())
}

fn additive(artifact: &Artifact) -> Result<&AdditiveModel, Failure> {
    match &artifact.model {
        Model::Additive(model) => Ok(model),
        Model::Network(_) => {
            Err(Failure::misuse("this model is a network and has no curves: list its layers with `privfit model show MODEL`"))
        }
        _ => Err(Failure::misuse("this model has weights and no curves: list them with `privfit export MODEL --format csv`")),
    }
}

fn show(artifact: &Artifact, column: Option<&str>, format: Format) -> Result<(), Failure> {
    say_if_not_private(artifact);
    if let (Model::Network(model), None) = (&artifact.model, column) {
        return show_layers(artifact, model, format);
    }
    let model = additive(artifact)?;
    let chosen = match column {
        Some(name) => Some(model.column(name)?),
        None => None,
    };
    // Scores by name: one of two classes, or of a number, has none.
    let names = if model.offsets.len() > 1 { artifact.schema.class_names() } else { vec!["score".into()] };
    match (format, chosen) {
        (Format::Json, _) => print_json(model, &names, chosen),
        (Format::Text, Some(j)) => print_curve(model, &names, j),
        (Format::Text, None) => print_all(artifact, model),
    }
    Ok(())
}

fn show_layers(artifact: &Artifact, model: &NetworkModel, format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        print_line(&serde_json::to_string_pretty(&model.listing()?).unwrap_or_default());
        return Ok(());
    }
    let layers = model.placed()?;
    let input = layers.first().map_or(String::new(), |l| l.input.to_string());
    print_line(&format!("network of {:?}: {input} numbers come in, {} weights", artifact.schema.name, model.weights.len()));
    print_line("");
    let row = |l: &PlacedLayer| vec![l.layer.to_string(), l.output.to_string(), l.weights.len().to_string()];
    let mut rows: Vec<Vec<String>> = layers.iter().map(row).collect();
    if let Some(last) = rows.last_mut() {
        last[0] += if model.classes == 0 { " (the number)" } else { " (scores of the classes)" };
    }
    table(&["layer", "comes out", "weights"], &rows, width(), Paint::out()).iter().for_each(|line| print_line(line));
    if let Some(last) = model.history.as_ref().and_then(|h| h.points.last().map(|p| (h, p))) {
        let (h, p) = last;
        print_line("");
        print_line(&format!(
            "{} steps; at the end the mean gradient was about {:.3} of the clip, noise alone {:.3}",
            h.steps, p.signal, h.noise
        ));
    }
    Ok(())
}

fn cells(model: &AdditiveModel, j: usize) -> Vec<String> {
    let kind = &model.grid.columns[j].kind;
    (0..kind.count()).map(|cell| kind.cell_name(cell)).collect()
}

fn print_json(model: &AdditiveModel, names: &[String], chosen: Option<usize>) {
    let out = chosen.map_or_else(|| model.listing(names), |j| model.listed(j, names));
    print_line(&serde_json::to_string_pretty(&out).unwrap_or_default());
}

fn signed(x: f64) -> String {
    format!("{x:+.3}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn print_curve(model: &AdditiveModel, names: &[String], j: usize) {
    let curve = &model.curves[j];
    let mut heads = vec![model.grid.columns[j].name.as_str(), "share"];
    heads.extend(names.iter().map(String::as_str));
    if !curve.noise.is_empty() {
        heads.push("noise");
    }
    let row = |(i, name): (usize, String)| {
        let mut row = vec![name, percent(curve.shares[i])];
        row.extend(curve.scores.iter().map(|s| signed(s[i])));
        row.extend(curve.noise.get(i).map(|n| format!("±{n:.3}")));
        row
    };
    let rows: Vec<Vec<String>> = cells(model, j).into_iter().enumerate().map(row).collect();
    table(&heads, &rows, width(), Paint::out()).iter().for_each(|line| print_line(line));
}

/// The curve of a number at evenly spaced ranks, from its lowest to its highest.
fn line_of(curve: &Curve) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const POINTS: usize = 24;
    let cells = curve.shares.len() - 1;
    let total: f64 = curve.shares[..cells].iter().sum();
    let at = |point: usize| {
        let mut below = 0.0;
        let wanted = (point as f64 + 0.5) / POINTS as f64 * total;
        let cell = curve.shares[..cells].iter().position(|share| {
            below += share;
            below >= wanted
        });
        curve.scores[0][cell.unwrap_or(cells - 1)]
    };
    let points: Vec<f64> = (0..POINTS).map(at).collect();
    let (low, high) = points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    let step = |x: f64| STEPS[((x - low) / (high - low).max(1e-12) * 7.0).round() as usize % 8];
    format!("{} {} {}", signed(low), points.iter().map(|x| step(*x)).collect::<String>(), signed(high))
}

/// The categories with the highest and the lowest scores.
fn ends_of(model: &AdditiveModel, j: usize) -> String {
    let curve = &model.curves[j];
    let names = cells(model, j);
    let mut order: Vec<usize> = (0..names.len()).filter(|i| curve.shares[*i] > 0.001).collect();
    order.sort_by(|a, b| curve.scores[0][*b].total_cmp(&curve.scores[0][*a]));
    let text = |i: &usize| format!("{} {}", names[*i], signed(curve.scores[0][*i]));
    match order.as_slice() {
        [] => String::new(),
        few if few.len() <= 4 => few.iter().map(text).collect::<Vec<_>>().join(", "),
        [first, second, .., before, last] => [first, second, before, last].map(text).join(", "),
        _ => String::new(),
    }
}

fn print_all(artifact: &Artifact, model: &AdditiveModel) {
    let paint = Paint::out();
    let several = model.offsets.len() > 1;
    let classes = artifact.schema.class_names();
    let of = match (several, classes.get(1)) {
        (true, _) => format!("a score for each of {} classes; the lines below are those of {}", classes.len(), classes[0]),
        (false, Some(class)) => format!("scores are the log-odds of {class}"),
        (false, None) => "scores are the log-odds of the target's place between its bounds".into(),
    };
    print_line(&format!("additive model of {:?}: {of}", artifact.schema.name));
    let bases: Vec<String> = model.offsets.iter().map(|o| signed(*o)).collect();
    print_line(&format!("base {}, the score of an average row", bases.join(", ")));
    print_line("");
    let mut order: Vec<(f64, usize)> = model.curves.iter().map(Curve::total_spread).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let row = |(spread, j): &(f64, usize)| {
        let column = &model.grid.columns[*j];
        let curve = match column.kind {
            CellKind::Number { .. } => line_of(&model.curves[*j]),
            CellKind::Category { .. } => ends_of(model, *j),
        };
        vec![column.name.clone(), format!("{spread:.3}"), curve]
    };
    let rows: Vec<Vec<String>> = order.iter().map(row).collect();
    table(&["column", "spread", "lowest to highest, or the ends"], &rows, width(), paint).iter().for_each(|l| print_line(l));
    if !model.pairs.is_empty() {
        print_line("");
        let pair = |p: &privfit::additive::PairTerm| {
            let names = p.columns.map(|j| model.grid.columns[j].name.as_str());
            let scores = p.scores.first().map_or(&[][..], Vec::as_slice);
            let (low, high) = scores.iter().fold((0f64, 0f64), |(l, h), x| (l.min(*x), h.max(*x)));
            vec![names.join(" x "), signed(low), signed(high)]
        };
        let rows: Vec<Vec<String>> = model.pairs.iter().map(pair).collect();
        table(&["pair", "lowest", "highest"], &rows, width(), paint).iter().for_each(|l| print_line(l));
    }
    if let Some(tree) = model.trees.first() {
        print_line("");
        print_line(&format!("{} random trees of {} questions add the rest", model.trees.len(), tree.questions.len()));
    }
    for edit in &model.edits {
        print_line(&format!("edited     {}", edit.text()));
    }
}
