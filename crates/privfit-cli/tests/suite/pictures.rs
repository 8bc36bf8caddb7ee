//! Pictures in folders and zip files through the command: neighbours look the same, labels are the folders, and every verb reads them.

use crate::harness::{Scratch, text, top};
use crate::leak::{Random, Seen, look};
use std::io::Write;
use std::path::Path;

const SCHEMA: &str = "[dataset]\nname = \"pets\"\n[target]\nclasses = [\"cat\", \"dog\"]\n[features]\nkind = \"image\"\nshape = [4, 6, 3]\n\
                      max = 255\n";

/// A picture of 6 x 4 pixels.
fn seed(name: &str) -> Vec<u8> {
    std::fs::read(top().join("crates/privfit-data/tests/corpus/picture").join(name)).unwrap()
}

/// Path and bytes.
type Files = Vec<(String, Vec<u8>)>;

/// Cats are colourful, dogs are grey.
fn pets(count: usize) -> Files {
    let names = ["colour.png", "grey.png", "colour.jpg", "grey.jpg", "palette.png", "wide.png"];
    (0..count).map(|i| (format!("{}/{i:03}.jpg", ["cat", "dog"][i % 2]), seed(names[i % 6]))).collect()
}

fn write_folder(folder: &Path, files: &Files) {
    let _ = std::fs::remove_dir_all(folder);
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn write_zip(path: &Path, files: &Files) {
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        writer.start_file(format!("train/{name}"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// Everything that can be wrong with one picture, under names that must not be seen.
fn strange(random: &mut Random, (name, bytes): &mut (String, Vec<u8>)) {
    match random.below(9) {
        0 => bytes.clear(),
        1 => *bytes = b"SECRET".to_vec(),
        2 => bytes.truncate(random.below(bytes.len())),
        3 => *name = format!("SECRET/{}", name.split_once('/').unwrap().1),
        4 => *name = name.replace(".jpg", "-SECRET.jpg"),
        5 => *bytes = (0..random.below(900)).map(|_| random.below(256) as u8).collect(),
        // Another size, a huge one, and damage anywhere.
        kind => {
            *bytes = seed("colour.jpg");
            let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
            match kind {
                6 => bytes[frame + 6] = 3,
                7 => bytes[frame + 5..frame + 9].fill(0xff),
                _ => {
                    let at = 2 + random.below(bytes.len() - 2);
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
    }
}

/// One picture differs, in every way there is: messages, exit code and the shape of the model are the same, and say no name.
#[test]
fn neighbouring_pictures_look_the_same() {
    let times = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 10 } else { 1 };
    let mut random = Random(0x1234_5678_9abc_def1);
    // The plan of a network takes a second, so that there are few of them.
    let kinds: [(&str, usize, bool, &str, &[&str]); 4] = [
        ("folder", 20, false, "", &["--method", "objective"]),
        ("resized", 20, false, "resize = true\n", &["--method", "output-gd", "--set", "steps=9"]),
        ("network", 4, false, "", &["--layers", "linear", "--set", "steps=3"]),
        ("zip", 20, true, "", &["--method", "noisy-gd", "--set", "steps=3", "--adjacency", "replace-one"]),
    ];
    for (name, pairs, zipped, more, extra) in kinds {
        let here = Scratch::new(&format!("pictures-{name}"));
        here.write("schema.toml", format!("{SCHEMA}{more}"));
        let mut first: Option<Seen> = None;
        for pair in 0..pairs * times {
            let mut files = pets(30);
            if pair > 0 {
                let at = random.below(files.len());
                strange(&mut random, &mut files[at]);
            }
            let seen = if zipped {
                write_zip(&here.join("data.zip"), &files);
                look(&here, extra, "data.zip/train")
            } else {
                write_folder(&here.join("data"), &files);
                look(&here, extra, "data")
            };
            let all = [&seen.out[..], &seen.err, seen.model.as_bytes()].concat();
            assert!(seen.code == Some(0) && !String::from_utf8_lossy(&all).contains("SECRET"), "{name}: {seen:?}");
            match &first {
                None => first = Some(seen),
                Some(first) => assert!(*first == seen, "{name}, pair {pair}\n{first:?}\n{seen:?}"),
            }
        }
    }
}

/// A folder and a zip file of it give the same model, and evaluate and predict read both.
#[test]
fn every_verb_reads_pictures() {
    let here = Scratch::new("pictures");
    let mut files = pets(60);
    write_folder(&here.join("train"), &files);
    write_zip(&here.join("pets.ZIP"), &files);
    here.write("schema.toml", SCHEMA);
    let fit = |data: &str, out: &str| {
        let flags = "--schema schema.toml --epsilon 50 --delta 1e-4 --simulate 3 --method objective --format json";
        here.ok(&format!("fit --data {data} --out {out} {flags}"));
    };
    fit("train", "folder.json");
    fit("pets.ZIP/train", "zip.json");
    assert_eq!(here.read("folder.json"), here.read("zip.json"));
    let scores = here.json("evaluate --model folder.json --data train");
    assert_eq!((scores["rows"].as_u64(), scores["records"].as_u64()), (Some(60), Some(60)));
    assert!(scores["accuracy"].as_f64().unwrap() > 0.7, "{scores}");
    assert_eq!(here.json("evaluate --model folder.json --data pets.ZIP"), scores);
    // A line for each file, in the order of paths; one that can't be read has a line too.
    files[1].1 = b"broken".to_vec();
    files[3].0 = "bird/003.jpg".into();
    write_folder(&here.join("test"), &files);
    let lines = here.ok("predict --model folder.json --data test");
    assert_eq!(lines.lines().count(), 61);
    let before = here.ok("predict --model folder.json --data train");
    let rows =
        |text: &str, from: usize, to: usize| text.lines().skip(1 + from).take(to - from).map(String::from).collect::<Vec<_>>();
    // The bird comes first, then all cats, then dogs of which the first is broken.
    assert_eq!(rows(&lines, 0, 1), rows(&before, 31, 32));
    assert_eq!(rows(&lines, 1, 31), rows(&before, 0, 30));
    assert_eq!(rows(&lines, 32, 60), rows(&before, 32, 60));
    let scores = here.json("evaluate --model folder.json --data test");
    assert_eq!((scores["rows"].as_u64(), scores["records"].as_u64()), (Some(58), Some(60)));
    // With noise.
    here.ok("evaluate --model folder.json --data test --epsilon 1 --delta 1e-4");
    // The owner is told everything.
    let report = here.ok("schema validate --schema schema.toml --data test");
    for line in [
        "broken or cut off, or neither JPEG nor PNG: 1 rows ([\"dog/001.jpg\"] ...)",
        "folder \"bird\": a label that is none of the classes: 1 rows ([\"bird/003.jpg\"] ...)",
        "target: 59 of 60 rows have a label that the schema knows (\"cat\" 30, \"dog\" 29)",
        "60 rows read",
    ] {
        assert!(report.contains(line), "{line}\n{report}");
    }
    here.write("small.toml", SCHEMA.replace("[4, 6, 3]", "[2, 2]"));
    let report = here.ok("schema validate --schema small.toml --data pets.ZIP/train");
    assert!(report.contains("another size than shape (resize = true would resize it): 60 rows"), "{report}");
    here.write("small.toml", SCHEMA.replace("[4, 6, 3]", "[2, 2]\nresize = true"));
    let report = here.ok("schema validate --schema small.toml --data pets.ZIP/train");
    assert!(!report.contains("another size") && report.contains("60 of 60"), "{report}");
}

#[test]
fn drafts_leave_classes_to_the_owner() {
    let here = Scratch::new("pictures-draft");
    write_folder(&here.join("pets"), &pets(4));
    write_zip(&here.join("Pets.zip"), &pets(4));
    for place in ["pets", "Pets.zip/train", "Pets.zip"] {
        let draft = here.ok(&format!("schema init {place}"));
        for line in
            ["name = \"pets\"", "classes = [\"?\"]", "[\"cat\", \"dog\"]", "kind = \"image\"", "shape = \"?\"", "max = 255"]
        {
            assert!(draft.contains(line), "{line}: {draft}");
        }
        here.write("draft.toml", &draft);
        here.refused("schema check draft.toml", 2, "shape = [28, 28]");
        let whole =
            draft.replace("classes = [\"?\"]", "classes = [\"cat\", \"dog\"]").replace("shape = \"?\"", "shape = [4, 6, 3]");
        here.write("whole.toml", &whole);
        assert!(here.ok("schema check whole.toml").contains("73 encoded features"));
    }
    here.write("x.idx", [&[0, 0, 8, 3][..], &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2], &[9, 9, 9, 9]].concat());
    let draft = here.ok("schema init x.idx");
    assert!(
        draft.contains("shape = [2, 2]\nmax = 255") && draft.contains("classes = [\"?\"]") && !draft.contains('9'),
        "{draft}"
    );
    here.write("y.idx", [0, 0, 8, 1, 0, 0, 0, 1, 0]);
    here.refused("schema init y.idx", 2, "give the file with the images");
}

/// What is wrong with a path is said before anything is read, with the fix.
#[test]
fn wrong_places_are_named() {
    let here = Scratch::new("pictures-wrong");
    write_folder(&here.join("pets"), &pets(30));
    write_zip(&here.join("pets.zip"), &pets(30));
    std::fs::create_dir(here.join("empty")).unwrap();
    here.write("broken.zip", "PK");
    here.write("schema.toml", SCHEMA);
    here.write("table.toml", "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features.a]\ntype = \"number\"\nmin = 0\nmax = 1\n");
    let fit = |rest: &str| format!("fit --epsilon 1 --delta 1e-4 --out model.json --schema schema.toml {rest}");
    here.write("y.npy", "x");
    for (rest, words) in [
        ("--data nothing", "check the path"),
        ("--data empty", "no picture in empty"),
        ("--data pets.zip/test", "no picture in pets.zip/test"),
        ("--data broken.zip", "not a whole zip file: copy or pack it again"),
        ("--data pets --labels y.npy", "leave out --labels"),
        ("--data pets y.npy", "give one kind of them"),
    ] {
        let words_of = here.refused(&fit(rest), 2, words);
        assert!(words_of.is_empty(), "{words_of}");
    }
    here.refused("fit --epsilon 1 --delta 1e-4 --out model.json --schema table.toml --data pets", 2, "kind = \"image\"");
    let onto_itself = fit("--data pets.zip/train --force").replace("model.json", "pets.zip");
    here.refused(&onto_itself, 2, "needed for the job itself");
    here.refused("schema init empty", 2, "no picture in empty");
    here.refused("schema validate --schema schema.toml --data empty", 2, "no picture in empty");
    // Public rows that lie in the private ones, or the other way round, are private.
    for (data, public) in
        [("pets", "pets/cat"), ("pets/cat", "pets"), ("pets.zip", "./pets.zip/train"), ("pets.zip/train", "pets.zip")]
    {
        let job = format!(
            "data = {data:?}\nschema = \"schema.toml\"\nepsilon = 1\ndelta = 1e-4\nout = \"m.json\"\nmethod = \"objective\"\n[tune.grid]\nridge = [3, 30]\n"
        );
        here.write("job.toml", job);
        here.refused(&format!("tune job.toml --public {public}"), 2, "holds the private records");
    }
    // Under add-remove the number of records is private: nobody learns that there are none.
    let line = fit("--data empty --adjacency add-remove --rows 30 --method noisy-gd --set steps=2 --allow-large-delta");
    let empty = here.run(&line);
    let some = here.run(&line.replace("empty", "pets").replace("model.json", "other.json"));
    assert_eq!((empty.status.code(), some.status.code()), (Some(0), Some(0)), "{}", text(&empty.stderr));
}
