//! What the readers' tests share.

use super::{Cell, Reader, Record};
use crate::error::Result;

/// A small generator (xorshift), so that cases repeat.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// All records as text: values between bars, a dot for a missing one.
pub(crate) fn records(reader: &mut dyn Reader) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let text = |cell: &Cell<'_>| match cell {
        Cell::Missing => ".".to_owned(),
        Cell::Number(value) => value.to_string(),
        Cell::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    };
    reader.read(&mut |record| {
        out.push(match record {
            Record::Broken => "broken".to_owned(),
            Record::Cells(cells) => cells.iter().map(text).collect::<Vec<_>>().join("|"),
            Record::Dense(values) => values.iter().map(f64::to_string).collect::<Vec<_>>().join("|"),
            Record::Labelled(label, values) => {
                let values = values.iter().map(|value| format!("|{value}"));
                text(&label) + &values.collect::<String>()
            }
            Record::Sparse(label, pairs) => {
                let pairs = pairs.iter().map(|(index, value)| format!("|{index}:{value}"));
                text(&label) + &pairs.collect::<String>()
            }
        });
    })?;
    Ok(out)
}

/// Puts one line of random bytes between random lines: one record more, and every other one as before.
pub(crate) fn stable_under_insertion(random: &mut Random, head: &[u8], bytes: &[u8], read: &dyn Fn(&[u8]) -> Vec<String>) {
    let line = |random: &mut Random| {
        let length = random.below(12);
        let mut any = || match random.below(8) {
            0 => random.below(256) as u8,
            _ => bytes[random.below(bytes.len())],
        };
        let mut line: Vec<u8> = (0..length).map(|_| any()).filter(|&byte| byte != b'\n').collect();
        line.push(b'\n');
        line
    };
    let lines: Vec<Vec<u8>> = (0..random.below(6)).map(|_| line(random)).collect();
    let at = random.below(lines.len() + 1);
    let (before, after) = (lines[..at].concat(), lines[at..].concat());
    let inserted = line(random);
    let without = read(&[head, &before, &after].concat());
    let mut with = read(&[head, &before, &inserted, &after].concat());
    assert_eq!((without.len(), with.len()), (lines.len(), lines.len() + 1));
    with.remove(at);
    assert_eq!(without, with, "inserted {inserted:?} at {at} of {lines:?}");
    // The last line break is no part of a record, unless the record is empty without it.
    if after.len() > 1 && !after.ends_with(b"\n\n") {
        assert_eq!(read(&[head, &before, &after[..after.len() - 1]].concat()), without);
    }
}
