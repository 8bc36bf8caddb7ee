//! `privfit account --rows N --features D --loss L --epsilon E`: every method by its forecast, before anything is spent. The plans are
//! those that `fit --dry-run` would make for a table of numbers.

use crate::args::table::{Planned, PlannedTable, planned};
use crate::ui::layout::{paragraph, table, width};
use crate::ui::progress::Bar;
use crate::ui::style::Paint;
use crate::ui::{Failure, Format, as_flag, note, print_line};
use privfit::job::fit::{Job, prepare};
use privfit::method::{self, auto};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A method with its forecast, or why it does not apply.
struct Row {
    method: &'static str,
    outcome: Result<Planned, String>,
}

impl PlannedTable {
    pub(crate) fn run(self, format: Format) -> Result<(), Failure> {
        if self.rows == 0 {
            return Err(Failure::misuse("--rows is 0: give the number of records, at least 1"));
        }
        // The same delta that `fit` suggests when there is none.
        let usual = 1.0 / (self.rows.max(2) as f64).powi(2);
        let delta = self.delta.unwrap_or(usual);
        let job = self.job(self.schema()?, delta);
        let chosen = prepare(&job, self.rows, false)?;
        let (chosen, reason) = (chosen.method.name, auto::choose(&chosen.problem).1);
        let bar = Bar::new(method::ALL.len() as u64, format == Format::Text, "planning");
        let mut rows = planned_by_all(&job, self.rows, &|| bar.step());
        bar.finish();
        // By the upper end; many are at its limit, and then what columns that fill their bounds would lose says more.
        let key = |r: &Row| r.outcome.as_ref().map_or((f64::INFINITY, 0.0), |p| (p.forecast.most, p.forecast.filled));
        rows.sort_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
        if format == Format::Json {
            self.print_json(&rows, delta, chosen, &job);
        } else {
            self.print_text(&rows, delta, chosen, reason);
        }
        Ok(())
    }

    fn print_json(&self, rows: &[Row], delta: f64, chosen: &str, job: &Job) {
        let methods: Vec<serde_json::Value> = rows
            .iter()
            .map(|r| match &r.outcome {
                Ok(p) => {
                    let plan: serde_json::Map<_, _> = p.plan.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
                    json!({"method": r.method, "applies": true, "forecast": p.forecast.json(), "noise": p.noise, "plan": plan})
                }
                Err(why) => json!({"method": r.method, "applies": false, "why": why}),
            })
            .collect();
        let out = json!({"rows": self.rows, "features": self.features, "encoded_features": job.schema.dimension(), "loss": self.loss,
            "classes": job.schema.task().classes(), "epsilon": self.epsilon, "delta": delta, "delta_by_default": self.delta.is_none(),
            "adjacency": self.adjacency.name(), "auto": chosen, "methods": methods});
        print_line(&serde_json::to_string_pretty(&out).unwrap_or_default());
    }

    fn print_text(&self, rows: &[Row], delta: f64, chosen: &str, reason: &str) {
        let (paint, width) = (Paint::out(), width());
        let (what, unit) =
            rows.iter().find_map(|r| r.outcome.as_ref().ok()).map_or(("", ""), |p| (p.forecast.what, p.forecast.unit()));
        print_line(&format!(
            "{} rows, {} features, loss {}, epsilon {} at delta {delta:e}, {}",
            self.rows, self.features, self.loss, self.epsilon, self.adjacency
        ));
        let unit = if what.starts_with(unit) { String::new() } else { format!(", in {unit}") };
        print_line(&format!("forecast: {what}{unit}"));
        print_line("filled: upper end where columns fill their bounds (`privfit explain forecast`);");
        print_line("what leaving columns out costs is not counted\n");
        let cells: Vec<Vec<String>> = rows
            .iter()
            .filter_map(|r| r.outcome.as_ref().ok().map(|p| (r, p)))
            .map(|(r, p)| {
                let long = ["noise", "standard deviation", "norm at the end", "released", "distance"];
                let short = p.plan.iter().filter(|(k, _)| !long.iter().any(|l| k.contains(l)));
                let plan: Vec<String> = short.map(|(k, v)| format!("{k} {v}")).collect();
                let name = format!("{}{}", r.method, if r.method == chosen { " *" } else { "" });
                let [least, filled, most] = p.forecast.ends();
                vec![name, format!("{least} to {most}"), filled, significant(p.noise), plan.join(", ")]
            })
            .collect();
        table(&["method", "forecast", "filled", "noise", "plan"], &cells, width, paint).iter().for_each(|l| print_line(l));
        print_line("");
        print_line(&paragraph("* ", &format!("what `--method linear` takes: {reason}"), width));
        print_line("noise: standard deviation on the sum of all gradients");
        let rest: Vec<Vec<String>> =
            rows.iter().filter_map(|r| r.outcome.as_ref().err().map(|why| vec![r.method.into(), why.clone()])).collect();
        if !rest.is_empty() {
            print_line("");
            table(&["does not apply", "why"], &rest, width, paint).iter().for_each(|l| print_line(l));
        }
        if self.delta.is_none() {
            note(&format!(
                "note: delta is {delta:e}, 1/rows^2, because none is given: set it with --delta (`privfit explain delta`)"
            ));
        }
        note("note: nothing was opened and nothing was spent");
    }
}

/// Every method, on all cores: plans for sampled steps take a second.
fn planned_by_all(job: &Job, rows: u64, progress: &(dyn Fn() + Sync)) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let Some(m) = method::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = planned(&Job { method: m.name.into(), ..job.clone() }, rows).map_err(|f| f.0.spelled(&as_flag));
            own.push(Row { method: m.name, outcome });
            progress();
        }
        own
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut all: Vec<Row> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap_or_default()).collect()
    });
    // In the order of the list, whoever was first.
    all.sort_by_key(|r| method::ALL.iter().position(|m| m.name == r.method));
    all
}

/// Three significant digits.
fn significant(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.2e}");
    }
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).max(0) as usize };
    format!("{x:.digits$}")
}
