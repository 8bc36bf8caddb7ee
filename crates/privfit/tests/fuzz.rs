//! Damaged files for every reader: seeds from tests/corpus, mutated. A binary of its own, since it measures the memory of its process. A fixed number of cases by default; in a sweep
//! (PRIVFIT_SWEEP=1) as many as fit in ten minutes for each reader, from a start that changes with every run.
//!
//! A failed case is printed with its number and written to the directory for temporary files. Once it is fixed, move it to the
//! corpus: every file there is also run as it is.

use privfit::data::csv::Csv;
use privfit::data::gz::maybe_gz;
use privfit::data::idx::Idx;
use privfit::data::libsvm::Libsvm;
use privfit::data::npy::Npy;
use privfit::data::parquet::ParquetFile;
use privfit::data::picture::Pictures;
use privfit::data::{Cell, Reader, Record};
use privfit::error::{Error, Result};
use std::io::{Cursor, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Most bytes that a record may take.
const RECORD_LIMIT: usize = 64 << 20;

/// More rows than that are not read: a run-length encoded Parquet page says in a few bytes that there are billions.
const ROWS_LIMIT: u64 = 1 << 20;

/// Most time for a case. Files are small, so that even on a busy machine one that takes longer has found a loop.
const CASE_LIMIT: Duration = Duration::from_secs(20);

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // Neighbouring seeds start far apart, and none at zero.
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    /// A number at the edge of some type.
    fn edge(&mut self) -> u64 {
        let bit = 1u64 << self.below(64);
        [0, 1, bit, bit - 1, bit + 1, !bit, u64::MAX, 255, 0x10_0000][self.below(9)]
    }
}

const WORDS: [&str; 24] = [
    "\n",
    "\r\n",
    ",",
    "\"",
    "\"\"",
    "\",\"",
    " ",
    "\t",
    "#",
    ":",
    "1:1",
    "0:",
    "-1",
    "4294967296",
    "18446744073709551615",
    "nan",
    "1e999",
    "-inf",
    "True",
    "(1,)",
    "'<f8'",
    "\0",
    "\u{feff}",
    "é",
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    for _ in 0..1 + random.below(5) {
        let at = random.below(bytes.len() + 1);
        let rest = bytes.len() - at;
        // Headers are short and at one end of the file; half of the changes go there.
        let near = random.below(64).min(bytes.len());
        let at = [at, at, near, bytes.len() - near][random.below(4)].min(bytes.len());
        let most = [4, 16, rest + 1][random.below(3)];
        let length = random.below(most).min(bytes.len() - at);
        let change: Vec<u8> = match random.below(10) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
                continue;
            }
            2 => vec![random.next() as u8],
            3 => random.pick(&WORDS).into(),
            4 => {
                let edge = random.edge();
                let size = [1, 2, 4, 8][random.below(4)];
                if random.below(2) == 0 { edge.to_le_bytes()[..size].to_vec() } else { edge.to_be_bytes()[8 - size..].to_vec() }
            }
            5 => varint(random.edge()),
            6 => random.edge().to_string().into_bytes(),
            7 => Vec::new(),
            8 => bytes[at..at + length].repeat(1 + random.below(3)),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                other[from..from + random.below(other.len() - from + 1)].to_vec()
            }
        };
        match random.below(8) {
            0 => bytes.truncate(at),
            // In the place of as many bytes, so that what follows stays where headers say.
            1..=4 => drop(bytes.splice(at..(at + change.len()).min(bytes.len()), change)),
            5 => drop(bytes.splice(at..at + length, change)),
            _ => drop(bytes.splice(at..at, change)),
        }
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// How a case ended.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It could not be opened, or is too much to read.
    Refused,
    /// `Error::Host` on the way.
    Stopped,
    /// So many records.
    Read(u64),
}

/// Reads to the end and counts. A reader that can't be opened has the right to say why, or that the host failed.
fn count<R: Reader>(open: Result<R>) -> Outcome {
    let mut reader = match open {
        Ok(reader) => reader,
        Err(Error::Misuse(text)) => {
            assert!(text.contains(": "), "a message without a fix: {text}");
            return Outcome::Refused;
        }
        Err(error) => {
            assert_eq!(error, Error::Host);
            return Outcome::Refused;
        }
    };
    let rows = reader.header_rows();
    if rows.is_some_and(|rows| rows > ROWS_LIMIT) && !reader.columns().is_empty() {
        return Outcome::Refused;
    }
    let (width, mut records) = (reader.columns().len(), 0);
    let result = reader.read(&mut |record| {
        records += 1;
        let size = match record {
            Record::Cells(cells) => {
                assert_eq!(cells.len(), width);
                cells.iter().map(|cell| if let Cell::Text(text) = cell { text.len() } else { 0 }).sum::<usize>() + 24 * width
            }
            Record::Dense(values) | Record::Labelled(_, values) => 8 * values.len(),
            Record::Sparse(_, pairs) => 16 * pairs.len(),
            Record::Broken => 0,
        };
        assert!(size <= RECORD_LIMIT);
    });
    if let Err(error) = result {
        assert_eq!(error, Error::Host);
        return Outcome::Stopped;
    }
    assert!(rows.is_none_or(|rows| rows == records));
    Outcome::Read(records)
}

/// Runs the corpus, then mutated cases.
fn fuzz(name: &str, cases: u64, mut case: impl FnMut(&[u8]) -> Outcome) {
    let directory = ["", "/../privfit-data"].map(|c| format!("{}{c}/tests/corpus/{name}", env!("CARGO_MANIFEST_DIR")));
    let directory = directory.iter().find(|d| std::path::Path::new(d).is_dir()).unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut run = |label: String, bytes: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| case(bytes))).unwrap_or_else(|_| {
            let path = std::env::temp_dir().join(format!("privfit-fuzz-{name}-{label}"));
            std::fs::write(&path, bytes).unwrap();
            panic!("{name}: case {label} failed, kept as {}", path.display());
        })
    };
    for (path, seed) in paths.iter().zip(&seeds) {
        run(path.file_name().unwrap().to_string_lossy().into(), seed);
    }
    let seconds = std::env::var_os("PRIVFIT_SWEEP").map(|_| 600);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let first = if seconds.is_some() { now.as_secs() << 24 } else { 0 };
    let start = Instant::now();
    let (mut done, mut stopped, mut read) = (0, 0, 0);
    while seconds.map_or(done < cases, |seconds| start.elapsed() < Duration::from_secs(seconds)) {
        let mut random = Random::new(first + done);
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut random, &mut bytes, &seeds);
        let before = Instant::now();
        match run((first + done).to_string(), &bytes) {
            Outcome::Refused => {}
            Outcome::Stopped => stopped += 1,
            Outcome::Read(_) => read += 1,
        }
        assert!(before.elapsed() < CASE_LIMIT, "{name}: case {} took {:?}", first + done, before.elapsed());
        done += 1;
    }
    let time = start.elapsed().as_secs_f64();
    println!("{name}: {done} cases in {time:.1} s from {first}: {read} read to the end, {stopped} stopped on the way");
    // Where the system tells it: the most memory that this process ever had.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.is_none_or(|peak| peak < 1 << 20), "{name}: memory reached {peak:?} kB");
}

/// Lines of a text, as records are counted.
fn lines(text: &[u8]) -> u64 {
    text.split_inclusive(|&byte| byte == b'\n').count() as u64
}

#[test]
fn csv() {
    fuzz("csv", 100_000, |bytes| {
        let outcome = count(Csv::open(Box::new(Cursor::new(bytes.to_vec()))));
        assert!(outcome == Outcome::Refused || outcome == Outcome::Read(lines(bytes) - 1));
        outcome
    });
}

#[test]
fn libsvm() {
    fuzz("libsvm", 100_000, |bytes| {
        let dimension = [20, 1, u32::MAX as usize][bytes.len() % 3];
        let outcome = count(Libsvm::open(Box::new(Cursor::new(bytes.to_vec())), dimension));
        assert_eq!(outcome, Outcome::Read(lines(bytes)));
        outcome
    });
}

#[test]
fn npy() {
    fuzz("npy", 100_000, |bytes| count(Npy::open(Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))));
}

#[test]
fn idx() {
    fuzz("idx", 100_000, |bytes| count(Idx::open(Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))));
}

#[test]
fn gz() {
    fuzz("gz", 20_000, |bytes| count(maybe_gz(Box::new(Cursor::new(bytes.to_vec()))).and_then(Csv::open)));
}

fn create(path: &std::path::Path) -> std::fs::File {
    std::fs::OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).unwrap()
}

/// Other bytes in an open file. Where a file is emptied first, some systems wait for the disk.
fn replace(file: &mut std::fs::File, bytes: &[u8]) {
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.rewind().unwrap();
}

#[test]
fn parquet() {
    // One file for all cases. If a case ends the process, it is found there.
    let path = std::env::temp_dir().join(format!("privfit-fuzz-parquet-{}", std::process::id()));
    let mut file = create(&path);
    fuzz("parquet", 20_000, |bytes| {
        replace(&mut file, bytes);
        count(ParquetFile::open(file.try_clone().unwrap()))
    });
    std::fs::remove_file(path).unwrap();
}

fn pictures(resize: bool) -> privfit::Schema {
    let text = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"cat\", \"dog\"]\n[features]\nkind = \"image\"\nshape = [4, 6, 3]\nmax = 1";
    privfit::Schema::parse(&format!("{text}\nresize = {resize}")).unwrap()
}

/// A file is one record, whatever is in it.
#[test]
fn picture() {
    let folder = std::env::temp_dir().join(format!("privfit-fuzz-picture-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("cat")).unwrap();
    let schemas = [pictures(false), pictures(true)];
    let mut file = create(&folder.join("cat/a.jpg"));
    fuzz("picture", 20_000, |bytes| {
        replace(&mut file, bytes);
        let outcome = count(Pictures::open(&folder, &schemas[bytes.len() % 2]).map(Option::unwrap));
        assert_eq!(outcome, Outcome::Read(1));
        outcome
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// A zip file that is opened is read to its end.
#[test]
fn zip() {
    let path = std::env::temp_dir().join(format!("privfit-fuzz-zip-{}.zip", std::process::id()));
    let schema = pictures(true);
    let mut file = create(&path);
    fuzz("zip", 20_000, |bytes| {
        replace(&mut file, bytes);
        let outcome = count(Pictures::open(&path, &schema).map(Option::unwrap));
        assert_ne!(outcome, Outcome::Stopped);
        outcome
    });
    std::fs::remove_file(path).unwrap();
}

/// A schema that is read is one that holds together.
#[test]
fn schema() {
    fuzz("schema", 20_000, |bytes| match std::str::from_utf8(bytes).ok().map(privfit::Schema::parse) {
        Some(Ok(schema)) => {
            assert!(schema.check().is_ok());
            Outcome::Read(1)
        }
        _ => Outcome::Refused,
    });
}

/// A record of a ledger that is read is written again as it was.
#[test]
fn record() {
    use privfit::ledger::record::Record;
    fuzz("record", 50_000, |bytes| match std::str::from_utf8(bytes).ok().map(Record::read) {
        Some(Ok(record)) => {
            assert_eq!(record.body().unwrap().as_bytes(), bytes);
            Outcome::Read(1)
        }
        _ => Outcome::Refused,
    });
}

/// A model file whose digest was made to fit again: whatever is read is finite, fits its schema, and is either verified or refused.
#[test]
fn model() {
    use privfit::verify::verify_artifact;
    use sha2::{Digest, Sha256};
    fuzz("model", 10_000, |bytes| {
        let mut bytes = bytes.to_vec();
        if let Some(start) = bytes.len().checked_sub(64 + 4) {
            let end = start + 64;
            bytes[start..end].fill(b'0');
            let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
            bytes[start..end].copy_from_slice(digest.as_bytes());
        }
        match privfit::Artifact::from_bytes(&bytes) {
            Ok(artifact) => {
                assert!(artifact.model.weights().iter().flatten().all(|w| w.is_finite()));
                let _ = verify_artifact(&artifact);
                Outcome::Read(1)
            }
            Err(error) => {
                assert_eq!(error.code(), 4);
                Outcome::Refused
            }
        }
    });
}
