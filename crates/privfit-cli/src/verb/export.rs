//! `privfit export`: a released model for other programs. Costs nothing.

use crate::args::files::read_bytes;
use crate::ui::{Failure, print_line};
use clap::{Args, ValueEnum};
use privfit::{Artifact, affine, onnx, publish::publish};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  privfit export model.json --format onnx --out model.onnx
  privfit export model.json --format csv
  privfit export model.json --format json --out coefficients.json

The ONNX file takes rows in the units of your columns: bounds, scales and the constant are inside. A schema of numbers alone has
one input `features` [N, D] of floats, in the order of the schema without what it ignores; a schema with categories has one input
[N, 1] for each column, floats or texts, under the column's name; an image is a row of `features`, its pixels row by row with the channels of a pixel side by side, in the size of the schema (pictures that `resize = true` would crop and resize are cropped and resized before). Scattering features are computed inside. NaN is a missing number, \"\" a missing text. Outputs are `label`
and `probabilities` (`scores` where the loss has no probabilities), in the order of the schema's classes, or `value` in the units
of the target. Its metadata_props carry epsilon, delta, adjacency, whether it is a simulation, and the SHA-256 of the model file.")]
pub(crate) struct Export {
    /// Model file
    model: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: Kind,
    /// Where it goes; the terminal by default, for csv and json
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A graph for ONNX runtimes, from the user's columns to the prediction
    Onnx,
    /// Weights over the encoded features, the curves of an additive model, or all weights of a network
    Csv,
    /// Coefficients in the units of the columns, where the encoder is linear
    Json,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let file = read_bytes(&self.model)?;
        let artifact = Artifact::from_bytes(&file)?;
        crate::args::files::say_if_not_private(&artifact);
        let bytes = match self.format {
            Kind::Onnx => onnx::export(&artifact, &file)?,
            Kind::Csv => affine::weights_csv(&artifact)?.into_bytes(),
            Kind::Json => {
                let json = serde_json::to_string_pretty(&affine::coefficients(&artifact)?);
                (json.unwrap_or_default() + "\n").into_bytes()
            }
        };
        match (&self.out, self.format) {
            (Some(path), _) => {
                crate::args::ledger::check_places(&[self.model.clone()], &[], &Default::default(), path)?;
                publish(path, &bytes)?;
                crate::ui::note(&format!("wrote {}", path.display()));
            }
            (None, Kind::Onnx) => return Err(Failure::misuse("an ONNX file is not for the screen: add --out model.onnx")),
            (None, _) => print_line(String::from_utf8_lossy(&bytes).trim_end()),
        }
        Ok(())
    }
}
