//! The certificate as an entry of the public registry of deployments: three tiers of fields, all of them filled in from the certificate
//! and from what was declared.

use super::{Certificate, Declared};
use crate::error::{Error, Result};
use privfit_kernel::account::Adjacency;
use serde_json::{Map, Value, json};

/// The entry. What the registry requires and nobody declared is an error that names the keys.
pub fn entry(certificate: &Certificate, declared: &Declared) -> Result<Value> {
    let c = certificate;
    if !c.guarantee.private {
        return Err(Error::refused(
            "the model is not private: a registry of private deployments has no place for it, fit it with noise",
        ));
    }
    let epsilon = match c.guarantee.asked_adjacency {
        Adjacency::ZeroOut => c.guarantee.zero_out,
        Adjacency::ReplaceOne => c.guarantee.replace_one,
        Adjacency::AddRemove => c.guarantee.add_remove,
    };
    let Some(epsilon) = epsilon else {
        return Err(Error::refused(
            "the model has no finite epsilon under the adjacency asked for: there is nothing to register",
        ));
    };
    let d = declared;
    let needed = [
        ("name", d.name.is_none()),
        ("curator", d.curators.is_empty()),
        ("intended_use", d.intended_use.is_none()),
        ("region", d.region.is_none()),
        ("publication_date", d.publication_date.is_none()),
    ];
    let missing: Vec<&str> = needed.iter().filter(|n| n.1).map(|n| n.0).collect();
    if !missing.is_empty() {
        return Err(Error::misuse(format!(
            "the registry requires {}: write them into a file with a table [registry] and give it with ",
            missing.join(", ")
        ))
        .give("registry", "FILE"));
    }
    let shown = |text: &Option<String>| text.clone().unwrap_or_default();
    let day = shown(&d.publication_date);
    let slug = [shown(&d.name), d.curators.join("-"), day[..4].to_string()].map(|t| clean(&t)).join("-");
    let mut basic = Map::new();
    let mut put = |key: &str, value: Value| basic.insert(key.into(), value);
    put("name", json!(d.name));
    put("data_curators", json!(d.curators));
    put("intended_use", json!(d.intended_use));
    put("data_product_type", json!("Machine learning model"));
    put("data_product_region", json!(d.region));
    let usual =
        format!("A linear model (method {}, loss {}), trained by {}.", c.mechanism.method, c.mechanism.loss, c.identity.program);
    put("description", json!(d.description.clone().unwrap_or(usual)));
    put("publication_date", json!(day));
    if let Some(sector) = &d.sector {
        put("data_product_sector", json!(sector));
    }
    let view = |e: Option<f64>| e.map_or("infinite".into(), super::round_up);
    let facts: Vec<String> = c.unprotected.facts.iter().map(|f| format!("{} ({})", f.what, f.source)).collect();
    let releases: Vec<String> = c
        .mechanism
        .releases
        .iter()
        .take(20)
        .map(|r| {
            let noise = r.noise_multiplier.map_or(String::new(), |n| format!(", noise multiplier {n:.6}"));
            let rate = r.rate.map_or(String::new(), |q| format!(", sampling rate {q}"));
            format!("{} x {}{noise}{rate}", r.times, r.what)
        })
        .collect();
    let unit = match &c.unit.column {
        None => "row".to_string(),
        Some(column) => format!("all rows with one value of {column}, at most {}", c.unit.max_rows),
    };
    let adjacent: Vec<String> = c.adjacency.notions.iter().map(|n| format!("{}: {}", n.name, n.meaning)).collect();
    let given: Vec<String> = c.preparation.given.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    let mut notes = format!("{} Weights: SHA-256 {}.", c.plain.sentence, c.identity.model_sha256);
    if let Some(utility) = &d.utility {
        notes.push_str(&format!(" Utility: {utility}."));
    }
    if let Some(contact) = &d.contact {
        notes.push_str(&format!(" Contact: {contact}."));
    }
    Ok(json!({
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": if c.guarantee.delta == 0.0 { "Pure DP" } else { "Approximate DP" },
                "data_domain": c.adjacency.domain,
                "unprotected_quantities": facts.join("; "),
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_details": format!("{}. Adjacent data sets: {}.", capital(&c.unit.mapping), adjacent.join("; ")),
                "privacy_parameters": parameters(epsilon, c.guarantee.delta),
                "privacy_parameters_details": format!(
                    "Epsilon under {}. At the same delta it is {} under zero-out and {} under replace-one, rounded up. {}.",
                    c.guarantee.asked_adjacency, view(c.guarantee.zero_out), view(c.guarantee.replace_one), capital(&c.guarantee.scope)
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": c.deployment.actors,
                "actors": c.deployment.actors,
                "release_type": "One release",
                "release_type_details": c.deployment.access,
                "data_source_type": "Static",
                "data_source_type_details": format!("{} units", c.adjacency.units),
                "access_type": "Non-interactive",
                "access_type_details": c.deployment.access,
            },
            "accounting": {
                "post_processing": "Everything after the releases listed under mechanisms looks at released numbers only.",
                "composition": format!("{}. Sampling: {}.", capital(&c.accounting.composition), c.accounting.amplification),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": format!(
                    "Method chosen {}. Settings given: {}; others are {}. Tuning: {}.",
                    c.preparation.method,
                    if given.is_empty() { "none".into() } else { given.join(", ") },
                    c.preparation.other,
                    c.preparation.declaration
                ),
                "mechanisms": format!("{}. Numerics: {}. Randomness: {}.", capital(&releases.join("; ")), c.security.precision, c.security.randomness),
                "justification": c.mechanism.theorem,
            },
            "administrative": { "notes": notes, "registry_authors": d.curators },
        },
    }))
}

fn parameters(epsilon: f64, delta: f64) -> Value {
    // Rounded up, as everywhere.
    let epsilon: f64 = super::round_up(epsilon).parse().unwrap_or(epsilon);
    if delta == 0.0 { json!({"epsilon": epsilon}) } else { json!({"epsilon": epsilon, "delta": delta}) }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The registry's rule for addresses: lower case, one hyphen for a run of anything but letters, digits and underscores, and one for each
/// underscore.
fn clean(text: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in text.to_lowercase().chars() {
        let word = c.is_alphanumeric() || c == '_';
        if word || !inside {
            out.push(if word && c != '_' { c } else { '-' });
        }
        inside = !word;
    }
    out
}

/// The same as YAML: blocks of keys, every text in double quotes.
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let Value::Object(map) = value else { return };
    // The registry's own tool looks for the slug in the first line.
    let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
    pairs.sort_by_key(|(key, value)| (key.as_str() != "url_slug", value.is_object()));
    for (key, value) in pairs {
        out.push_str(&format!("{}{key}:", "  ".repeat(depth)));
        match value {
            Value::Object(_) => {
                out.push('\n');
                write(value, depth + 1, out);
            }
            Value::Array(list) => {
                out.push('\n');
                list.iter().for_each(|v| out.push_str(&format!("{}- {}\n", "  ".repeat(depth + 1), scalar(v))));
            }
            // And reads it as it stands.
            Value::String(slug) if key == "url_slug" => out.push_str(&format!(" {slug}\n")),
            other => out.push_str(&format!(" {}\n", scalar(other))),
        }
    }
}

/// Texts in JSON's quotes, which are YAML's; numbers with a point, so that YAML 1.1 takes 1e-9 for one.
fn scalar(value: &Value) -> String {
    match value.as_f64() {
        Some(x) if value.is_f64() => {
            let text = format!("{x:e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = if digits.contains('.') { digits.to_string() } else { format!("{digits}.0") };
            if (1e-3..1e6).contains(&x) {
                format!("{x:?}")
            } else {
                format!("{digits}e{}{power}", if power.starts_with('-') { "" } else { "+" })
            }
        }
        _ => value.to_string(),
    }
}
