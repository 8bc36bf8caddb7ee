//! Versions of planner and sentences, so that a verifier knows which files it can make again.
//!
//! A plan is a pure function of public facts *for one version of the planner*, and a sentence a pure function of the plan *for one version
//! of the texts*. A file records both. A test (`plans_and_sentences_change_with_their_versions`) holds the plans of every method on a fixed
//! list of public facts, and the sentences, against `tests/data/versions.txt`; it fails when one of them changes and its version does not.
//! To change a plan or a sentence: add one to the constant below, then refresh the list with
//!
//! ```text
//! PRIVFIT_REFRESH=1 cargo test --release -p privfit --lib plans_and_sentences
//! ```

/// Version of everything that makes a plan: methods, default settings, calibration and with it the accountant.
pub const PLANNER: u32 = 11;

/// Version of every sentence that stands in a certificate.
pub const TEXTS: u32 = 4;

/// Which versions of the program planned and wrote with which of these: program, planner, texts.
pub(crate) const PROGRAMS: &[(&str, u32, u32)] = &[("0.1.0", PLANNER, TEXTS)];

/// The version in the name of a program, as `program()` writes it.
pub(crate) fn version_of(program: &str) -> Option<&str> {
    program.strip_prefix("privfit ").filter(|v| !v.is_empty() && v.len() <= 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::derive::{Facts, hex};
    use crate::certificate::{Certificate, Declared};
    use crate::constraint::Constraint;
    use crate::job::Release;
    use crate::job::fit::{Job, prepare};
    use crate::job::tune::Tuning;
    use crate::method::{self, Settings};
    use crate::model::Model;
    use crate::schema::Schema;
    use crate::schema::private_bounds::BoundsPlan;
    use crate::training::{Fact, Guarantee, Training};
    use privfit_kernel::Numerics;
    use privfit_kernel::account::{Adjacency, Event, Objective, Stopping};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/versions.txt");
    const REFRESH: &str = "PRIVFIT_REFRESH=1 cargo test --release -p privfit --lib plans_and_sentences";

    fn schema(target: &str, unit: &str) -> Schema {
        let text = format!(
            "[dataset]\nname = \"t\"\n{unit}{target}[features.x]\ntype = \"number\"\nmin = -3\nmax = 3\n\
             [features.c]\ntype = \"category\"\nvalues = [\"p\", \"q\", \"r\"]\n"
        );
        Schema::parse(&text).unwrap()
    }

    fn job(schema: &Schema, method: &str, loss: &str, adjacency: Adjacency) -> Job {
        let found = method::find(method);
        // Plans for many sampled steps take seconds.
        let few = found.is_some_and(|m| m.has("steps") && m.name.contains("sgd"));
        let pure = ["output", "objective-pure"].contains(&method);
        Job {
            schema: schema.clone(),
            rows: None,
            epsilon: 1.0,
            delta: Some(if pure { 0.0 } else { 1e-6 }),
            adjacency,
            loss: Some(loss.into()),
            method: method.into(),
            settings: Settings(few.then(|| ("steps".to_string(), 20.0)).into_iter().collect()),
            constraint: Constraint::None,
            allow_large_delta: false,
            compare: found.is_some_and(|m| m.published),
            auxiliary: None,
            layers: None,
            pretrained: None,
        }
    }

    /// A digest of a value whose numbers are rounded to so many digits, so that other machines find the same one.
    fn rounded(value: &Value, digits: usize) -> String {
        fn walk(value: &Value, digits: usize, out: &mut String) {
            match value {
                Value::Number(n) => out.push_str(&format!("{:.*e};", digits, n.as_f64().unwrap_or(0.0))),
                Value::Array(list) => list.iter().for_each(|v| walk(v, digits, out)),
                Value::Object(map) => map.iter().for_each(|(k, v)| {
                    out.push_str(&format!("{k}:"));
                    walk(v, digits, out);
                }),
                other => out.push_str(&format!("{other};")),
            }
        }
        let mut text = String::new();
        walk(value, digits, &mut text);
        hex(&[text.as_bytes()])[..16].into()
    }

    /// Plans of every method on a fixed list of public facts.
    fn plans(out: &mut BTreeMap<String, String>) {
        let classes = "[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n";
        let three = "[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\", \"c\"]\n";
        let (number, count) = ("[target]\ncolumn = \"y\"\nbounds = [-5, 5]\n", "[target]\ncolumn = \"y\"\nbounds = [0, 50]\n");
        let grouped = "unit = { column = \"id\", max_rows = 3 }\n";
        let cases = [
            ("logistic", classes, "", Adjacency::ZeroOut),
            ("logistic", classes, "", Adjacency::ReplaceOne),
            ("logistic", classes, "", Adjacency::AddRemove),
            ("logistic", classes, grouped, Adjacency::ZeroOut),
            ("softmax", three, "", Adjacency::ZeroOut),
            ("squared", number, "", Adjacency::ZeroOut),
            ("squared", number, grouped, Adjacency::ZeroOut),
            ("huber", number, "", Adjacency::ZeroOut),
            ("poisson", count, "", Adjacency::ZeroOut),
            ("mean", "", "", Adjacency::ReplaceOne),
            ("geometric-median", "", "", Adjacency::ZeroOut),
        ];
        // Their calibration takes most of a second, and adjacencies change them as they change the others.
        const SLOW: [&str; 5] = ["two-stage", "weighted-columns", "noisy-thresholding", "transfer-support", "frank-wolfe"];
        let methods = ["auto"].into_iter().chain(method::ALL.iter().chain(method::published::ALL).map(|m| m.name));
        for method in methods {
            for (loss, target, unit, adjacency) in cases {
                if SLOW.contains(&method) && (adjacency != Adjacency::ZeroOut || !["logistic", "squared"].contains(&loss)) {
                    continue;
                }
                let schema = schema(target, unit);
                let Ok(plan) = prepare(&job(&schema, method, loss, adjacency), 500, false) else { continue };
                let training = plan.training(Numerics::Exact);
                let facts: Vec<String> = training.public.iter().map(Fact::to_string).collect();
                let value = json!({
                    "event": plan.plan.event(), "training": training, "grade": method::grade(plan.method, plan.plan.as_ref()),
                    "loss": plan.loss_parameters().unwrap(),
                });
                // The version itself is not part of what it is a version of.
                let mut value = value;
                (value["training"]["inputs"]["planner"], value["training"]["inputs"]["texts"]) = (Value::Null, Value::Null);
                // What is said, not the shape in which a file has it.
                value["training"]["public"] = facts.into();
                let unit = if unit.is_empty() { "row" } else { "grouped" };
                out.insert(format!("plan {method} {loss} {unit} {}", adjacency.name()), rounded(&value, 8));
            }
        }
        let tuning = "runs = 4\n[[candidate]]\nsteps = 5\n[[candidate]]\nmethod = \"noisy-gd\"\nsteps = 8\n";
        let tuning = Tuning::parse(&toml::from_str(tuning).unwrap()).unwrap();
        let tried =
            crate::job::tune::prepare(&job(&schema(classes, ""), "noisy-gd", "logistic", Adjacency::ZeroOut), &tuning, 500, true);
        let tried = tried.unwrap();
        let described = json!({"event": tried.event(), "plan": tried.describe()});
        out.insert("plan selection".into(), rounded(&described, 8));
        let bounds = BoundsPlan { planner: 0, epsilon: 1.0, delta: 1e-6, adjacency: Adjacency::ZeroOut, rows: 500 };
        out.insert("plan bounds".into(), rounded(&json!(crate::job::bounds::event(2, &bounds).unwrap()), 8));
    }

    /// Certificates of fixed events, whatever today's plans are: their numbers, and their sentences without any number.
    fn statements(out: &mut BTreeMap<String, String>) {
        let gaussian = Event::gaussian(2.0);
        let objective = Event::ObjectivePerturbation(Objective {
            noise_multiplier: 4.0,
            replace_factor: 2.0,
            degrees: 1,
            log_determinant: 0.1,
            output_noise_multiplier: 8.0,
            grid_sigma: 1 << 40,
            dimension: 4,
        });
        let each = Event::DiscreteGaussian { sigma: 1 << 30, sensitivity: 1 << 28, replace_sensitivity: 1 << 29, dimension: 4 };
        let select = Event::Select { stopping: Stopping::Harmonic { most: 6 }, event: Box::new(gaussian.clone()) };
        let events = [
            ("gaussian", each.clone().repeated(3), 1e-6, Numerics::Exact),
            ("sampled", gaussian.clone().sampled(0.1).repeated(10), 1e-6, Numerics::Exact),
            ("objective", objective, 1e-6, Numerics::Bounded),
            (
                "laplace",
                Event::DiscreteLaplace { scale: 1 << 30, sensitivity: 1 << 28, replace_sensitivity: 1 << 29, dimension: 4 },
                0.0,
                Numerics::Bounded,
            ),
            (
                "composed",
                Event::Compose(vec![each, Event::Exponential { epsilon: 0.3, replace_factor: 2.0 }]),
                1e-6,
                Numerics::Float,
            ),
            ("selection", select, 1e-6, Numerics::Exact),
            ("none", Event::NotPrivate { why: "a reason".into() }, 1e-6, Numerics::Exact),
        ];
        let number = "[target]\ncolumn = \"y\"\nbounds = [-5, 5]\n";
        let model = Model::new(crate::loss::find("squared").unwrap(), vec![2.0], 0, vec![vec![0.5; 5]], None);
        let mut state = |name: String, schema: &Schema, method: &str, event: &Event, delta: f64, adjacency, numerics| {
            let private = !matches!(event, Event::NotPrivate { .. });
            let guarantee = Guarantee {
                adjacency,
                private,
                asked_epsilon: 1.0,
                delta,
                event: event.clone(),
                zero_out: None,
                replace_one: None,
                simulated: false,
            };
            let public = vec![
                Fact::of_schema("schema of \"t\"".into()),
                Fact::of_count("number of rows: 500".into(), "declared"),
                Fact::of_rules("settings: some".into()),
                Fact::of_job("auxiliary rows: 3".into()),
            ];
            let training = Training {
                method: method.into(),
                plan: Vec::new(),
                reason: None,
                settings: Vec::new(),
                numerics,
                rows: 500,
                public,
                inputs: None,
            };
            let facts = Facts { program: "privfit 0", schema, model: &model, training: &training, guarantee: &guarantee };
            let mut value = json!(Certificate::derive(facts, &Declared::default(), None));
            value["mechanism"]["event"] = Value::Null;
            value["identity"] = Value::Null;
            let (mut numbers, mut texts) = (Vec::new(), String::new());
            split(&value, &mut numbers, &mut texts);
            out.insert(format!("text {name}"), hex(&[texts.as_bytes()])[..16].into());
            if method == "noisy-gd" {
                out.insert(format!("numbers {name}"), rounded(&Value::Array(numbers), 6));
            }
        };
        for (name, event, delta, numerics) in &events {
            state((*name).into(), &schema(number, ""), "noisy-gd", event, *delta, Adjacency::ZeroOut, *numerics);
        }
        let grouped = schema(number, "unit = { column = \"id\", max_rows = 3 }\n");
        state("grouped".into(), &grouped, "noisy-gd", &events[0].1, 1e-6, Adjacency::AddRemove, Numerics::Exact);
        for method in method::ALL.iter().chain(method::published::ALL) {
            let name = format!("method {}", method.name);
            state(name, &schema(number, ""), method.name, &Event::pure(1.0), 0.0, Adjacency::ReplaceOne, Numerics::Exact);
        }
    }

    /// Numbers in one list, texts without digits in another.
    fn split(value: &Value, numbers: &mut Vec<Value>, texts: &mut String) {
        match value {
            Value::Number(_) => numbers.push(value.clone()),
            Value::String(text) => texts.extend(text.chars().filter(|c| !c.is_ascii_digit()).chain(['\n'])),
            Value::Array(list) => list.iter().for_each(|v| split(v, numbers, texts)),
            Value::Object(map) => map.iter().for_each(|(k, v)| {
                texts.push_str(&format!("{k}:"));
                split(v, numbers, texts);
            }),
            _ => {}
        }
    }

    #[test]
    fn plans_and_sentences_change_with_their_versions() {
        let mut now = BTreeMap::new();
        plans(&mut now);
        statements(&mut now);
        let kept = std::fs::read_to_string(PLACE).unwrap_or_default();
        let mut before: BTreeMap<String, String> =
            kept.lines().filter_map(|l| l.rsplit_once(' ')).map(|(k, v)| (k.into(), v.into())).collect();
        let mut version = |name: &str| before.remove(name).and_then(|v| v.parse::<u32>().ok()).unwrap_or(0);
        for (name, constant, was, kinds) in [
            ("PLANNER", PLANNER, version("planner"), ["plan ", "numbers "]),
            ("TEXTS", TEXTS, version("texts"), ["text ", "text "]),
        ] {
            let changed: Vec<&str> = before
                .iter()
                .filter(|(key, digest)| kinds.iter().any(|k| key.starts_with(k)) && now.get(*key) != Some(digest))
                .map(|(key, _)| key.as_str())
                .collect();
            assert!(
                changed.is_empty() || constant > was,
                "{} changed, and certificates of {name} {was} would no longer verify: add one to {name} in certificate/versions.rs, then run\n  {REFRESH}\n{}",
                changed.len(),
                changed.join("\n")
            );
        }
        let lines: String = now.iter().map(|(key, digest)| format!("{key} {digest}\n")).collect();
        let text = format!("planner {PLANNER}\ntexts {TEXTS}\n{lines}");
        if std::env::var_os("PRIVFIT_REFRESH").is_some() {
            std::fs::write(PLACE, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(PLACE).unwrap_or_default() == text,
            "the list of plans and sentences is not today's: run\n  {REFRESH}"
        );
        let known: Vec<&str> =
            method::ALL.iter().map(|m| m.name).filter(|m| !now.keys().any(|k| k.starts_with(&format!("plan {m} ")))).collect();
        assert!(known.is_empty(), "no plan of {known:?} is on the list");
    }

    #[test]
    fn this_program_is_on_the_list() {
        let own = PROGRAMS.iter().find(|p| p.0 == env!("CARGO_PKG_VERSION")).unwrap();
        assert_eq!((own.1, own.2), (PLANNER, TEXTS));
        assert_eq!(version_of(&crate::training::program()), Some(env!("CARGO_PKG_VERSION")));
    }
}
