//! Rows of numbers of one type behind a header: what the NumPy and IDX formats have in common.

use super::{Each, Record};
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read};

/// Bytes of a block of rows.
const BLOCK: usize = 1 << 20;

/// Most bytes of a row as doubles. A header can't ask for more memory than a few times that.
const ROW_LIMIT: u64 = 64 << 20;

/// Type of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Kind::Bool | Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 | Kind::F16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }

    /// Turns bytes into as many numbers. Integers beyond 2^53 are rounded.
    fn decode(self, big: bool, bytes: &[u8], out: &mut [f64]) {
        macro_rules! numbers {
            ($type:ty) => {
                match big {
                    false => each(bytes, out, |bytes| <$type>::from_le_bytes(bytes) as f64),
                    true => each(bytes, out, |bytes| <$type>::from_be_bytes(bytes) as f64),
                }
            };
        }
        match self {
            Kind::Bool => each(bytes, out, |[byte]: [u8; 1]| if byte == 0 { 0.0 } else { 1.0 }),
            Kind::I8 => numbers!(i8),
            Kind::U8 => numbers!(u8),
            Kind::I16 => numbers!(i16),
            Kind::U16 => numbers!(u16),
            Kind::I32 => numbers!(i32),
            Kind::U32 => numbers!(u32),
            Kind::I64 => numbers!(i64),
            Kind::U64 => numbers!(u64),
            Kind::F16 if big => each(bytes, out, |bytes| half(u16::from_be_bytes(bytes))),
            Kind::F16 => each(bytes, out, |bytes| half(u16::from_le_bytes(bytes))),
            Kind::F32 => numbers!(f32),
            Kind::F64 => numbers!(f64),
        }
    }
}

#[inline]
fn each<const SIZE: usize>(bytes: &[u8], out: &mut [f64], number: impl Fn([u8; SIZE]) -> f64) {
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *out = number(*bytes);
    }
}

/// A half-precision number.
pub(crate) fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// The rows behind a header.
pub(crate) struct Rows {
    pub(crate) input: Box<dyn Read + Send>,
    pub(crate) kind: Kind,
    pub(crate) big: bool,
    pub(crate) count: u64,
    pub(crate) width: usize,
    /// Bytes behind the header, where the size of the file tells them.
    pub(crate) bytes: Option<u64>,
}

impl Rows {
    /// The count of the header, if the file has exactly so many rows. A header alone can announce anything, and a plan, a reservation and
    /// memory would follow from it.
    pub(crate) fn counted(&self) -> Option<u64> {
        let row = self.width as u128 * self.kind.size() as u128;
        let whole = self.bytes.is_some_and(|bytes| u128::from(self.count).checked_mul(row) == Some(u128::from(bytes)));
        whole.then_some(self.count)
    }

    /// Hands out every row, and sees that the file ends there.
    pub(crate) fn read(&mut self, each: Each<'_>) -> Result<()> {
        let block = usize::try_from(self.count).unwrap_or(usize::MAX).min((BLOCK / (8 * self.width)).max(1));
        // Zeroed memory comes from the system untouched, so that a short file with a large header costs nothing.
        let mut bytes = vec![0; block * self.width * self.kind.size()];
        let mut values = vec![0.0; block * self.width];
        let mut left = self.count;
        while left > 0 {
            let rows = usize::try_from(left).map_or(block, |left| left.min(block));
            let bytes = &mut bytes[..rows * self.width * self.kind.size()];
            let values = &mut values[..rows * self.width];
            self.input.read_exact(bytes).map_err(|_| Error::Host)?;
            self.kind.decode(self.big, bytes, values);
            values.chunks_exact(self.width).for_each(|row| each(Record::Dense(row)));
            left -= rows as u64;
        }
        // More bytes than announced are as wrong as fewer. This also makes gzip check its sum.
        match self.input.read_exact(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            _ => Err(Error::Host),
        }
    }
}

/// Numbers in a row of these dimensions, if there are some and they fit.
pub(crate) fn width(dimensions: &[u64]) -> Option<usize> {
    let width = dimensions.iter().try_fold(1u64, |product, &next| product.checked_mul(next))?;
    if width == 0 || width > ROW_LIMIT / 8 { None } else { usize::try_from(width).ok() }
}

/// The next bytes of a header; none if the file ends before.
pub(crate) fn header_bytes(input: &mut dyn Read, length: usize) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match input.take(length as u64).read_to_end(&mut bytes) {
        Ok(_) => Ok((bytes.len() == length).then_some(bytes)),
        Err(_) => Err(Error::Host),
    }
}
