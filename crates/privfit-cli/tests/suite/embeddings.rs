//! Embeddings: rows of numbers in NumPy files with labels apart. A linear model or a network takes them, and whatever is wrong with one row is seen by nobody.

use crate::harness::Scratch;
use crate::leak::{Random, Seen, look};

const WIDTH: usize = 8;

fn schema(classes: usize) -> String {
    let classes: Vec<String> = (0..classes).map(|c| format!("\"{c}\"")).collect();
    format!(
        "[dataset]\nname = \"notes\"\n[target]\nclasses = [{}]\n[features]\nkind = \"dense\"\ndimension = {WIDTH}\nrow_norm = 2.0\n",
        classes.join(", ")
    )
}

/// A NumPy file of numbers with 64 bits.
fn npy(shape: &str, numbers: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    out
}

/// Embeddings around a centre for each class.
fn write(here: &Scratch, name: &str, rows: &[Vec<f64>], labels: &[f64]) {
    here.write(&format!("{name}.npy"), npy(&format!("{}, {WIDTH}", rows.len()), &rows.concat()));
    here.write(&format!("{name}-labels.npy"), npy(&format!("{},", labels.len()), labels));
}

fn rows(random: &mut Random, count: usize, classes: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let labels: Vec<f64> = (0..count).map(|i| (i % classes) as f64).collect();
    let mut number = || random.below(2001) as f64 / 1000.0 - 1.0;
    let row = |label: &f64| (0..WIDTH).map(|j| 0.4 * number() + f64::from(u8::from(j == *label as usize))).collect();
    (labels.iter().map(row).collect(), labels)
}

/// The default is a linear model, and both kinds of networks work; all of them tell the classes.
#[test]
fn embeddings_are_learned() {
    let here = Scratch::new("embeddings");
    let mut random = Random(0x1357_9bdf_2468_ace1);
    for (classes, method) in [(2, "objective"), (4, "noisy-gd")] {
        here.write("schema.toml", schema(classes));
        let (private, labels) = rows(&mut random, 6000, classes);
        write(&here, "d", &private, &labels);
        let (public, labels) = rows(&mut random, 300, classes);
        write(&here, "p", &public, &labels);
        let extras = [
            "",
            "--layers linear --set steps=60",
            "--layers mlp --set steps=60",
            "--layers mlp --set steps=60 --public-rows p.npy --public-labels p-labels.npy",
        ];
        for extra in extras {
            let job = "--data d.npy --labels d-labels.npy --schema schema.toml --epsilon 3 --delta 1e-6 --out m.json --force";
            let fitted = here.json(&format!("fit {job} {extra}"));
            assert_eq!(fitted["method"], if extra.is_empty() { method } else { "network" });
            let accuracy = here.json("evaluate --model m.json --data p.npy --labels p-labels.npy")["accuracy"].as_f64().unwrap();
            assert!(accuracy > 0.9, "{classes} classes, {extra}: {accuracy}");
        }
    }
}

/// One embedding or its label is no number, huge, tiny or foreign: exit code, messages and the shape of the model stay.
#[test]
fn neighbouring_embeddings_look_the_same() {
    let times = if std::env::var_os("PRIVFIT_SWEEP").is_some() { 10 } else { 1 };
    let mut random = Random(0x0f1e_2d3c_4b5a_6978);
    // The plan of a network takes a second, so that there are few of them.
    let kinds: [(&str, usize, usize, &[&str]); 5] = [
        ("two classes", 2, 14, &[]),
        ("several classes", 4, 14, &[]),
        ("scores", 4, 6, &["--layers", "linear", "--set", "steps=3"]),
        ("layers", 2, 6, &["--layers", "dense 32, tanh", "--set", "steps=3", "--adjacency", "replace-one"]),
        ("exact", 2, 4, &["--layers", "dense 4, tanh", "--set", "steps=3", "--set", "exact=1"]),
    ];
    for (name, classes, pairs, extra) in kinds {
        let here = Scratch::new("embeddings-neighbours");
        here.write("schema.toml", schema(classes));
        let (ordinary, labels) = rows(&mut random, 40, classes);
        let extra = [extra, &["--labels", "d-labels.npy"]].concat();
        let mut first: Option<Seen> = None;
        for pair in 0..pairs * times {
            let (mut ordinary, mut labels) = (ordinary.clone(), labels.clone());
            let at = random.below(ordinary.len());
            let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324, 0.0];
            match pair % 4 {
                _ if pair == 0 => {}
                0 => ordinary[at] = vec![values[random.below(values.len())]; WIDTH],
                1 => ordinary[at] = vec![f64::NAN; WIDTH],
                2 => ordinary[at][random.below(WIDTH)] = values[random.below(values.len())],
                _ => labels[at] = [f64::NAN, f64::INFINITY, -1.0, 0.5, 99.0, 1e300][random.below(6)],
            }
            write(&here, "d", &ordinary, &labels);
            let seen = look(&here, &extra, "d.npy");
            assert_eq!(seen.code, Some(0), "{name}: {}", String::from_utf8_lossy(&seen.err));
            match &first {
                None => first = Some(seen),
                Some(first) => assert!(*first == seen, "{name}, pair {pair}\n{first:?}\n{seen:?}"),
            }
        }
    }
}
