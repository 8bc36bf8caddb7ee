//! Where pictures are: a folder, or a zip file, or a folder in a zip file (`cifar.zip/train`). The list of files follows from names alone, in the
//! order of their paths as bytes, and is the same for a folder and for a zip file of it.
//!
//! A file counts if its name ends in .jpg, .jpeg or .png. What systems put beside (names that start with a dot, `__MACOSX`) does not.

use super::decode::{MOST_FILE, Problem};
use crate::error::{Error, Result};
use privfit_kernel::quietly;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Names of files with pictures end like this.
const ENDS: [&[u8]; 3] = [b".jpg", b".jpeg", b".png"];

/// A folder of pictures.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Folder(PathBuf),
    /// A zip file, and the folder in it.
    Zip(PathBuf, Vec<u8>),
}

fn place(path: &Path) -> Option<Place> {
    let zip = |p: &Path| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("zip")) && p.is_file();
    if path.is_dir() {
        return Some(Place::Folder(path.into()));
    }
    let archive = path.ancestors().find(|p| zip(p))?;
    let inside = path.strip_prefix(archive).ok()?.as_os_str().as_bytes();
    Some(Place::Zip(archive.into(), inside.to_vec()))
}

/// Whether a path is one of pictures: a folder, a zip file, or a path that goes into one.
pub fn is_pictures(path: &Path) -> bool {
    place(path).is_some()
}

/// The file or folder that a path leads to or through; the path itself, if it goes into no zip file.
pub fn container(path: &Path) -> PathBuf {
    match place(path) {
        Some(Place::Zip(archive, _)) => archive,
        _ => path.into(),
    }
}

/// One file.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    /// Its path below the folder or in the zip file.
    pub(crate) path: Vec<u8>,
    /// Number in the zip file.
    number: usize,
}

impl Entry {
    /// Name of the folder that holds it.
    fn folder(&self) -> Option<&[u8]> {
        let end = memchr::memrchr(b'/', &self.path)?;
        let start = memchr::memrchr(b'/', &self.path[..end]).map_or(0, |at| at + 1);
        Some(&self.path[start..end])
    }
}

fn counts(path: &[u8]) -> bool {
    let hidden = |part: &[u8]| part.starts_with(b".") || part == b"__MACOSX";
    let ends = |end: &&[u8]| path.len() > end.len() && path[path.len() - end.len()..].eq_ignore_ascii_case(end);
    ENDS.iter().any(ends) && !path.split(|b| *b == b'/').any(hidden)
}

type Archive = zip::ZipArchive<BufReader<File>>;

/// Where bytes come from.
enum Bytes {
    Folder(PathBuf),
    Zip(PathBuf, Archive),
}

/// Files of a place, and a way to their bytes.
pub(crate) struct Files {
    pub(crate) entries: Vec<Entry>,
    /// Class of files that are not in a folder below: the name of the folder itself, if it has one.
    own: Vec<u8>,
    bytes: Bytes,
}

fn archive(path: &Path) -> Result<Archive> {
    let other = || Error::misuse(format!("{} is not a whole zip file: copy or pack it again", path.display()));
    let file = crate::small_file::open(path).map_err(|_| other())?;
    quietly(|| zip::ZipArchive::new(BufReader::new(file))).and_then(|archive| archive.ok()).ok_or_else(other)
}

impl Files {
    /// Lists the files of a path; none if it is no folder and goes into no zip file. Nothing of a file but its name is looked at.
    pub(crate) fn open(path: &Path) -> Result<Option<Files>> {
        let Some(place) = place(path) else { return Ok(None) };
        let mut files = match place {
            Place::Folder(folder) => {
                let mut entries = Vec::new();
                walk(&folder, &folder, &mut Vec::new(), &mut entries)?;
                // `.` and `..` have names too.
                let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
                let own = whole.file_name().map(|n| n.to_os_string().into_vec()).unwrap_or_default();
                Files { entries, own, bytes: Bytes::Folder(folder) }
            }
            Place::Zip(path, inside) => {
                let archive = archive(&path)?;
                let entries = packed(&archive, &inside);
                Files { entries, own: Vec::new(), bytes: Bytes::Zip(path, archive) }
            }
        };
        files.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(files))
    }

    /// Class of a file: the name of the folder that holds it.
    pub(crate) fn class(&self, entry: usize) -> &[u8] {
        self.entries[entry].folder().unwrap_or(&self.own)
    }

    /// Reads a file whole.
    pub(crate) fn read(&mut self, entry: usize, out: &mut Vec<u8>) -> std::result::Result<(), Problem> {
        out.clear();
        let entry = &self.entries[entry];
        let most = MOST_FILE + 1;
        let read = match &mut self.bytes {
            Bytes::Folder(folder) => {
                let path = folder.join(std::ffi::OsStr::from_bytes(&entry.path));
                crate::small_file::open(&path).and_then(|file| file.take(most).read_to_end(out)).map_err(|_| Problem::Unreadable)
            }
            Bytes::Zip(path, archive) => {
                let unpack = || archive.by_index(entry.number).ok().and_then(|file| file.take(most).read_to_end(out).ok());
                match quietly(unpack) {
                    Some(read) => read.ok_or(Problem::Unreadable),
                    None => {
                        // What panicked is not used again.
                        if let Ok(again) = self::archive(path) {
                            *archive = again;
                        }
                        Err(Problem::Unreadable)
                    }
                }
            }
        }?;
        if read as u64 > MOST_FILE { Err(Problem::TooLarge) } else { Ok(()) }
    }
}

/// Files of a folder and of those in it. `below` is the path from the top.
fn walk(top: &Path, folder: &Path, below: &mut Vec<u8>, out: &mut Vec<Entry>) -> Result<()> {
    // Which folder it is may be a class, and does not belong into a message.
    let unreadable = || Error::misuse(format!("a folder in {} can't be listed: check its permissions", top.display()));
    let length = below.len();
    for entry in std::fs::read_dir(folder).map_err(|_| unreadable())? {
        let entry = entry.map_err(|_| unreadable())?;
        let kind = entry.file_type().map_err(|_| unreadable())?;
        let name = entry.file_name();
        below.extend_from_slice(name.as_bytes());
        if kind.is_dir() && !name.as_bytes().starts_with(b".") {
            below.push(b'/');
            walk(top, &entry.path(), below, out)?;
        } else if kind.is_symlink() && entry.path().is_dir() {
            return Err(Error::misuse(format!(
                "{} has links to folders, which could lead in a circle: give those folders themselves to ",
                top.display()
            ))
            .naming("data"));
        } else if !kind.is_dir() && counts(below) {
            out.push(Entry { path: below.clone(), number: 0 });
        }
        below.truncate(length);
    }
    Ok(())
}

/// Files below a folder of a zip file.
fn packed(archive: &Archive, inside: &[u8]) -> Vec<Entry> {
    let inside = inside.strip_suffix(b"/").unwrap_or(inside);
    let entry = |(number, name): (usize, &[u8])| {
        // Some programs write the separator of their own system.
        let path: Vec<u8> = name.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect();
        let path = path.strip_prefix(b"./").unwrap_or(&path).to_vec();
        let below = inside.is_empty() || path.strip_prefix(inside).is_some_and(|rest| rest.starts_with(b"/"));
        (below && counts(&path)).then_some(Entry { path, number })
    };
    archive.file_names_raw().enumerate().filter_map(entry).collect()
}
