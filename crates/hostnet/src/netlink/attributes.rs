//! Attributes of netlink messages, written and read.

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_TYPE_MASK, NlaBuffer, NlasIterator,
};

/// Attributes of a message that is being made, in their order.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<DefaultNla>);

impl Attributes {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, attribute: DefaultNla) -> Self {
        self.0.push(attribute);
        self
    }

    /// Adds a number of four bytes, if there is one.
    pub fn with_number(self, kind: u16, value: Option<u32>) -> Self {
        match value {
            Some(value) => self.with(number(kind, value)),
            None => self,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let attributes = self.0.as_slice();
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        bytes
    }
}

/// A number of four bytes.
pub fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// Text, with the zero that ends it.
pub fn text(kind: u16, value: &str) -> DefaultNla {
    let mut bytes = value.as_bytes().to_vec();
    bytes.push(0);
    DefaultNla::new(kind, bytes)
}

/// One that says something by being there.
pub fn flag(kind: u16) -> DefaultNla {
    DefaultNla::new(kind, Vec::new())
}

/// One that holds others.
pub fn nest(kind: u16, inner: &Attributes) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, inner.bytes())
}

/// Attributes of an answer. What is not well formed ends them.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a>(pub &'a [u8]);

impl<'a> Read<'a> {
    /// Each attribute's kind and value.
    pub fn all(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        NlasIterator::new(self.0)
            .map_while(Result::ok)
            .map(|attribute: NlaBuffer<&'a [u8]>| {
                let end = usize::from(attribute.length());
                let kind = attribute.kind() & NLA_TYPE_MASK;
                (kind, attribute.into_inner().get(4..end).unwrap_or_default())
            })
    }

    pub fn value(self, kind: u16) -> Option<&'a [u8]> {
        self.all()
            .find(|(known, _)| *known == kind)
            .map(|(_, value)| value)
    }

    /// A number of one, two or four bytes.
    pub fn number(self, kind: u16) -> Option<u32> {
        Some(match *self.value(kind)? {
            [value] => value.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => return None,
        })
    }

    pub fn text(self, kind: u16) -> Option<String> {
        let text = self.value(kind)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    pub fn has(self, kind: u16) -> bool {
        self.value(kind).is_some()
    }

    pub fn nest(self, kind: u16) -> Option<Read<'a>> {
        self.value(kind).map(Read)
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
        let read = Read(&bytes);
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
            assert_eq!(Read(&bytes[..length]).number(1), None);
        }
        // A length that reaches beyond the end, and one that would never end.
        assert_eq!(Read(&[255, 0, 1, 0]).number(1), None);
        assert_eq!(Read(&[0, 0, 1, 0]).all().count(), 0);
    }
}
