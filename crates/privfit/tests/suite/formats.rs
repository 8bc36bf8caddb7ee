//! The same rows through different files give the same model, bit for bit, from the same seed.

use privfit::account::Adjacency;
use privfit::constraint::Constraint;
use privfit::data::load::Source;
use privfit::engine::Threads;
use privfit::job::Release;
use privfit::job::fit::{Job, prepare};
use privfit::kernel::Entropy;
use privfit::method::Settings;
use privfit::{Error, Schema};
use std::path::{Path, PathBuf};

fn job(schema: &str) -> Job {
    Job {
        schema: Schema::parse(schema).unwrap(),
        rows: None,
        epsilon: 1.0,
        delta: Some(1e-4),
        adjacency: Adjacency::ZeroOut,
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

fn weights(schema: &str, files: &[&Path], labels: &[&Path]) -> Result<Vec<Vec<f64>>, Error> {
    let job = job(schema);
    let paths = |list: &[&Path]| list.iter().map(|p| p.to_path_buf()).collect::<Vec<PathBuf>>();
    let source = Source { files: paths(files), labels: paths(labels) };
    let (rows, counted) = job.rows(Some(&source))?;
    let prepared = prepare(&job, rows, counted)?;
    let entropy = Entropy::simulated(9);
    let data = prepared.open(&source, &entropy)?;
    Ok(prepared.train(&data, &Threads::new(1), &entropy, &|| {})?.model.weights().to_vec())
}

fn npy(shape: &str, kind: &str, body: Vec<u8>) -> Vec<u8> {
    let mut head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    [b"\x93NUMPY\x01\x00".to_vec(), (head.len() as u16).to_le_bytes().to_vec(), head.into_bytes(), body].concat()
}

#[test]
fn formats_agree() {
    let dir = std::env::temp_dir().join(format!("privfit-formats-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // Pixels 0 to 255, 4 to a row, and labels 0 and 1.
    let pixels: Vec<Vec<u8>> = (0..50u32).map(|i| (0..4).map(|j| ((i * 37 + j * 91) % 256) as u8).collect()).collect();
    let labels: Vec<u8> = pixels.iter().map(|p| u8::from(p[0] > 100)).collect();
    let idx = |kind: &[u8], sizes: &[u32], body: &[u8]| {
        let sizes: Vec<u8> = sizes.iter().flat_map(|s| s.to_be_bytes()).collect();
        [&[0, 0][..], kind, &sizes, body].concat()
    };
    let images = file("images.idx", &idx(&[8, 3], &[50, 2, 2], &pixels.concat()));
    let idx_labels = file("labels.idx", &idx(&[8, 1], &[50], &labels));
    let image_schema =
        "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"image\"\nshape = [2, 2]\nmax = 255\n";
    let from_idx = weights(image_schema, &[&images], &[&idx_labels]).unwrap();

    // The same as doubles between 0 and 1, in two files read one after the other.
    let scaled: Vec<Vec<f64>> = pixels.iter().map(|p| p.iter().map(|x| f64::from(*x) / 255.0).collect()).collect();
    let bytes = |rows: &[Vec<f64>]| rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let first = file("first.npy", &npy("(20, 4)", "<f8", bytes(&scaled[..20])));
    let second = file("second.npy", &npy("(30, 4)", "<f8", bytes(&scaled[20..])));
    let npy_labels = file("labels.npy", &npy("(50,)", "|u1", labels.clone()));
    let dense_schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 4\nrow_norm = 2.0\n";
    assert_eq!(weights(dense_schema, &[&first, &second], &[&npy_labels]).unwrap(), from_idx);

    // The same as index-value pairs, plain and compressed.
    let mut text = String::new();
    for (row, label) in scaled.iter().zip(&labels) {
        let pairs: Vec<String> = row.iter().enumerate().map(|(j, x)| format!("{}:{x}", j + 1)).collect();
        text.push_str(&format!("{label} {}\n", pairs.join(" ")));
    }
    let sparse_schema = dense_schema.replace("dense", "sparse");
    let plain = file("rows.svm", text.as_bytes());
    assert_eq!(weights(&sparse_schema, &[&plain], &[]).unwrap(), from_idx);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    let packed = file("rows.svm.gz", &packed.finish().unwrap());
    assert_eq!(weights(&sparse_schema, &[&packed], &[]).unwrap(), from_idx);

    // Labels that do not belong, and labels that are missing.
    let fewer = file("fewer.npy", &npy("(49,)", "|u1", labels[..49].to_vec()));
    assert!(matches!(weights(dense_schema, &[&first, &second], &[&fewer]), Err(Error::Misuse(_))));
    assert!(weights(dense_schema, &[&first], &[]).unwrap_err().to_string().contains("labels = FILE"));
    // A file cut short is the host's failure, whatever is in it.
    let cut = file("cut.npy", &npy("(20, 4)", "<f8", bytes(&scaled[..19])));
    let some = file("some.npy", &npy("(20,)", "|u1", labels[..20].to_vec()));
    assert_eq!(weights(dense_schema, &[&cut], &[&some]), Err(Error::Host));
    std::fs::remove_dir_all(dir).unwrap();
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("privfit-formats-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Pixels as arrays of every type and shape are the same as IDX. The order of dimensions is the one of the schema, never guessed.
#[test]
fn arrays_of_pixels_have_the_shape_of_the_schema() {
    let dir = scratch("pixels");
    let pixels: Vec<u8> = (0..40 * 12u32).map(|i| (i * i % 251) as u8).collect();
    let labels: Vec<u8> = (0..40).map(|i| u8::from(pixels[12 * i] > 100)).collect();
    std::fs::write(dir.join("y.npy"), npy("(40,)", "|u1", labels.clone())).unwrap();
    std::fs::write(dir.join("y.idx"), [&[0, 0, 8, 1, 0, 0, 0, 40][..], &labels].concat()).unwrap();
    let sizes = |list: &[u32]| list.iter().flat_map(|s| s.to_be_bytes()).collect::<Vec<u8>>();
    std::fs::write(dir.join("x.idx"), [&[0, 0, 8, 4][..], &sizes(&[40, 2, 2, 3]), &pixels].concat()).unwrap();
    let schema = |shape: &str| {
        format!(
            "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"image\"\nshape = {shape}\nmax = 255\n"
        )
    };
    let of = |shape: &str, kind: &str, array: &str| {
        let body: Vec<u8> = pixels
            .iter()
            .flat_map(|x| match kind {
                "|u1" => vec![*x],
                "<u2" | "<i2" => u16::from(*x).to_le_bytes().to_vec(),
                "<i4" => i32::from(*x).to_le_bytes().to_vec(),
                ">i8" => i64::from(*x).to_be_bytes().to_vec(),
                "<f4" => f32::from(*x).to_le_bytes().to_vec(),
                _ => f64::from(*x).to_le_bytes().to_vec(),
            })
            .collect();
        std::fs::write(dir.join("x.npy"), npy(array, kind, body)).unwrap();
        weights(&schema(shape), &[&dir.join("x.npy")], &[&dir.join("y.npy")])
    };
    let from_idx = weights(&schema("[2, 2, 3]"), &[&dir.join("x.idx")], &[&dir.join("y.idx")]).unwrap();
    for kind in ["|u1", "<u2", "<i2", "<i4", ">i8", "<f4", "<f8"] {
        assert_eq!(of("[2, 2, 3]", kind, "(40, 2, 2, 3)").unwrap(), from_idx, "{kind}");
    }
    for (shape, array, right) in [
        ("[2, 2, 3]", "(40, 12)", true),
        ("[2, 6]", "(40, 2, 6)", true),
        ("[2, 6]", "(40, 2, 6, 1)", true),
        ("[2, 6, 1]", "(40, 2, 6)", true),
        ("[3, 2, 2]", "(40, 3, 2, 2)", true),
        ("[2, 2, 3]", "(40, 3, 2, 2)", false),
        ("[3, 2, 2]", "(40, 2, 2, 3)", false),
        ("[2, 6]", "(40, 6, 2)", false),
        ("[2, 2, 3]", "(80, 2, 3)", false),
        ("[2, 2]", "(40, 12)", false),
        ("[2, 2, 3]", "(480,)", false),
    ] {
        match (of(shape, "|u1", array), right) {
            (Ok(_), true) => {}
            (Err(Error::Misuse(text)), false) => assert!(text.contains("the schema has"), "{text}"),
            (other, _) => panic!("{shape} {array}: {other:?}"),
        }
    }
    let refused =
        |shape: &str, x: &str, y: &str| weights(&schema(shape), &[&dir.join(x)], &[&dir.join(y)]).unwrap_err().to_string();
    assert!(refused("[2, 2]", "x.idx", "y.idx").contains("[2, 2, 3]"));
    assert!(refused("[2, 2, 3]", "x.idx", "x.idx").contains("no labels"));
    // Rows of numbers too: what is left over was once left out in silence.
    let dense = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 11\nrow_norm = 1.0\n";
    std::fs::write(dir.join("x.npy"), npy("(40, 12)", "|u1", pixels.clone())).unwrap();
    let error = weights(dense, &[&dir.join("x.npy")], &[&dir.join("y.npy")]).unwrap_err().to_string();
    assert!(error.contains("[12]") && error.contains("[11]"), "{error}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Under add-remove the number of records is private: files of another length than the estimate look like any others.
#[test]
fn private_counts_are_not_compared() {
    let dir = scratch("counts");
    let schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 2\nrow_norm = 1.0\n";
    for rows in [9usize, 10, 11] {
        let body: Vec<u8> = (0..2 * rows).flat_map(|i| (i as f64 * 0.01).to_le_bytes()).collect();
        std::fs::write(dir.join("x.npy"), npy(&format!("({rows}, 2)"), "<f8", body)).unwrap();
        // One label too few, too, which is a record's doing there.
        std::fs::write(dir.join("y.npy"), npy(&format!("({},)", rows - 1), "|u1", vec![1; rows - 1])).unwrap();
        let mut job = job(schema);
        (job.adjacency, job.rows, job.allow_large_delta) = (Adjacency::AddRemove, Some(10), true);
        let source = Source { files: vec![dir.join("x.npy")], labels: vec![dir.join("y.npy")] };
        assert_eq!(job.rows(Some(&source)), Ok((10, false)));
        let prepared = prepare(&job, 10, false).unwrap();
        assert_eq!(prepared.method.name, "noisy-gd");
        let entropy = Entropy::simulated(1);
        let data = prepared.open(&source, &entropy).unwrap();
        prepared.train(&data, &Threads::new(1), &entropy, &|| {}).unwrap();
        // Methods whose solver rests on the true number say so before data are opened.
        for method in ["objective", "output"] {
            job.method = method.into();
            let refused = prepare(&job, 10, false).err().unwrap().to_string();
            assert!(refused.contains("noisy-gd") && refused.contains("private"), "{refused}");
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// A first record that looks like the start of a compressed file is a record.
#[test]
fn a_record_does_not_decide_how_the_file_is_read() {
    let dir = scratch("magic");
    let schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = 3\nrow_norm = 1.0\n";
    let rest = "1 1:0.5\n0 2:0.25\n".repeat(20);
    let file = dir.join("rows.svm");
    for first in [&b"\x1f\x8b garbage\n"[..], b"x garbage\n", b"1 3:1\n"] {
        std::fs::write(&file, [first, rest.as_bytes()].concat()).unwrap();
        assert!(weights(schema, &[&file], &[]).is_ok());
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// What is counted is what is read: a pipe can be read only once, and is refused.
#[cfg(unix)]
#[test]
fn pipes_are_refused() {
    let schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"sparse\"\ndimension = 3\nrow_norm = 1.0\n";
    let refused = weights(schema, &[Path::new("/dev/null")], &[]).unwrap_err().to_string();
    assert!(refused.contains("not a regular file"), "{refused}");
}

/// Frank-Wolfe keeps its scores on sparse rows and sums them anew on dense ones: the mean of every weight over 300 fits each agrees
/// within 6.5 deviations (five weights: false alarm below 1e-9).
#[test]
fn frank_wolfe_agrees_on_sparse_and_dense_rows() {
    let dir = std::env::temp_dir().join(format!("privfit-vertices-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let rows: Vec<Vec<f64>> =
        (0..300u32).map(|i| (0..4).map(|j| f64::from((i * 37 + j * j * 91) % 256) / 512.0).collect()).collect();
    let labels: Vec<u8> = rows.iter().map(|r| u8::from(r[0] > 0.2)).collect();
    let bytes = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let line = |(row, label): (&Vec<f64>, &u8)| {
        let pairs: Vec<String> = row.iter().enumerate().map(|(j, x)| format!("{}:{x}", j + 1)).collect();
        format!("{label} {}\n", pairs.join(" "))
    };
    let text: String = rows.iter().zip(&labels).map(line).collect();
    std::fs::write(dir.join("rows.npy"), npy("(300, 4)", "<f8", bytes)).unwrap();
    std::fs::write(dir.join("labels.npy"), npy("(300,)", "|u1", labels)).unwrap();
    std::fs::write(dir.join("rows.svm"), text).unwrap();
    let moments = |kind: &str, files: &str, labels: &[&str]| -> Vec<(f64, f64)> {
        let schema = format!(
            "[dataset]\nname = \"t\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"{kind}\"\ndimension = 4\n\
             row_norm = 1.0\n"
        );
        let settings = Settings([("steps".to_string(), 40.0), ("cap".to_string(), 1.0)].into());
        let job = Job { method: "frank-wolfe".into(), epsilon: 4.0, settings, constraint: Constraint::L1(8.0), ..job(&schema) };
        let source = Source { files: vec![dir.join(files)], labels: labels.iter().map(|l| dir.join(l)).collect() };
        let (rows, counted) = job.rows(Some(&source)).unwrap();
        let prepared = prepare(&job, rows, counted).unwrap();
        let data = prepared.open(&source, &Entropy::simulated(1)).unwrap();
        let fits: Vec<Vec<f64>> = (0..300)
            .map(|seed| {
                prepared.train(&data, &Threads::new(1), &Entropy::simulated(seed), &|| {}).unwrap().model.weights().concat()
            })
            .collect();
        let of = |j: usize| {
            let mean = fits.iter().map(|w| w[j]).sum::<f64>() / 300.0;
            (mean, fits.iter().map(|w| (w[j] - mean).powi(2)).sum::<f64>() / (300.0 * 299.0))
        };
        (0..fits[0].len()).map(of).collect()
    };
    let (sparse, dense) = (moments("sparse", "rows.svm", &[]), moments("dense", "rows.npy", &["labels.npy"]));
    assert!(sparse.len() == dense.len() && sparse.iter().any(|m| m.0.abs() > 0.5), "{sparse:?}");
    for (a, b) in sparse.iter().zip(&dense) {
        assert!((a.0 - b.0).abs() <= 6.5 * (a.1 + b.1).sqrt(), "{sparse:?} {dense:?}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
