//! What a disk may hold after power was lost: everything that was synchronised, and any part of the rest.
//!
//! Contents belong to files, not to names: a rename that survived may show a file whose content did not. Names survive in the order in
//! which they changed, up to any point after the last synchronisation of their directory. Writes that were not synchronised survive in
//! any subset, in any order, and may be torn at 512 bytes.

use super::recorder::Operation;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Atom of a write.
const SECTOR: usize = 512;

/// Names and contents.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Cut(u64),
}

#[derive(Clone)]
enum Naming {
    Set(PathBuf, usize),
    Remove(PathBuf),
}

/// A disk with what survives for certain and what is under way.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    contents: Vec<Vec<u8>>,
    pending: Vec<Vec<Change>>,
    names: BTreeMap<PathBuf, usize>,
    surviving: BTreeMap<PathBuf, usize>,
    renaming: Vec<Naming>,
}

/// How much of what was not synchronised survives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// Nothing.
    All,
    /// Everything: a process that was killed, not a machine.
    None,
    /// Contents, while all names survive.
    Contents,
    /// Names, while all contents survive.
    Names,
    /// Everything, but the last write of each file only up to this many sectors.
    Torn(usize),
    /// A random part.
    Some(u64),
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Cut(length) => content.resize(*length as usize, 0),
        Change::Write(offset, bytes) => {
            let end = *offset as usize + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset as usize..end].copy_from_slice(bytes);
        }
    }
}

fn rename(names: &mut BTreeMap<PathBuf, usize>, naming: &Naming) {
    match naming {
        Naming::Set(path, file) => drop(names.insert(path.clone(), *file)),
        Naming::Remove(path) => drop(names.remove(path)),
    }
}

/// A stream of numbers from a seed (splitmix64): a failure can be repeated.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

impl Disk {
    fn file(&self, path: &Path) -> Option<usize> {
        self.names.get(path).copied()
    }

    fn name(&mut self, naming: Naming) {
        rename(&mut self.names, &naming);
        self.renaming.push(naming);
    }

    /// Goes one operation further.
    pub(crate) fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Open { path, make, empty } => {
                if *make && self.file(path).is_none() {
                    self.contents.push(Vec::new());
                    self.pending.push(Vec::new());
                    self.name(Naming::Set(path.clone(), self.contents.len() - 1));
                }
                if let Some(file) = self.file(path).filter(|_| *empty) {
                    self.pending[file].push(Change::Cut(0));
                }
            }
            Operation::Write { path, offset, bytes } => {
                let file = self.file(path).expect("a file that is written to has a name");
                self.pending[file].push(Change::Write(*offset, bytes.clone()));
            }
            Operation::Cut { path, length } => {
                let file = self.file(path).expect("a file that is cut has a name");
                self.pending[file].push(Change::Cut(*length));
            }
            Operation::Sync { path } => match self.file(path) {
                Some(file) => {
                    let content = &mut self.contents[file];
                    std::mem::take(&mut self.pending[file]).iter().for_each(|change| apply(content, change));
                }
                // A directory: there is one.
                None => std::mem::take(&mut self.renaming).iter().for_each(|n| rename(&mut self.surviving, n)),
            },
            Operation::Rename { from, to } => {
                let file = self.file(from).expect("a file that is renamed has a name");
                self.name(Naming::Set(to.clone(), file));
                self.name(Naming::Remove(from.clone()));
            }
            Operation::Link { from, to } => {
                let file = self.file(from).expect("a file that is linked has a name");
                self.name(Naming::Set(to.clone(), file));
            }
            Operation::Remove { path } => self.name(Naming::Remove(path.clone())),
        }
    }

    /// What is found when power is back.
    pub(crate) fn after(&self, loss: Loss) -> Files {
        let mut random = Numbers(if let Loss::Some(seed) = loss { seed } else { 0 });
        let mut names = self.surviving.clone();
        let kept = match loss {
            Loss::All | Loss::Names => 0,
            Loss::None | Loss::Contents | Loss::Torn(_) => self.renaming.len(),
            Loss::Some(_) => random.below(self.renaming.len() + 1),
        };
        self.renaming[..kept].iter().for_each(|n| rename(&mut names, n));
        let mut files = Files::new();
        for (path, file) in names {
            let mut content = self.contents[file].clone();
            let pending = &self.pending[file];
            match loss {
                Loss::All | Loss::Contents => {}
                Loss::None | Loss::Names => pending.iter().for_each(|change| apply(&mut content, change)),
                Loss::Torn(sectors) => {
                    let last = pending.len().saturating_sub(1);
                    pending[..last].iter().for_each(|change| apply(&mut content, change));
                    if let Some(Change::Write(offset, bytes)) = pending.last() {
                        let bytes = &bytes[..bytes.len().min(sectors * SECTOR)];
                        apply(&mut content, &Change::Write(*offset, bytes.to_vec()));
                    }
                }
                Loss::Some(_) => {
                    let mut order: Vec<usize> = (0..pending.len()).collect();
                    (1..order.len()).for_each(|i| order.swap(i, random.below(i + 1)));
                    for i in order {
                        scatter(&mut content, &pending[i], &mut random);
                    }
                }
            }
            files.insert(path, content);
        }
        files
    }

    /// Sectors of the longest last write: how many ways there are to tear.
    pub(crate) fn sectors(&self) -> usize {
        let last = self.pending.iter().filter_map(|p| match p.last() {
            Some(Change::Write(_, bytes)) => Some(bytes.len().div_ceil(SECTOR)),
            _ => None,
        });
        last.max().unwrap_or(0)
    }
}

/// Each sector of a change survives or not.
fn scatter(content: &mut Vec<u8>, change: &Change, random: &mut Numbers) {
    match change {
        Change::Cut(_) if random.below(2) == 0 => apply(content, change),
        Change::Cut(_) => {}
        Change::Write(offset, bytes) => {
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                if random.below(2) == 0 {
                    apply(content, &Change::Write(offset + (i * SECTOR) as u64, sector.to_vec()));
                }
            }
        }
    }
}
