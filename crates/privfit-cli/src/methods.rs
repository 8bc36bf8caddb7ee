//! `privfit methods`: every method and loss, with what it needs and what it guarantees.

use crate::{Failure, Format, print_line};
use clap::Args;
use privfit::method::Method;
use privfit::{loss, method};

#[derive(Args)]
#[command(after_help = "Example:
  privfit methods --format json")]
pub(crate) struct Methods {
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Methods {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.format == Format::Json {
            let methods: Vec<serde_json::Value> = everything()
                .map(|m| {
                    let settings: Vec<_> = m.settings.iter().map(|s| serde_json::json!({"name": s.0, "what": s.1})).collect();
                    serde_json::json!({"name": m.name, "alias": m.alias, "needs": m.needs, "guarantee": m.guarantee,
                        "source": m.source, "status": status(m), "settings": settings})
                })
                .collect();
            let losses: Vec<serde_json::Value> = loss::ALL
                .iter()
                .map(|l| {
                    let settings: Vec<_> = (l.numbers.iter())
                        .map(|n| serde_json::json!({"name": n.name, "default": n.default, "range": [n.range.0, n.range.1]}))
                        .collect();
                    serde_json::json!({"name": l.name, "what": l.what, "settings": settings})
                })
                .collect();
            print_line(&serde_json::json!({"methods": methods, "losses": losses}).to_string());
            return Ok(());
        }
        for m in everything() {
            print_line(&format!("{} (also {})", m.name, m.alias));
            print_line(&format!("  needs      {}", m.needs));
            print_line(&format!("  guarantee  {}", m.guarantee));
            print_line(&format!("  source     {}", m.source));
            print_line(&format!("  status     {}", status(m)));
            for (name, what) in m.settings {
                print_line(&format!("  --set {name}=...  {what}"));
            }
        }
        print_line("losses");
        for l in loss::ALL {
            let numbers: String = l.numbers.iter().map(|n| format!(" [--set {}={}]", n.name, n.default)).collect();
            print_line(&format!("  {:<16} {}{numbers}", l.name, l.what));
        }
        Ok(())
    }
}

/// Ours first, then published forms.
fn everything() -> impl Iterator<Item = &'static Method> {
    method::ALL.iter().chain(method::published::ALL)
}

fn status(method: &Method) -> &'static str {
    if method.published { "published form, for comparison only (--compare)" } else { "private" }
}
