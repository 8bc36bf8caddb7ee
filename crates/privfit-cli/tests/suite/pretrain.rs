//! Layers that public rows train, through the command: what is listed, what is refused, and that private neighbours look the same.

use crate::harness::Scratch;
use crate::leak::look;
use privfit::Artifact;
use privfit::model::Model;

const FEATURES: &str = "[features.a]\ntype = \"number\"\nmin = -1\nmax = 1\n[features.b]\ntype = \"number\"\nmin = -1\nmax = 1\n";

/// Where a point is by its number.
fn point(i: usize) -> (f64, f64) {
    ((i * 37 % 199) as f64 / 99.0 - 1.0, (i * 53 % 211) as f64 / 105.0 - 1.0)
}

/// Public rows with four classes, the quadrants; private ones with two, whether signs agree, which no line tells.
fn place(name: &str) -> Scratch {
    let here = Scratch::new(name);
    let rows = |count: usize, class: fn(f64, f64) -> &'static str| {
        let row = |i| {
            let (a, b) = point(i);
            format!("{a},{b},{}\n", class(a, b))
        };
        format!("a,b,y\n{}", (0..count).map(row).collect::<String>())
    };
    let quadrant = |a: f64, b: f64| ["ne", "nw", "se", "sw"][usize::from(a < 0.0) + 2 * usize::from(b < 0.0)];
    here.write("public.csv", rows(800, quadrant));
    here.write("private.csv", rows(3000, |a, b| if a * b > 0.0 { "yes" } else { "no" }));
    let schema = |name: &str, classes: &str| {
        format!("[dataset]\nname = \"{name}\"\n[target]\ncolumn = \"y\"\nclasses = [{classes}]\n{FEATURES}")
    };
    here.write("schema.toml", schema("private", "\"no\", \"yes\""));
    here.write("public.toml", schema("public", "\"ne\", \"nw\", \"se\", \"sw\""));
    let job = "data = \"private.csv\"\nschema = \"schema.toml\"\nepsilon = 2.0\ndelta = 1e-6\nout = \"m.json\"\n\
               [model]\nkind = \"network\"\nlayers = [\"dense 16\", \"relu\"]\n[set]\nsteps = 60\n\
               [pretrain]\ndata = \"public.csv\"\nschema = \"public.toml\"\n";
    here.write("job.toml", job);
    here
}

fn weights(here: &Scratch, name: &str) -> Vec<u64> {
    let artifact = Artifact::from_bytes(&std::fs::read(here.join(name)).unwrap()).unwrap();
    let Model::Network(model) = artifact.model else { panic!() };
    model.weights.iter().map(|w| w.to_bits()).collect()
}

/// The layers of the public rows make of four classes what two need; every verb takes the model as any other.
#[test]
fn every_verb_takes_frozen_layers() {
    let here = place("pretrain");
    let plan = here.ok("fit job.toml --rows 3000 --dry-run");
    assert!(plan.contains("weights: 34 of the scores; 48 before them are frozen, from 800 public rows"), "{plan}");
    assert!(!here.join("m.json").exists());
    let fitted = here.json("fit job.toml");
    let public = fitted["public"].to_string();
    let digest = privfit::ledger::digest_of(here.read("public.csv").as_bytes());
    assert!(public.contains(&digest) && public.contains("frozen: 800, declared public by whoever gave them"), "{public}");
    assert!(here.json("evaluate --model m.json --data private.csv")["accuracy"].as_f64().unwrap() > 0.85);
    here.ok("certificate verify m.json");
    assert!(here.ok("certificate show m.json").contains(&digest[..20]));
    assert_eq!(here.ok("predict --model m.json --data private.csv").lines().count(), 3001);
    here.ok("export m.json --format onnx --out m.onnx");
    here.ok("report m.json --out m.html");
    assert!(here.read("m.html").contains("The 34 of its scores are what was released."));
    assert!(here.ok("model show m.json").contains("82 weights"));
    // Flags say the same as the table, layers are the same each time with any number of threads, and scores are not.
    let flags = "--data private.csv --schema schema.toml --epsilon 2 --delta 1e-6 --layers mlp --set steps=60";
    let twice = ["a.json", "b.json"].map(|out| {
        let threads = usize::from(out == "b.json") * 2 + 1;
        here.ok(&format!("fit {flags} --out {out} --threads {threads} --public-rows public.csv --public-schema public.toml"));
        weights(&here, out)
    });
    let frozen = 3 * 128 + 129 * 64;
    assert!(twice[0][..frozen] == twice[1][..frozen] && twice[0][frozen..] != twice[1][frozen..]);
    // One request, one model; with other public rows it is another one.
    here.ok("ledger create l --schema schema.toml --epsilon 5 --delta 1e-5");
    here.ok("fit job.toml --ledger l --request one --out one.json");
    here.ok("fit job.toml --ledger l --request one --out again.json");
    assert_eq!(here.read("one.json"), here.read("again.json"));
    here.write("public.csv", here.read("public.csv").replace("ne\n", "nw\n"));
    let (code, _, err) = here.outcome("fit job.toml --ledger l --request one --out other.json");
    assert!(code != Some(0) && !here.join("other.json").exists(), "{err}");
}

/// Misuse is said with its fix, before anything is trained.
#[test]
fn public_rows_are_checked() {
    let here = place("pretrain-misuse");
    let refused = |more: &str, words: &str| here.refused(&format!("fit job.toml {more}"), 2, words);
    refused("--public-rows ./private.csv", "holds the private records: give other rows to --public-rows");
    refused("--public-rows none.csv", "none.csv");
    refused("--method objective --public-rows public.csv", "--method network");
    refused("--layers linear", "leave out --public-rows");
    refused("--set normalise=0.1", "leave normalise out");
    refused("--public-schema schema.toml", "800 of the public rows can't be read");
    here.write("wide.toml", here.read("public.toml").replace("max = 1\n", "max = 2\n"));
    refused("--public-schema wide.toml", "give it the same [features]");
    here.write("none.toml", format!("[dataset]\nname = \"public\"\n{FEATURES}"));
    refused("--public-schema none.toml", "no [target]");
    here.write("few.csv", "a,b,y\n0,0,ne\n");
    refused("--public-rows few.csv", "give at least 10");
    here.write("other.csv", "a,y\n0,ne\n".repeat(20));
    refused("--public-rows other.csv", "no column");
    let job = here.read("job.toml");
    here.write("job.toml", job.replace("schema = \"public.toml\"", "rows = 3"));
    refused("", "unknown key rows");
    here.write("job.toml", job.split("[pretrain]").next().unwrap());
    refused("--public-schema public.toml", "add --public-rows FILE");
    here.write("job.toml", format!("{job}[tune.grid]\nsteps = [1, 2]\n"));
    here.refused("tune job.toml", 2, "remove [pretrain]");
    assert!(!here.join("m.json").exists());
}

/// A private record differs in every way: messages, exit code and the shape of the model are the same, and so are the frozen layers.
#[test]
fn private_neighbours_look_the_same() {
    let here = place("pretrain-neighbours");
    let rows = here.read("private.csv").lines().take(41).map(String::from).collect::<Vec<_>>();
    let extra = "--layers mlp --set steps=2 --public-rows public.csv --public-schema public.toml";
    let extra: Vec<&str> = extra.split(' ').collect();
    let mut first = None;
    for strange in ["", "nan,nan,yes", "1e308,-1e308,no", "x", "0,0,SECRET", ",,,,,,", "\"open"] {
        let mut rows = rows.clone();
        if !strange.is_empty() {
            rows[17] = strange.into();
        }
        here.write("data.csv", rows.join("\n") + "\n");
        let seen = look(&here, &extra, "data.csv");
        assert_eq!(seen.code, Some(0), "{seen:?}");
        let frozen = weights(&here, "model.json")[..3 * 128 + 129 * 64].to_vec();
        match &first {
            None => first = Some((seen, frozen)),
            Some(first) => assert!(*first == (seen, frozen), "{strange}"),
        }
    }
}
