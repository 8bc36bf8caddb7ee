//! `privfit certificate`: what a model file claims, on a page of plain text.

use crate::{Failure, Format, print_line};
use clap::{Args, Subcommand};
use privfit::Artifact;
use privfit::account::Event;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:
  privfit certificate show model.json")]
pub(crate) struct Certificate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What the model guarantees, what it rests on, and what was released
    Show {
        /// A model file
        model: PathBuf,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
}

/// Columns that a text names at the most.
const NAMED: usize = 20;

/// One line about the columns that the model has, where it does not have all.
pub(crate) fn selected_line(artifact: &Artifact) -> Option<String> {
    let chosen = artifact.selected()?;
    let names = artifact.schema.feature_names();
    let some: Vec<&str> = chosen.iter().take(NAMED).map(|i| names[*i].as_str()).collect();
    let rest = chosen.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    Some(format!("{} of {} columns, released information: {}{more}", chosen.len(), names.len(), some.join(", ")))
}

impl Certificate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let What::Show { model, format } = self.what;
        let artifact = crate::predict::read_model(&model)?;
        let g = &artifact.guarantee;
        if format == Format::Json {
            let names = artifact.schema.feature_names();
            let selected: Option<Vec<&String>> = artifact.selected().map(|s| s.iter().map(|i| &names[*i]).collect());
            let json = serde_json::json!({
                "data": artifact.schema.name, "method": artifact.training.method, "plan": artifact.training.plan,
                "guarantee": g, "public": artifact.training.public, "selected": selected,
            });
            print_line(&json.to_string());
            return Ok(());
        }
        print_line(&format!("model      {} for {:?}", artifact.training.method, artifact.schema.name));
        match &g.event {
            Event::NotPrivate { why } => print_line(&format!("guarantee  none: {why}")),
            _ => print_line(&format!("guarantee  {}", crate::fit::guarantee_line(g.zero_out, g.replace_one, g.delta))),
        }
        print_line(&format!("asked for  epsilon {} at delta {:e}, {}", g.asked_epsilon, g.delta, g.adjacency.name()));
        for (key, value) in &artifact.training.plan {
            print_line(&format!("plan       {key}: {value}"));
        }
        for fact in &artifact.training.public {
            print_line(&format!("public     {fact}"));
        }
        let scores = artifact.model.weights.len();
        print_line(&format!("released   weights of {scores} score{}", if scores == 1 { "" } else { "s" }));
        if let Some(line) = selected_line(&artifact) {
            print_line(&format!("released   {line}"));
        }
        if let Some(map) = &artifact.model.map {
            let kept = map.factors.iter().filter(|f| **f != 0.0).count();
            print_line(&format!("released   factors of {kept} columns, by which rows are changed before they meet the weights"));
        }
        Ok(())
    }
}
