//! Pictures in folders, where the folder that holds a picture names its class: `train/cat/0001.jpg`. A folder, or a zip file of it.
//!
//! What is claimed. A record is a file with the ending of a picture: its bytes are the features, the name of its folder is the label. The number of
//! these files and nothing else is public before records are read, as it is for every format; under zero-out and replace-one it is the same for
//! neighbours. No name of a file or folder, and no number of pictures that can't be read, reaches a message, a model or an exit code. Records have
//! the order of their paths, and a neighbour has another picture or another class in the same place. What comes out for a record depends on its own
//! bytes and on public facts alone: whatever is wrong with it, it is `Record::Broken`, and nobody else changes. After the list is made, nothing fails.

mod decode;
mod place;
mod resize;
#[cfg(test)]
mod tests;

use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use crate::schema::{Features, Schema};
pub use decode::Problem;
use decode::decode;
use place::Files;
pub use place::{container, is_pictures};
use resize::resized;
use std::path::Path;

/// Pictures of a folder or zip file.
pub struct Pictures {
    files: Files,
    /// Height, width, channels.
    shape: (usize, usize, usize),
    max: f64,
    resize: bool,
}

/// Height, width and channels of a shape, if pictures can have it.
pub fn picture_shape(shape: &[usize]) -> Result<(usize, usize, usize)> {
    match *shape {
        [height, width] => Ok((height, width, 1)),
        [height, width, channels @ (1 | 3)] => Ok((height, width, channels)),
        _ => Err(Error::misuse(format!(
            "[features] shape is {shape:?}: pictures need [height, width] for grey, or [height, width, 3] for colours"
        ))),
    }
}

impl Pictures {
    /// Lists the pictures of a path; none if it is no folder and goes into no zip file. No picture is looked at.
    pub fn open(path: &Path, schema: &Schema) -> Result<Option<Pictures>> {
        let Some(files) = Files::open(path)? else { return Ok(None) };
        let Features::Image { shape, max, resize, .. } = &schema.features else {
            return Err(Error::misuse(format!(
                "{} is a folder or a zip file, which are read as pictures: give a file with records, or kind = \"image\" in [features]",
                path.display()
            )));
        };
        Ok(Some(Pictures { files, shape: picture_shape(shape)?, max: *max, resize: *resize }))
    }

    /// Hands out every file with what is wrong with it: path, class and problem. For the data owner only.
    pub fn examine(&mut self, each: &mut dyn FnMut(&[u8], &[u8], Option<Problem>)) {
        let (mut file, mut pixels) = (Vec::new(), Vec::new());
        for entry in 0..self.files.entries.len() {
            let problem = self.pixels(entry, &mut file, &mut pixels).err();
            each(&self.files.entries[entry].path, self.files.class(entry), problem);
        }
    }

    fn pixels(&mut self, entry: usize, file: &mut Vec<u8>, out: &mut Vec<f64>) -> std::result::Result<(), Problem> {
        self.files.read(entry, file)?;
        let size = (!self.resize).then_some((self.shape.0, self.shape.1));
        resized(&decode(file, size)?, self.shape, self.max, out);
        Ok(())
    }
}

impl Reader for Pictures {
    fn columns(&self) -> &[String] {
        &[]
    }

    fn header_rows(&self) -> Option<u64> {
        Some(self.files.entries.len() as u64)
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let (mut file, mut pixels) = (Vec::new(), Vec::new());
        for entry in 0..self.files.entries.len() {
            match self.pixels(entry, &mut file, &mut pixels) {
                Ok(()) => each(Record::Labelled(Cell::Text(self.files.class(entry)), &pixels)),
                Err(_) => each(Record::Broken),
            }
        }
        Ok(())
    }
}

/// Calls with path and bytes of every picture of a folder, in the order of the paths: for folders that are public. An unreadable file has no bytes.
pub fn each_file(path: &Path, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    let Some(mut files) = Files::open(path)? else { return Ok(()) };
    let mut bytes = Vec::new();
    for entry in 0..files.entries.len() {
        if files.read(entry, &mut bytes).is_err() {
            bytes.clear();
        }
        each(&files.entries[entry].path, &bytes);
    }
    Ok(())
}

/// Names of the folders that hold pictures, each once and in order: for drafts, which somebody reads before they count.
pub fn folders(path: &Path) -> Result<Option<Vec<String>>> {
    let Some(files) = Files::open(path)? else { return Ok(None) };
    let mut names: Vec<String> = (0..files.entries.len()).map(|e| String::from_utf8_lossy(files.class(e)).into_owned()).collect();
    names.sort();
    names.dedup();
    Ok(Some(names))
}
