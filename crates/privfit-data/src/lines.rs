//! Lines of a text file, many at a time. A line is a record whatever is in it, so the only thing that separates two records is
//! the line break: no byte of one line can reach the next.

use crate::error::{Error, Result};
use memchr::{memchr, memrchr};
use std::io::{BufRead, ErrorKind};

/// Longest line, the line break not counted. A longer one is passed over without being stored.
const LIMIT: usize = 16 << 20;

/// Bytes that are read at a time, while lines are shorter than that: few calls, and still in the processor's cache.
const BLOCK: usize = 256 << 10;

/// What comes next in the file.
pub(crate) enum Block<'a> {
    /// One line or more, complete. Take them off with `next_line`.
    Lines(&'a mut [u8]),
    /// A line longer than the limit was passed over.
    TooLong,
    /// Nothing.
    End,
}

/// A file cut into blocks of complete lines.
pub(crate) struct Lines {
    input: Box<dyn BufRead + Send>,
    /// Grows up to the limit and one byte more: with that many bytes and no line break, a line is too long.
    buffer: Vec<u8>,
    limit: usize,
    /// The part of the buffer that was read and not yet handed out.
    start: usize,
    end: usize,
    ended: bool,
}

impl Lines {
    pub(crate) fn new(input: Box<dyn BufRead + Send>) -> Lines {
        Lines::with(input, BLOCK, LIMIT)
    }

    fn with(input: Box<dyn BufRead + Send>, block: usize, limit: usize) -> Lines {
        Lines { input, buffer: vec![0; block.min(limit + 1)], limit, start: 0, end: 0, ended: false }
    }

    /// All complete lines at hand.
    pub(crate) fn block(&mut self) -> Result<Block<'_>> {
        let Some(length) = self.find()? else { return Ok(Block::TooLong) };
        if length == 0 {
            return Ok(Block::End);
        }
        let start = self.start;
        self.start += length;
        Ok(Block::Lines(&mut self.buffer[start..start + length]))
    }

    /// The next line alone, without its line break and empty at the end of the file; none if it is too long. For headers.
    pub(crate) fn first(&mut self) -> Result<Option<&mut [u8]>> {
        let Some(length) = self.find()? else { return Ok(None) };
        let mut rest = &mut self.buffer[self.start..self.start + length];
        let line = next_line(&mut rest).unwrap_or_default();
        self.start += length - rest.len();
        Ok(Some(line))
    }

    /// Length of the complete lines at `start`, 0 at the end of the file; none if a line was too long and passed over.
    fn find(&mut self) -> Result<Option<usize>> {
        // Bytes that are known to have no line break, so that a long line is searched once.
        let mut seen = 0;
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(last) = memrchr(b'\n', &held[seen..]) {
                return Ok(Some(seen + last + 1));
            }
            seen = held.len();
            if seen > self.limit {
                self.pass_over()?;
                return Ok(None);
            }
            if self.ended {
                return Ok(Some(seen));
            }
            self.more()?;
        }
    }

    /// Reads on behind what is held, which moves to the front.
    fn more(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize((2 * self.end).min(self.limit + 1), 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(length) => self.end += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Error::Host),
            }
            return Ok(());
        }
    }

    /// Drops what is held and the rest of the line.
    fn pass_over(&mut self) -> Result<()> {
        (self.start, self.end) = (0, 0);
        loop {
            let held = match self.input.fill_buf() {
                Ok(held) => held,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Error::Host),
            };
            let at = memchr(b'\n', held);
            let length = at.map_or(held.len(), |at| at + 1);
            self.ended = held.is_empty();
            self.input.consume(length);
            if at.is_some() || self.ended {
                return Ok(());
            }
        }
    }
}

/// Takes the first line off a block. The line break is left out, and a carriage return before it.
#[inline]
pub(crate) fn next_line<'a>(block: &mut &'a mut [u8]) -> Option<&'a mut [u8]> {
    if block.is_empty() {
        return None;
    }
    let (line, rest) = match memchr(b'\n', block) {
        Some(at) => {
            let (line, rest) = std::mem::take(block).split_at_mut(at);
            (line, &mut rest[1..])
        }
        None => (std::mem::take(block), Default::default()),
    };
    *block = rest;
    Some(match line.len() {
        length if line.ends_with(b"\r") => &mut line[..length - 1],
        _ => line,
    })
}

/// Without spaces and tabs at both ends.
#[inline]
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, Read};

    /// Hands out a few bytes at a time, then an error.
    struct Drip(Cursor<Vec<u8>>, usize, bool);

    impl Read for Drip {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let most = out.len().min(self.1);
            match self.0.read(&mut out[..most])? {
                0 if self.2 => Err(ErrorKind::Other.into()),
                length => Ok(length),
            }
        }
    }

    fn all(text: &[u8], block: usize, drip: usize, fail: bool) -> Result<Vec<Option<Vec<u8>>>> {
        let input = BufReader::with_capacity(3, Drip(Cursor::new(text.to_vec()), drip, fail));
        let mut lines = Lines::with(Box::new(input), block, 10);
        let mut out = Vec::new();
        loop {
            match lines.block()? {
                Block::End => return Ok(out),
                Block::TooLong => out.push(None),
                Block::Lines(mut rest) => {
                    while let Some(line) = next_line(&mut rest) {
                        out.push(Some(line.to_vec()));
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_make_no_difference() {
        let text = b"a\r\n\n0123456789\n0123456789a\n0123456789a0123456789b\nc\r\rd\r\n\r\n0123456789ab\nend\r";
        let want: Vec<Option<&[u8]>> =
            vec![Some(b"a"), Some(b""), Some(b"0123456789"), None, None, Some(b"c\r\rd"), Some(b""), None, Some(b"end")];
        for (block, drip) in [(1, 1), (1, 9), (2, 5), (7, 100), (11, 2), (11, 100)] {
            let got = all(text, block, drip, false).unwrap();
            assert!(got.iter().map(|line| line.as_deref()).eq(want.iter().copied()), "{block} {drip}");
        }
    }

    #[test]
    fn ends() {
        assert_eq!(all(b"", 4, 4, false).unwrap().len(), 0);
        assert_eq!(all(b"\n", 4, 4, false).unwrap().len(), 1);
        assert_eq!(all(b"a\nb", 4, 4, false).unwrap().len(), 2);
        assert_eq!(all(b"a\nb\n", 4, 4, false).unwrap().len(), 2);
        assert_eq!(all(b"0123456789", 4, 4, false).unwrap(), [Some(b"0123456789".to_vec())]);
        assert_eq!(all(b"0123456789a", 4, 4, false).unwrap(), [None]);
        assert_eq!(all(b"a\nb", 4, 4, true), Err(Error::Host));
        assert_eq!(all(b"0123456789ab", 4, 4, true), Err(Error::Host));
    }

    #[test]
    fn the_first_line_alone() {
        let mut lines = Lines::with(Box::new(&b"head\r\na\nb"[..]), 64, 10);
        assert_eq!(lines.first().unwrap().unwrap(), b"head");
        assert!(matches!(lines.block(), Ok(Block::Lines([b'a', b'\n']))));
        assert!(matches!(lines.block(), Ok(Block::Lines([b'b']))));
        assert!(matches!(lines.block(), Ok(Block::End)));
        assert_eq!(lines.first().unwrap().unwrap(), b"");
        assert_eq!(Lines::with(Box::new(&b"0123456789a\nb"[..]), 4, 10).first().unwrap(), None);
    }
}
