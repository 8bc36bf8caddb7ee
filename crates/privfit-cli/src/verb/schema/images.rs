//! `privfit schema init` for images: shape and largest pixel come from the header of an IDX file, which is public. Of pictures in folders no file is
//! opened, and the names of folders are shown in a comment: they are classes once the owner has listed them.

use super::head;
use crate::ui::Failure;
use privfit::data::gz::maybe_gz;
use privfit::data::idx::Idx;
use privfit::data::picture::{container, folders};
use privfit::schema::quote;
use std::path::Path;

/// Most names of folders that are shown.
const MOST: usize = 100;

/// The draft for images; none for other files.
pub(super) fn draft(path: &Path) -> Result<Option<String>, Failure> {
    if let Some(folders) = folders(path)? {
        return pictures(path, &folders).map(Some);
    }
    let Ok(file) = privfit::small_file::open(path) else { return Ok(None) };
    let mut input = maybe_gz(Box::new(file))?;
    // No table starts with two zero bytes.
    let start = std::io::BufRead::fill_buf(&mut input).map_err(|_| Failure(privfit::Error::Host))?;
    if !start.starts_with(&[0, 0]) {
        return Ok(None);
    }
    let items = Idx::open(Box::new(input), None)?;
    if items.item().is_empty() {
        return Err(Failure::misuse(format!("{} holds labels: give the file with the images", path.display())));
    }
    let max = items.largest().map_or("\"?\"".into(), |x| x.to_string());
    let features = format!("shape = {:?}\nmax = {max}", items.item());
    Ok(Some(text(path, "# Labels are in a file of their own (--labels).\n", &features)))
}

fn pictures(path: &Path, folders: &[String]) -> Result<String, Failure> {
    if folders.is_empty() {
        return Err(Failure::misuse(format!(
            "there is no picture in {} (.jpg, .jpeg, .png): give a folder or zip file with a folder for each class",
            path.display()
        )));
    }
    let names: Vec<String> = folders.iter().take(MOST).map(|f| quote(f)).collect();
    let more = if folders.len() > MOST { ", ..." } else { "" };
    let comment = format!(
        "# The class of a picture is the name of its folder. Here are [{}{more}]:\n# list the classes that can occur, whether they are here or not, and remove these two lines.\n",
        names.join(", ")
    );
    let features = "shape = \"?\"          # [height, width], or [height, width, 3] for colours\n\
                    max = 255            # white, whatever the depth of a file\n\
                    resize = false       # true: pictures of another size are cropped and resized, and are not null records";
    Ok(text(path, &comment, features))
}

fn text(path: &Path, target: &str, features: &str) -> String {
    // A folder in a zip file has the name of the zip file; the folder `.` has a name too.
    let place = container(path);
    let place = place.canonicalize().unwrap_or(place);
    let name = place.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    format!("{}{target}[target]\nclasses = [\"?\"]\n\n[features]\nkind = \"image\"\n{features}", head(&name))
}
