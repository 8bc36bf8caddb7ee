//! As much of the protobuf wire format as an ONNX file needs. Numbers of fields are those of `onnx.proto3`.

/// Types of tensor elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float = 1,
    Byte = 2,
    Int64 = 7,
    Text = 8,
    Double = 11,
}

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A whole number.
    pub(crate) fn number(mut self, field: u32, value: i64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(value as u64);
        self
    }

    /// Bytes.
    pub(crate) fn bytes(mut self, field: u32, value: &[u8]) -> Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Text.
    pub(crate) fn text(self, field: u32, value: &str) -> Message {
        self.bytes(field, value.as_bytes())
    }

    /// A message inside of this one.
    pub(crate) fn inner(self, field: u32, value: &Message) -> Message {
        self.bytes(field, &value.0)
    }

    /// Several messages in one field.
    pub(crate) fn all(self, field: u32, values: &[Message]) -> Message {
        values.iter().fold(self, |m, v| m.inner(field, v))
    }

    /// The bytes.
    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// `StringStringEntryProto`, and by the same numbers `OperatorSetIdProto` with a number.
pub(crate) fn pair(key: &str, value: &str) -> Message {
    Message::default().text(1, key).text(2, value)
}

/// `OperatorSetIdProto`.
pub(crate) fn operators(domain: &str, version: i64) -> Message {
    Message::default().text(1, domain).number(2, version)
}

/// `ValueInfoProto` of a tensor with a row for each record; `width` is none for one value to a row.
pub(crate) fn value(name: &str, element: Element, width: Option<usize>) -> Message {
    let rows = Message::default().text(2, "N");
    let mut shape = Message::default().inner(1, &rows);
    if let Some(width) = width {
        shape = shape.inner(1, &Message::default().number(1, width as i64));
    }
    let tensor = Message::default().number(1, element as i64).inner(2, &shape);
    Message::default().text(1, name).inner(2, &Message::default().inner(1, &tensor))
}

fn tensor(name: &str, element: Element, shape: &[usize]) -> Message {
    let dims = shape.iter().fold(Message::default(), |m, d| m.number(1, *d as i64));
    dims.number(2, element as i64).text(8, name)
}

/// `TensorProto` of doubles.
pub(crate) fn doubles(name: &str, shape: &[usize], values: &[f64]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    tensor(name, Element::Double, shape).bytes(9, &raw)
}

/// `TensorProto` of floats.
pub(crate) fn floats(name: &str, shape: &[usize], values: &[f32]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    tensor(name, Element::Float, shape).bytes(9, &raw)
}

/// `TensorProto` of whole numbers.
pub(crate) fn integers(name: &str, values: &[i64]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    tensor(name, Element::Int64, &[values.len()]).bytes(9, &raw)
}

/// `TensorProto` of bytes.
pub(crate) fn bytes(name: &str, shape: &[usize], values: &[u8]) -> Message {
    tensor(name, Element::Byte, shape).bytes(9, values)
}

/// `TensorProto` of texts.
pub(crate) fn texts(name: &str, values: &[String]) -> Message {
    values.iter().fold(tensor(name, Element::Text, &[values.len()]), |m, v| m.text(6, v))
}

/// `AttributeProto` with a whole number.
pub(crate) fn attribute(name: &str, value: i64) -> Message {
    Message::default().text(1, name).number(3, value).number(20, 2)
}

/// `AttributeProto` with a list of texts.
pub(crate) fn text_list(name: &str, values: &[String]) -> Message {
    values.iter().fold(Message::default().text(1, name), |m, v| m.text(9, v)).number(20, 8)
}

/// `AttributeProto` with a list of whole numbers.
pub(crate) fn number_list(name: &str, values: &[i64]) -> Message {
    values.iter().fold(Message::default().text(1, name), |m, v| m.number(8, *v)).number(20, 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_written_as_the_format_says() {
        // The examples of the format's own description: 150 in field 1, "testing" in field 2.
        assert_eq!(Message::default().number(1, 150).done(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").done(), [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        assert_eq!(Message::default().number(1, -1).done(), [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(Message::default().inner(3, &Message::default().number(1, 1)).done(), [0x1a, 2, 8, 1]);
    }
}
