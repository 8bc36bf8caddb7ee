//! What somebody declares about a model, in a table `[registry]` of the job or the schema: names, use, contact. Public, repeated in the
//! certificate, never checked beyond its form.

use crate::error::{Error, Result};
use toml::{Table, Value};

/// Sectors that the public registry knows.
pub const SECTORS: [&str; 6] = ["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"];

/// Longest text.
const LONGEST: usize = 2000;

/// The only kind of product there is.
pub const PRODUCT: &str = "machine learning model";

const KEYS: &str = "name, curator, description, intended_use, product_type, region, sector, publication_date, date, contact, licence, \
                    expiry, revision, utility";

/// What was declared; none where nothing was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    /// Name of the model.
    pub name: Option<String>,
    /// Who publishes it; empty if not stated.
    pub curators: Vec<String>,
    /// One or two sentences about it.
    pub description: Option<String>,
    /// What it is for.
    pub intended_use: Option<String>,
    /// Region that the data describe.
    pub region: Option<String>,
    /// One of [`SECTORS`].
    pub sector: Option<String>,
    /// Day of publication.
    pub publication_date: Option<String>,
    /// Day of creation.
    pub date: Option<String>,
    /// Address for questions.
    pub contact: Option<String>,
    /// Licence of the model.
    pub licence: Option<String>,
    /// Day after which the statement should not be relied on.
    pub expiry: Option<String>,
    /// What changed since an earlier model.
    pub revision: Option<String>,
    /// Metrics, and on which rows.
    pub utility: Option<String>,
}

/// A day of the calendar, as YYYY-MM-DD.
pub fn is_day(text: &str) -> bool {
    let shape = text.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
    if text.len() != 10 || !shape {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

fn text(key: &str, value: &Value) -> Result<String> {
    let wrong = |fix: &str| Error::misuse(format!("[registry] {key}: {fix}"));
    let text = match value {
        Value::String(text) => text.trim().to_string(),
        // TOML has days of its own.
        Value::Datetime(day) => day.to_string(),
        _ => return Err(wrong("give text in quotes")),
    };
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(wrong("give one line of text, of 1 to 2000 bytes"));
    }
    Ok(text)
}

impl Declared {
    /// Reads a table `[registry]`; unknown keys are errors.
    pub fn parse(table: &Table) -> Result<Declared> {
        let mut out = Declared::default();
        for (key, value) in table {
            let some = || text(key, value).map(Some);
            let day = || match text(key, value)? {
                day if is_day(&day) => Ok(Some(day)),
                other => Err(Error::misuse(format!("[registry] {key} is {other:?}: give a day as YYYY-MM-DD"))),
            };
            match key.as_str() {
                "name" => out.name = some()?,
                "curator" => {
                    out.curators = match value {
                        Value::Array(list) => list.iter().map(|v| text(key, v)).collect::<Result<_>>()?,
                        one => vec![text(key, one)?],
                    };
                }
                "description" => out.description = some()?,
                "intended_use" => out.intended_use = some()?,
                "product_type" if text(key, value)?.to_lowercase() == PRODUCT => {}
                "product_type" => {
                    return Err(Error::misuse(format!("[registry] product_type: write \"{PRODUCT}\", or remove the line")));
                }
                "region" => out.region = some()?,
                "sector" => {
                    let given = text(key, value)?;
                    let Some(known) = SECTORS.iter().find(|s| s.eq_ignore_ascii_case(&given)) else {
                        return Err(Error::misuse(format!("[registry] sector is {given:?}: give one of {}", SECTORS.join(", "))));
                    };
                    out.sector = Some(known.to_string());
                }
                "publication_date" => out.publication_date = day()?,
                "date" => out.date = day()?,
                "contact" => out.contact = some()?,
                "licence" => out.licence = some()?,
                "expiry" => out.expiry = day()?,
                "revision" => out.revision = some()?,
                "utility" => out.utility = some()?,
                _ => return Err(Error::misuse(format!("[registry] {key}: unknown key: known are {KEYS}"))),
            }
        }
        Ok(out)
    }

    /// The day of creation alone, as a flag gives it.
    pub fn on(day: &str) -> Result<Declared> {
        if is_day(day) {
            return Ok(Declared { date: Some(day.into()), ..Declared::default() });
        }
        Err(Error::misuse(format!("the date is {day:?}: give a day as YYYY-MM-DD")))
    }

    /// What is declared here, and for the rest what is declared there.
    pub fn or(self, other: Declared) -> Declared {
        Declared {
            name: self.name.or(other.name),
            curators: if self.curators.is_empty() { other.curators } else { self.curators },
            description: self.description.or(other.description),
            intended_use: self.intended_use.or(other.intended_use),
            region: self.region.or(other.region),
            sector: self.sector.or(other.sector),
            publication_date: self.publication_date.or(other.publication_date),
            date: self.date.or(other.date),
            contact: self.contact.or(other.contact),
            licence: self.licence.or(other.licence),
            expiry: self.expiry.or(other.expiry),
            revision: self.revision.or(other.revision),
            utility: self.utility.or(other.utility),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_days() {
        for (day, right) in [
            ("2024-02-29", true),
            ("2023-02-29", false),
            ("2024-13-01", false),
            ("2024-04-31", false),
            ("0000-01-01", false),
            ("2024-1-01", false),
            ("2024-01-01T", false),
            ("20é4-01-0", false),
        ] {
            assert_eq!(is_day(day), right, "{day}");
        }
    }

    #[test]
    fn tables_are_read_strictly() {
        let read = |text: &str| Declared::parse(&toml::from_str(text).unwrap());
        let both = read(
            "curator = [\"A\", \"B\"]\nsector = \"healthcare\"\npublication_date = 2024-05-01\nproduct_type = \"Machine learning model\"",
        );
        let both = both.unwrap();
        assert_eq!((both.curators.len(), both.sector.as_deref()), (2, Some("Healthcare")));
        assert_eq!(both.publication_date.as_deref(), Some("2024-05-01"));
        for (bad, fix) in [
            ("nam = \"x\"", "known are"),
            ("sector = \"Mining\"", "give one of"),
            ("date = \"May\"", "YYYY-MM-DD"),
            ("name = 7", "text in quotes"),
            ("name = \"a\\nb\"", "one line"),
            ("product_type = \"dataset\"", "remove the line"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(fix), "{bad}: {error}");
        }
    }
}
