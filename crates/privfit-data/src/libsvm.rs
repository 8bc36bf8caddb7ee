//! Sparse rows in the format of LIBSVM: `label index:value ...`, one record to a line, indices from 1.

use super::lines::{Block, Lines, next_line};
use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use memchr::memchr;
use std::io::BufRead;

/// An open file of sparse rows.
pub struct Libsvm {
    lines: Lines,
    dimension: u32,
}

impl Libsvm {
    /// Rows with features up to a public dimension; nothing is read yet.
    pub fn open(input: Box<dyn BufRead + Send>, dimension: usize) -> Result<Libsvm> {
        match u32::try_from(dimension) {
            Ok(dimension @ 1..) => Ok(Libsvm { lines: Lines::new(input), dimension }),
            _ => Err(Error::misuse(format!(
                "a LIBSVM file is read with {dimension} features: give the largest index of the format, from 1 to 4294967295"
            ))),
        }
    }
}

impl Reader for Libsvm {
    fn columns(&self) -> &[String] {
        &[]
    }

    fn header_rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let mut pairs = Vec::new();
        loop {
            let mut rest = match self.lines.block()? {
                Block::End => return Ok(()),
                Block::TooLong => {
                    each(Record::Broken);
                    continue;
                }
                Block::Lines(lines) => lines,
            };
            while let Some(line) = next_line(&mut rest) {
                let label = parse(line, self.dimension, &mut pairs);
                each(label.map_or(Record::Broken, |label| Record::Sparse(Cell::Text(label), &pairs)));
            }
        }
    }
}

/// Label and pairs of a line; none if it is broken.
fn parse<'a>(mut line: &'a [u8], dimension: u32, pairs: &mut Vec<(u32, f64)>) -> Option<&'a [u8]> {
    pairs.clear();
    // Windows tools put a byte-order mark at the start of a file. It is ignored in every line: if only the first line could
    // have one, what a record means would depend on its place.
    line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line = &line[..memchr(b'#', line).unwrap_or(line.len())];
    let label = token(&mut line);
    let clean = std::str::from_utf8(label).is_ok() && !label.iter().any(|byte| matches!(byte, 0 | b':'));
    if label.is_empty() || !clean {
        return None;
    }
    loop {
        let pair = token(&mut line);
        if pair.is_empty() {
            return Some(label);
        }
        let (index, digits) = index(pair)?;
        let value = pair[digits..].strip_prefix(b":")?;
        if index == 0 || index > dimension {
            return None;
        }
        pairs.push((index - 1, fast_float2::parse(value).ok()?));
    }
}

/// Takes off the next token, empty at the end of the line.
#[inline]
fn token<'a>(line: &mut &'a [u8]) -> &'a [u8] {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = line.iter().position(|byte| !space(byte)).unwrap_or(line.len());
    let rest = &line[start..];
    let end = rest.iter().position(space).unwrap_or(rest.len());
    let (token, rest) = rest.split_at(end);
    *line = rest;
    token
}

/// The number at the start, and how many digits it has. No sign: `+1` is not an index.
#[inline]
fn index(text: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0u32;
    let mut digits = 0;
    for digit in text.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|&digit| digit < 10) {
        value = value.checked_mul(10)?.checked_add(u32::from(digit))?;
        digits += 1;
    }
    (digits > 0).then_some((value, digits))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, records, stable_under_insertion};
    use super::*;

    fn read(text: &[u8]) -> Vec<String> {
        let mut reader = Libsvm::open(Box::new(std::io::Cursor::new(text.to_vec())), 20).unwrap();
        assert!(reader.columns().is_empty() && reader.header_rows().is_none());
        records(&mut reader).unwrap()
    }

    #[test]
    fn rows() {
        assert_eq!(
            read(b"+1 1:0.5 3:-2e3\t20:1 # 4:x\r\n-1\nspam 2:1 2:3 1:.5\n"),
            ["+1|0:0.5|2:-2000|19:1", "-1", "spam|1:1|1:3|0:0.5"]
        );
        assert_eq!(
            read(b"\xef\xbb\xbf1 1:nan 2:inf 3:-Infinity 004:1e999\n \t2  1:+1. "),
            ["1|0:NaN|1:inf|2:-inf|3:inf", "2|0:1"]
        );
        assert_eq!(read(b"").len(), 0);
    }

    #[test]
    fn broken_lines_stay_records() {
        for bad in [
            "1 0:1",
            "1 21:1",
            "1 4294967297:1",
            "1 99999999999999999999:1",
            "1 -1:1",
            "1 +1:1",
            "1 1",
            "1 1:",
            "1 :1",
            "1 1:x",
            "1 1:1x",
            "1 1:1:1",
            "1 1 :1",
            "1 qid:2 1:1",
            "1 1:1,5",
            "1 1:0x10",
            "1 1:1\0",
            "1:1 2:1",
            "a\0b 1:1",
            "",
            "  ",
            "# comment",
        ] {
            assert_eq!(read(format!("1 1:1\n{bad}\n2 2:2").as_bytes()), ["1|0:1", "broken", "2|1:2"], "{bad:?}");
        }
        assert_eq!(read(b"\xff 1:1\n1 1:\xff\n1 1:1 #\xff\n"), ["broken", "broken", "1|0:1"]);
        let long = [b"1 1:", &vec![b'1'; 16 << 20][..], b"\n1"].concat();
        assert_eq!(read(&long), ["broken", "1"]);
    }

    #[test]
    fn the_dimension_is_checked() {
        for bad in [0, 1 << 32] {
            assert!(matches!(Libsvm::open(Box::new(&b""[..]), bad), Err(Error::Misuse(_))));
        }
    }

    #[test]
    fn any_line_changes_one_record() {
        let mut random = Random(12);
        for _ in 0..4000 {
            stable_under_insertion(&mut random, b"", b"11 :::2 3\t.e-#\r\0\xef\xbb\xbf", &|text| read(text));
        }
    }
}
