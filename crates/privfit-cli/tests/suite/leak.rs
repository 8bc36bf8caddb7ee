//! Nothing but noised numbers depends on a record: neighbours give the same messages, exit code and file shape, through the command
//! itself. Every run makes 200 pairs, a sweep (PRIVFIT_SWEEP=1) ten times as many.

use std::path::{Path, PathBuf};
use std::process::Command;

const SCHEMA: &str = r#"
[dataset]
name = "t"
[target]
column = "y"
classes = ["no", "yes"]
[features.x]
type = "number"
min = -3
max = 3
[features.c]
type = "category"
values = ["p", "q", "r"]
[features.z]
type = "number"
min = 0
max = 100
scale = "log"
"#;

const NUMBER: &str = r#"
[dataset]
name = "t"
[target]
column = "z"
bounds = [0.0, 100.0]
[features.x]
type = "number"
min = -3
max = 3
[features.c]
type = "category"
values = ["p", "q", "r"]
"#;

const POINT: &str = r#"
[dataset]
name = "t"
[features.x]
type = "number"
min = -3
max = 3
[features.c]
type = "category"
values = ["p", "q", "r"]
"#;

const SPARSE: &str = r#"
[dataset]
name = "t"
[target]
classes = ["-1", "1"]
[features]
kind = "sparse"
dimension = 9
row_norm = 1.0
"#;

pub(crate) struct Random(pub(crate) u64);
impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * n as u128) >> 64) as usize
    }
}

/// Records of every kind that the list of bad inputs names. No line breaks: a line is a record.
fn strange(random: &mut Random, sparse: bool) -> Vec<u8> {
    let cells: [&[u8]; 24] = [
        b"nan",
        b"NaN",
        b"inf",
        b"-inf",
        b"1e308",
        b"-1e308",
        b"5e-324",
        b"",
        b"?",
        b"yes",
        b"no",
        b"p",
        b"w",
        b"3",
        b"-3.0",
        b"1e400",
        b"0x10",
        b"\"a\"\"b\"",
        b"\"open",
        b"\xff\xfe",
        b"\0",
        b" 7 ",
        b"1:2:3",
        b"999999999999999999999",
    ];
    let pairs: [&[u8]; 14] = [
        b"1:0.5",
        b"9:1e308",
        b"3:nan",
        b"2:-inf",
        b"0:1",
        b"10:1",
        b"4294967296:1",
        b"a:b",
        b"1:",
        b":1",
        b"5:0.1",
        b"5:0.2",
        b"# c",
        b"\xff",
    ];
    match random.below(12) {
        0 => Vec::new(),
        1 => (0..random.below(40)).map(|_| (32 + random.below(224)) as u8).collect(),
        2 => vec![b','; random.below(9)],
        3 => vec![b'"'; random.below(9)],
        4 => vec![b'x'; 1 + random.below(4000)],
        _ if sparse => {
            let mut out = [&b"1"[..], b"-1", b"+1", b"0", b"7", b"nan", b"", b"1:1"][random.below(8)].to_vec();
            for _ in 0..random.below(6) {
                out.push(b' ');
                out.extend_from_slice(pairs[random.below(pairs.len())]);
            }
            out
        }
        _ => {
            let fields = [4, 4, 4, 4, 3, 5, 1][random.below(7)];
            (0..fields).map(|_| cells[random.below(cells.len())]).collect::<Vec<_>>().join(&b','.to_owned())
        }
    }
}

fn ordinary(random: &mut Random, sparse: bool) -> Vec<u8> {
    if sparse {
        let label = ["1", "-1"][random.below(2)];
        return format!("{label} {}:0.{} {}:0.3", 1 + random.below(4), 1 + random.below(9), 5 + random.below(5)).into_bytes();
    }
    let x = random.below(600) as f64 / 100.0 - 3.0;
    format!("{x},{},{},{}", ["p", "q", "r"][random.below(3)], random.below(101), ["no", "yes"][random.below(2)]).into_bytes()
}

fn write(path: &Path, head: &[u8], lines: &[Vec<u8>]) {
    let mut bytes = head.to_vec();
    for line in lines {
        // A record is a line: breaks inside of a strange one would make it several.
        bytes.extend(line.iter().map(|b| if *b == b'\n' { b' ' } else { *b }));
        bytes.push(b'\n');
    }
    std::fs::write(path, bytes).unwrap();
}

/// What an observer sees, the noised numbers taken out.
#[derive(PartialEq, Debug)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    files: Vec<String>,
    pub(crate) model: String,
}

pub(crate) fn look(dir: &Path, extra: &[&str], data: &str) -> Seen {
    let model = dir.join("model.json");
    let _ = std::fs::remove_file(&model);
    let done = Command::new(env!("CARGO_BIN_EXE_privfit"))
        .current_dir(dir)
        .args(["fit", "--data", data, "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-4", "--out", "model.json"])
        .args(extra)
        .output()
        .unwrap();
    let mut files: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().file_name().to_string_lossy().into()).collect();
    files.sort();
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&model).unwrap_or(b"null".to_vec())).unwrap();
    if let Some(file) = json.as_object_mut() {
        file.remove("sha256");
        file["artifact"]["certificate"]["identity"]["model_sha256"] = serde_json::Value::Null;
        let released = &mut file["artifact"]["model"];
        // Curves have a number for each cell, trees one for each leaf, whatever the rows; which pairs stand out, and what trees ask, follows from released numbers.
        fn without_numbers(value: &mut serde_json::Value) {
            match value {
                serde_json::Value::Array(list) => list.iter_mut().for_each(without_numbers),
                serde_json::Value::Object(map) => map.values_mut().for_each(without_numbers),
                serde_json::Value::Number(_) => *value = serde_json::Value::Null,
                _ => {}
            }
        }
        if released.get("curves").is_some() {
            ["offsets", "curves"].iter().for_each(|part| without_numbers(&mut released[part]));
            released["pairs"] = serde_json::Value::Null;
            for tree in released["trees"].as_array_mut().unwrap() {
                tree["questions"] = tree["questions"].as_array().unwrap().len().into();
                without_numbers(&mut tree["scores"]);
            }
        }
        // Linear models have a list for each score, networks one list and a history of released sums, which has a public number of points.
        for part in ["point", "weights", "history"] {
            if let Some(list) = released.get_mut(part) {
                without_numbers(list);
            }
        }
        // Which columns were chosen, and what they are multiplied by, was released with noise like the weights.
        if let Some(map) = file["artifact"]["model"].get_mut("map") {
            map["weight"] = serde_json::Value::Null;
            map["factors"].as_array_mut().unwrap().iter_mut().for_each(|f| *f = serde_json::Value::Null);
        }
    }
    let lines = String::from_utf8_lossy(&done.stdout).into_owned();
    let out = lines.lines().filter(|l| !l.starts_with("selected")).collect::<Vec<_>>().join("\n").into_bytes();
    Seen { code: done.status.code(), out, err: done.stderr, files, model: json.to_string() }
}

fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("privfit-leak-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn neighbours_look_the_same() {
    let pairs = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 2000 } else { 200 };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let kinds: [(&str, &str, &[u8], &[&str]); 22] = [
        ("objective", SCHEMA, b"x,c,z,y\n", &["--method", "objective"]),
        ("descent", SCHEMA, b"x,c,z,y\n", &["--method", "output-gd", "--set", "steps=9"]),
        ("passes", SCHEMA, b"x,c,z,y\n", &["--method", "permutation-sgd", "--set", "passes=3", "--set", "batch=7"]),
        ("vertices", SCHEMA, b"x,c,z,y\n", &["--method", "frank-wolfe", "--set", "steps=3"]),
        ("rounds", SCHEMA, b"x,c,z,y\n", &["--method", "random-round-sgd", "--set", "steps=5"]),
        ("recursion", SCHEMA, b"x,c,z,y\n", &["--method", "recursive-momentum", "--set", "steps=5"]),
        ("gradients", SCHEMA, b"x,c,z,y\n", &["--method", "noisy-gd", "--set", "steps=3", "--adjacency", "replace-one"]),
        ("curves", SCHEMA, b"x,c,z,y\n", &["--method", "additive", "--set", "steps=9", "--set", "pairs=2", "--set", "trees=10"]),
        ("number", NUMBER, b"x,c,z,y\n", &[]),
        ("quantile", NUMBER, b"x,c,z,y\n", &["--loss", "quantile", "--set", "quantile=0.9"]),
        ("counts", NUMBER, b"x,c,z,y\n", &["--loss", "poisson"]),
        ("median", POINT, b"x,c,z,y\n", &["--loss", "geometric-median", "--set", "steps=3"]),
        ("mean", POINT, b"x,c,z,y\n", &["--loss", "mean"]),
        ("sparse", SPARSE, b"", &[]),
        ("few columns", SCHEMA, b"x,c,z,y\n", &["--method", "noisy-thresholding", "--set", "sparsity=2"]),
        ("few words", SPARSE, b"", &["--method", "noisy-thresholding", "--set", "sparsity=3"]),
        ("thresholds", SPARSE, b"", &["--method", "hard-thresholding", "--set", "sparsity=3"]),
        ("words", SPARSE, b"", &["--method", "weighted-columns", "--set", "sparsity=5"]),
        ("kept vertices", SPARSE, b"", &["--method", "frank-wolfe", "--set", "steps=9"]),
        ("votes", SPARSE, b"", &["--method", "two-stage", "--set", "sparsity=2", "--set", "parts=5"]),
        ("teachers", NUMBER, b"x,c,z,y\n", &["--method", "transfer-blocks", "--set", "sparsity=2", "--set", "parts=5"]),
        ("simulated", SCHEMA, b"x,c,z,y\n", &["--simulate", "4", "--method", "output", "--format", "json"]),
    ];
    let dirs: Vec<PathBuf> = kinds.iter().map(|k| directory(k.0)).collect();
    for (dir, kind) in dirs.iter().zip(&kinds) {
        std::fs::write(dir.join("schema.toml"), kind.1).unwrap();
    }
    let mut base: Vec<Option<Seen>> = kinds.iter().map(|_| None).collect();
    for pair in 0..pairs {
        let k = pair % kinds.len();
        let (_, _, head, extra) = kinds[k];
        let sparse = kinds[k].1 == SPARSE;
        let mut lines: Vec<Vec<u8>> = (0..30).map(|_| ordinary(&mut random, sparse)).collect();
        let at = random.below(lines.len());
        lines[at] = strange(&mut random, sparse);
        write(&dirs[k].join("data"), head, &lines);
        let seen = look(&dirs[k], extra, "data");
        assert_eq!(seen.code, Some(0), "{}: {}", kinds[k].0, String::from_utf8_lossy(&seen.err));
        // Everything public is the same in all these data sets, so every one must look like the first.
        match &base[k] {
            None => base[k] = Some(seen),
            Some(first) => assert!(*first == seen, "pair {pair} of {}: {:?}\n{first:?}\n{seen:?}", kinds[k].0, lines[at]),
        }
    }
    dirs.iter().for_each(|d| std::fs::remove_dir_all(d).unwrap());
}

/// No cell of the data shows up in anything that is printed.
#[test]
fn messages_hold_no_cells() {
    let dir = directory("cells");
    std::fs::write(dir.join("schema.toml"), SCHEMA).unwrap();
    let marks: Vec<Vec<u8>> = (0..30).map(|i| format!("SECRET{i},MARK{i},HIDDEN{i},COVERT{i}").into_bytes()).collect();
    write(&dir.join("data"), b"x,c,z,y\n", &marks);
    let seen = look(&dir, &[], "data");
    let all = [seen.out, seen.err, seen.model.into_bytes()].concat();
    let text = String::from_utf8_lossy(&all).to_string();
    assert_eq!(seen.code, Some(0), "{text}");
    for word in ["SECRET", "MARK", "HIDDEN", "COVERT"] {
        assert!(!text.contains(word), "{text}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}
