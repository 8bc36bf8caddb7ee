//! What a new user types wrongly: every message ends with what to do about it.

use crate::harness::{Scratch, text};
use std::path::Path;

/// Arguments, exit code, something that is said, and how the message ends.
type Case = (&'static str, i32, &'static str, &'static str);

const TRAIN: &str = "--epsilon 1 --delta 1e-8 --out model.json";

const CASES: &[Case] = &[
    ("fit --data none.csv --schema good.toml TRAIN", 2, "cannot open none.csv", "check the path"),
    ("fit --data folder --schema good.toml TRAIN", 2, "read as pictures", "kind = \"image\" in [features]"),
    ("fit --data empty.csv --schema good.toml TRAIN", 2, "no header", "names of the columns"),
    ("fit --data rows.csv --schema none.toml TRAIN", 2, "cannot read the schema", "check the path"),
    ("fit --data rows.csv --schema folder TRAIN", 2, "cannot read the schema", "check the path"),
    ("fit --data rows.csv --schema broken.toml TRAIN", 2, "line 2, column", "correct that line"),
    ("fit --data rows.csv --schema misspelt.toml TRAIN", 2, "mni: unknown key: did you mean \"min\"?", "min = ..."),
    ("fit --data rows.csv --schema extra.toml TRAIN", 2, "\"scael\": did you mean \"scale\"?", "known are type, min, max, scale"),
    (
        "fit --data rows.csv --schema table.toml TRAIN",
        2,
        "[encodng]: did you mean \"encoding\"?",
        "encoding, registry, private_bounds",
    ),
    ("fit --data rows.csv --schema draft.toml TRAIN", 2, "max = 100", "every value that can occur"),
    ("fit --data rows.csv --schema other.toml TRAIN", 2, "no column \"weight\"", "check the header, or the schema"),
    (
        "fit --data rows.csv --schema good.toml --epsilon 1 --delta 1e-8 --out sealed/model.json",
        2,
        "can't be written to",
        "another --out",
    ),
    (
        "fit --data rows.csv --schema good.toml --epsilon 1 --delta 1e-8 --out none/model.json",
        2,
        "no directory none",
        "another --out",
    ),
    ("fit --data rows.csv --schema good.toml --epsilon 1 --delta 1e-8 --out folder", 2, "is a directory", "to --out"),
    ("fit none-job.toml", 2, "cannot read the job", "check the path"),
    ("fit job.toml", 2, "did you mean \"epsilon\"?", "set, registry, tune"),
    ("fit broken.toml", 2, "line 2, column", "correct that line"),
    ("fit", 2, "no schema", "`privfit schema init DATA`)"),
    ("fit --data rows.csv --schema good.toml TRAIN --loss logistc", 2, "did you mean \"logistic\"?", "geometric-median"),
    ("fit --data rows.csv --schema good.toml TRAIN --method noisy-dg", 2, "did you mean \"noisy-gd\"?", "transfer-convex"),
    ("fit --data rows.csv --schema good.toml TRAIN --method noisy-gd --set stpes=3", 2, "did you mean \"steps\"?", "slope_clip"),
    ("fit --data rows.csv --schema good.toml TRAIN --adjacency swap", 2, "swap", "zero-out, replace-one or add-remove"),
    ("fit --data rows.csv --schema good.toml TRAIN --ledger none.ledger", 2, "no ledger", "`privfit ledger create`"),
    ("fit --data rows.csv --schema good.toml --epsilon 1 --out model.json", 2, "delta is missing", "for pure privacy"),
    ("predict --model none.json --data rows.csv", 2, "cannot read the model", "check the path"),
    ("predict --model rows.csv --data rows.csv", 4, "not a model file", "from where it was written"),
    ("predict --model MODEL", 2, "no rows", "add --data FILE"),
    ("predict --model MODEL --data none.csv", 2, "cannot open none.csv", "check the path"),
    ("evaluate --model MODEL --data other.csv", 2, "no column \"age\"", "check the header, or the schema"),
    ("export MODEL --format onnx", 2, "not for the screen", "add --out model.onnx"),
    ("export MODEL --format json", 2, "its own length", "in [encoding]"),
    ("certificate show none.json", 2, "cannot read the model", "check the path"),
    ("ledger show none.ledger", 2, "no ledger", "`privfit ledger create`"),
    ("ledger create none/x.ledger --schema good.toml --epsilon 1 --delta 1e-8", 2, "no directory none", "give another path"),
    ("ledger create x.ledger --schema good.toml --epsilon many --delta 1e-8", 2, "many", "after the point"),
    ("audit sensitivity", 2, "no method", "transfer-convex"),
    ("schema init none.csv", 2, "cannot open", "check the path"),
    ("schema init folder", 2, "no picture in folder", "a folder for each class"),
    ("schema check broken.toml", 2, "line 2, column", "correct that line"),
    ("schema validate --schema good.toml --data none.csv", 2, "cannot open", "check the path"),
    ("account", 2, "needs --noise-multiplier", "--loss and --epsilon"),
    ("account --rows 9 --features 2 --loss logistc --epsilon 1", 2, "did you mean \"logistic\"?", "geometric-median"),
    ("account --rows 9 --features 2 --epsilon 1", 2, "needs --loss", "add it"),
    ("account --rows 9 --features 2 --loss squared --classes 3 --epsilon 1", 2, "has no classes", "leave out --classes"),
    ("methods statistcs", 2, "did you mean \"statistics\"?", "`privfit methods`"),
    ("explain banana", 2, "no entry", "`privfit explain`"),
    ("man --out rows.csv", 2, "cannot write rows.csv", "another directory to --out"),
    ("fitt", 2, "'fit'", "try '--help'."),
    ("fit --epsilon much", 2, "'much'", "try '--help'."),
];

const GOOD: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n[features.age]\ntype = \"number\"\n\
                    min = 0\nmax = 120\n";

fn prepare(place: &Path) {
    let write = |name: &str, text: &str| std::fs::write(place.join(name), text).unwrap();
    write("rows.csv", "age,ill\n30,no\n40,yes\n");
    write("other.csv", "height,ill\n30,no\n");
    write("empty.csv", "");
    write("good.toml", GOOD);
    write("misspelt.toml", &GOOD.replace("min =", "mni ="));
    write("extra.toml", &format!("{GOOD}scael = \"log\"\n"));
    write("table.toml", &format!("{GOOD}[encodng]\nscaling = \"ball\"\n"));
    write("other.toml", &GOOD.replace("features.age", "features.weight"));
    write("broken.toml", "[dataset]\nname = \n");
    write("job.toml", "data = \"rows.csv\"\nschema = \"good.toml\"\nepsilonn = 1\n");
    write(
        "draft.toml",
        &GOOD.replace("min = 0\nmax = 120", "min = \"?\"\nmax = \"?\"\n[features.ward]\ntype = \"category\"\nvalues = [\"?\"]"),
    );
    std::fs::create_dir(place.join("folder")).unwrap();
    std::fs::create_dir(place.join("sealed")).unwrap();
    let mut permissions = std::fs::metadata(place.join("sealed")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(place.join("sealed"), permissions).unwrap();
}

#[test]
fn every_message_ends_with_the_fix() {
    let place = Scratch::new("wrong");
    prepare(&place);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../privfit/tests/corpus/model/objective.json");
    let mut wrong = Vec::new();
    for (line, code, says, ends) in CASES {
        let line = line.replace("TRAIN", TRAIN).replace("MODEL", model);
        let output = place.run(&line);
        let message = text(&output.stderr);
        let good = output.status.code() == Some(*code)
            && message.contains("error: ")
            && message.contains(says)
            && message.trim_end().ends_with(ends)
            && !message.contains("panicked");
        if !good {
            wrong.push(format!("{line}\n  exit {:?}: {message}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!place.join("model.json").exists());
}
