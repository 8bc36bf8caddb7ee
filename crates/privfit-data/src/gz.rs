//! Compressed input, recognised by its first bytes where those belong to a public header, otherwise by the name of the file.

use crate::error::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};

/// Bytes between the file and the decompressor. Readers that want more at a time bypass the buffer.
const BUFFER: usize = 128 << 10;

/// The first bytes of a gzip member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The input itself, or what it decompresses to if it is gzip of one or more members. Damage further on comes out of the stream
/// as an `io::Error`, so that whoever reads records stops with `Error::Host`.
pub fn maybe_gz(input: Box<dyn Read + Send>) -> Result<Box<dyn BufRead + Send>> {
    Ok(recognised(input)?.0)
}

/// The same for a file, with the size of what comes out, unless that is compressed.
pub(crate) fn maybe_gz_sized(file: File) -> Result<(Box<dyn BufRead + Send>, Option<u64>)> {
    let size = file.metadata().map_err(|_| Error::Host)?.len();
    let (input, zipped) = recognised(Box::new(file))?;
    Ok((input, (!zipped).then_some(size)))
}

fn recognised(mut input: Box<dyn Read + Send>) -> Result<(Box<dyn BufRead + Send>, bool)> {
    let mut start = Vec::with_capacity(MAGIC.len());
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start).map_err(|_| Error::Host)?;
    let zipped = start == MAGIC;
    Ok((gz(Box::new(Cursor::new(start).chain(input)), zipped), zipped))
}

/// The input itself, or what it decompresses to, as the caller says.
pub fn gz(input: Box<dyn Read + Send>, zipped: bool) -> Box<dyn BufRead + Send> {
    let whole = BufReader::with_capacity(BUFFER, input);
    if zipped { Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole))) } else { Box::new(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn through(bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        maybe_gz(Box::new(Cursor::new(bytes))).unwrap().read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn plain_input_passes_unchanged() {
        for plain in [&b""[..], b"x", b"\x1f", b"\x1fx", b"a,b\n1,2\n"] {
            assert_eq!(through(plain.to_vec()).unwrap(), plain);
        }
    }

    #[test]
    fn all_members_are_read() {
        let text: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
        let both = [zip(&text), zip(b""), zip(b"end")].concat();
        assert_eq!(through(both).unwrap(), [&text[..], b"end"].concat());
    }

    #[test]
    fn damage_is_an_error() {
        let text: Vec<u8> = (0..300_000u32).map(|i| (i * i / 7) as u8).collect();
        let whole = zip(&text);
        for length in [2, 9, 18, whole.len() / 2, whole.len() - 1] {
            assert!(through(whole[..length].to_vec()).is_err(), "cut at {length}");
        }
        let mut wrong = whole.clone();
        let checksum = wrong.len() - 8;
        wrong[checksum] ^= 1;
        assert!(through(wrong).is_err());
        assert!(through([&whole[..], b"tail"].concat()).is_err());
    }
}
