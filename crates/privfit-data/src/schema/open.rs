//! Public facts that a schema leaves open, as lines that can be pasted: all of them at once, each under its table, with names in quotes
//! where TOML wants them and with values that fit what is there already.

use crate::nearest::nearest;
use toml::{Table, Value};

/// A key as TOML has it: bare, or in quotes.
pub fn key(text: &str) -> String {
    let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { text.into() } else { quote(text) }
}

/// A text as TOML has it, on one line.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Whether a value still is a question.
fn is_open(value: &Value) -> bool {
    match value {
        Value::String(s) => s == "?",
        Value::Array(list) => list.len() == 1 && list[0].as_str() == Some("?"),
        _ => false,
    }
}

/// One table: what is there, and lines for what is not.
struct Section<'a> {
    table: &'a Table,
    lines: Vec<String>,
}

impl<'a> Section<'a> {
    fn new(table: &'a Table) -> Section<'a> {
        Section { table, lines: Vec::new() }
    }

    fn marked(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(is_open)
    }

    /// Missing, and not because it is misspelt: that has a message of its own.
    fn missing(&self, key: &str) -> bool {
        !self.table.contains_key(key) && nearest(key, self.table.keys().map(String::as_str)).is_none()
    }

    /// The line, if its key is a question.
    fn asked(&mut self, key: &str, value: &str) {
        if self.marked(key) {
            self.lines.push(format!("{key} = {value}"));
        }
    }

    /// The line, if its key is a question or missing.
    fn needed(&mut self, key: &str, value: &str) {
        if self.marked(key) || self.missing(key) {
            self.lines.push(format!("{key} = {value}"));
        }
    }

    fn write(self, header: &str, out: &mut String) {
        if !self.lines.is_empty() {
            out.push_str(&format!("  [{header}]\n"));
            self.lines.iter().for_each(|l| out.push_str(&format!("  {l}\n")));
        }
    }
}

/// Lines for everything that is open; empty if nothing is.
pub(crate) fn open(schema: &Table) -> String {
    let mut out = String::new();
    let nothing = Table::new();
    let table = |name: &str| schema.get(name).and_then(Value::as_table);
    let features = table("features").unwrap_or(&nothing);
    let columns = !matches!(features.get("kind"), Some(Value::String(_)));
    if let Some(table) = table("dataset") {
        dataset(Section::new(table), &mut out);
    }
    if let Some(table) = table("target") {
        target(Section::new(table), columns, &mut out);
    }
    if let Some(table) = table("encoding") {
        let mut section = Section::new(table);
        section.asked("intercept", "true");
        section.asked("scaling", "\"ball\"           # or \"sphere\"");
        section.write("encoding", &mut out);
    }
    if columns {
        for (name, feature) in features.iter().filter_map(|(n, f)| Some((n, f.as_table()?))) {
            column(Section::new(feature), &format!("features.{}", key(name)), &mut out);
        }
    } else {
        let mut section = Section::new(features);
        section.asked("kind", "\"dense\"");
        section.asked("dimension", "100        # number of features");
        section.asked("row_norm", "1.0         # longest row that is not scaled down");
        section.asked("bound", "1.0            # largest size of a cell");
        section.asked("shape", "[28, 28]");
        section.asked("max", "255              # largest value of a pixel");
        section.asked("resize", "true           # crop and resize pictures of another size");
        section.write("features", &mut out);
    }
    out.truncate(out.trim_end().len());
    out
}

fn dataset(mut section: Section<'_>, out: &mut String) {
    section.asked("name", "\"NAME\"        # its identity in a ledger");
    section.asked("parent", "\"NAME\"");
    section.asked("unit", "\"row\"         # or { column = \"NAME\", max_rows = 5 }");
    section.asked("rows", "1000            # how many there are");
    section.asked("units", "1000           # how many there are");
    // A table in a table is written where it stands: as a value of the outer one.
    if let Some(unit) = section.table.get("unit").and_then(Value::as_table)
        && unit.values().any(is_open)
    {
        let column = unit.get("column").and_then(Value::as_str).filter(|c| *c != "?").unwrap_or("NAME");
        let most = unit.get("max_rows").and_then(Value::as_integer).unwrap_or(5);
        section.lines.push(format!("unit = {{ column = {}, max_rows = {most} }}   # whose rows belong together", quote(column)));
    }
    section.write("dataset", out);
}

fn target(mut section: Section<'_>, columns: bool, out: &mut String) {
    match columns {
        true => section.needed("column", "\"NAME\"   # what is predicted"),
        false => section.asked("column", "\"NAME\"   # what is predicted"),
    }
    let kinds = ["classes", "positive", "bounds"];
    if kinds.iter().all(|k| section.missing(k)) {
        section.lines.push("classes = [\"no\", \"yes\"]   # or bounds = [0.0, 100.0] for a number".into());
    }
    section.asked("classes", "[\"no\", \"yes\"]   # or bounds = [0.0, 100.0] for a number");
    section.asked("positive", "[\"yes\"]   # these values against all others");
    section.asked("bounds", "[0.0, 100.0]");
    section.asked("weights", "[1.0, 1.0]   # one for each class");
    section.write("target", out);
}

/// A column: its type, and what that type needs.
fn column(mut section: Section<'_>, header: &str, out: &mut String) {
    let listed = section.table.contains_key("values");
    let kind = match section.table.get("type").and_then(Value::as_str) {
        Some(kind) if kind != "?" => kind,
        _ if section.marked("type") || section.missing("type") => {
            let kind = if listed { "category" } else { "number" };
            section.lines.push(format!("type = {kind:?}   # or \"number\", \"category\", \"ignore\""));
            kind
        }
        _ => "",
    };
    let number = |key: &str| {
        let value = section.table.get(key)?;
        value.as_float().or(value.as_integer().map(|i| i as f64)).filter(|x| x.is_finite())
    };
    let (least, most) = (number("min"), number("max"));
    // A value that fits the other bound, as a whole number where it is one.
    let text = |x: f64| if x.fract() == 0.0 && x.abs() < 1e15 { format!("{x:.0}") } else { format!("{x:?}") };
    let beside = |x: f64, up: f64| text(x + up * 100f64.max(x.abs()));
    let low = most.filter(|m| *m <= 0.0).map_or("0".into(), |m| beside(m, -1.0));
    let high = least.filter(|l| *l >= 100.0).map_or("100".into(), |l| beside(l, 1.0));
    match kind {
        "number" => {
            section.needed("min", &format!("{low}          # smallest value that can occur"));
            section.needed("max", &format!("{high}        # largest value that can occur"));
            section.asked("scale", "\"linear\"   # or \"log\"");
        }
        "category" => section.needed("values", "[\"a\", \"b\"]   # every value that can occur"),
        _ => {}
    }
    section.write(header, out);
}

/// Headers of columns whose names have a dot without quotes: TOML reads them as tables in tables. As they stand, and as they are meant.
pub(crate) fn dotted(schema: &Table) -> Vec<(String, String)> {
    fn walk(path: &[&str], table: &Table, out: &mut Vec<(String, String)>) {
        if path.len() > 1 && (table.is_empty() || table.values().any(|v| !v.is_table())) {
            let parts: Vec<String> = path.iter().map(|p| key(p)).collect();
            out.push((format!("[features.{}]", parts.join(".")), format!("[features.{}]", key(&path.join(".")))));
        }
        for (name, value) in table {
            if let Value::Table(inner) = value {
                walk(&[path, &[name.as_str()]].concat(), inner, out);
            }
        }
    }
    let mut out = Vec::new();
    if let Some(features) = schema.get("features").and_then(Value::as_table) {
        walk(&[], features, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    /// Names that a header row can have.
    const NAMES: [&str; 11] =
        ["age", "net income", "a.b", "it's", "say \"no\"", "back\\slash", "größe", "", "tab\there", "#", "[x]=1"];

    /// Puts the printed lines into the schema: what is there is replaced, what is missing is added.
    fn pasted(text: &str, error: &str) -> String {
        let block: String = error.lines().filter(|l| l.starts_with("  ")).map(|l| format!("{l}\n")).collect();
        let lines: Table = toml::from_str(&block).unwrap_or_else(|e| panic!("{block}: {e}"));
        let mut schema: Table = toml::from_str(text).unwrap();
        fn merge(into: &mut Table, from: Table) {
            for (name, value) in from {
                match (into.get_mut(&name), value) {
                    (Some(Value::Table(inner)), Value::Table(value)) if name != "unit" => merge(inner, value),
                    (_, value) => drop(into.insert(name, value)),
                }
            }
        }
        merge(&mut schema, lines);
        toml::to_string(&schema).unwrap()
    }

    /// Every draft becomes a schema by what its error prints, at once.
    #[test]
    fn printed_lines_work_as_they_are() {
        let target = "[dataset]\nname = \"d\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n";
        let mut drafts: Vec<String> = [
            "[dataset]\nname = \"?\"\nunit = \"?\"\n[target]\ncolumn = \"?\"\nclasses = [\"?\"]\n[features.a]\ntype = \"?\"\n",
            "[dataset]\nunit = { column = \"?\", max_rows = \"?\" }\nunits = \"?\"\n[target]\nbounds = [\"?\"]\n[features.a]\nmin = 3\n",
            "[dataset]\nunit = { column = \"who \\\"it\\\" is\", max_rows = \"?\" }\n[target]\n[features.a]\nvalues = [\"x\", \"y\", \"z\"]\n",
            "[dataset]\nrows = \"?\"\n[target]\npositive = \"?\"\nweights = \"?\"\n[features]\nkind = \"dense\"\ndimension = \"?\"\nrow_norm = \"?\"\n",
            "[dataset]\n[target]\nclasses = \"?\"\n[features]\nkind = \"image\"\nshape = \"?\"\nmax = \"?\"\n[encoding]\nscaling = \"?\"\nintercept = \"?\"\n",
        ]
        .map(String::from)
        .to_vec();
        for known in [
            "",
            "min = \"?\"",
            "max = \"?\"",
            "min = -7.5",
            "max = -3",
            "min = 4e9",
            "min = 100",
            "max = 0",
            "max = 1e300\nscale = \"?\"",
        ] {
            let all: String = NAMES.iter().map(|n| format!("[features.{}]\ntype = \"number\"\n{known}\n", key(n))).collect();
            drafts.push(format!("{target}{all}"));
        }
        for known in ["", "values = \"?\"", "values = [\"?\"]"] {
            let all: String = NAMES.iter().map(|n| format!("[features.{}]\ntype = \"category\"\n{known}\n", key(n))).collect();
            drafts.push(format!("{target}{all}"));
        }
        for draft in drafts {
            let error = Schema::parse(&draft).expect_err(&draft).to_string();
            let whole = pasted(&draft, &error);
            assert!(Schema::parse(&whole).is_ok(), "{draft}\n{error}\n{whole}\n{:?}", Schema::parse(&whole).map(|_| ()));
        }
    }

    /// A dot in a name: the line to write is printed, and the one that it stands for.
    #[test]
    fn dots_in_names_are_explained() {
        let draft = "[dataset]\nname = \"d\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[features.net]\ntype = \"ignore\"\n\
                     [features.net.income]\ntype = \"number\"\nmin = 0\nmax = 1\n[features.a.\"b c\".d]\ntype = \"number\"\nmin = 0\nmax = 1\n";
        let error = Schema::parse(draft).unwrap_err().to_string();
        let mut whole = draft.to_string();
        for line in error.lines().filter_map(|l| l.strip_prefix("  ")) {
            let (right, wrong) = line.split_once("   # not ").unwrap_or_else(|| panic!("{error}"));
            assert!(whole.contains(wrong), "{line}");
            whole = whole.replace(wrong, right);
        }
        let schema = Schema::parse(&whole).unwrap_or_else(|e| panic!("{whole}{e}"));
        assert_eq!(schema.feature_names(), ["net.income", "a.b c.d", "intercept"]);
    }

    /// Messages about one column name it as a schema has to.
    #[test]
    fn places_are_written_as_toml_has_them() {
        let of = |rest: &str| {
            let text = format!("[dataset]\nname = \"d\"\n[target]\ncolumn = \"net income\"\nbounds = [0, 1]\n{rest}");
            Schema::parse(&text).unwrap_err().to_string()
        };
        let place = "[features.\"net income\"]";
        for rest in [
            "type = \"nmber\"",
            "type = \"number\"\nmun = 0\nmax = 1",
            "type = \"number\"\nmin = 2\nmax = 1",
            "type = \"number\"\nmin = 0\nmax = 1",
        ] {
            let error = of(&format!("{place}\n{rest}\n"));
            assert!(error.contains(place), "{error}");
        }
        assert!(Schema::parse("dataset = 3").unwrap_err().to_string().contains("[dataset]"));
    }
}
