//! From the recorded facts of a model file to its certificate. A pure function: the same facts give the same certificate.

use super::declared::{contact, registry};
use super::*;
use crate::additive::edit::Edit;
use crate::method;
use crate::model::Model;
use crate::schema::Declared;
use crate::schema::{Schema, UnitOfPrivacy};
use crate::training::{Guarantee, Training};
use privfit_kernel::account::{Adjacency, Curve, Event};
use sha2::{Digest, Sha256};

/// What a certificate is derived from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) program: &'a str,
    pub(crate) schema: &'a Schema,
    pub(crate) model: &'a Model,
    pub(crate) training: &'a Training,
    pub(crate) guarantee: &'a Guarantee,
}

/// SHA-256 of pieces one after the other, in lower-case hexadecimal.
pub(crate) fn hex(pieces: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    pieces.iter().for_each(|p| digest.update(p));
    digest.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Digest of the released numbers.
pub(crate) fn model_digest(model: &Model) -> String {
    if let Model::Additive(additive) = model {
        return json_digest(additive);
    }
    if let Model::Network(network) = model {
        return json_digest(network);
    }
    let mut bytes = Vec::new();
    let mut add = |x: &f64| bytes.extend_from_slice(&x.to_le_bytes());
    model.weights().iter().flatten().for_each(&mut add);
    if let Some(map) = model.map() {
        map.factors.iter().for_each(&mut add);
        add(&map.constant);
        add(&map.weight);
    }
    hex(&[&bytes])
}

/// Digest of a part of the file, as compact JSON: a bound or a category that is changed is another schema.
pub(crate) fn json_digest(part: &impl serde::Serialize) -> String {
    hex(&[serde_json::to_string(part).unwrap_or_default().as_bytes()])
}

/// Digest of the record of how a model was trained; none in files of format 2.
pub(crate) fn training_digest(training: &Training) -> Option<String> {
    training.inputs.as_ref().map(|_| json_digest(training))
}

impl Certificate {
    /// The certificate of these facts, with what was declared.
    pub(crate) fn derive(facts: Facts<'_>, declared: &Declared, ledger: Option<LedgerPosition>) -> Certificate {
        let Facts { program, schema, model, training, guarantee: g } = facts;
        let private = g.private && !g.simulated;
        let event = &g.event;
        let column = matches!(schema.unit, UnitOfPrivacy::Column { .. });
        let merged = merge::merged(event).unwrap_or_else(|| event.clone());
        let bounds = |adjacency| private.then(|| numbers::bounds(&merged, adjacency, g.delta)).flatten();
        let (zero_out, replace_one) = (bounds(Adjacency::ZeroOut), bounds(Adjacency::ReplaceOne));
        let upper = |b: &Option<Bounds>| b.as_ref().map(|b| b.upper);
        let epsilons = (upper(&zero_out), upper(&replace_one));
        // An event without a guarantee has no curve.
        let curve = |adjacency| private.then(|| Curve::new(&merged, adjacency));
        let curves = (curve(Adjacency::ZeroOut), curve(Adjacency::ReplaceOne));
        let profile = match &curves {
            (Some(zero_out), Some(replace_one)) => numbers::profile(zero_out, replace_one),
            _ => Vec::new(),
        };
        let why = match event {
            Event::NotPrivate { why } => Some(why.clone()),
            _ if !private => Some("simulated: the noise came from a seed".into()),
            _ => None,
        };
        let mut releases = Vec::new();
        text::releases(event, 1, None, &mut releases);
        let selects = matches!(event, Event::Select { .. });
        let find = method::find(&training.method);
        let mut notions = vec![text::notion(Adjacency::ZeroOut), text::notion(Adjacency::ReplaceOne)];
        let add_remove = g.adjacency == Adjacency::AddRemove;
        if add_remove {
            notions.push(text::notion(Adjacency::AddRemove));
        }
        Certificate {
            identity: Identity {
                version: VERSION,
                program: program.into(),
                build: option_env!("PRIVFIT_BUILD_SHA256").map(String::from),
                data: schema.name.clone(),
                model_sha256: model_digest(model),
                schema_sha256: training.inputs.as_ref().map(|_| json_digest(schema)),
                training_sha256: training_digest(training),
                date: declared.date.clone(),
                ledger,
            },
            registry: registry(declared),
            guarantee: Claim {
                private,
                variant: if !private {
                    "none"
                } else if g.delta == 0.0 {
                    "pure"
                } else {
                    "approximate"
                }
                .into(),
                asked_epsilon: g.asked_epsilon,
                asked_adjacency: g.adjacency,
                delta: g.delta,
                zero_out: epsilons.0,
                replace_one: epsilons.1,
                add_remove: (private && add_remove)
                    .then(|| crate::training::epsilon(&merged, Adjacency::AddRemove, g.delta))
                    .flatten(),
                rho: private.then(|| numbers::rho(&merged)).flatten(),
                profile,
                rounding: "up".into(),
                scope: "this release alone; other releases from the same records add to it".into(),
                why_not: why,
            },
            unit: unit(schema),
            adjacency: Neighbours {
                units: training.rows,
                units_public: !add_remove,
                notions,
                domain: "tables with the columns of the schema; every cell is inside of its bounds after clamping".into(),
            },
            unprotected: Unprotected {
                facts: training.public.clone(),
                not_covered: text::not_covered().into_iter().chain(private_bounds(schema, g)).collect(),
            },
            mechanism: Releases {
                method: training.method.clone(),
                loss: model.loss().into(),
                source: find.map_or("unknown", |m| m.source).into(),
                theorem: {
                    let own = method::theorem(&training.method, model.task()).unwrap_or("unknown");
                    let more = method::also(&training.method, &training.settings);
                    [own].into_iter().chain(more).chain(selects.then_some(text::SELECTION)).collect::<Vec<_>>().join(" ")
                },
                plan: training.plan.clone(),
                releases,
                event: event.clone(),
                edits: model.edits().iter().map(Edit::text).collect(),
            },
            accounting: Accounting {
                amplification: text::amplification(event).into(),
                composition: text::composition(event).into(),
                slack: "rounding and the distance between discrete and continuous noise are charged".into(),
                zero_out,
                replace_one,
            },
            assumptions: Assumptions { enforced: text::enforced(event, training.numerics, find.is_some_and(|m| m.can.of_layers)), assumed: text::assumed(column, schema.private_bounds.is_some()) },
            preparation: Preparation {
                method: match &training.reason {
                    Some(reason) => format!("by a rule that looks at public facts only: {reason}"),
                    None => "by name, in the job".into(),
                },
                given: training.settings.clone(),
                other: "functions of public facts".into(),
                trials: if let Event::Select { stopping, .. } = event { text::runs(*stopping) } else { 0 },
                declaration: if selects {
                    "paid for here: the best of a random number of candidates, trained on one part of the records and scored on the other"
                } else {
                    "none on private records is paid for here; settings chosen by looking at them are not covered"
                }
                .into(),
            },
            deployment: Deployment {
                model: "central".into(),
                actors: "the operator is trusted with the records, whoever gets the file is not".into(),
                release: "one release".into(),
                access: "whoever has the file has the weights".into(),
                retention: "no private intermediate value is kept".into(),
            },
            security: Security {
                numerics: training.numerics,
                precision: text::precision(training.numerics).into(),
                randomness: if g.simulated {
                    "ChaCha20 from a seed: repeatable, and so not private"
                } else {
                    "ChaCha20, a fresh key from the operating system for each draw"
                }
                .into(),
                seeded: g.simulated,
                timing: "noise is drawn before the value exists; time is not reported, and else out of scope".into(),
                limits: vec![
                    "the digest shows accidents, not forgery: whoever can write the file can write its digest".into(),
                    "audit results are not part of the file".into(),
                ],
            },
            utility: Utility {
                statement: declared.utility.clone(),
                note: "no metric of the training records is in the file".into(),
            },
            plain: numbers::plain(g.adjacency, curves.0.as_ref().zip(epsilons.0), curves.1.as_ref().zip(epsilons.1), g.delta),
            contact: contact(declared),
        }
    }
}

/// Bounds that were released from the same records before, and what both cost together.
fn private_bounds(schema: &Schema, g: &Guarantee) -> Option<String> {
    let private_bounds = schema.private_bounds.as_ref()?;
    let both = Event::Compose(vec![private_bounds.event.clone(), g.event.clone()]);
    let view = |event: &Event, delta: f64| {
        let epsilon = crate::training::epsilon(event, g.adjacency, delta).map_or("infinite".into(), round_up);
        format!("epsilon {epsilon} at delta {delta:e}")
    };
    Some(format!(
        "bounds of {} were released from the same records by another release ({}, {}); with this one, had both been fixed beforehand, it is {}",
        private_bounds.columns.join(", "),
        view(&private_bounds.event, g.delta),
        g.adjacency.name(),
        view(&both, 2.0 * g.delta)
    ))
}

fn unit(schema: &Schema) -> Unit {
    let group = "k units together: k times epsilon, and delta times k e^((k - 1) epsilon)".into();
    match &schema.unit {
        UnitOfPrivacy::Row => {
            Unit { kind: "row".into(), column: None, max_rows: 1, mapping: "every row is a unit of its own".into(), group }
        }
        UnitOfPrivacy::Column { column, max_rows } => Unit {
            kind: "column".into(),
            column: Some(column.clone()),
            max_rows: *max_rows as u64,
            mapping: format!(
                "all rows with one value of {column:?} are a unit; at most {max_rows} of them count, chosen at random"
            ),
            group,
        },
    }
}
