//! As much of Thrift's compact protocol as it takes to look at Parquet's headers before the `parquet` crate allocates what they
//! ask for: that crate reserves memory for announced children of a schema node and for announced sizes of pages, and follows a
//! nested schema by recursion. Nothing here allocates, and nothing recurses deeper than the limit.

/// Deepest nesting of a value that is skipped. Parquet's own structures need 7.
const DEPTH: usize = 16;

/// Wire types, where they matter.
const STOP: u8 = 0;
const I32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Bytes still to be read. Every method is none at malformed input.
pub(crate) struct Thrift<'a>(pub(crate) &'a [u8]);

/// Whether a schema is one of a flat table.
#[derive(Debug, PartialEq)]
pub(crate) enum Shape<'a> {
    /// It is.
    Flat,
    /// A column with this name has children.
    Nested(&'a [u8]),
}

/// Looks through a file's metadata, all of it well formed.
pub(crate) fn schema_shape(metadata: &[u8]) -> Option<Shape<'_>> {
    let mut thrift = Thrift(metadata);
    let mut shape = None;
    thrift.fields(|thrift, id, kind| {
        if (id, kind) != (2, LIST) {
            return thrift.skip(kind, DEPTH);
        }
        let (STRUCT, count) = thrift.list()? else { return None };
        let (mut children, mut nested) = (0, None);
        for place in 0..count {
            let node = thrift.schema_element()?;
            match place {
                0 => children = node.1,
                _ if node.1 > 0 && nested.is_none() => nested = Some(node.0),
                _ => {}
            }
        }
        shape = match nested {
            Some(name) => Some(Shape::Nested(name)),
            None if children == i64::from(count) - 1 => Some(Shape::Flat),
            // The root has children that are not there, or does not know of some.
            None => return None,
        };
        Some(())
    })?;
    shape
}

/// What the header of a page announces.
#[derive(Debug, PartialEq)]
pub(crate) struct PageSizes {
    /// Bytes of the header itself.
    pub(crate) header: u64,
    /// Bytes behind it ...
    pub(crate) compressed: u64,
    /// ... and what they decompress to.
    pub(crate) full: u64,
    /// Values, if they are those of rows and not of a dictionary.
    pub(crate) values: u64,
}

/// Reads the header at the start of a page.
pub(crate) fn page_sizes(bytes: &[u8]) -> Option<PageSizes> {
    let mut thrift = Thrift(bytes);
    let (mut full, mut compressed, mut values) = (None, None, 0);
    thrift.fields(|thrift, id, kind| {
        match (id, kind) {
            (2, I32) => full = Some(thrift.integer()?),
            (3, I32) => compressed = Some(thrift.integer()?),
            // A page of rows, in the first or the second version.
            (5 | 8, STRUCT) => thrift.fields(|thrift, id, kind| {
                match (id, kind) {
                    (1, I32) => values = thrift.integer()?,
                    _ => thrift.skip(kind, DEPTH)?,
                }
                Some(())
            })?,
            _ => thrift.skip(kind, DEPTH)?,
        }
        Some(())
    })?;
    let header = (bytes.len() - thrift.0.len()) as u64;
    let positive = |n: i64| u64::try_from(n).ok();
    Some(PageSizes { header, compressed: positive(compressed?)?, full: positive(full?)?, values: positive(values)? })
}

impl<'a> Thrift<'a> {
    /// Goes through the fields of a structure, giving number and type of each.
    fn fields(&mut self, mut each: impl FnMut(&mut Thrift<'a>, i16, u8) -> Option<()>) -> Option<()> {
        let mut id = 0i16;
        loop {
            let byte = self.byte()?;
            if byte & 15 == STOP {
                return Some(());
            }
            id = match byte >> 4 {
                0 => self.integer()? as i16,
                step => id.wrapping_add(step.into()),
            };
            each(self, id, byte & 15)?;
        }
    }

    /// Name of a node of the schema, and how many children it has.
    fn schema_element(&mut self) -> Option<(&'a [u8], i64)> {
        let (mut name, mut children) = (&[][..], 0);
        self.fields(|thrift, id, kind| {
            match (id, kind) {
                (4, BINARY) => name = thrift.binary()?,
                (5, I32) => children = thrift.integer()?,
                _ => thrift.skip(kind, DEPTH)?,
            }
            Some(())
        })?;
        (children >= 0).then_some((name, children))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // Booleans are in their type.
            1 | 2 => Some(()),
            3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | 10 => {
                let (kind, count) = self.list()?;
                // In a list, booleans take a byte.
                let kind = if kind <= 2 { 3 } else { kind };
                (0..count).try_for_each(|_| self.skip(kind, depth))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for kind in (0..count).flat_map(|_| [kinds >> 4, kinds & 15]) {
                    self.skip(if kind <= 2 { 3 } else { kind }, depth)?;
                }
                Some(())
            }
            STRUCT => self.fields(|thrift, _, kind| thrift.skip(kind, depth)),
            13 => self.bytes(16).map(drop),
            _ => None,
        }
    }

    /// Type and number of the elements of a list.
    fn list(&mut self) -> Option<(u8, u32)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => u32::try_from(self.varint()?).ok()?,
            count => u32::from(count),
        };
        Some((byte & 15, count))
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    fn integer(&mut self) -> Option<i64> {
        let folded = self.varint()?;
        Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure whose field 2 is a list of schema nodes, given by name and number of children.
    fn schema(nodes: &[(&str, u8)]) -> Vec<u8> {
        let mut out = vec![0x15, 2, 0x19, (nodes.len() as u8) << 4 | STRUCT];
        for (name, children) in nodes {
            out.extend([0x48, name.len() as u8]);
            out.extend(name.as_bytes());
            out.extend([0x15, children << 1, 0]);
        }
        out.extend([0x16, 8, 0]);
        out
    }

    #[test]
    fn shapes() {
        assert_eq!(schema_shape(&schema(&[("root", 2), ("a", 0), ("b", 0)])), Some(Shape::Flat));
        assert_eq!(schema_shape(&schema(&[("root", 1), ("a", 1), ("b", 0)])), Some(Shape::Nested(b"a")));
        assert_eq!(schema_shape(&schema(&[("root", 2), ("a", 0), ("b", 9)])), Some(Shape::Nested(b"b")));
        assert_eq!(schema_shape(&schema(&[("root", 60), ("a", 0)])), None);
        assert_eq!(schema_shape(&schema(&[("root", 0), ("a", 0)])), None);
        assert_eq!(schema_shape(&[0]), None);
        let whole = schema(&[("root", 2), ("a", 0), ("b", 0)]);
        for length in 0..whole.len() {
            assert_eq!(schema_shape(&whole[..length]), None);
        }
    }

    #[test]
    fn depth_and_counts_are_bounded() {
        // A list of lists of lists, and a list that announces more than there is.
        assert_eq!(schema_shape(&[0x19; 100_000]), None);
        assert_eq!(schema_shape(&[0x39, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]), None);
    }

    #[test]
    fn pages() {
        let sizes = PageSizes { header: 12, compressed: 10, full: 72, values: 1 };
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 0x90, 1, 0x15, 20, 0x2c, 0x15, 2, 0, 0, 99]), Some(sizes));
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 1, 0x15, 20, 0]), None);
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 2, 0]), None);
    }
}
