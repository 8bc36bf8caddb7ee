//! Reports: what a model or a ledger says, as one page for people who never saw the program.
//!
//! A report is gathered first ([`ModelReport`], [`LedgerReport`]) and then written: as an HTML page that needs nothing but itself, as a
//! model card in Markdown, or as JSON. A claim that does not hold is refused while it is gathered, so that no form of a report can state
//! it. The same file gives the same bytes: there is no clock and no path in a report, and nothing in it asks the network.

mod bars;
mod columns;
mod curves;
mod filters;
mod html;
mod layers;
mod ledger;
mod ledger_page;
mod markdown;
mod meaning;
mod model;
mod model_basis;
mod model_page;
mod model_released;
mod results;
mod weights;

pub use curves::{Attack, PrivacyCurve, Spot};
pub use filters::Filters;
pub use layers::{LayerRow, Layers};
pub use ledger::{LedgerReport, Spending};
pub use model::ModelReport;
pub use results::{Results, Score};
pub use weights::{NoiseLevel, Weight, Weights};

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::ledger::Ledger;

/// What stands at the beginning of every report, so that one is never taken for something else.
const MARKS: [&str; 3] =
    ["<meta name=\"generator\" content=\"privfit report\">", "<!-- privfit report -->", "\"format\": \"privfit-report\""];

/// Version of the JSON form.
pub(crate) const VERSION: u32 = 1;

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page that needs nothing but itself.
    Html,
    /// A model card.
    Markdown,
    /// What the page was made of.
    Json,
}

/// Whether bytes begin like a report that this program wrote.
pub fn is_report(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1000)]);
    MARKS.iter().any(|mark| head.contains(mark))
}

/// The page of a model, with metrics where some were given. Refused if its certificate does not hold, or was not checked as a whole.
pub fn model_page(artifact: &Artifact, results: Option<Results>) -> Result<String> {
    ModelReport::gather(artifact, results, false)?.write(Form::Html)
}

/// The page of a ledger. Refused if it does not hold.
pub fn ledger_page(ledger: &mut Ledger) -> Result<String> {
    LedgerReport::gather(ledger)?.write(Form::Html)
}

impl ModelReport {
    /// Writes the report.
    pub fn write(&self, form: Form) -> Result<String> {
        match form {
            Form::Html => Ok(model_page::render(self)),
            Form::Markdown => Ok(markdown::model(self)),
            Form::Json => json(self),
        }
    }
}

impl LedgerReport {
    /// Writes the report.
    pub fn write(&self, form: Form) -> Result<String> {
        match form {
            Form::Html => Ok(ledger_page::render(self)),
            Form::Markdown => Ok(markdown::ledger(self)),
            Form::Json => json(self),
        }
    }
}

fn json(report: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(report);
    text.map(|t| t + "\n").map_err(|_| Error::damaged("the report can't be written as JSON: fetch the file again"))
}
