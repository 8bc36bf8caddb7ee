//! Files that are read whole: schemas, jobs, keys, models. A path may lead to a device that never ends or to a pipe that nobody writes to,
//! so that only regular files are read, and only so much of them.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Largest text that a person writes: a schema, a job, a list of results.
pub const TEXT: u64 = 64 << 20;

/// Opens a regular file; a pipe, a device or a directory is an error, and is not waited for.
pub fn open(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe waits for whoever writes to it. Regular files do not know this flag.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The bytes of a regular file, of which there may be so many.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let (mut file, mut bytes) = (open(path)?, Vec::new());
    // The size that the system tells may change, or be 0 where it is not; what counts is what is read.
    file.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_is_read() {
        let here = std::env::temp_dir().join(format!("privfit-small-file-{}", std::process::id()));
        std::fs::create_dir_all(&here).unwrap();
        let file = here.join("file");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert_eq!(read(&file, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, 9).unwrap_err().kind(), ErrorKind::InvalidData);
        let pipe = here.join("pipe");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: a path that ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for other in [pipe.as_path(), here.as_path(), Path::new("/dev/zero")] {
            assert_eq!(read(other, 9).unwrap_err().kind(), ErrorKind::InvalidInput, "{}", other.display());
        }
        // Files of the system say that they are empty and are not.
        assert!(!read(Path::new("/proc/self/status"), 1 << 16).unwrap().is_empty());
        std::fs::remove_dir_all(here).unwrap();
    }
}
