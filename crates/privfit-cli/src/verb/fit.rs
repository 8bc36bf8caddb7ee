//! `privfit fit`: train a model from a file.

use crate::args::fit::FitArguments;
use crate::args::pretrain::PretrainArguments;
use crate::ui::lines::guarantee_line;
use crate::ui::progress::Bar;
use crate::ui::{Failure, Format, memory, note, print_line};
use clap::Args;
use privfit::account::Adjacency;
use privfit::data::cells::RowForm;
use privfit::job::fit::{Job, Prepared, prepare};
use privfit::job::pretrain::{PublicRecords, digests};
use privfit::memory::{MemoryNeed, size};

#[derive(Args)]
pub(crate) struct Fit {
    #[command(flatten)]
    fit: FitArguments,
    #[command(flatten)]
    pretrain: PretrainArguments,
}

impl Fit {
    pub(crate) fn talks(&self) -> bool {
        self.fit.talks()
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let mut resolved = self.fit.resolve()?;
        if self.fit.tuning.is_some() {
            return Err(Failure::misuse("the job has a table [tune]: run `privfit tune` with it, or remove the table"));
        }
        let arguments = self.pretrain.or(self.fit.pretraining.as_ref());
        let source = arguments.source(&[&self.fit.data[..], &self.fit.labels].concat())?;
        let public = match &source {
            Some(source) => {
                let (schema, digests) = (arguments.schema()?, digests(source)?);
                Some(PublicRecords::new(&resolved.job, source, schema.as_ref(), digests)?)
            }
            None => None,
        };
        resolved.job.pretrained = public.as_ref().map(PublicRecords::planned);
        if self.fit.dry_run {
            let (rows, counted) = resolved.job.rows(None)?;
            return self.show_plan(&resolved.job, self.prepare(&resolved.job, rows, counted)?);
        }
        let destination = self.fit.destination(&resolved)?;
        let (rows, counted) = self.fit.count(&resolved)?;
        let mut prepared = self.prepare(&resolved.job, rows, counted)?;
        if let Some(public) = &public {
            // Whatever is wrong with the job was said before this takes its time.
            self.fit.check_target(&destination)?;
            let bar = Bar::new(public.steps(), self.talks(), "training on public rows");
            resolved.job.pretrained = Some(public.train(&prepared, self.fit.threads(), &|| bar.step())?);
            bar.finish();
            prepared = self.prepare(&resolved.job, rows, counted)?;
        }
        self.say_plan(&prepared);
        self.fit.release(&prepared, resolved, &destination)
    }

    /// Makes the plan, within the memory that the job may use. Accounting is done at once where memory is asked for: a certificate will do the same, and what it holds is counted.
    fn prepare(&self, job: &Job, rows: u64, counted: bool) -> Result<Prepared, Failure> {
        let limit = self.fit.memory_limit()?;
        if limit.is_none() && !self.fit.dry_run {
            return Ok(prepare(job, rows, counted)?);
        }
        let prepared = memory::count_held(|| {
            prepare(job, rows, counted).inspect(|prepared| {
                let (event, delta) = (prepared.plan.event(), prepared.problem.target.delta);
                for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
                    privfit::training::epsilon(event, adjacency, delta);
                }
            })
        })?;
        let Some(limit) = limit else { return Ok(prepared) };
        let usual = prepared.plan.at_once();
        let prepared = prepared.within(limit, &self.fit.memory_conditions())?;
        if self.talks() && prepared.plan.at_once() != usual {
            let [now, usual] = [prepared.plan.at_once(), usual].map(Option::unwrap_or_default);
            note(&format!("note: {now} examples are computed at once, not {usual}, so that {} are enough", size(limit)));
        }
        Ok(prepared)
    }

    fn say_plan(&self, prepared: &Prepared) {
        if !self.talks() {
            return;
        }
        let reason = prepared.reason.map_or(String::new(), |r| format!(" (chosen because {r})"));
        let plan: Vec<String> = prepared.plan.describe().iter().map(|(k, v)| format!("{k} {v}")).collect();
        note(&format!("method {}, loss {}{reason}: {}", prepared.method.name, prepared.problem.loss.name, plan.join(", ")));
        if self.fit.simulate.is_some() {
            note("note: noise comes from a seed; the model will be marked as not private");
        }
    }

    fn show_plan(&self, job: &Job, prepared: Prepared) -> Result<(), Failure> {
        let prepared = &prepared;
        let event = prepared.plan.event();
        let delta = prepared.problem.target.delta;
        let view = |a| privfit::training::epsilon(event, a, delta);
        let (zero, replace) = (view(Adjacency::ZeroOut), view(Adjacency::ReplaceOne));
        let forecast = privfit::forecast::forecast(&prepared.problem, prepared.plan.as_ref());
        let memory = prepared.memory(&self.fit.memory_conditions());
        if self.fit.format == Format::Json {
            let plan: serde_json::Map<String, serde_json::Value> =
                prepared.plan.describe().into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let json = serde_json::json!({
                "method": prepared.method.name, "loss": prepared.problem.loss.name, "rows": prepared.problem.rows,
                "features": prepared.problem.features, "adjacency": job.adjacency.name(), "delta": delta,
                "epsilon": {"zero_out": zero, "replace_one": replace}, "plan": plan, "event": event,
                "memory": memory_json(&memory), "forecast": forecast.json(), "warnings": prepared.warnings(),
            });
            print_line(&json.to_string());
            return Ok(());
        }
        let reason = prepared.reason.map_or(String::new(), |r| format!(" because {r}"));
        print_line(&format!("method    {}, loss {}{reason}", prepared.method.name, prepared.problem.loss.name));
        let width = match prepared.plan.row_form() {
            RowForm::Cells(grid) => format!("{} columns", grid.columns.len()),
            RowForm::Both(grid) => {
                format!("{} columns, {} encoded features", grid.columns.len(), prepared.problem.features)
            }
            RowForm::Features => format!("{} encoded features", prepared.problem.features),
        };
        print_line(&format!("data      {} rows, {width}", prepared.problem.rows));
        for (key, value) in prepared.plan.describe() {
            print_line(&format!("plan      {key}: {value}"));
        }
        if prepared.method.published {
            print_line(&format!("claimed   epsilon {} at delta {delta:e}", job.epsilon));
        }
        print_line(&format!("cost      {}", guarantee_line(zero, replace, delta)));
        let bound = if memory.complete { "at most" } else { "at least" };
        print_line(&format!("memory    {bound} {}: {}", size(memory.total()), memory.text()));
        print_line(&format!("forecast  {}: {}", forecast.what, forecast.text()));
        for warning in prepared.warnings() {
            print_line(&format!("warning   {warning}"));
        }
        if let Some(line) = self.fit.ledger_arguments.forecast(prepared)? {
            print_line(&format!("ledger    {line}"));
        }
        print_line("no data were opened; leave out --dry-run to train");
        Ok(())
    }
}

/// What a job needs: bytes, whether that is an upper or a lower bound, and what for.
fn memory_json(need: &MemoryNeed) -> serde_json::Value {
    let parts: Vec<serde_json::Value> =
        need.parts.iter().map(|part| serde_json::json!({"what": part.what, "bytes": part.bytes})).collect();
    let bound = if need.complete { "upper" } else { "lower" };
    serde_json::json!({"bytes": need.total(), "bound": bound, "parts": parts, "examples_at_once": need.at_once})
}
