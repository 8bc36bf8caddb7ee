//! Private tuning: what it promises before data are opened, and what it does with them.

use privfit::Schema;
use privfit::account::{Adjacency, Event, epsilon};
use privfit::constraint::Constraint;
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::Release;
use privfit::job::fit::Job;
use privfit::job::tune::{Tuned, Tuning, prepare};
use privfit::kernel::Entropy;
use privfit::method::Settings;
use std::path::PathBuf;

const SCHEMA: &str = "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[features.u]\ntype = \"number\"\nmin = -1\n\
    max = 1\n[features.v]\ntype = \"number\"\nmin = -1\nmax = 1\n";

fn job(schema: &str, epsilon: f64, adjacency: Adjacency) -> Job {
    Job {
        schema: Schema::parse(schema).unwrap(),
        rows: None,
        epsilon,
        delta: Some(1e-7),
        adjacency,
        loss: None,
        method: "auto".into(),
        settings: Settings::default(),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    }
}

fn tuning(text: &str) -> Tuning {
    Tuning::parse(&toml::from_str(text).unwrap()).unwrap()
}

fn cost(tuned: &Tuned, adjacency: Adjacency) -> f64 {
    epsilon(tuned.event(), adjacency, 1e-7).unwrap().bound.upper
}

/// The price is met by every distribution, adjacency and kind of candidate, and hardly anything of it is left over.
#[test]
fn plans_meet_their_price() {
    for distribution in ["uniform", "harmonic", "geometric", "logarithmic", "poisson"] {
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            for grid in [
                "method = [\"objective\"]\nridge = [100, 300, 1000]",
                "method = [\"noisy-gd\"]\nsteps = [5, 20]\nridge = [0, 10]",
                "method = [\"objective\", \"noisy-gd\"]",
            ] {
                let text = format!("distribution = \"{distribution}\"\nruns = 12\n[grid]\n{grid}");
                let tuned = prepare(&job(SCHEMA, 1.0, adjacency), &tuning(&text), 5000, true).unwrap();
                let price = cost(&tuned, adjacency);
                assert!(price <= 1.0 && price > 0.95, "{distribution} {adjacency} {grid}: {price}");
                assert!(tuned.runs() >= 12);
            }
        }
    }
    // Under add-remove nothing may rest on the true number of records.
    let open = job(SCHEMA, 1.0, Adjacency::AddRemove);
    assert!(prepare(&open, &tuning("[grid]\nmethod = [\"objective\"]\nridge = [3]"), 5000, false).is_err());
    let tuned = prepare(&open, &tuning("[grid]\nmethod = [\"noisy-gd\"]\nsteps = [5, 9]"), 5000, false).unwrap();
    assert!(cost(&tuned, Adjacency::AddRemove) <= 1.0);
}

#[test]
fn jobs_that_cannot_be_tuned_are_refused() {
    let asked = job(SCHEMA, 1.0, Adjacency::ZeroOut);
    let says = |text: &str, words: &str| {
        let tuning: Result<Tuning, privfit::Error> = Tuning::parse(&toml::from_str(text).unwrap());
        let error = match tuning {
            Err(error) => error,
            Ok(tuning) => prepare(&asked, &tuning, 5000, true).err().unwrap(),
        };
        assert!(error.to_string().contains(words), "{text}: {error}");
    };
    says("runs = 3", "no candidates");
    says("grid = 3", "table of lists");
    says("speed = 3\n[grid]\nridge = [3]", "unknown key");
    says("law = \"cauchy\"\n[grid]\nridge = [3]", "give uniform");
    says("law = \"uniform\"\ndistribution = \"uniform\"\n[grid]\nridge = [3]", "given twice");
    says("distribution = \"cauchy\"\n[grid]\nridge = [3]", "give uniform");
    says("held_out = 0.9\n[grid]\nridge = [3]", "0.01 to 0.5");
    says("[grid]\nridge = [\"x\"]", "give a number");
    says("[grid]\nbreadth = [3]", "unknown setting");
    says("[grid]\nmethod = [\"weighted-columns\"]\nsparsity = [2]", "can't be tuned");
    let many: Vec<String> = (0..70).map(|i| format!("{}", 3 + i)).collect();
    says(&format!("[grid]\nridge = [{}]", many.join(", ")), "between 1 and 64");
}

fn table(rows: u32) -> PathBuf {
    let path = std::env::temp_dir().join(format!("privfit-tuning-{}-{rows}.csv", std::process::id()));
    let mut text = String::from("u,v,y\n");
    for i in 0..rows {
        let (u, v) = (f64::from(i * 37 % 200) / 100.0 - 1.0, f64::from(i * 91 % 177) / 88.5 - 1.0);
        text.push_str(&format!("{u},{v},{}\n", if 2.0 * u - v > 0.1 { "b" } else { "a" }));
    }
    std::fs::write(&path, text).unwrap();
    path
}

/// The winner is one that is good; what is written down says how it was found, and verifies.
#[test]
fn the_best_candidate_wins_and_its_certificate_holds() {
    let path = table(4000);
    let source = Source { files: vec![path.clone()], labels: Vec::new() };
    // A ridge of a million learns nothing.
    let text = "distribution = \"uniform\"\nruns = 8\n[[candidate]]\nmethod = \"objective\"\nridge = 3\n[[candidate]]\nmethod = \"objective\"\n\
        ridge = 1000000\n[[candidate]]\nmethod = \"noisy-gd\"\nsteps = 20\n";
    let tuned = prepare(&job(SCHEMA, 4.0, Adjacency::ZeroOut), &tuning(text), 4000, true).unwrap();
    let mut wins = [0; 3];
    for seed in 0..12 {
        let entropy = Entropy::simulated(seed);
        let runs = std::cell::Cell::new(0);
        let data = tuned.open(&source, &entropy).unwrap();
        let artifact = tuned.train(data, &Threads::new(1), &entropy, &|| runs.set(runs.get() + 1)).unwrap();
        assert_eq!(runs.get(), 8, "time does not tell how many counted");
        assert!(!artifact.guarantee.private);
        let chosen = &artifact.training.plan.iter().find(|p| p.0 == "chosen").unwrap().1;
        wins[chosen.strip_prefix("candidate ").unwrap()[..1].parse::<usize>().unwrap() - 1] += 1;
    }
    assert!(wins[1] <= 3 && wins[0] + wins[2] >= 9, "{wins:?}");
    let entropy = Entropy::system().unwrap();
    let artifact = tuned.train(tuned.open(&source, &entropy).unwrap(), &Threads::new(1), &entropy, &|| {}).unwrap();
    assert!(matches!(artifact.guarantee.event, Event::Select { .. }));
    assert!(artifact.guarantee.zero_out.unwrap() <= 4.0 && artifact.guarantee.asked_epsilon == 4.0);
    assert_eq!((artifact.training.rows, artifact.certificate.preparation.trials), (4000, 8));
    assert!(artifact.certificate.preparation.declaration.starts_with("paid for here"));
    assert!(artifact.certificate.mechanism.theorem.contains("E[K] d(epsilon - ln R)"));
    let text = artifact.to_json().unwrap();
    assert_eq!(privfit::Artifact::from_json(&text).unwrap(), artifact);
    let verdict = privfit::verify::verify(&text);
    assert!(verdict.is_ok_and(|v| v.holds()), "its own certificate holds");
    std::fs::remove_file(path).unwrap();
}
