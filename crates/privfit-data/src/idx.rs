//! The IDX format of the MNIST files: a magic number with type and number of dimensions, the dimensions, the numbers, all of it
//! big-endian. One dimension is a list of labels; with more, the first one counts the items.

use super::dense::{Kind, Rows, header_bytes, width};
use super::{Each, Reader};
use crate::error::{Error, Result};
use std::io::Read;

/// An open file of items or labels.
pub struct Idx {
    rows: Rows,
    item: Vec<u64>,
    largest: Option<f64>,
}

impl Idx {
    /// Reads the header. The size of the whole is given where it is known: it tells whether the header is right about its items.
    pub fn open(mut input: Box<dyn Read + Send>, size: Option<u64>) -> Result<Idx> {
        let cut = || Error::misuse("the IDX file ends in its header: copy or download it again");
        let magic = header_bytes(&mut input, 4)?.ok_or_else(cut)?;
        let &[0, 0, kind, dimensions @ 1..=255] = &magic[..] else {
            return Err(Error::misuse(
                "the file is not an IDX file (it does not start with 0, 0, type, dimensions): check the format",
            ));
        };
        let kind = match kind {
            0x08 => Kind::U8,
            0x09 => Kind::I8,
            0x0b => Kind::I16,
            0x0c => Kind::I32,
            0x0d => Kind::F32,
            0x0e => Kind::F64,
            _ => {
                return Err(Error::misuse(format!(
                    "the IDX file has numbers of type {kind}: write it with type 8, 9, 11, 12, 13 or 14"
                )));
            }
        };
        let shape = header_bytes(&mut input, 4 * usize::from(dimensions))?.ok_or_else(cut)?;
        let shape: Vec<u64> = shape.as_chunks().0.iter().map(|bytes| u64::from(u32::from_be_bytes(*bytes))).collect();
        let Some(width) = width(&shape[1..]) else {
            return Err(Error::misuse(
                "the IDX file has items of no numbers or of more than 8388608: write items of another shape",
            ));
        };
        let bytes = size.and_then(|size| size.checked_sub(4 + 4 * u64::from(dimensions)));
        let largest = match kind {
            Kind::U8 => Some(255.0),
            Kind::I8 => Some(127.0),
            Kind::I16 => Some(32_767.0),
            _ => None,
        };
        Ok(Idx { item: shape[1..].to_vec(), largest, rows: Rows { input, kind, big: true, count: shape[0], width, bytes } })
    }

    /// Dimensions of an item; none for labels. Public.
    pub fn item(&self) -> &[u64] {
        &self.item
    }

    /// Largest number that the type has, where pixels can be expected to reach it. Public.
    pub fn largest(&self) -> Option<f64> {
        self.largest
    }

    /// Numbers in an item; 1 for labels.
    pub fn width(&self) -> usize {
        self.rows.width
    }
}

impl Reader for Idx {
    fn columns(&self) -> &[String] {
        &[]
    }

    fn header_rows(&self) -> Option<u64> {
        self.rows.counted()
    }

    fn read(&mut self, each: Each<'_>) -> Result<()> {
        self.rows.read(each)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::records;
    use super::*;

    fn open(kind: u8, shape: &[u32], data: &[u8]) -> Result<Idx> {
        let mut bytes = vec![0, 0, kind, shape.len() as u8];
        shape.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
        bytes.extend(data);
        let size = bytes.len() as u64;
        Idx::open(Box::new(std::io::Cursor::new(bytes)), Some(size))
    }

    fn read(kind: u8, shape: &[u32], data: &[u8]) -> Result<Vec<String>> {
        records(&mut open(kind, shape, data).unwrap())
    }

    #[test]
    fn items_and_labels() {
        let reader = open(8, &[2, 2, 3], &[0; 12]).unwrap();
        assert_eq!((reader.header_rows(), reader.width(), reader.columns().len()), (Some(2), 6, 0));
        assert_eq!(read(8, &[2, 1, 2], &[1, 2, 254, 255]).unwrap(), ["1|2", "254|255"]);
        assert_eq!(read(9, &[2], &[1, 255]).unwrap(), ["1", "-1"]);
        assert_eq!(read(11, &[2], &[1, 0, 255, 254]).unwrap(), ["256", "-2"]);
        assert_eq!(read(12, &[1], &(-70_000i32).to_be_bytes()).unwrap(), ["-70000"]);
        assert_eq!(read(13, &[1], &0.25f32.to_be_bytes()).unwrap(), ["0.25"]);
        assert_eq!(read(14, &[1], &(-1e300f64).to_be_bytes()).unwrap(), [(-1e300).to_string()]);
        assert_eq!(read(8, &[0, 4], &[]).unwrap().len(), 0);
    }

    #[test]
    fn wrong_lengths() {
        assert_eq!(read(8, &[3], &[1, 2]), Err(Error::Host));
        // A count that the file does not have is no count.
        for (count, size, counted) in [(3, 3, Some(3)), (3, 2, None), (3, 4, None), (u32::MAX, 0, None), (0, 0, Some(0))] {
            assert_eq!(open(8, &[count], &vec![0; size]).unwrap().header_rows(), counted);
        }
        assert_eq!(open(14, &[u32::MAX, 1 << 23], &[]).unwrap().header_rows(), None);
        assert_eq!(read(8, &[3], &[1, 2, 3, 4]), Err(Error::Host));
        assert_eq!(read(14, &[u32::MAX, 1 << 23], &[1, 2, 3, 4]), Err(Error::Host));
    }

    #[test]
    fn headers() {
        let bad = |bytes: &[u8]| matches!(Idx::open(Box::new(std::io::Cursor::new(bytes.to_vec())), None), Err(Error::Misuse(_)));
        assert!(bad(b"") && bad(&[0, 0, 8]) && bad(&[0, 0, 8, 0]) && bad(&[0, 1, 8, 1, 0, 0, 0, 0]));
        assert!(bad(&[0, 0, 10, 1, 0, 0, 0, 0]) && bad(&[0, 0, 8, 1, 0, 0, 0]));
        for shape in [&[1, 0][..], &[1, (1 << 23) + 1], &[1, 1 << 31, 1 << 31, 1 << 31]] {
            assert!(matches!(open(8, shape, &[]), Err(Error::Misuse(_))));
        }
        assert_eq!(open(8, &[1, 1 << 23], &[]).unwrap().width(), 1 << 23);
    }
}
