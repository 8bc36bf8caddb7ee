//! `privfit explain`: what a term means. The glossary of the documentation is its source.

use crate::ui::layout::{paragraph, width, wrap};
use crate::ui::style::Paint;
use crate::ui::{Failure, print_line};
use clap::{Args, ValueEnum};
use privfit::nearest::nearest;
use serde_json::json;

/// The glossary of the documentation.
const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

#[derive(Args)]
#[command(after_help = "Examples:
  privfit explain
  privfit explain delta
  privfit explain noise multiplier
  privfit explain zCDP --format markdown")]
pub(crate) struct Explain {
    /// A term; all terms are listed without one
    term: Vec<String>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For programs
    Json,
    /// For documents
    Markdown,
}

/// An entry of the glossary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) term: String,
    /// Other names.
    pub(crate) also: Vec<String>,
    /// One sentence.
    pub(crate) short: String,
    /// The rest, one paragraph.
    pub(crate) long: String,
    pub(crate) see: Vec<String>,
    /// Where it is met in the program.
    pub(crate) here: String,
}

impl Entry {
    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.term.as_str()).chain(self.also.iter().map(String::as_str))
    }

    fn json(&self) -> serde_json::Value {
        json!({"term": self.term, "also": self.also, "short": self.short, "text": self.long, "see_also": self.see,
            "in_privfit": self.here})
    }

    fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", self.term);
        if !self.also.is_empty() {
            out.push_str(&format!("*also: {}*\n\n", self.also.join(", ")));
        }
        out.push_str(&format!(
            "**{}**\n\n{}\n\nSee also: {}\n\nIn privfit: {}",
            self.short,
            self.long,
            self.see.join(", "),
            self.here
        ));
        out
    }
}

/// All entries. An entry that lacks a part is a mistake in the glossary, which a test finds.
pub(crate) fn entries() -> Vec<Entry> {
    GLOSSARY.split("\n## ").skip(1).filter_map(entry).collect()
}

fn entry(text: &str) -> Option<Entry> {
    let mut blocks =
        text.split("\n\n").map(|b| b.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|b| !b.is_empty()).peekable();
    let list = |text: &str| text.split(", ").map(|t| t.trim().to_string()).filter(|t| !t.is_empty()).collect::<Vec<_>>();
    let term = blocks.next()?;
    let also = blocks
        .next_if(|b| b.starts_with("*also: "))
        .map_or(Vec::new(), |b| list(b.trim_start_matches("*also: ").trim_end_matches('*')));
    let short = blocks.next()?.strip_prefix("**")?.strip_suffix("**")?.to_string();
    let (mut long, mut see, mut here) = (Vec::new(), Vec::new(), None);
    for block in blocks {
        if let Some(rest) = block.strip_prefix("See also: ") {
            see = list(rest);
        } else if let Some(rest) = block.strip_prefix("In privfit: ") {
            here = Some(rest.to_string());
        } else {
            long.push(block);
        }
    }
    Some(Entry { term, also, short, long: long.join("\n\n"), see, here: here? })
}

/// Upper or lower case, hyphens, underscores and spaces are one.
fn plain(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !"-_ ".contains(*c)).collect()
}

pub(crate) fn find<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Entry> {
    let name = plain(name);
    entries.iter().find(|e| plain(&e.term) == name).or_else(|| entries.iter().find(|e| e.names().any(|n| plain(n) == name)))
}

impl Explain {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let entries = entries();
        if self.term.is_empty() {
            self.list(&entries);
            return Ok(());
        }
        let asked = self.term.join(" ");
        let Some(entry) = find(&entries, &asked) else {
            let part = plain(&asked);
            let close = nearest(&asked, entries.iter().flat_map(Entry::names));
            let within = || entries.iter().flat_map(Entry::names).find(|n| part.len() > 2 && plain(n).contains(&part));
            let hint = close.or_else(within).map_or(String::new(), |c| format!("did you mean {c:?}? "));
            return Err(Failure::misuse(format!("no entry for {asked:?}: {hint}the list is `privfit explain`")));
        };
        match self.format {
            Form::Json => print_line(&entry.json().to_string()),
            Form::Markdown => print_line(&entry.markdown()),
            Form::Text => show(entry),
        }
        Ok(())
    }

    fn list(&self, entries: &[Entry]) {
        match self.format {
            Form::Json => {
                let all: Vec<serde_json::Value> = entries.iter().map(Entry::json).collect();
                print_line(&serde_json::Value::from(all).to_string());
            }
            Form::Markdown => print_line(GLOSSARY.trim_end()),
            Form::Text => {
                let wide = entries.iter().map(|e| e.term.chars().count()).max().unwrap_or(0) + 2;
                let (width, paint) = (width(), Paint::out());
                for e in entries {
                    let first = format!("{:<wide$}", e.term);
                    print_line(&paragraph(&first, &spoken(&e.short), width).replacen(&first, &paint.bold(&first), 1));
                }
            }
        }
    }
}

/// Text without the marks of the document.
fn spoken(text: &str) -> String {
    text.replace("**", "")
}

fn show(entry: &Entry) {
    let (paint, width) = (Paint::out(), width().min(100));
    let also = if entry.also.is_empty() { String::new() } else { format!(" (also {})", entry.also.join(", ")) };
    print_line(&paint.bold(&format!("{}{also}", entry.term)));
    wrap(&spoken(&entry.short), width).iter().for_each(|l| print_line(l));
    for block in entry.long.split("\n\n") {
        print_line("");
        wrap(&spoken(block), width).iter().for_each(|l| print_line(l));
    }
    print_line("");
    print_line(&paragraph("in privfit  ", &entry.here, width));
    print_line(&paragraph("see also    ", &entry.see.join(", "), width));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_entry_is_whole_and_points_to_others() {
        let all = entries();
        assert_eq!(all.len(), GLOSSARY.matches("\n## ").count(), "an entry does not parse");
        assert!(all.len() >= 45);
        let mut names: Vec<String> = all.iter().flat_map(|e| e.names().map(plain).collect::<Vec<_>>()).collect();
        names.sort();
        let doubled: Vec<_> = names.windows(2).filter(|w| w[0] == w[1]).collect();
        assert!(doubled.is_empty(), "{doubled:?}");
        for e in &all {
            assert!(e.short.ends_with('.') && !e.see.is_empty() && !e.here.is_empty(), "{e:?}");
            let sentences = format!("{} {}", e.short, e.long).matches(". ").count() + 1;
            assert!((2..=8).contains(&sentences), "{}: {sentences} sentences", e.term);
            for other in &e.see {
                assert!(all.iter().any(|a| a.term == *other), "{} points to {other:?}", e.term);
            }
        }
    }

    #[test]
    fn everything_that_the_program_names_has_an_entry() {
        let all = entries();
        let mut terms: Vec<String> = crate::Arguments::command().get_subcommands().map(|c| c.get_name().to_string()).collect();
        terms.extend(privfit::account::Adjacency::ALL.iter().map(|a| a.name().to_string()));
        terms.extend(["exact", "bounded", "float"].map(String::from));
        terms.extend(privfit::loss::ALL.iter().map(|l| l.name.to_string()));
        terms.extend(
            ["pure", "gaussian", "pld", "rdp", "zcdp", "gdp", "ridge", "clip", "sparsity", "momentum", "cap"].map(String::from),
        );
        terms.extend(
            ["unit", "delta", "sampling rate", "smooth loss", "Frank-Wolfe", "objective", "output", "statistics"]
                .map(String::from),
        );
        let missing: Vec<&String> = terms.iter().filter(|t| find(&all, t).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// A command that an entry names exists.
    #[test]
    fn commands_in_the_glossary_exist() {
        let program = crate::Arguments::command();
        for e in entries() {
            for piece in e.here.split("`privfit ").skip(1) {
                let verb = piece.split([' ', '`']).next().unwrap_or_default();
                assert!(program.find_subcommand(verb).is_some(), "{}: {verb}", e.term);
            }
        }
    }
}
