//! `privfit methods`: every method and loss, with what it needs and what it guarantees.

use crate::ui::layout::{paragraph, table, width};
use crate::ui::style::Paint;
use crate::ui::{Failure, Format, print_line};
use clap::Args;
use privfit::loss::{self, Kind, LossEntry};
use privfit::method::{self, Method, Setting};
use privfit::nearest::hint;
use serde_json::{Value, json};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit methods
  privfit methods objective
  privfit methods --format json")]
pub(crate) struct Methods {
    /// One method in full, with its settings and an example; by its name or the name that its authors gave it
    name: Option<String>,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Methods {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match (&self.name, self.format) {
            (Some(name), format) => {
                let Some(found) = method::find(name) else {
                    let known: Vec<&str> = everything().map(|m| m.name).collect();
                    let hint = hint(name, known.iter().copied());
                    return Err(Failure::misuse(format!("unknown method {name:?}: {hint}the list is `privfit methods`")));
                };
                match format {
                    Format::Json => print_line(&in_full_json(found).to_string()),
                    Format::Text => in_full(found),
                }
            }
            (None, Format::Json) => {
                let methods: Vec<Value> = everything().map(as_json).collect();
                let losses: Vec<Value> = loss::ALL.iter().map(loss_json).collect();
                print_line(&json!({"methods": methods, "losses": losses}).to_string());
            }
            (None, Format::Text) => overview(),
        }
        Ok(())
    }
}

/// Ours first, those for public points after them, then published forms.
fn everything() -> impl Iterator<Item = &'static Method> {
    method::ALL.iter().chain(method::OF_POINTS).chain(method::published::ALL)
}

fn status(method: &Method) -> &'static str {
    if method.published { "published form, for comparison only (--compare)" } else { "private" }
}

/// The losses that a method takes.
pub(crate) fn losses(method: &Method) -> Vec<&'static str> {
    loss::ALL.iter().filter(|l| method.can.takes(l)).map(|l| l.name).collect()
}

/// The same, in few words.
fn losses_in_short(method: &Method) -> String {
    let own = losses(method);
    let scored: Vec<&str> = loss::ALL.iter().filter(|l| l.kind != Kind::Location).map(|l| l.name).collect();
    let without: Vec<&str> = scored.iter().filter(|l| !own.contains(l)).copied().collect();
    let more: Vec<&str> = own.iter().filter(|l| !scored.contains(l)).copied().collect();
    let mut text = match without.len() {
        0 => "all with a target".to_string(),
        1 | 2 => format!("all but {}", without.join(", ")),
        _ => own.iter().filter(|l| scored.contains(l)).copied().collect::<Vec<_>>().join(", "),
    };
    more.iter().for_each(|l| text.push_str(&format!(", {l}")));
    text
}

/// What a method needs besides its losses.
fn needs(method: &Method) -> String {
    let rest = method.needs.split(", ").filter(|part| !part.contains("loss")).collect::<Vec<_>>().join(", ");
    if rest.is_empty() { "nothing else".into() } else { rest.split("; or loss").next().unwrap_or_default().to_string() }
}

fn overview() {
    let (paint, width) = (Paint::out(), width());
    let row = |m: &'static Method| {
        let guarantee = if m.published { "see --dry-run --compare".to_string() } else { m.guarantee.to_string() };
        let status = if m.published { "published form" } else { "private" };
        vec![m.name.into(), losses_in_short(m), needs(m), guarantee, m.source.into(), status.into()]
    };
    for list in [method::ALL, method::OF_POINTS, method::published::ALL] {
        let rows: Vec<Vec<String>> = list.iter().map(row).collect();
        let heads = ["method", "losses", "needs", "guarantee", "source", "status"];
        table(&heads, &rows, width, paint).iter().for_each(|l| print_line(l));
        print_line("");
    }
    let kind = |l: &LossEntry| match l.kind {
        Kind::Classes => "classes",
        Kind::Number => "a number",
        Kind::Location => "no target",
    };
    let row = |l: &LossEntry| {
        let numbers: Vec<String> = l.parameters.iter().map(|n| format!("{}={}", n.name, n.default)).collect();
        vec![l.name.into(), kind(l).into(), l.what.into(), numbers.join(" ")]
    };
    let rows: Vec<Vec<String>> = loss::ALL.iter().map(row).collect();
    table(&["loss", "predicts", "what it is", "--set"], &rows, width, paint).iter().for_each(|l| print_line(l));
    crate::ui::note("note: one method in full: privfit methods objective; which one forecasts best: privfit account --help");
}

/// The same facts for every example: a table of 20 numbers.
fn example(m: &Method) -> Example {
    let loss = losses(m).first().copied().unwrap_or_default();
    let pure = m.can.pure_only;
    let mut extra = String::new();
    if m.can.in_l1_ball {
        extra.push_str(" --constraint l1:10");
    }
    if m.has("sparsity") {
        extra.push_str(" --set sparsity=5");
    }
    if m.can.of_points {
        extra.push_str(" --auxiliary points.csv");
    }
    if m.published {
        extra.push_str(" --compare");
    }
    Example { loss, delta: if pure { 0.0 } else { 1e-10 }, extra }
}

/// The command of every method's page, for tests.
#[cfg(test)]
pub(crate) fn example_commands() -> Vec<String> {
    method::ALL
        .iter()
        .chain(method::published::ALL)
        .map(|m| {
            let example = example(m);
            let plan = crate::args::table::example_plan(m.name, example.loss, example.delta, &example.extra);
            assert!(!plan.is_empty(), "{} can be planned as its page says", m.name);
            example.command(m)
        })
        .collect()
}

struct Example {
    loss: &'static str,
    delta: f64,
    extra: String,
}

impl Example {
    fn command(&self, m: &Method) -> String {
        format!(
            "privfit fit --data visits.csv --schema visits.toml --loss {} --method {} --epsilon 1 --delta {}{} --out model.json",
            self.loss,
            m.name,
            if self.delta == 0.0 { "0".into() } else { format!("{:e}", self.delta) },
            self.extra
        )
    }
}

fn in_full(m: &'static Method) {
    let width = width().min(110);
    let paint = Paint::out();
    let say = |head: &str, text: &str| print_line(&paragraph(&format!("{head:<11}"), text, width));
    print_line(&paint.bold(&format!("{} (also {})", m.name, m.alias)));
    say("losses", &losses(m).join(", "));
    say("needs", m.needs);
    say("guarantee", m.guarantee);
    say("why", m.theorem);
    say("source", m.source);
    say("status", status(m));
    let plan = crate::args::table::example_plan(m.name, example(m).loss, example(m).delta, &example(m).extra);
    if m.settings.is_empty() {
        say("settings", "none of its own");
    }
    for s in m.settings {
        let default = match (s.usual(), default_of(s.name, &plan)) {
            (Some(default), _) => format!("; default: {default}"),
            (None, Some(value)) => format!("; in the example: {value}"),
            (None, None) => String::new(),
        };
        say("--set", &format!("{}=...  {} [{}{default}]", s.name, s.meaning, s.takes()));
    }
    for l in losses(m).iter().filter_map(|l| loss::find(l)) {
        for n in l.parameters {
            say("--set", &format!("{}=...  of loss {} [default: {}; {} to {}]", n.name, l.name, n.default, n.range.0, n.range.1));
        }
    }
    if !plan.is_empty() {
        let plan: Vec<String> = plan.iter().map(|(k, v)| format!("{k} {v}")).collect();
        say(
            "defaults",
            &format!("follow from the public facts; in the example, for 100000 rows and 20 columns: {}", plan.join(", ")),
        );
    }
    say("example", &example(m).command(m));
}

/// What a plan says about a setting, whose name it may write otherwise.
fn default_of<'a>(setting: &str, plan: &'a [(String, String)]) -> Option<&'a str> {
    let spaced = setting.replace('_', " ");
    let names: &[&str] = match setting {
        "sparsity" => &["columns chosen", "weights kept", "columns kept"],
        "cap" => &["cells clipped at", "cells clipped in scores at"],
        "parts" => &["parts with a teacher", "parts that vote"],
        "radius" => &["teachers clipped to a length of"],
        "batch" => &["records to a batch"],
        "learning_rate" => &["first learning rate"],
        _ => &[],
    };
    let fits = |k: &str| k == spaced || names.contains(&k);
    plan.iter().find(|(k, _)| fits(k)).map(|(_, v)| v.as_str())
}

fn setting_json(s: &Setting) -> Value {
    json!({"name": s.name, "what": s.meaning, "takes": s.takes(), "default": s.usual()})
}

fn with_example(s: &Setting, value: Option<&str>) -> Value {
    let mut out = setting_json(s);
    out["in_example"] = value.into();
    out
}

fn as_json(m: &'static Method) -> Value {
    let settings: Vec<Value> = m.settings.iter().map(setting_json).collect();
    json!({"name": m.name, "alias": m.alias, "losses": losses(m), "needs": m.needs, "guarantee": m.guarantee, "theorem": m.theorem,
        "source": m.source, "status": status(m), "private": !m.published, "settings": settings, "example": example(m).command(m)})
}

/// With the plan of the example, which can take a second.
fn in_full_json(m: &'static Method) -> Value {
    let example = example(m);
    let plan = crate::args::table::example_plan(m.name, example.loss, example.delta, &example.extra);
    let mut out = as_json(m);
    out["settings"] = m.settings.iter().map(|s| with_example(s, default_of(s.name, &plan))).collect();
    let plan: serde_json::Map<String, Value> = plan.into_iter().map(|(k, v)| (k, v.into())).collect();
    out["plan_of_example"] = json!({"rows": 100_000, "features": 20, "plan": plan});
    out
}

fn loss_json(l: &LossEntry) -> Value {
    let settings: Vec<_> =
        (l.parameters.iter()).map(|n| json!({"name": n.name, "default": n.default, "range": [n.range.0, n.range.1]})).collect();
    let kind = match l.kind {
        Kind::Classes => "classes",
        Kind::Number => "number",
        Kind::Location => "location",
    };
    json!({"name": l.name, "predicts": kind, "what": l.what, "settings": settings})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table says about losses is what planning does.
    #[test]
    fn losses_are_those_that_plans_take() {
        for m in method::ALL {
            let example = example(m);
            // One loss of each kind, and few steps: plans for many sampled ones take seconds.
            let has = |name: &str| m.has(name);
            let few = ["steps", "rounds"].map(|n| if has(n) { format!(" --set {n}=3") } else { String::new() }).concat();
            for l in ["logistic", "softmax", "hinge", "squared", "mean", "geometric-median"].iter().filter_map(|l| loss::find(l))
            {
                let extra = if l.kind == Kind::Location { few.clone() } else { format!("{}{few}", example.extra) };
                let plans = crate::args::table::example_plan(m.name, l.name, example.delta, &extra);
                assert_eq!(!plans.is_empty(), losses(m).contains(&l.name), "{} with {}", m.name, l.name);
            }
        }
    }
}
