//! `fit --memory`: what a job needs is said before data are opened, and what does not fit is refused with what would.

use crate::harness::{Scratch, text};
use serde_json::Value;

const SCHEMA: &str = "[dataset]\nname = \"t\"\n[target]\nclasses = [0, 1, 2]\n[features]\nkind = \"image\"\nshape = [12, 12]\nmax = 255\nencoder = \"pixels\"\n";
/// So many weights that they are what is large.
const LARGE: &str = "flatten,dense_1500,tanh,dense_1500,tanh";
/// So many numbers of an example that they are.
const DEEP: &str = "convolution_64_5_padding_2,tanh,convolution_64_5_padding_2,tanh";

/// Exit code, and what was printed on both sides; lines have no quotes, so that a line stands for a space.
fn run(scratch: &Scratch, line: &str) -> (i32, String, String) {
    let words: Vec<String> = line.split_whitespace().map(|word| word.to_string()).collect();
    let mut command = scratch.command("");
    for word in &words {
        command.arg(if word.contains("dense_") || word.contains("convolution_") { word.replace('_', " ") } else { word.clone() });
    }
    let out = command.output().unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn dry(layers: &str, more: &str) -> String {
    format!(
        "fit --schema s.toml --rows 3000 --epsilon 1 --delta 1e-8 --threads 2 --set steps=5 --set sampling_rate=1 --layers {layers} --dry-run {more}"
    )
}

fn need(scratch: &Scratch, line: &str) -> Value {
    let (code, out, error) = run(scratch, &format!("{line} --format json"));
    assert_eq!(code, 0, "{error}");
    serde_json::from_str::<Value>(&out).unwrap()["memory"].clone()
}

#[test]
fn a_plan_says_what_it_needs() {
    let scratch = Scratch::new("memory-plan");
    scratch.write("s.toml", SCHEMA);
    let large = need(&scratch, &dry(LARGE, ""));
    assert_eq!(large["bound"], "upper");
    let parts: Vec<u64> = large["parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap()).collect();
    assert_eq!(parts.iter().sum::<u64>(), large["bytes"].as_u64().unwrap());
    // 145 x 1500, 1501 x 1500 and 1501 x 3 weights in doubles, more than once each, and 3000 rows of 145 cells with their labels.
    let weights = 8 * (145 * 1500 + 1501 * 1500 + 1501 * 3);
    assert!(large["bytes"].as_u64().unwrap() > 10 * weights + 3000 * 145 * 2);
    let (_, out, _) = run(&scratch, &dry(LARGE, ""));
    assert!(out.contains("\nmemory    at most ") && out.contains("encoded rows 2 MB"), "{out}");
    // More threads hold more, and checkpoints are copies; a plan does not depend on a limit that is large.
    let more = |line: &str| need(&scratch, line)["bytes"].as_u64().unwrap();
    let (one, kept) = (dry(LARGE, "").replace("--threads 2", "--threads 1"), dry(LARGE, "--checkpoint c"));
    assert!(more(&one) < more(&dry(LARGE, "")) && more(&dry(LARGE, "")) + 8 * weights < more(&kept));
    // Other methods have a bound for rows alone, and call it so.
    let other = "fit --schema s.toml --rows 3000 --epsilon 1 --delta 1e-8 --method noisy-gd --dry-run";
    assert_eq!(need(&scratch, other)["bound"], "lower");
    assert!(run(&scratch, other).1.contains("\nmemory    at least "));
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let scratch = Scratch::new("memory-refused");
    scratch.write("s.toml", SCHEMA);
    let (code, out, error) = run(&scratch, &dry(LARGE, "--memory 60MB"));
    assert_eq!((code, out.as_str()), (2, ""), "{error}");
    for words in ["may use 60 MB", "batch of one example", "gradients and noise of a step", "weights, moments", "smaller layers"]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
    // What it says would do does.
    let enough = error.split("--memory ").nth(1).unwrap().split([',', ' ', '\n']).next().unwrap();
    assert!(enough.ends_with("MB"), "{error}");
    let (code, out, error) = run(&scratch, &dry(LARGE, &format!("--memory {enough}")));
    assert!(code == 0 && out.contains("\nmemory    at most "), "{error}");
    // One thread would be enough.
    let one = need(&scratch, &dry(LARGE, "").replace("--threads 2", "--threads 1"))["bytes"].as_u64().unwrap();
    let (code, _, error) = run(&scratch, &dry(LARGE, &format!("--memory {}", one + 8_000_000)));
    assert!(code == 2 && error.contains("--threads 1, which needs"), "{error}");
    // With data it is the same: they are counted, and that is all.
    let idx = |sides: &[u32]| {
        let count = sides.iter().product::<u32>() as usize;
        let head = [&[0, 0, 8, sides.len() as u8][..], &sides.iter().flat_map(|s| s.to_be_bytes()).collect::<Vec<u8>>()].concat();
        [head, vec![0; count]].concat()
    };
    scratch.write("x.idx", idx(&[3000, 12, 12]));
    scratch.write("y.idx", idx(&[3000]));
    let line = dry(LARGE, "--data x.idx --labels y.idx --out m.json --memory 60MB").replace(" --dry-run", "");
    let (code, out, error) = run(&scratch, &line);
    assert!(code == 2 && out.is_empty() && error.contains("may use 60 MB") && !error.contains("reading"), "{error}");
    assert!(!scratch.command("").get_current_dir().unwrap().join("m.json").exists());
    for wrong in ["--memory much", "--memory 3TB", "--memory 0"] {
        let (code, _, error) = run(&scratch, &dry(LARGE, wrong));
        assert!(code == 2 && error.contains("300MB"), "{wrong}: {error}");
    }
}

/// What is needed does not depend on how long a record is: reading it to count records took more memory, and nobody is told.
#[test]
fn a_long_record_changes_nothing() {
    let scratch = Scratch::new("memory-long");
    scratch.write(
        "s.toml",
        "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features.x]\ntype = \"number\"\nmin = 0\nmax = 9\n",
    );
    let answers = ["3", &"3".repeat(60_000_000)].map(|cell| {
        scratch.write("d.csv", format!("x,y\n{}{cell},1\n", "4,0\n".repeat(200)));
        run(
            &scratch,
            "fit --data d.csv --schema s.toml --epsilon 1 --delta 1e-8 --layers linear --set steps=3 --out m.json --memory 1MB",
        )
    });
    assert!(answers[0].0 == 2 && answers[0].2.contains("may use 1 MB"), "{}", answers[0].2);
    assert_eq!(answers[0], answers[1]);
}

/// Where fewer examples at once are enough, that is what is done: the plan, its noise and its cost stay as they are.
#[test]
fn fewer_examples_at_once_are_enough() {
    let scratch = Scratch::new("memory-batch");
    scratch.write("s.toml", SCHEMA);
    let usual = need(&scratch, &dry(DEEP, ""));
    let (bytes, at_once) = (usual["bytes"].as_u64().unwrap(), usual["examples_at_once"].as_u64().unwrap());
    let scratch_part = |need: &Value| {
        let parts = need["parts"].as_array().unwrap();
        parts.iter().find(|part| part["what"] == "examples computed at once").unwrap()["bytes"].as_u64().unwrap()
    };
    let limit = bytes - scratch_part(&usual) / 3;
    let less = need(&scratch, &dry(DEEP, &format!("--memory {limit}")));
    assert!(less["bytes"].as_u64().unwrap() <= limit && less["examples_at_once"].as_u64().unwrap() < at_once, "{less}");
    let (code, out, error) = run(&scratch, &dry(DEEP, &format!("--memory {limit}")));
    assert!(code == 0 && error.contains("examples are computed at once, not"), "{error}");
    let of = |out: &str, key: &str| out.lines().filter(|line| line.starts_with(key)).map(String::from).collect::<Vec<_>>();
    let (_, plain, _) = run(&scratch, &dry(DEEP, ""));
    assert_eq!((of(&out, "plan"), of(&out, "cost")), (of(&plain, "plan"), of(&plain, "cost")));
    // The job file has the same key, and flags win over it.
    scratch.write(
        "job.toml",
        "schema = \"s.toml\"\nrows = 3000\nepsilon = 1\ndelta = 1e-8\nmemory = \"1MB\"\n[model]\nkind = \"network\"\n[set]\nsampling_rate = 1\n",
    );
    let (code, _, error) = run(&scratch, "fit job.toml --dry-run");
    assert!(code == 2 && error.contains("may use 1 MB"), "{error}");
    assert_eq!(run(&scratch, "fit job.toml --dry-run --memory 2GB").0, 0);
    let (code, _, error) = run(&scratch, "tune job.toml --dry-run");
    assert!(code == 2 && error.contains("privfit fit"), "{error}");
}
