//! The dictionary at the start of a NumPy array. It is a Python literal, of which this reads the few forms that NumPy writes.

use super::dense::Kind;

/// Type and whether it is big-endian, from NumPy's name.
pub(crate) fn kind(descr: &[u8]) -> Option<(Kind, bool)> {
    let (&order, name) = descr.split_first()?;
    let kind = match name {
        b"b1" => Kind::Bool,
        b"i1" => Kind::I8,
        b"u1" => Kind::U8,
        b"i2" => Kind::I16,
        b"u2" => Kind::U16,
        b"i4" => Kind::I32,
        b"u4" => Kind::U32,
        b"i8" => Kind::I64,
        b"u8" => Kind::U64,
        b"f2" => Kind::F16,
        b"f4" => Kind::F32,
        b"f8" => Kind::F64,
        _ => return None,
    };
    match order {
        b'<' => Some((kind, false)),
        b'>' => Some((kind, true)),
        // A byte has no order.
        b'|' if name[1] == b'1' => Some((kind, false)),
        _ => None,
    }
}

/// The dictionary.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Header {
    /// NumPy's name of the type.
    pub(crate) descr: Vec<u8>,
    /// Whether columns come one after the other.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
}

impl Header {
    /// Reads a Python literal like `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`. The three keys, each once.
    pub(crate) fn parse(text: &[u8]) -> Option<Header> {
        let mut literal = Literal(text);
        let mut header = Header::default();
        let mut seen = [false; 3];
        literal.take(b"{")?;
        while literal.take(b"}").is_none() {
            let key = literal.string()?;
            literal.take(b":")?;
            let place = match key {
                b"descr" => {
                    header.descr = literal.string()?.to_vec();
                    0
                }
                b"fortran_order" => {
                    header.fortran = literal.take(b"True").is_some();
                    if !header.fortran {
                        literal.take(b"False")?;
                    }
                    1
                }
                b"shape" => {
                    header.shape = literal.tuple()?;
                    2
                }
                _ => return None,
            };
            if std::mem::replace(&mut seen[place], true) {
                return None;
            }
            if literal.take(b",").is_none() {
                literal.take(b"}")?;
                break;
            }
        }
        (seen == [true; 3] && literal.0.trim_ascii().is_empty()).then_some(header)
    }
}

/// What is left of a Python literal.
struct Literal<'a>(&'a [u8]);

impl<'a> Literal<'a> {
    fn take(&mut self, word: &[u8]) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(word)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let (quote @ (b'\'' | b'"'), rest) = self.0.trim_ascii_start().split_first()? else { return None };
        let end = rest.iter().position(|byte| byte == quote)?;
        self.0 = &rest[end + 1..];
        Some(&rest[..end])
    }

    fn number(&mut self) -> Option<u64> {
        let text = self.0.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        // Python 2 wrote long integers with an L.
        self.0 = text[digits..].strip_prefix(b"L").unwrap_or(&text[digits..]);
        Some(number)
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        self.take(b"(")?;
        while self.take(b")").is_none() {
            numbers.push(self.number()?);
            if self.take(b",").is_none() {
                self.take(b")")?;
                break;
            }
        }
        Some(numbers)
    }
}
