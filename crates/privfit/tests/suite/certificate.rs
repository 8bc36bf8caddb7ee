//! Certificates: every method has one that verifies, no edit survives, hostile files are refused in bounded time.

use privfit::account::{Adjacency, Event};
use privfit::certificate::{ATTACK_RATE, DELTAS, Declared, LedgerPosition, entry, render, yaml};
use privfit::constraint::Constraint;
use privfit::data::cells::RowForm;
use privfit::data::csv::Csv;
use privfit::data::load::{Source, load_from};
use privfit::engine::Threads;
use privfit::job::fit::{Job, prepare};
use privfit::job::release::Release;
use privfit::job::tune::Tuning;
use privfit::kernel::{Entropy, Numerics};
use privfit::method::{self, Settings};
use privfit::model::Model;
use privfit::network::Pretrained;
use privfit::report::{Form, ModelReport};
use privfit::training::Fact;
use privfit::verify::Answer;
use privfit::verify::Verdict;
use privfit::verify::{examine, verify, verify_artifact};
use privfit::{Artifact, Error, Schema};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 120;
const CLASSES: &str = "[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n";
const THREE: &str = "[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\", \"maybe\"]\n";
const NUMBER: &str = "[target]\ncolumn = \"y\"\nbounds = [-5, 5]\n";
const REGISTRY: &str = "[registry]\nname = \"Test model\"\ncurator = [\"One\", \"Two\"]\nintended_use = \"tests\"\nregion = \"nowhere\"\n\
                        sector = \"Education\"\npublication_date = \"2024-02-29\"\ncontact = \"a@b.c\"\n";

fn schema(target: &str) -> Schema {
    Schema::parse(&format!(
        "[dataset]\nname = \"t\"\n{target}[features.x]\ntype = \"number\"\nmin = -3\nmax = 3\n\
         [features.c]\ntype = \"category\"\nvalues = [\"p\", \"q\", \"r\"]\n"
    ))
    .unwrap()
}

fn job(method: &str, loss: &str, target: &str, adjacency: Adjacency, delta: f64) -> Job {
    let few = [
        "noisy-gd",
        "noisy-sgd",
        "noisy-projected-sgd",
        "random-round-sgd",
        "recursive-momentum",
        "adaptive-gd",
        "output-gd",
        "frank-wolfe",
    ];
    let steps = few.contains(&method).then(|| ("steps".to_string(), 20.0));
    Job {
        schema: schema(target),
        rows: Some(ROWS as u64),
        epsilon: 1.0,
        delta: Some(delta),
        adjacency,
        loss: Some(loss.into()),
        method: method.into(),
        settings: Settings(steps.into_iter().collect()),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: true,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

/// A trained model, if there is a plan.
fn fit(job: &Job, entropy: &Entropy) -> Option<Artifact> {
    let prepared = prepare(job, ROWS as u64, false).ok()?;
    let number = job.schema.target.weights.is_empty() && job.loss.as_deref() == Some("squared");
    let line = |i: usize| {
        let y = if number { format!("{}", i % 7) } else { ["no", "yes"][i % 2].to_string() };
        format!("{},{},{y}\n", (i % 13) as f64 / 2.0 - 3.0, ["p", "q", "r"][i % 3])
    };
    let text = format!("x,c,y\n{}", (0..ROWS).map(line).collect::<String>());
    let mut reader = Csv::open(Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap();
    let data = load_from(&mut reader, &job.schema, prepared.plan.row_form(), entropy).unwrap();
    Some(prepared.train(&data, &Threads::new(1), entropy, &|| ()).unwrap())
}

fn system() -> Entropy {
    Entropy::system().unwrap()
}

fn model(method: &str) -> Artifact {
    fit(&job(method, "logistic", CLASSES, Adjacency::ZeroOut, 1e-6), &system()).unwrap()
}

/// A network is bounded, and exact if it is asked to be: the kernel says it, the plan that is made again agrees, and the certificate names the test.
#[test]
fn networks_state_their_grade() {
    for (exact, grade, test) in [
        (0.0, Numerics::Bounded, "one_example_moves_integers_by_at_most_the_sensitivity"),
        (1.0, Numerics::Exact, "neighbours_move_sums_by_at_most_the_sensitivity"),
    ] {
        let mut job = job("network", "squared", NUMBER, Adjacency::ZeroOut, 1e-6);
        job.settings = Settings([("steps".to_string(), 3.0), ("exact".to_string(), exact)].into());
        let artifact = fit(&job, &system()).unwrap();
        let c = &artifact.certificate;
        assert_eq!((c.security.numerics, artifact.training.numerics), (grade, grade));
        assert!(c.assumptions.enforced.iter().any(|e| e.by.contains(test)), "{:?}", c.assumptions.enforced);
        let verdict = verify(&artifact.to_json().unwrap()).unwrap();
        assert!(verdict.holds(), "{verdict:#?}");
    }
}

/// Statistics that inputs are normalised with are part of the event and of the sentences; a file that forgets them, or claims others, does not hold. Without them nothing is said.
#[test]
fn networks_pay_for_normalised_inputs() {
    let made = |share: f64| {
        let mut job = job("network", "squared", NUMBER, Adjacency::ZeroOut, 1e-6);
        let set = [("steps", 3.0), ("normalise", share)].map(|(name, value)| (name.to_string(), value));
        job.settings = Settings(set.into_iter().filter(|s| s.1 > 0.0).collect());
        fit(&job, &system()).unwrap()
    };
    let (artifact, plain) = (made(0.2), made(0.0));
    let event = |a: &Artifact| serde_json::to_value(&a.guarantee.event).unwrap();
    assert!(artifact.certificate.mechanism.theorem.contains("squares"), "{}", artifact.certificate.mechanism.theorem);
    assert!(!plain.certificate.mechanism.theorem.contains("squares") && !plain.to_json().unwrap().contains("normal"));
    let verdict = verify(&artifact.to_json().unwrap()).unwrap();
    assert!(verdict.holds(), "{verdict:#?}");
    let whole = parsed(&artifact);
    assert!(
        whole["artifact"]["model"]["normal"].as_array().is_some_and(|n| n.len() == 2 * 4),
        "{}",
        whole["artifact"]["model"]["normal"]
    );
    assert!(edited(&whole, &[]).holds());
    assert!(!edited(&whole, &[("guarantee/event", event(&plain))]).holds(), "the event without the statistics");
    assert!(!edited(&whole, &[("training/settings", serde_json::json!([["normalise", 0.1], ["steps", 3.0]]))]).holds());
}

/// Frozen layers are in the file to the bit, their public rows are listed, and the release has the length of the scores. Other layers, other rows and more steps do not pass.
#[test]
fn frozen_layers_are_bound_to_their_record() {
    let frozen: Vec<f64> = (0..15).map(|i| (f64::from(i) * 1.7).sin() / 3.0).collect();
    let digest = sha256(b"public");
    let mut job = job("network", "softmax", CLASSES, Adjacency::ZeroOut, 1e-6);
    job.layers = Some(vec!["dense 3".into(), "tanh".into()]);
    job.settings = Settings([("steps".to_string(), 3.0)].into());
    job.pretrained = Some(Arc::new(Pretrained::planned(50, vec![digest.clone()]).with_weights(frozen.clone())));
    let artifact = Artifact::from_json(&fit(&job, &system()).unwrap().to_json().unwrap()).unwrap();
    let Model::Network(model) = &artifact.model else { panic!() };
    let bits = |list: &[f64]| list.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&model.weights[..15]), bits(&frozen));
    // Four inputs with one bias each: three hidden numbers and a constant for both classes.
    assert!(model.weights.len() == 15 + 8 && model.weights[15..].iter().all(|w| *w != 0.0));
    assert!(serde_json::to_string(&artifact.guarantee.event).unwrap().contains("\"dimension\":8"));
    let layers = sha256(&frozen.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>());
    let listed = artifact.certificate.unprotected.facts.iter().find(|f| f.what.contains("declared public")).unwrap();
    assert!([digest.as_str(), layers.as_str(), ": 50,"].iter().all(|part| listed.what.contains(part)), "{listed:?}");
    assert!(verify_artifact(&artifact).holds(), "{:#?}", verify_artifact(&artifact));
    let whole = parsed(&artifact);
    let other = json!(sha256(b"other"));
    refused(&edited(&whole, &[("training/inputs/pretrained/files/0", other.clone())]), "plan");
    refused(&edited(&whole, &[("training/inputs/pretrained/rows", json!(51))]), "plan");
    refused(&edited(&whole, &[("training/inputs/pretrained/files/0", json!("not a digest"))]), "plan");
    refused(&edited(&whole, &[("training/inputs/pretrained", Value::Null)]), "plan");
    refused(&edited(&whole, &[("training/settings", json!([["steps", 4.0]]))]), "plan");
    // The digest of the layers is recomputed, so that a forger who changes every text fails too.
    let forged: Value = serde_json::from_str(&whole.to_string().replace(&layers, other.as_str().unwrap())).unwrap();
    refused(&edited(&forged, &[]), "plan");
    let mut moved = artifact.clone();
    let Model::Network(model) = &mut moved.model else { panic!() };
    model.weights[3] += 1e-9;
    moved.certificate.identity.model_sha256 = sha256(serde_json::to_string(model).unwrap().as_bytes());
    refused(&verify_artifact(&moved), "plan");
    // Layers of another size, or of none, have no plan.
    let refusal = |layers: &[&str], weights: usize| {
        let mut job = job.clone();
        job.layers = Some(layers.iter().map(|l| l.to_string()).collect());
        job.pretrained = Some(Arc::new(Pretrained::planned(50, Vec::new()).with_weights(vec![0.0; weights])));
        prepare(&job, ROWS as u64, false).err().unwrap().to_string()
    };
    assert!(refusal(&["dense 3", "tanh"], 14).contains("another network"));
    assert!(refusal(&["linear"], 0).contains("leave out public_rows"));
    job.settings.0.insert("normalise".into(), 0.1);
    assert!(prepare(&job, ROWS as u64, false).err().unwrap().to_string().contains("leave normalise out"));
}

/// Copies of pictures stand in the sentences and in the plan, and cost nothing; a file that forgets them does not hold.
#[test]
fn networks_state_their_copies() {
    let dir = std::env::temp_dir().join(format!("privfit-copies-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let idx = |sizes: &[u32], body: Vec<u8>| {
        let sizes_of: Vec<u8> = sizes.iter().flat_map(|s| s.to_be_bytes()).collect();
        [&[0, 0, 8, sizes.len() as u8][..], &sizes_of, &body].concat()
    };
    let pixels = (0..ROWS as u32 * 30).map(|i| (i * 37 % 251) as u8).collect();
    std::fs::write(dir.join("images.idx"), idx(&[ROWS as u32, 5, 6], pixels)).unwrap();
    std::fs::write(dir.join("labels.idx"), idx(&[ROWS as u32], (0..ROWS).map(|i| (i % 2) as u8).collect())).unwrap();
    let source = Source { files: vec![dir.join("images.idx")], labels: vec![dir.join("labels.idx")] };
    let pictures =
        "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"image\"\nshape = [5, 6]\nmax = 255\n";
    let made = |set: &[(&str, f64)]| {
        let set = [("steps", 3.0)].iter().chain(set).map(|(name, value)| (name.to_string(), *value));
        let job = Job {
            schema: Schema::parse(pictures).unwrap(),
            settings: Settings(set.collect()),
            layers: Some(vec!["convolution 2 3 padding 1".into(), "tanh".into()]),
            ..job("network", "softmax", CLASSES, Adjacency::ZeroOut, 1e-6)
        };
        let prepared = prepare(&job, ROWS as u64, false).unwrap();
        let data = prepared.open(&source, &system()).unwrap();
        prepared.train(&data, &Threads::new(1), &system(), &|| ()).unwrap()
    };
    let (copied, plain) = (made(&[("copies", 3.0), ("shift", 1.0)]), made(&[]));
    assert_eq!(copied.guarantee.event, plain.guarantee.event);
    let theorem = |a: &Artifact| a.certificate.mechanism.theorem.clone();
    assert!(theorem(&copied).contains("after the average") && !theorem(&plain).contains("average"), "{}", theorem(&copied));
    assert!(copied.to_json().unwrap().contains("3, moved by up to 1 pixel;") && !plain.to_json().unwrap().contains("copies"));
    let verdict = verify(&copied.to_json().unwrap()).unwrap();
    assert!(verdict.holds(), "{verdict:#?}");
    let whole = parsed(&copied);
    assert!(edited(&whole, &[]).holds());
    assert!(!edited(&whole, &[("training/settings", serde_json::json!([["steps", 3.0]]))]).holds());
    std::fs::remove_dir_all(dir).unwrap();
}

/// The file with a digest that fits it, whatever else was done to it.
fn repaired(file: &Value) -> String {
    let mut file = file.clone();
    file["sha256"] = "0".repeat(64).into();
    let text = serde_json::to_string_pretty(&file).unwrap() + "\n";
    let digest = sha256(text.as_bytes());
    let (start, end) = (text.len() - 68, text.len() - 4);
    assert_eq!(&text[start..end], "0".repeat(64));
    format!("{}{digest}{}", &text[..start], &text[end..])
}

/// A second opinion about digests: written for this test from the standard.
fn sha256(bytes: &[u8]) -> String {
    let primes: Vec<u64> = (2..312u64).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).collect();
    let fraction = |root: f64, n: u64, power: u32| {
        // First 32 bits behind the point, from the integer root of n 2^(32 power).
        let goal = u128::from(n) << (32 * power);
        let mut x = (root * 4_294_967_296.0) as u128;
        while x.pow(power) > goal {
            x -= 1;
        }
        while (x + 1).pow(power) <= goal {
            x += 1;
        }
        x as u32
    };
    let k: Vec<u32> = primes.iter().take(64).map(|p| fraction((*p as f64).cbrt(), *p, 3)).collect();
    let mut h: Vec<u32> = primes.iter().take(8).map(|p| fraction((*p as f64).sqrt(), *p, 2)).collect();
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    for block in message.chunks(64) {
        let mut w: Vec<u32> = block.chunks(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        for i in 16..64 {
            let a = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let b = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w.push(w[i - 16].wrapping_add(a).wrapping_add(w[i - 7]).wrapping_add(b));
        }
        let mut s = h.clone();
        for i in 0..64 {
            let one = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choose = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let a = s[7].wrapping_add(one).wrapping_add(choose).wrapping_add(k[i]).wrapping_add(w[i]);
            let zero = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
            s = vec![a.wrapping_add(zero.wrapping_add(majority)), s[0], s[1], s[2], s[3].wrapping_add(a), s[4], s[5], s[6]];
        }
        h.iter_mut().zip(&s).for_each(|(h, s)| *h = h.wrapping_add(*s));
    }
    h.iter().map(|x| format!("{x:08x}")).collect()
}

fn parsed(artifact: &Artifact) -> Value {
    serde_json::from_str(&artifact.to_json().unwrap()).unwrap()
}

fn refused(verdict: &Verdict, by: &str) {
    assert!(verdict.checks.iter().any(|c| c.answer == Answer::DoesNotHold && c.name == by), "{by}: {verdict:#?}");
    assert_eq!(verdict.clone().into_result("the certificate").unwrap_err().code(), 1);
}

fn damaged(text: &str, why: &str) {
    match Artifact::from_json(text) {
        Err(Error::Damaged(says)) => assert!(says.contains(why), "{says}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted: {}", &text[..200.min(text.len())]),
    }
}

#[test]
fn every_method_has_a_certificate_that_verifies() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let mut seen = std::collections::BTreeMap::new();
    for method in method::ALL.iter().chain(method::published::ALL) {
        // What is for more than two classes alone needs three.
        let several = (method.name == "additive-or-network").then_some(("softmax", THREE));
        let usual = [("logistic", CLASSES), ("squared", NUMBER), ("mean", ""), ("geometric-median", "")];
        for (loss, target) in usual.into_iter().chain(several) {
            for adjacency in Adjacency::ALL {
                let pure = ["output", "objective-pure"].contains(&method.name);
                let slow = ["two-stage", "weighted-columns", "transfer-support", "noisy-thresholding"].contains(&method.name);
                if slow && loss == "squared" && adjacency != Adjacency::ZeroOut {
                    continue;
                }
                let Some(artifact) = fit(&job(method.name, loss, target, adjacency, if pure { 0.0 } else { 1e-6 }), &system())
                else {
                    continue;
                };
                let name = format!("{} {loss} {adjacency}", method.name);
                let text = artifact.to_json().unwrap();
                assert_eq!(Artifact::from_json(&text).unwrap(), artifact, "{name}");
                let c = &artifact.certificate;
                let verdict = verify(&text).unwrap();
                assert_eq!(verdict.holds(), artifact.guarantee.private, "{name}: {verdict:#?}");
                assert!(verdict.checks.iter().all(|c| !c.text.contains("instead of")), "{name}: {verdict:#?}");
                let page = render(c, &[]);
                assert!(page.lines().all(|l| l.chars().count() <= 100) && page.lines().count() <= 130, "{name}\n{page}");
                if !artifact.guarantee.private {
                    assert!(page.contains("infinite: not private") && c.plain.zero_out.is_none(), "{page}");
                    refused(&verdict, "guarantee");
                    continue;
                }
                *seen.entry(method.name).or_insert(0) += 1;
                assert_eq!(c.guarantee.zero_out, artifact.guarantee.zero_out, "{name}");
                assert_eq!(c.guarantee.add_remove.is_some(), adjacency == Adjacency::AddRemove, "{name}");
                assert!(c.mechanism.theorem.len() > 80 && !c.mechanism.releases.is_empty(), "{name}");
                assert!(c.unprotected.facts.iter().all(|f| !f.source.is_empty()) && c.unprotected.facts.len() >= 4, "{name}");
                let by_theorem = [
                    "objective",
                    "output",
                    "permutation",
                    "hyperparameter",
                    "two-stage",
                    "weighted",
                    "transfer",
                    "network",
                    "additive-or",
                ];
                let exact = !by_theorem.iter().any(|p| method.name.trim_start_matches("published-").starts_with(p));
                if !method.published {
                    assert_eq!(c.security.numerics == Numerics::Exact, exact, "{name}: {:?}", c.security.numerics);
                }
                let risks = [c.plain.zero_out.unwrap(), c.plain.replace_one.unwrap()];
                for risk in risks {
                    assert!(risk.true_positive_rate > ATTACK_RATE && risk.accuracy > 0.5, "{name} {risk:?}");
                    assert!(risk.accuracy <= risk.posterior + 1e-5 && (risk.except == 0.0) == pure, "{name} {risk:?}");
                }
                assert!(risks[0].accuracy <= risks[1].accuracy + 1e-9, "{name} {risks:?}");
            }
        }
    }
    let missing: Vec<&str> = method::ALL.iter().map(|m| m.name).filter(|m| !seen.contains_key(m)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Phi, by Simpson's rule.
fn phi(x: f64) -> f64 {
    let (n, low) = (4000, -12.0);
    let h = (x - low) / f64::from(n);
    let f = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let inner = |i: i32| f64::from(2 + 2 * (i % 2)) * f(low + h * f64::from(i));
    h / 3.0 * (f(low) + f(x) + (1..n).map(inner).sum::<f64>())
}

#[test]
fn attacks_on_gaussians_have_closed_forms() {
    let artifact = model("noisy-gd");
    let Event::Repeat { times, event } = &artifact.guarantee.event else { panic!("{:?}", artifact.guarantee.event) };
    let Event::DiscreteGaussian { sigma, sensitivity, replace_sensitivity, .. } = **event else { panic!("{event:?}") };
    for (sensitivity, risk) in [
        (sensitivity, artifact.certificate.plain.zero_out.unwrap()),
        (replace_sensitivity, artifact.certificate.plain.replace_one.unwrap()),
    ] {
        let mu = (*times as f64).sqrt() * sensitivity as f64 / sigma as f64;
        let found = phi(-2.326_347_874_040_840_8 + mu);
        assert!(risk.true_positive_rate >= found * (1.0 - 1e-9) && risk.true_positive_rate <= 1.003 * found, "{risk:?} {found}");
        let right = phi(0.5 * mu);
        assert!(risk.accuracy >= right - 1e-9 && risk.accuracy <= right + 1e-4, "{risk:?} {right}");
        // The loss is normal with mean mu^2/2 and deviation mu.
        let epsilon = -(1.0 / risk.posterior - 1.0).ln();
        let beyond = 1.0 - phi(epsilon / mu - 0.5 * mu);
        assert!(risk.except >= beyond && risk.except < 1e-4, "{risk:?} {beyond}");
    }
    let c = &artifact.certificate;
    assert_eq!(c.guarantee.profile.iter().map(|p| p.delta).collect::<Vec<_>>(), DELTAS);
    let pairs = c.guarantee.profile.windows(2);
    assert!(pairs.into_iter().all(|w| w[0].zero_out < w[1].zero_out && w[0].zero_out < w[0].replace_one));
    let rho = c.guarantee.rho.unwrap();
    assert!((rho.replace_one / rho.zero_out - 4.0).abs() < 1e-6);
    assert_eq!(c.accounting.zero_out.as_ref().unwrap().accountant, "gaussian");
}

/// A file with the digest of its training record brought up to date, as a forger would.
fn bound(mut file: Value) -> String {
    let training = Artifact::from_json(&repaired(&file)).unwrap().training;
    if training.inputs.is_some() {
        let digest = sha256(serde_json::to_string(&training).unwrap().as_bytes());
        file["artifact"]["certificate"]["identity"]["training_sha256"] = json!(digest);
    }
    repaired(&file)
}

/// A file with edits at these places, and digests that fit.
fn edited(whole: &Value, edits: &[(&str, Value)]) -> Verdict {
    let mut file = whole.clone();
    for (place, value) in edits {
        *file.pointer_mut(&format!("/artifact/{place}")).unwrap_or_else(|| panic!("{place}")) = value.clone();
    }
    verify(&bound(file)).unwrap()
}

#[test]
fn no_edited_claim_holds() {
    let artifact = model("noisy-gd");
    let whole = parsed(&artifact);
    assert!(verify(&repaired(&whole)).unwrap().holds());
    let edit = |edits: &[(&str, Value)]| edited(&whole, edits);
    let number = |place: &str| whole.pointer(&format!("/artifact/{place}")).unwrap().as_f64().unwrap();
    let epsilon = number("guarantee/zero_out");
    let everywhere = |e: f64, more: &[(&str, Value)]| {
        let mut edits = vec![
            ("guarantee/zero_out", json!(e)),
            ("certificate/guarantee/zero_out", json!(e)),
            ("certificate/accounting/zero_out/upper", json!(e)),
            ("certificate/accounting/zero_out/lower", json!(0.0)),
        ];
        edits.extend(more.iter().cloned());
        edit(&edits)
    };
    refused(&everywhere(0.9 * epsilon, &[]), "epsilon under zero-out");
    refused(&edit(&[("certificate/guarantee/zero_out", json!(0.9 * epsilon))]), "epsilon under zero-out");
    refused(&edit(&[("guarantee/zero_out", json!(0.9 * epsilon))]), "record");
    refused(&edit(&[("certificate/guarantee/replace_one", json!(epsilon))]), "epsilon under replace-one");
    // A claim of another planner that is too large harms nobody; this planner would not have written it.
    let planner = artifact.training.inputs.as_ref().unwrap().planner;
    let other = [("training/inputs/planner", json!(planner + 1))];
    let verdict = everywhere(1.5 * epsilon, &other);
    assert_eq!(verdict.answer(), Answer::NotChecked, "{verdict:#?}");
    let check = verdict.checks.iter().find(|c| c.name == "epsilon under zero-out").unwrap();
    assert!(check.held() && check.text.contains("today's accountant proves 1.0000 instead of 1.5"), "{verdict:#?}");
    refused(&everywhere(0.9 * epsilon, &other), "epsilon under zero-out");
    refused(&everywhere(1.5 * epsilon, &[]), "epsilon under zero-out");
    // The event is what the plan says, and the certificate has the same.
    let steps = "guarantee/event/repeat/times";
    let both = [(steps, json!(40)), ("certificate/mechanism/event/repeat/times", json!(40))];
    refused(&edit(&both[..1]), "plan");
    refused(&edit(&both), "plan");
    let unplanned = [both[0].clone(), both[1].clone(), other[0].clone()];
    refused(&edit(&unplanned), "epsilon under zero-out");
    refused(&edit(&[both[0].clone(), other[0].clone()]), "event");
    refused(
        &edit(&[("guarantee/delta", json!(1e-9)), ("certificate/guarantee/delta", json!(1e-9)), other[0].clone()]),
        "epsilon under zero-out",
    );
    refused(&edit(&[("certificate/guarantee/profile/3/zero_out", json!(0.5))]), "profile");
    refused(&edit(&[("certificate/guarantee/rho/zero_out", json!(1e-9))]), "rho");
    refused(&edit(&[("certificate/plain/zero_out/true_positive_rate", json!(0.01))]), "attacks");
    refused(&edit(&[("certificate/plain/sentence", json!("Nothing can be learned."))]), "sentences");
    refused(&edit(&[("certificate/unit/max_rows", json!(1000))]), "unit");
    refused(&edit(&[("certificate/unprotected/not_covered", json!([]))]), "sentences");
    refused(&edit(&[("model/weights/0/0", json!(0.25))]), "identity");
    refused(&edit(&[("certificate/guarantee/private", json!(false))]), "guarantee");
    // Every copy of a false epsilon that was asked for: the plan for it is another one.
    refused(&edit(&[("guarantee/asked_epsilon", json!(0.01)), ("certificate/guarantee/asked_epsilon", json!(0.01))]), "plan");
}

/// Another version text used to switch off the check of every sentence.
#[test]
fn another_program_does_not_hide_sentences() {
    let whole = parsed(&model("noisy-gd"));
    for program in ["privfit 9.9.9", "privfit 0.0.1", "privfit", "something else", "privfit 0.1.0 ", ""] {
        let named = [("program", json!(program)), ("certificate/identity/program", json!(program))];
        let verdict = edited(&whole, &named);
        assert_eq!(verdict.answer(), Answer::NotChecked, "{program}: {verdict:#?}");
        assert!(verdict.checks.iter().any(|c| c.name == "versions" && c.answer == Answer::NotChecked), "{program}");
        // What cannot be looked up is not skipped.
        let looked_up = verdict.checks.iter().find(|c| c.name == "advisories").unwrap().answer;
        assert_eq!(
            looked_up == Answer::NotChecked,
            !["privfit 9.9.9", "privfit 0.0.1", "privfit 0.1.0 "].contains(&program),
            "{program}"
        );
        let mut more = named.to_vec();
        more.push(("certificate/plain/sentence", json!("Nobody can learn anything.")));
        refused(&edited(&whole, &more), "sentences");
        more.push(("training/inputs/texts", json!(9)));
        let verdict = edited(&whole, &more);
        assert_eq!(verdict.answer(), Answer::NotChecked, "{verdict:#?}");
        let error = verdict.clone().into_result("the certificate").unwrap_err();
        assert!(error.code() == 1 && error.to_string().contains("allow_unchecked"), "{error}");
        assert!(verdict.accept("the certificate", true).is_ok());
        more.push(("training/method", json!("magic")));
        more.push(("certificate/mechanism/method", json!("magic")));
        refused(&edited(&whole, &more), "plan");
    }
    // No sentence that was not recomputed is shown.
    let mut file = whole.clone();
    file["artifact"]["training"]["inputs"]["texts"] = json!(9);
    file["artifact"]["training"]["inputs"]["planner"] = json!(99);
    file["artifact"]["training"]["plan"] = json!([["clip", "PERFECT"]]);
    file["artifact"]["certificate"]["mechanism"]["plan"] = json!([["clip", "PERFECT"]]);
    file["artifact"]["training"]["public"] = json!([{"what": "PERFECT", "source": "PERFECT"}]);
    file["artifact"]["certificate"]["plain"]["sentence"] = json!("PERFECT");
    file["artifact"]["certificate"]["accounting"]["slack"] = json!("PERFECT");
    let forged = Artifact::from_json(&bound(file)).unwrap();
    let examined = examine(&forged);
    assert_eq!(examined.verdict.answer(), Answer::NotChecked);
    let shown = serde_json::to_string(&examined.certificate.unwrap()).unwrap();
    assert!(!shown.contains("PERFECT") && shown.contains("at most"), "{shown}");
    // What is left out is said to be, and not to be empty.
    assert!(shown.contains("in a way that was not checked") && !shown.contains("by name, in the job"), "{shown}");
    assert!(ModelReport::gather(&forged, None, false).is_err());
    let report = ModelReport::gather(&forged, None, true).unwrap();
    for form in [Form::Html, Form::Markdown, Form::Json] {
        let text = report.write(form).unwrap();
        assert!(!text.contains("PERFECT") && (text.contains("not checked") || text.contains("not-checked")), "{text}");
    }
}

/// Forgeries in which every copy agrees and the whole certificate is derived anew: the plan contradicts them.
#[test]
fn plans_are_made_again() {
    let honest = model("noisy-gd");
    let again = |edit: &dyn Fn(&mut Artifact)| {
        let mut forged = honest.clone();
        edit(&mut forged);
        let Artifact { schema, model, training, guarantee, .. } = forged;
        let text = Artifact::certified(schema, model, training, guarantee).to_json().unwrap();
        verify(&text).unwrap()
    };
    assert!(again(&|_| {}).holds());
    // The event of a fit for epsilon 0.01 beside a plan for 1.
    let mut weak = job("noisy-gd", "logistic", CLASSES, Adjacency::ZeroOut, 1e-6);
    weak.epsilon = 0.01;
    let weak = prepare(&weak, ROWS as u64, false).unwrap().plan.event().clone();
    refused(&again(&|a| a.guarantee.event = weak.clone()), "plan");
    refused(&again(&|a| a.training.rows = 3), "plan");
    let counted = |a: &mut Artifact, rows: u64| {
        a.training.rows = rows;
        a.training.public[2].what = a.training.public[2].what.replace(&ROWS.to_string(), &rows.to_string());
    };
    refused(&again(&|a| counted(a, 3)), "plan");
    refused(&again(&|a| a.guarantee.delta = 0.3), "plan");
    let large = |a: &mut Artifact| {
        a.guarantee.delta = 0.3;
        a.training.inputs.as_mut().unwrap().allow_large_delta = true;
    };
    refused(&again(&large), "plan");
    refused(&again(&|a| a.training.method = "magic".into()), "plan");
    refused(&again(&|a| a.training.method = "auto".into()), "plan");
    refused(&again(&|a| a.training.method = "objective".into()), "plan");
    refused(&again(&|a| a.training.settings[0].1 = 21.0), "plan");
    refused(&again(&|a| a.training.numerics = Numerics::Float), "plan");
    refused(&again(&|a| a.training.reason = Some("it is the best one".into())), "plan");
    refused(&again(&|a| a.guarantee.adjacency = Adjacency::ReplaceOne), "plan");
    refused(&again(&|a| a.training.inputs.as_mut().unwrap().constraint = Constraint::L2(1.0)), "plan");
    refused(&again(&|a| a.training.inputs.as_mut().unwrap().auxiliary = Some(u64::MAX)), "plan");
    let other = |a: &mut Artifact| match &mut a.model {
        Model::Linear(m) => m.loss_parameters[0] += 1.0,
        Model::Point(_) | Model::Additive(_) | Model::Network(_) => unreachable!(),
    };
    refused(&again(&other), "plan");
    refused(
        &again(&|a| a.training.public.push(Fact { what: "settings: nothing else".into(), source: "the job".into() })),
        "plan",
    );
    // A bound of the schema that is changed by itself: the certificate is about another schema.
    let whole = parsed(&honest);
    refused(&edited(&whole, &[("schema/features/table/0/1/number/max", json!(1e9))]), "identity");
}

/// Files of the format before this one are accounted again; nothing else about them is known.
#[test]
fn older_files_are_accounted_again() {
    let old = std::fs::read_to_string(format!("{}/tests/corpus/model/objective.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let artifact = Artifact::from_json(&old).unwrap();
    assert_eq!(artifact.version, 2);
    let verdict = verify(&old).unwrap();
    assert_eq!(verdict.answer(), Answer::NotChecked, "{verdict:#?}");
    let unchecked: Vec<&str> =
        verdict.checks.iter().filter(|c| c.answer == Answer::NotChecked).map(|c| c.name.as_str()).collect();
    assert_eq!(unchecked, ["versions", "plan", "sentences"]);
    assert!(verdict.checks.iter().any(|c| c.name == "epsilon under zero-out" && c.held()));
    let whole: Value = serde_json::from_str(&old).unwrap();
    refused(&edited(&whole, &[("certificate/guarantee/zero_out", json!(0.01))]), "epsilon under zero-out");
    // A newer file does not pass for an older one, nor the other way round.
    let mut newer = parsed(&model("output"));
    newer["artifact"]["version"] = json!(2);
    damaged(&repaired(&newer), "missing, unknown or of the wrong type");
    let mut older = whole.clone();
    older["artifact"]["version"] = json!(3);
    damaged(&repaired(&older), "records other things");
    older["artifact"]["version"] = json!(4);
    damaged(&repaired(&older), "missing, unknown or of the wrong type");
}

/// Files of format 3 have no kind of model, and sentences in the place of public facts. What they record is bound together as it was;
/// epsilon is recomputed, and whoever accepts that their plans are those of another planner says so.
#[test]
fn files_of_format_3_are_verified() {
    for name in ["planner1-objective", "planner1-tuned", "planner3-mapped", "planner3-mean", "planner3-tuned"] {
        let place = format!("{}/tests/data/older/format3-{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(place).unwrap();
        let artifact = Artifact::from_json(&text).unwrap();
        assert_eq!(artifact.version, 3);
        assert_eq!(matches!(artifact.model, Model::Point(_)), name.ends_with("mean"));
        assert_eq!(artifact.model.map().is_some(), name.ends_with("mapped"));
        let verdict = verify(&text).unwrap();
        assert_eq!(verdict.answer(), Answer::NotChecked, "{verdict:#?}");
        for check in ["identity", "epsilon under zero-out", "epsilon under replace-one"] {
            assert!(verdict.checks.iter().any(|c| c.name == check && c.held()), "{name}: {check}");
        }
        assert!(verdict.clone().accept("the certificate", true).is_ok() && verdict.accept("the certificate", false).is_err());
        let whole: Value = serde_json::from_str(&text).unwrap();
        refused(&edited(&whole, &[("certificate/guarantee/zero_out", json!(0.01))]), "epsilon under zero-out");
        // A sentence that is changed by itself: the digest in the certificate is that of another record.
        let mut other = whole.clone();
        other["artifact"]["training"]["public"][1] = json!("unit of privacy: nobody");
        refused(&verify(&repaired(&other)).unwrap(), "identity");
    }
}

/// Whether a place is the publisher's word.
fn is_declared(place: &str) -> bool {
    let words = ["certificate/registry/", "certificate/contact/", "certificate/identity/ledger", "certificate/utility/statement"];
    words.iter().any(|p| place.starts_with(p)) && !place.ends_with("product_type")
        || ["certificate/identity/date", "certificate/identity/build"].contains(&place)
}

/// Every leaf of a value with something else in its place, and every list without its last item.
fn edits(place: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    let path = |key: &str| if place.is_empty() { key.to_string() } else { format!("{place}/{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| edits(&path(key), value, out)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| edits(&path(&i.to_string()), value, out));
            if !list.is_empty() {
                out.push((place.into(), json!(list[..list.len() - 1])));
            }
        }
        Value::Null => out.extend([json!("x"), json!(7), json!(["x"])].map(|v| (place.to_string(), v))),
        Value::Bool(b) => out.push((place.into(), json!(!b))),
        Value::String(text) => out.extend([json!(format!("{text}x")), json!("")].map(|v| (place.to_string(), v))),
        Value::Number(n) if n.is_u64() => {
            let n = n.as_u64().unwrap();
            out.extend([json!(n + 1), json!(n / 2), json!(u64::MAX)].map(|v| (place.to_string(), v)));
        }
        Value::Number(n) => {
            let x = n.as_f64().unwrap();
            out.extend([json!(1.01 * x + 1e-3), json!(0.5 * x - 1e-3)].map(|v| (place.to_string(), v)));
        }
    }
}

/// Every field once, digest recomputed: each edit is rejected, or reported as not checked; the publisher's own words never hold.
fn no_edit_survives(artifact: &Artifact, under: &str) -> usize {
    let whole = parsed(artifact);
    let mut all = Vec::new();
    edits("", &whole["artifact"], &mut all);
    all.retain(|(place, _)| place.starts_with(under));
    let (mut rejected, mut unchecked, mut declared) = (0, 0, 0);
    for (place, value) in &all {
        let mut file = whole.clone();
        *file.pointer_mut(&format!("/artifact/{place}")).unwrap() = value.clone();
        if file == whole {
            continue;
        }
        match verify(&repaired(&file)) {
            Err(error) => {
                assert_eq!(error.code(), 4, "{place}");
                rejected += 1;
            }
            Ok(verdict) if is_declared(place) => {
                let word = if place.contains("ledger") {
                    "ledger"
                } else if place.ends_with("build") {
                    "build"
                } else {
                    "registry"
                };
                let own = verdict.checks.iter().find(|c| c.name == word);
                // An empty word is none.
                assert!(own.is_none_or(|c| c.answer == Answer::Declared), "{place}: {verdict:#?}");
                declared += 1;
            }
            Ok(verdict) => match verdict.answer() {
                Answer::DoesNotHold => rejected += 1,
                Answer::NotChecked => unchecked += 1,
                _ => panic!("{place} as {value}: {verdict:#?}"),
            },
        }
    }
    println!("{under:?}: {} edits, {rejected} rejected, {unchecked} not checked, {declared} declared", all.len());
    rejected + unchecked
}

#[test]
fn every_edit_is_rejected_or_reported() {
    let declared = Declared::parse(toml::from_str::<toml::Table>(REGISTRY).unwrap()["registry"].as_table().unwrap()).unwrap();
    // Chosen by the rule, so that there is a reason; pure, so that it is quick.
    let mut pure = job("auto", "logistic", CLASSES, Adjacency::ZeroOut, 0.0);
    pure.compare = false;
    let artifact = fit(&pure, &system()).unwrap().with_declared(declared);
    assert!(verify_artifact(&artifact).holds() && artifact.training.reason.is_some(), "{:#?}", verify_artifact(&artifact));
    assert!(no_edit_survives(&artifact, "") >= 60);
    // What the quick one does not have.
    let artifact = model("noisy-gd");
    assert!(no_edit_survives(&artifact, "guarantee/") >= 10 && no_edit_survives(&artifact, "training/") >= 20);
}

/// Selections are planned again too, with all candidates.
#[test]
fn selections_are_planned_again() {
    let mut tried = job("noisy-gd", "logistic", CLASSES, Adjacency::ZeroOut, 1e-6);
    (tried.compare, tried.epsilon) = (false, 4.0);
    tried.settings = Settings::default();
    let table = "runs = 2\nlaw = \"uniform\"\nheld_out = 0.25\n[[candidate]]\nsteps = 5\n[[candidate]]\nmethod = \"noisy-gd\"\nsteps = 8\n";
    let tuning = Tuning::parse(&toml::from_str(table).unwrap()).unwrap();
    let tuned = privfit::job::tune::prepare(&tried, &tuning, ROWS as u64, false).unwrap();
    let rows: String = (0..ROWS).map(|i| format!("{},{},{}\n", i % 6, ["p", "q", "r"][i % 3], ["no", "yes"][i % 2])).collect();
    let mut reader = Csv::open(Box::new(std::io::Cursor::new(format!("x,c,y\n{rows}").into_bytes()))).unwrap();
    let data = load_from(&mut reader, &tried.schema, RowForm::Features, &system()).unwrap();
    let artifact = tuned.train(data, &Threads::new(1), &system(), &|| {}).unwrap();
    let verdict = verify(&artifact.to_json().unwrap()).unwrap();
    assert!(verdict.holds(), "{verdict:#?}");
    assert!(no_edit_survives(&artifact, "training/inputs/selection") >= 20);
}

#[test]
fn every_byte_counts() {
    let text = model("objective").to_json().unwrap();
    let zeroed = format!("{}{}{}", &text[..text.len() - 68], "0".repeat(64), &text[text.len() - 4..]);
    assert_eq!(sha256(zeroed.as_bytes()), text[text.len() - 68..text.len() - 4]);
    let mut bytes = text.clone().into_bytes();
    for i in 0..bytes.len() {
        let bit = 1 << (i % 8);
        bytes[i] ^= bit;
        let outcome = Artifact::from_bytes(&bytes);
        assert!(matches!(outcome, Err(Error::Damaged(_))), "byte {i} of {}: {:?}", bytes.len(), outcome.map(|_| ()));
        bytes[i] ^= bit;
    }
    for edited in [
        format!("{text}\n"),
        format!(" {text}"),
        text.trim_end().to_string(),
        text.replacen("\n", "\r\n", 1),
        text.replacen(": ", ":", 1),
        text.replacen("\"format\"", "\"form\\u0061t\"", 1),
        format!("{}{}{}", &text[..text.len() - 68], text[text.len() - 68..text.len() - 4].to_uppercase(), "\"\n}\n"),
        text[..text.len() / 2].to_string(),
        String::new(),
    ] {
        damaged(&edited, "");
    }
}

#[test]
fn shapes_and_versions_are_checked_before_anything_else() {
    let whole = parsed(&model("output"));
    let edit = |place: &str, value: Value| {
        let mut file = whole.clone();
        *file.pointer_mut(place).unwrap() = value;
        file
    };
    damaged(&repaired(&edit("/artifact/model/weights/0", json!([0.5]))), "weights");
    damaged(&repaired(&edit("/artifact/model/weights", json!([]))), "weights");
    damaged(&repaired(&edit("/artifact/version", json!(5))), "use a newer privfit");
    // Before the digest: whoever meets a newer file should hear that, not that it is damaged.
    damaged(&edit("/artifact/version", json!(7)).to_string(), "use a newer privfit");
    damaged(&repaired(&edit("/artifact/version", json!(1))), "fit it again");
    damaged(&repaired(&edit("/artifact/certificate", json!({}))), "missing");
    damaged(&repaired(&edit("/artifact/certificate/guarantee/zero_out", json!("1"))), "wrong type");
    let mut more = whole.clone();
    more["artifact"]["certificate"]["plain"]["more"] = json!(1);
    damaged(&repaired(&more), "unknown");
    let mut more = whole.clone();
    more["artifact"]["model"]["more"] = json!(1);
    damaged(&repaired(&more), "unknown");
    damaged(&repaired(&edit("/artifact/model/kind", json!("oracle"))), "unknown");
    damaged(&repaired(&edit("/artifact/model/kind", json!("point"))), "missing");
    for group in whole["artifact"]["certificate"].as_object().unwrap().keys() {
        let mut less = whole.clone();
        less["artifact"]["certificate"].as_object_mut().unwrap().remove(group);
        damaged(&repaired(&less), "missing");
    }
    assert_eq!(whole["artifact"]["certificate"].as_object().unwrap().len(), 15);
}

#[test]
fn simulations_are_refused() {
    let artifact = fit(&job("noisy-gd", "logistic", CLASSES, Adjacency::ZeroOut, 1e-6), &Entropy::simulated(1)).unwrap();
    let c = &artifact.certificate;
    assert!(c.security.seeded && c.guarantee.zero_out.is_none() && c.guarantee.profile.is_empty() && c.plain.zero_out.is_none());
    assert!(c.plain.sentence.contains("Nothing is guaranteed") && render(c, &[]).contains("infinite: not private"));
    refused(&verify(&artifact.to_json().unwrap()).unwrap(), "guarantee");
    assert_eq!(entry(c, &Declared::default()).unwrap_err().code(), 1);
}

#[test]
fn hostile_files_end_soon() {
    // A few seconds on a machine of its own; others may be busy here. What is not bounded takes hours.
    let quick = |what: &str, f: &dyn Fn()| {
        let begin = Instant::now();
        f();
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}: {:?}", begin.elapsed());
    };
    let many = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 100_000_000 } else { 20_000_000 };
    for piece in ["[", "{\"a\":", "0", "x", " ", "\"", "{\"artifact\":{\"format\":\"", "\u{0}"] {
        quick(piece, &|| damaged(&piece.repeat(many / piece.len()), ""));
    }
    quick("long text", &|| damaged(&format!("{{\"artifact\":{{\"format\":\"{}\"}}}}", "a".repeat(many)), ""));
    quick("long list", &|| damaged(&format!("{{\"sha256\":[{}1]}}", "1,".repeat(many / 2)), ""));
    let artifact = model("noisy-gd");
    let text = artifact.to_json().unwrap();
    for number in ["1e400", "NaN", "Infinity", "-1e999", "1e-999999999", &"9".repeat(100_000)] {
        let epsilon = format!("\"asked_epsilon\": {:?}", artifact.guarantee.asked_epsilon);
        assert!(text.contains(&epsilon));
        let edited = text.replace(&epsilon, &format!("\"asked_epsilon\": {number}"));
        let (start, end) = (edited.len() - 68, edited.len() - 4);
        let zeroed = format!("{}{}{}", &edited[..start], "0".repeat(64), &edited[end..]);
        let edited = format!("{}{}{}", &edited[..start], sha256(zeroed.as_bytes()), &edited[end..]);
        // A number that is 0 may be read; it must not be a claim.
        quick(number, &|| assert!(verify(&edited).map_or(true, |v| v.checks.iter().all(|c| c.name != "guarantee" || c.held()))));
    }
    // Events that a program could be kept busy with: many parts, deep ones, often repeated ones.
    let whole = parsed(&artifact);
    let with = |event: Value| {
        let mut file = whole.clone();
        file["artifact"]["guarantee"]["event"] = event.clone();
        file["artifact"]["certificate"]["mechanism"]["event"] = event;
        repaired(&file)
    };
    let leaf = |noise: f64| json!({"poisson": {"rate": 0.01, "event": {"gaussian": {"noise_multiplier": noise, "replace_factor": 2.0}}}});
    let compose = |n: usize| json!({"compose": (0..n).map(|i| leaf(1.0 + i as f64 / 1000.0)).collect::<Vec<_>>()});
    let nested = |n: usize| (0..n).fold(leaf(1.0), |e, _| json!({"repeat": {"times": 2, "event": e}}));
    let refuse = |event: Value| match verify(&with(event)) {
        Ok(verdict) => assert!(!verdict.holds()),
        Err(error) => assert_eq!(error.code(), 4),
    };
    for (what, event) in [
        ("many parts", compose(100_000)),
        ("some parts", compose(200)),
        ("few parts", compose(10)),
        ("equal parts", json!({"compose": vec![leaf(1.0); 100_000]})),
        ("deep", nested(30)),
        ("deeper", nested(55)),
        ("often", json!({"repeat": {"times": u64::MAX, "event": leaf(1.0)}})),
        ("often, little", json!({"repeat": {"times": u64::MAX, "event": leaf(1e9)}})),
        ("little noise", leaf(1e-300)),
        ("no event", json!({"repeat": {"times": 0, "event": leaf(1.0)}})),
        (
            "many degrees",
            json!({"objective-perturbation": {"noise_multiplier": 1.0, "replace_factor": 2.0, "degrees": 10_000,
            "log_determinant": 0.1, "output_noise_multiplier": null, "grid_sigma": 0, "dimension": 10_000}}),
        ),
    ] {
        quick(what, &|| refuse(event.clone()));
    }
}

#[test]
fn a_position_in_a_ledger_is_kept_and_shown() {
    let position = LedgerPosition {
        ledger: "adult-2024".into(),
        request: "ab12".into(),
        sequence: 17,
        hash: "00ff".into(),
        jobs: 3,
        epsilon: 2.718_281_8,
        cap_epsilon: 4.0,
        delta: 1e-6,
    };
    let artifact = model("noisy-gd").with_ledger(position.clone());
    let read = Artifact::from_json(&artifact.to_json().unwrap()).unwrap();
    assert_eq!(read.certificate.identity.ledger, Some(position));
    assert!(verify_artifact(&read).holds());
    assert!(render(&read.certificate, &[]).contains("adult-2024, record 17, job 3 of the data set: epsilon 2.7183 of 4 spent"));
}

/// Every test that a certificate names exists.
#[test]
fn named_tests_exist() {
    fn sources(folder: &std::path::Path, out: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut all = String::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut all);
    let mut named = 0;
    for method in ["noisy-gd", "objective", "noisy-sgd"] {
        for enforced in model(method).certificate.assumptions.enforced {
            for name in enforced.by.split("test ").skip(1) {
                assert!(all.contains(&format!("fn {name}(")), "{name}");
                named += 1;
            }
        }
    }
    assert!(named > 15);
}

/// Fields of the public registry: kind, allowed values, whether required. `/` separates levels.
const FIELDS: &[(&str, &str, &[&str], bool)] = &[
    ("url_slug", "text", &[], true),
    (
        "status",
        "text",
        &["Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)", "Approved (Pending)"],
        true,
    ),
    ("tier", "tier", &[], true),
    ("deployment", "object", &[], true),
    ("deployment/basic", "object", &[], true),
    ("deployment/basic/name", "text", &[], true),
    ("deployment/basic/data_curators", "list", &[], true),
    ("deployment/basic/intended_use", "text", &[], true),
    (
        "deployment/basic/data_product_type",
        "text",
        &["Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"],
        true,
    ),
    ("deployment/basic/data_product_region", "text", &[], true),
    ("deployment/basic/description", "text", &[], true),
    ("deployment/basic/publication_date", "text", &[], true),
    (
        "deployment/basic/data_product_sector",
        "text",
        &["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"],
        false,
    ),
    ("deployment/dp_variant", "object", &[], false),
    (
        "deployment/dp_variant/variant_name",
        "text",
        &["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
        false,
    ),
    ("deployment/dp_variant/data_domain", "text", &[], false),
    ("deployment/dp_variant/unprotected_quantities", "text", &[], false),
    ("deployment/privacy_loss", "object", &[], false),
    ("deployment/privacy_loss/privacy_unit", "text", &[], false),
    ("deployment/privacy_loss/privacy_unit_details", "text", &[], false),
    ("deployment/privacy_loss/privacy_parameters", "object", &[], false),
    ("deployment/privacy_loss/privacy_parameters/epsilon", "number", &[], false),
    ("deployment/privacy_loss/privacy_parameters/delta", "number", &[], false),
    ("deployment/privacy_loss/privacy_parameters/rho", "number", &[], false),
    ("deployment/privacy_loss/privacy_parameters_details", "text", &[], false),
    ("deployment/deployment_model", "object", &[], false),
    ("deployment/deployment_model/model_name", "text", &["Local", "Central", "Shuffle", "Federated", "Varies"], false),
    ("deployment/deployment_model/model_name_details", "text", &[], false),
    ("deployment/deployment_model/actors", "text", &[], false),
    ("deployment/deployment_model/release_type", "text", &["One release", "Many releases"], false),
    ("deployment/deployment_model/release_type_details", "text", &[], false),
    ("deployment/deployment_model/data_source_type", "text", &["Static", "Dynamic"], false),
    ("deployment/deployment_model/data_source_type_details", "text", &[], false),
    ("deployment/deployment_model/access_type", "text", &["Interactive", "Non-interactive"], false),
    ("deployment/deployment_model/access_type_details", "text", &[], false),
    ("deployment/accounting", "object", &[], false),
    ("deployment/accounting/post_processing", "text", &[], false),
    ("deployment/accounting/composition", "text", &[], false),
    ("deployment/implementation", "object", &[], false),
    ("deployment/implementation/preprocessing_and_hyperparameter_tuning", "text", &[], false),
    ("deployment/implementation/mechanisms", "text", &[], false),
    ("deployment/implementation/justification", "text", &[], false),
    ("deployment/administrative", "object", &[], false),
    ("deployment/administrative/sources", "text", &[], false),
    ("deployment/administrative/notes", "text", &[], false),
    ("deployment/administrative/registry_authors", "list", &[], true),
];

fn check(place: &str, value: &Value) {
    if !place.is_empty() {
        let field = FIELDS.iter().find(|f| f.0 == place).unwrap_or_else(|| panic!("{place} is not a field"));
        let right = match field.1 {
            "text" => value.as_str().is_some_and(|t| !t.is_empty() && (field.2.is_empty() || field.2.contains(&t))),
            "list" => value.as_array().is_some_and(|l| !l.is_empty() && l.iter().all(Value::is_string)),
            "number" => value.is_f64(),
            "tier" => value.as_u64().is_some_and(|t| (1..=3).contains(&t)),
            _ => value.is_object(),
        };
        assert!(right, "{place}: {value}");
    }
    if let Some(map) = value.as_object() {
        let inside = |field: &str| match place {
            "" => (!field.contains('/')).then(|| field.to_string()),
            _ => field.strip_prefix(&format!("{place}/")).filter(|f| !f.contains('/')).map(String::from),
        };
        for (name, _, _, required) in FIELDS {
            assert!(!required || inside(name).is_none_or(|f| map.contains_key(&f)), "{name} is missing");
        }
        map.iter().for_each(|(key, value)| check(&if place.is_empty() { key.clone() } else { format!("{place}/{key}") }, value));
    }
}

#[test]
fn entries_have_the_fields_of_the_registry() {
    let declared = Declared::parse(toml::from_str::<toml::Table>(REGISTRY).unwrap()["registry"].as_table().unwrap()).unwrap();
    for (method, delta) in [("objective", 1e-6), ("output", 0.0), ("noisy-sgd", 1e-6)] {
        let artifact = fit(&job(method, "logistic", CLASSES, Adjacency::ReplaceOne, delta), &system()).unwrap();
        let missing = entry(&artifact.certificate, &Declared::default()).unwrap_err();
        assert!(missing.code() == 2 && missing.to_string().contains("name, curator, intended_use, region, publication_date"));
        let artifact = artifact.with_declared(declared.clone());
        assert!(verify_artifact(&artifact).holds());
        let entry = entry(&artifact.certificate, &artifact.certificate.declared()).unwrap();
        check("", &entry);
        assert_eq!(entry["url_slug"], "test-model-one-two-2024");
        let parameters = &entry["deployment"]["privacy_loss"]["privacy_parameters"];
        assert!(parameters["epsilon"].as_f64().unwrap() >= artifact.guarantee.replace_one.unwrap());
        assert_eq!(parameters.get("delta").is_some(), delta > 0.0);
        let text = yaml(&entry);
        assert!(text.starts_with("url_slug: test-model-one-two-2024\n"), "{text}");
        assert!(text.contains("\n    publication_date: \"2024-02-29\"\n"), "{text}");
        assert!(delta == 0.0 || text.contains("delta: 1.0e-6\n"), "{text}");
    }
}

/// A schema may declare too; the job wins.
#[test]
fn declarations_come_from_job_and_schema() {
    let mut job = job("noisy-gd", "logistic", CLASSES, Adjacency::ZeroOut, 1e-6);
    job.schema = Schema::parse(&format!(
        "[dataset]\nname = \"t\"\n{CLASSES}[features.x]\ntype = \"number\"\nmin = -3\nmax = 3\n[features.c]\ntype = \"ignore\"\n{REGISTRY}"
    ))
    .unwrap();
    let artifact = fit(&job, &system()).unwrap();
    assert_eq!(artifact.certificate.registry.name.as_deref(), Some("Test model"));
    let artifact = artifact.with_declared(Declared { name: Some("Other".into()), ..Declared::on("2024-03-01").unwrap() });
    let c = &artifact.certificate;
    assert_eq!((c.registry.name.as_deref(), c.registry.region.as_deref()), (Some("Other"), Some("nowhere")));
    assert_eq!(c.identity.date.as_deref(), Some("2024-03-01"));
    assert!(verify_artifact(&artifact).holds());
    assert_eq!(Artifact::from_json(&artifact.to_json().unwrap()).unwrap(), artifact);
}
