//! Every example of `examples/` is run in a copy of its folder, and prints what its `expected.txt` says.

use crate::documents::{Place, copy, mismatch, run, top};
use std::path::PathBuf;

fn examples() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(top().join("examples")).unwrap().map(|e| e.unwrap().path());
    let mut out: Vec<PathBuf> = folders.filter(|p| p.is_dir()).collect();
    out.sort();
    out
}

#[test]
fn every_example_runs() {
    let mut wrong = Vec::new();
    for example in examples() {
        let name = example.file_name().unwrap().to_string_lossy().into_owned();
        let place = Place::new(&format!("example-{name}"));
        copy(&example, &place.0);
        let expected =
            std::fs::read_to_string(example.join("expected.txt")).unwrap_or_else(|_| panic!("{name}: no expected.txt"));
        let started = std::time::Instant::now();
        let (code, output) = run("bash", &["run.sh"], &place.0);
        println!("{name}: {:.1} s", started.elapsed().as_secs_f64());
        if code != 0 {
            wrong.push(format!("{name}: exit code {code}\n{output}"));
        } else if let Some(problem) = mismatch(&expected, &output) {
            wrong.push(format!("{name}: {problem}\n{output}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_example_is_listed() {
    let index = std::fs::read_to_string(top().join("examples/README.md")).unwrap();
    for example in examples() {
        let name = example.file_name().unwrap().to_string_lossy().into_owned();
        for file in ["README.md", "run.sh", "expected.txt"] {
            assert!(example.join(file).is_file(), "examples/{name}/{file} is missing");
        }
        assert!(index.contains(&format!("({name}/")), "examples/README.md does not list {name}");
    }
}
