//! NumPy arrays (`.npy`): a magic number, a Python dictionary with type, order and shape, then the numbers.

use super::dense::{Rows, header_bytes, width};
use super::npy_header::{Header, kind};
use super::{Each, Reader};
use crate::error::{Error, Result};
use std::io::Read;

/// Longest dictionary; NumPy itself warns from 10000 characters on.
const HEADER_LIMIT: usize = 1 << 16;

/// An open array of one dimension (a row has one number) or two; of more, where the schema says which.
pub struct Npy {
    rows: Rows,
    item: Vec<u64>,
}

impl Npy {
    /// Reads the header. The size of the whole is given where it is known: it tells whether the header is right about its rows.
    pub fn open(input: Box<dyn Read + Send>, size: Option<u64>) -> Result<Npy> {
        let array = Npy::open_items(input, size)?;
        if array.item.len() > 1 {
            return Err(Error::misuse(format!(
                "the .npy file has {} dimensions: write it with `np.save(path, x.reshape(len(x), -1))`",
                array.item.len() + 1
            )));
        }
        Ok(array)
    }

    /// The same for items of any number of dimensions: whoever calls looks at them.
    pub fn open_items(mut input: Box<dyn Read + Send>, size: Option<u64>) -> Result<Npy> {
        let other =
            || Error::misuse("the file is not a NumPy .npy file, or it ends in its header: write it with `np.save(path, x)`");
        let magic = header_bytes(&mut input, 8)?.ok_or_else(other)?;
        let digits = match *magic.strip_prefix(b"\x93NUMPY").ok_or_else(other)? {
            [1, _] => 2,
            [2 | 3, _] => 4,
            _ => return Err(Error::misuse("the .npy file has an unknown version: write it with `np.save(path, x)`")),
        };
        let length = header_bytes(&mut input, digits)?.ok_or_else(other)?;
        let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
        if length > HEADER_LIMIT {
            return Err(Error::misuse("the .npy file has a header of more than 65536 bytes: write it with `np.save(path, x)`"));
        }
        let text = header_bytes(&mut input, length)?.ok_or_else(other)?;
        let header = Header::parse(&text).ok_or_else(|| {
            Error::misuse(
                "the header of the .npy file can't be read, or its type has fields: write a plain array with `np.save(path, x)`",
            )
        })?;
        let (kind, big) = kind(&header.descr).ok_or_else(|| {
            Error::misuse(format!(
                "the .npy file has numbers of type `{}`: write it with `np.save(path, x.astype('<f8'))`",
                header.descr.escape_ascii()
            ))
        })?;
        if header.fortran {
            return Err(Error::misuse(
                "the .npy file holds its rows in Fortran order: write it with `np.save(path, np.ascontiguousarray(x))`",
            ));
        }
        let &[count, ref row @ ..] = &header.shape[..] else {
            return Err(Error::misuse("the .npy file holds one number: write an array with `np.save(path, np.atleast_1d(x))`"));
        };
        let Some(width) = width(row) else {
            return Err(Error::misuse(
                "the .npy file has rows of no numbers or of more than 8388608: write other columns, `np.save(path, x[:, :n])`",
            ));
        };
        let bytes = size.and_then(|size| size.checked_sub((8 + digits + length) as u64));
        Ok(Npy { item: row.to_vec(), rows: Rows { input, kind, big, count, width, bytes } })
    }

    /// Dimensions of a row; none where a row is one number. Public.
    pub fn item(&self) -> &[u64] {
        &self.item
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.rows.width
    }
}

impl Reader for Npy {
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

    fn file(version: u8, header: &str, data: &[u8]) -> Result<Npy> {
        let mut bytes = [&b"\x93NUMPY"[..], &[version, 0]].concat();
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        let size = bytes.len() as u64;
        Npy::open(Box::new(std::io::Cursor::new(bytes)), Some(size))
    }

    fn read(descr: &str, shape: &str, data: &[u8]) -> Result<Vec<String>> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n");
        records(&mut file(1, &header, data)?)
    }

    fn misuse(version: u8, header: &str, word: &str) {
        assert!(matches!(file(version, header, &[]), Err(Error::Misuse(text)) if text.contains(word)), "{header}");
    }

    #[test]
    fn types() {
        for (little, big, number) in [
            ("<f8", ">f8", &1.5f64.to_le_bytes()[..]),
            ("<f4", ">f4", &1.5f32.to_le_bytes()),
            ("<f2", ">f2", &0x3e00u16.to_le_bytes()),
        ] {
            let reversed: Vec<u8> = number.iter().rev().copied().collect();
            assert_eq!(read(little, "(1,)", number).unwrap(), ["1.5"]);
            assert_eq!(read(big, "(1,)", &reversed).unwrap(), ["1.5"]);
        }
        for size in ["2", "4", "8"] {
            let bytes = &[255, 255, 255, 255, 255, 255, 255, 254][8 - size.parse::<usize>().unwrap()..];
            assert_eq!(read(&format!(">i{size}"), "(1L,)", bytes).unwrap(), ["-2"]);
            assert_eq!(read(&format!("<i{size}"), "(1,)", &vec![255; bytes.len()]).unwrap(), ["-1"]);
            assert!(read(&format!("<u{size}"), "(1,)", bytes).unwrap()[0].parse::<f64>().unwrap() > 65_000.0);
        }
        assert_eq!(read("|i1", "(2,)", &[1, 255]).unwrap(), ["1", "-1"]);
        assert_eq!(read("|u1", "(1, 2)", &[1, 255]).unwrap(), ["1|255"]);
        assert_eq!(read("|b1", "(3,)", &[0, 1, 7]).unwrap(), ["0", "1", "1"]);
        let halves = [0x0001u16, 0x7bff, 0x8400, 0xfc00, 0x7e00].map(u16::to_le_bytes).concat();
        assert_eq!(read("<f2", "(5,)", &halves).unwrap()[1..], ["65504", "-0.00006103515625", "-inf", "NaN"]);
    }

    /// The files are written by NumPy, see make.py there.
    #[test]
    fn numpy_files() {
        let open = |name: &str| {
            let path = format!("{}/tests/corpus/npy/{name}.npy", env!("CARGO_MANIFEST_DIR"));
            Npy::open(Box::new(std::fs::File::open(path).unwrap()), None)
        };
        for name in ["f8", "f4", "f2", "f8_big", "v2", "v3"] {
            let rows = records(&mut open(name).unwrap()).unwrap();
            assert_eq!(rows, ["-2.5|-1.5|-0.5", "0.5|1.5|2.5", "3.5|4.5|5.5", "6.5|7.5|8.5"], "{name}");
        }
        assert_eq!(records(&mut open("i8").unwrap()).unwrap(), ["0|1|2", "3|4|5"]);
        assert_eq!(records(&mut open("i2_big").unwrap()).unwrap(), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(records(&mut open("b1").unwrap()).unwrap(), ["1", "0"]);
        assert_eq!(records(&mut open("empty").unwrap()).unwrap().len(), 0);
        assert!(open("fortran").is_err() && open("cube").is_err());
    }

    #[test]
    fn many_blocks() {
        let numbers: Vec<f64> = (0..400_000).map(f64::from).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let header = "{\"shape\":(133333,3),'fortran_order':False,'descr':'<f8'}";
        for version in [1, 2, 3] {
            let mut reader = file(version, header, &bytes[..8 * 399_999]).unwrap();
            assert_eq!((reader.header_rows(), reader.width(), reader.columns().len()), (Some(133_333), 3, 0));
            let mut next = 0;
            let each = &mut |record: super::super::Record<'_>| {
                assert_eq!(record, super::super::Record::Dense(&numbers[next..next + 3]));
                next += 3;
            };
            reader.read(each).unwrap();
            assert_eq!(next, 399_999);
        }
        assert_eq!(read("<f8", "(3, 133333)", &bytes[..8 * 399_999]).unwrap().len(), 3);
    }

    #[test]
    fn wrong_lengths() {
        assert_eq!(read("<f8", "(2,)", &[0; 15]), Err(Error::Host));
        // A count that the file does not have is no count.
        for (shape, size, counted) in
            [("(2, 1)", 16, Some(2)), ("(2,)", 15, None), ("(2,)", 17, None), ("(18446744073709551615, 8388608)", 64, None)]
        {
            let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
            assert_eq!(file(1, &header, &vec![0; size]).unwrap().header_rows(), counted, "{shape}");
        }
        assert_eq!(read("<f8", "(2,)", &[0; 17]), Err(Error::Host));
        assert_eq!(read("<f8", "(18446744073709551615, 8388608)", &[0; 17]), Err(Error::Host));
        assert_eq!(read("<f8", "(0, 2)", &[]).unwrap().len(), 0);
    }

    #[test]
    fn headers() {
        let with = |descr: &str, fortran: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}")
        };
        misuse(1, &with("'<f8'", "True", "(2, 3)"), "ascontiguousarray");
        misuse(1, &with("'<c16'", "False", "(2, 3)"), "<c16");
        misuse(1, &with("'|f8'", "False", "(2, 3)"), "|f8");
        misuse(1, &with("[('a', '<f8')]", "False", "(2,)"), "plain array");
        misuse(1, &with("'<f8'", "False", "()"), "atleast_1d");
        misuse(1, &with("'<f8'", "False", "(1, 2, 3)"), "reshape");
        misuse(1, &with("'<f8'", "False", "(1, 0)"), "columns");
        misuse(1, &with("'<f8'", "False", "(1, 8388609)"), "columns");
        misuse(1, &with("'<f8'", "False", "(-1,)"), "plain array");
        misuse(1, &with("'<f8'", "False", "(99999999999999999999,)"), "plain array");
        misuse(1, "{'descr': '<f8', 'shape': (1,)}", "plain array");
        misuse(1, "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "plain array");
        misuse(1, &(with("'<f8'", "False", "(1,)") + "x"), "plain array");
        misuse(4, "", "version");
        misuse(2, &" ".repeat(65_537), "65536");
        for cut in [&b""[..], b"\x93NUMP", b"\x93NUMPY\x01\0\x10", b"\x93NUMPY\x01\0\x10\0{", b"PK\x03\x04\0\0\0\0"] {
            assert!(matches!(Npy::open(Box::new(cut), None), Err(Error::Misuse(text)) if text.contains("not a NumPy")));
        }
    }
}
