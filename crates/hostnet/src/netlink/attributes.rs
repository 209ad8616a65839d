//! Attributes of netlink messages: encoding and decoding.

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_TYPE_MASK, NlaBuffer, NlasIterator,
};

/// Attributes of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<DefaultNla>);

impl Attributes {
    /// No attributes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an attribute.
    #[must_use]
    pub fn with(mut self, attribute: DefaultNla) -> Self {
        self.0.push(attribute);
        self
    }

    /// Appends a number of four bytes, if given.
    #[must_use]
    pub fn with_number(self, kind: u16, value: Option<u32>) -> Self {
        match value {
            Some(value) => self.with(number(kind, value)),
            None => self,
        }
    }

    /// Encoding of all attributes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let attributes = self.0.as_slice();
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        bytes
    }
}

/// Number attribute of four bytes.
#[must_use]
pub fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// Text attribute, zero-terminated.
#[must_use]
pub fn text(kind: u16, value: &str) -> DefaultNla {
    DefaultNla::new(kind, [value.as_bytes(), &[0]].concat())
}

/// Flag attribute, which has no value: its presence is the flag.
#[must_use]
pub fn flag(kind: u16) -> DefaultNla {
    DefaultNla::new(kind, Vec::new())
}

/// Nested attributes.
#[must_use]
pub fn nest(kind: u16, inner: &Attributes) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, inner.bytes())
}

/// Reader of an answer's attributes; ends at the first malformed one.
#[derive(Clone, Copy, Debug)]
pub struct AttributeReader<'a>(pub &'a [u8]);

impl<'a> AttributeReader<'a> {
    /// Type and value of each attribute.
    pub fn all(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        NlasIterator::new(self.0)
            .map_while(Result::ok)
            .map(|attribute: NlaBuffer<&'a [u8]>| {
                let end = usize::from(attribute.length());
                let kind = attribute.kind() & NLA_TYPE_MASK;
                (kind, attribute.into_inner().get(4..end).unwrap_or_default())
            })
    }

    /// Value of the first attribute of a type.
    #[must_use]
    pub fn value(self, kind: u16) -> Option<&'a [u8]> {
        self.all()
            .find(|(known, _)| *known == kind)
            .map(|(_, value)| value)
    }

    /// Number of one, two or four bytes.
    #[must_use]
    pub fn number(self, kind: u16) -> Option<u32> {
        Some(match *self.value(kind)? {
            [value] => value.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => return None,
        })
    }

    /// Number of four or eight bytes: the kernel's `uint` has the length its value needs.
    #[must_use]
    pub fn uint(self, kind: u16) -> Option<u64> {
        match self.value(kind)?.try_into() {
            Ok(bytes) => Some(u64::from_ne_bytes(bytes)),
            Err(_) => self.number(kind).map(u64::from),
        }
    }

    /// Text up to the terminating zero.
    #[must_use]
    pub fn text(self, kind: u16) -> Option<String> {
        let text = self.value(kind)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Returns whether an attribute of a type exists.
    #[must_use]
    pub fn has(self, kind: u16) -> bool {
        self.value(kind).is_some()
    }

    /// Nested attributes of a type.
    #[must_use]
    pub fn nest(self, kind: u16) -> Option<AttributeReader<'a>> {
        self.value(kind).map(AttributeReader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let inner = Attributes::new().with(text(2, "eth0")).with(flag(5));
        let bytes = Attributes::new()
            .with(nest(1, &inner))
            .with_number(2, Some(7))
            .with_number(3, None)
            .bytes();
        let read = AttributeReader(&bytes);
        assert_eq!(read.number(2), Some(7));
        assert_eq!(read.number(3), None);
        let inner = read.nest(1).expect("a nest");
        assert_eq!(inner.text(2).as_deref(), Some("eth0"));
        assert!(inner.has(5) && !inner.has(6));
    }

    #[test]
    fn what_is_cut_off_is_not_there() {
        let bytes = Attributes::new().with(number(1, 1)).bytes();
        for length in 0..bytes.len() {
            assert_eq!(AttributeReader(&bytes[..length]).number(1), None);
        }
        // A length beyond the end, and one that would never end.
        assert_eq!(AttributeReader(&[255, 0, 1, 0]).number(1), None);
        assert_eq!(AttributeReader(&[0, 0, 1, 0]).all().count(), 0);
    }
}
