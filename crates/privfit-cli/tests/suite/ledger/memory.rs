//! Memory: what a header announces is compared with its file before anything is spent, and memory that ends says nothing of sizes.

use super::place;
use std::os::unix::process::CommandExt;
use std::path::Path;

const HOST: &str = "error: the host failed while private data were open";

/// A NumPy array of bytes whose header says one thing; its numbers are zeros.
fn npy(path: &Path, shape: &str, size: u64) {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
    let bytes = [&b"\x93NUMPY\x01\0"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    std::fs::write(path, &bytes).unwrap();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes.len() as u64 + size).unwrap();
}

fn idx(path: &Path, shape: &[u32]) {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    shape.iter().for_each(|n| bytes.extend(n.to_be_bytes()));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn forged_counts_end_before_anything_is_spent() {
    let here = place("forged");
    let schema = |name: &str, features: &str| {
        let text = format!("[dataset]\nname = \"visits\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\n{features}\n");
        std::fs::write(here.join(name), text).unwrap();
    };
    schema("dense.toml", "kind = \"dense\"\ndimension = 10\nrow_norm = 1.0");
    schema("image.toml", "kind = \"image\"\nshape = [28, 28]\nmax = 255");
    npy(&here.join("x.npy"), "(1099511627776, 10)", 0);
    npy(&here.join("y.npy"), "(1099511627776,)", 0);
    npy(&here.join("few.npy"), "(40, 10)", 400);
    npy(&here.join("forty.npy"), "(40,)", 40);
    idx(&here.join("x.idx"), &[u32::MAX, 28, 28]);
    idx(&here.join("y.idx"), &[u32::MAX]);
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    for (files, says, code) in [
        ("x.npy --labels y.npy --schema dense.toml", HOST, 3),
        ("x.idx --labels y.idx --schema image.toml", HOST, 3),
        ("few.npy --labels y.npy --schema dense.toml", HOST, 3),
        ("few.npy --labels forty.npy forty.npy --schema dense.toml", "40 records and 80 labels", 2),
    ] {
        let line = format!("fit --data {files} --epsilon 0.5 --delta 1e-14 --out m.json --ledger l");
        let done = here.command(&line).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(code) && said.contains(says), "{line}: {:?} {said}", done.status.code());
        assert!(!said.contains("reserved stays spent)") && !here.join("m.json").exists(), "{line}: {said}");
    }
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 0);
}

/// How many rows there are is private under add-remove: without memory for them the same is said for any number.
#[test]
fn memory_that_ends_says_nothing_of_rows() {
    let here = place("memory");
    let schema = "[dataset]\nname = \"visits\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"dense\"\ndimension = 1000\n\
                  row_norm = 1.0\n";
    std::fs::write(here.join("dense.toml"), schema).unwrap();
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6 --adjacency add-remove");
    let said: Vec<String> = [300_000u64, 400_000]
        .map(|rows| {
            npy(&here.join("x.npy"), &format!("({rows}, 1000)"), rows * 1000);
            npy(&here.join("y.npy"), &format!("({rows},)"), rows);
            let files = "--data x.npy --labels y.npy --schema dense.toml --threads 1 --out m.json";
            let line =
                format!("fit {files} --epsilon 0.1 --delta 1e-9 --rows 9 --adjacency add-remove --ledger l --request r{rows}");
            let mut command = here.command(&line);
            // SAFETY: one call between fork and exec.
            unsafe {
                command.pre_exec(|| {
                    let most = libc::rlimit { rlim_cur: 400 << 20, rlim_max: 400 << 20 };
                    if libc::setrlimit(libc::RLIMIT_AS, &most) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
                })
            };
            let done = command.output().unwrap();
            let said = String::from_utf8(done.stderr).unwrap();
            assert!(done.status.code() == Some(3) && said.contains(HOST), "{:?} {said}", done.status.code());
            said.replace(&format!("r{rows}"), "NAME")
        })
        .into();
    assert_eq!(said[0], said[1]);
    // What was reserved stays spent.
    assert_eq!(here.json("ledger show l")["jobs"].as_array().unwrap().len(), 2);
}
