//! One simulated job from the shell and from Rust: the same model file, to the byte. The Python package compares itself with the shell.

use privfit::certificate::Declared;
use privfit::constraint::Constraint;
use privfit::data::load::Source;
use privfit::job::fit::{Job, prepare};
use privfit::job::release::{Context, release};
use privfit::kernel::Entropy;
use privfit::method::Settings;

#[test]
fn shell_and_rust_write_the_same_file() {
    let here = std::env::temp_dir().join(format!("privfit-same-bytes-{}", std::process::id()));
    std::fs::create_dir_all(&here).unwrap();
    let rows: String = (0..900).map(|i| format!("{},{}\n", i * 7 % 60, if i * 7 % 60 > 30 { "yes" } else { "no" })).collect();
    std::fs::write(here.join("d.csv"), format!("age,ill\n{rows}")).unwrap();
    let schema = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                  [features.age]\ntype = \"number\"\nmin = 0\nmax = 100\n";
    std::fs::write(here.join("s.toml"), schema).unwrap();
    let line = "fit --data d.csv --schema s.toml --epsilon 1 --delta 1e-8 --simulate 5 --threads 1 --out m.json";
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_privfit")).current_dir(&here).args(line.split(' ')).output();
    assert!(out.unwrap().status.success());
    let job = Job {
        schema: privfit::Schema::parse(schema).unwrap(),
        rows: None,
        epsilon: 1.0,
        delta: Some(1e-8),
        adjacency: privfit::account::Adjacency::ZeroOut,
        loss: None,
        method: "auto".into(),
        settings: Settings::default(),
        constraint: Constraint::None,
        allow_large_delta: false,
        compare: false,
        auxiliary: None,
        layers: None,
        pretrained: None,
    };
    let source = Source { files: vec![here.join("d.csv")], labels: Vec::new() };
    let (rows, counted) = job.rows(Some(&source)).unwrap();
    let context = Context {
        source: &source,
        engine: &privfit::engine::Threads::new(1),
        entropy: &Entropy::simulated(5),
        ledger: None,
        declared: Declared::default(),
        out: None,
        checkpoint: None,
        opening: &|| {},
        opened: &|| {},
        progress: &|| {},
    };
    let released = release(&prepare(&job, rows, counted).unwrap(), context).unwrap();
    assert_eq!(released.bytes, std::fs::read(here.join("m.json")).unwrap());
    std::fs::remove_dir_all(here).unwrap();
}
