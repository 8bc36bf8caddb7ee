//! Comma-separated tables with a header line.
//!
//! A record is one line. Quoted fields can't go on in the next line as RFC 4180 lets them: an open quote would swallow its
//! neighbour, and one record could then change all others.

use super::lines::{Block, Lines, next_line, trim};
use super::{Cell, Each, Reader, Record};
use crate::error::{Error, Result};
use memchr::memchr;
use std::collections::HashMap;
use std::io::BufRead;

/// Most columns of a table; it bounds the memory that a header can ask for.
const MOST_COLUMNS: usize = 1 << 20;

/// An open table.
pub struct Csv {
    lines: Lines,
    columns: Vec<String>,
}

impl Csv {
    /// Reads the header line.
    pub fn open(input: Box<dyn BufRead + Send>) -> Result<Csv> {
        let mut lines = Lines::new(input);
        let columns = header(lines.first()?)?;
        Ok(Csv { lines, columns })
    }
}

impl Reader for Csv {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn header_rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        let width = self.columns.len();
        loop {
            let mut rest = match self.lines.block()? {
                Block::End => return Ok(()),
                Block::TooLong => {
                    each(Record::Broken);
                    continue;
                }
                Block::Lines(lines) => lines,
            };
            // Cells borrow from the block, so this can live no longer; one allocation serves thousands of records.
            let mut cells = Vec::with_capacity(width);
            while let Some(line) = next_line(&mut rest) {
                // An empty line is one empty field: a record of a single column, and broken in any other table.
                let whole = split(line, width, &mut cells) && cells.len() == width;
                each(if whole { Record::Cells(&cells) } else { Record::Broken });
            }
        }
    }
}

/// Names of the columns. The header is public, but messages do not quote it: in a file that has none, it is a record.
fn header(line: Option<&mut [u8]>) -> Result<Vec<String>> {
    let Some(mut line) = line else {
        return Err(Error::misuse(
            "the header line of the CSV file is longer than 16 MiB: put line breaks after header and records",
        ));
    };
    if line.starts_with(b"\xef\xbb\xbf") {
        line = &mut line[3..];
    }
    if trim(line).is_empty() {
        return Err(Error::misuse("the CSV file has no header: put a first line with the names of the columns"));
    }
    if memchr(b'\r', line).is_some() {
        // The breaks of an old Mac: all records would be names of columns.
        return Err(Error::misuse("the CSV file breaks its lines with carriage returns alone: save it with line feeds (\\n)"));
    }
    if std::str::from_utf8(line).is_err() {
        return Err(Error::misuse("the header of the CSV file is not UTF-8: save the file as UTF-8"));
    }
    let mut cells = Vec::new();
    if !split(line, MOST_COLUMNS, &mut cells) {
        return Err(Error::misuse(format!(
            "the header of the CSV file has an open quote, text behind a closing one, a NUL byte or more than {MOST_COLUMNS} \
             columns: write the names in one line, with commas between them"
        )));
    }
    let mut seen = HashMap::with_capacity(cells.len());
    for (place, cell) in cells.iter().enumerate() {
        if let Some(before) = seen.insert(text(cell), place) {
            return Err(Error::misuse(format!(
                "columns {} and {} of the CSV file have the same name: rename one of them in the header",
                before + 1,
                place + 1
            )));
        }
    }
    Ok(cells.iter().map(|cell| text(cell).to_owned()).collect())
}

/// A header's cell as text; the line was checked to be UTF-8, and quotes and commas do not clipped a character.
fn text<'a>(cell: &Cell<'a>) -> &'a str {
    match cell {
        Cell::Text(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

/// Cuts a line into at most so many cells. False if it is broken.
#[inline]
fn split<'a>(line: &'a mut [u8], most: usize, cells: &mut Vec<Cell<'a>>) -> bool {
    cells.clear();
    if memchr(0, line).is_some() || std::str::from_utf8(line).is_err() {
        return false;
    }
    if memchr(b'"', line).is_some() {
        return split_quoted(line, most, cells);
    }
    // A plain loop beats a search for each comma, since fields are short.
    for field in line.split(|&byte| byte == b',') {
        if cells.len() == most {
            return false;
        }
        cells.push(cell(trim(field)));
    }
    true
}

/// The same for a line that has quotes. A field is quoted if a quote comes first; other quotes are text.
fn split_quoted<'a>(line: &'a mut [u8], most: usize, cells: &mut Vec<Cell<'a>>) -> bool {
    let mut rest = line;
    loop {
        if cells.len() == most {
            return false;
        }
        let lead = rest.len() - trim_start(rest).len();
        let (field, end) = if rest.get(lead) == Some(&b'"') {
            let Some((length, close)) = unescape(&mut rest[lead + 1..]) else { return false };
            let (field, tail) = std::mem::take(&mut rest).split_at_mut(lead + 1 + close);
            // From the closing quote on there may be spaces up to the comma.
            let end = memchr(b',', tail).unwrap_or(tail.len());
            if !trim(&tail[1..end]).is_empty() {
                return false;
            }
            rest = tail;
            (&field[lead + 1..lead + 1 + length], end)
        } else {
            let end = memchr(b',', rest).unwrap_or(rest.len());
            let (field, tail) = std::mem::take(&mut rest).split_at_mut(end);
            rest = tail;
            (trim(field), 0)
        };
        cells.push(cell(field));
        match std::mem::take(&mut rest).split_at_mut_checked(end + 1) {
            Some((_, next)) => rest = next,
            None => return true,
        }
    }
}

/// Turns double quotes into single ones, in place, up to the closing one. Gives the length of the text, and where it closed.
fn unescape(text: &mut [u8]) -> Option<(usize, usize)> {
    let (mut from, mut to) = (0, 0);
    loop {
        let run = memchr(b'"', &text[from..])?;
        text.copy_within(from..from + run, to);
        (from, to) = (from + run, to + run);
        if text.get(from + 1) != Some(&b'"') {
            return Some((to, from));
        }
        text[to] = b'"';
        (from, to) = (from + 2, to + 1);
    }
}

fn trim_start(text: &[u8]) -> &[u8] {
    let lead = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[lead..]
}

#[inline]
fn cell(text: &[u8]) -> Cell<'_> {
    if text.is_empty() { Cell::Missing } else { Cell::Text(text) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, records, stable_under_insertion};
    use super::*;

    fn open(text: &[u8]) -> Result<Csv> {
        Csv::open(Box::new(std::io::Cursor::new(text.to_vec())))
    }

    /// Records as text: cells between bars, a dot for a missing one.
    fn read(text: &[u8]) -> Vec<String> {
        records(&mut open(text).unwrap()).unwrap()
    }

    #[test]
    fn fields() {
        let text = b"\xef\xbb\xbfid, \"na,me\" ,x\r\n1,a b , 3\r\n,,\n\"\",\" \"\"q\"\", \" , \"x\" \n5\",a\"b\"\"c,6\n\"\",\"\"\"\",\"a\"";
        assert_eq!(open(text).unwrap().columns(), ["id", "na,me", "x"]);
        assert_eq!(open(text).unwrap().header_rows(), None);
        assert_eq!(read(text), ["1|a b|3", ".|.|.", ".| \"q\", |x", "5\"|a\"b\"\"c|6", ".|\"|a"]);
    }

    #[test]
    fn broken_lines_stay_records() {
        for bad in [
            &b"1"[..],
            b"1,2,3",
            b"",
            b"  ",
            b"\"a,b",
            b"1,\"",
            b"1,\"\"\"",
            b"\"a\"b,2",
            b"1,\"a\" b",
            b"1,\xff",
            b"1,\0",
            b"\"\"\"\",\"",
            b"\"a\",\"b\",",
        ] {
            assert_eq!(read(&[b"a,b\n1,2\n", bad, b"\n3,4\n"].concat()), ["1|2", "broken", "3|4"], "{bad:?}");
        }
        let long = [b"a,b\n1,2\n3,", &vec![b'x'; (16 << 20) - 1][..], b"\n5,6\n"].concat();
        assert_eq!(read(&long), ["1|2", "broken", "5|6"]);
        let fits = [b"a\n", &vec![b'x'; 16 << 20][..], b"\n"].concat();
        assert_eq!(read(&fits)[0].len(), 16 << 20);
    }

    #[test]
    fn one_column_has_empty_fields() {
        assert_eq!(read(b"a\n\n1\n  \n\"\"\n\n"), [".", "1", ".", ".", "."]);
        assert_eq!(read(b"a\n").len(), 0);
        assert_eq!(read(b"a").len(), 0);
    }

    #[test]
    fn headers() {
        for (bad, word) in [
            (&b""[..], "no header"),
            (b"\n1,2\n", "no header"),
            (b"\xef\xbb\xbf \r\n", "no header"),
            (b"a,b, a\n", "columns 1 and 3"),
            (b",\n", "columns 1 and 2"),
            (b"a,b\r1,2\r", "carriage"),
            (b"a,\xff\n", "not UTF-8"),
            (b"a,\"b\n", "open quote"),
            (b"a,\0\n", "NUL"),
        ] {
            assert!(matches!(open(bad), Err(Error::Misuse(text)) if text.contains(word)), "{word}");
        }
        assert!(matches!(open(&vec![b'a'; (16 << 20) + 1]), Err(Error::Misuse(_))));
        assert!(matches!(open(&vec![b','; 2 << 20]), Err(Error::Misuse(_))));
    }

    #[test]
    fn any_line_changes_one_record() {
        let mut random = Random(11);
        for _ in 0..4000 {
            let width = 1 + random.below(3);
            let head = [&b"a,b,c"[..2 * width - 1], b"\n"].concat();
            stable_under_insertion(&mut random, &head, b"\",\"\", 1x\r\0\xff\xc3\xa9", &|text| read(text));
        }
    }
}
