//! The filter that a reader announces, so that writers need not send what it does not want (RTPS 2.5 §8.7.4,
//! `ContentFilterProperty_t`).

use super::payload;
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer},
    limits::{MAX_CONTENT_FILTER_BYTES, MAX_FILTER_PARAMETERS},
    parameter::pid,
};

/// A reader's filter, borrowed from its announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFilterProperty<'a> {
    /// What the reader's user calls the filtered topic.
    pub filtered_topic_name: &'a str,
    /// The topic.
    pub related_topic_name: &'a str,
    /// The language of the expression; that of the standard is [`Self::DDSSQL`].
    pub class_name: &'a str,
    /// What a sample must fulfil.
    pub expression: &'a str,
    /// What `%0`, `%1`, … in it stand for.
    pub parameters: heapless::Vec<&'a str, MAX_FILTER_PARAMETERS>,
}

impl<'a> ContentFilterProperty<'a> {
    /// The language of DDS 1.4 Annex B.
    pub const DDSSQL: &'static str = "DDSSQL";

    /// The value of the parameter in the announcement of a reader, as it lies there, with its byte order; `None`:
    /// it announces no filter, or a longer one than is kept ([`MAX_CONTENT_FILTER_BYTES`]).
    #[must_use]
    pub fn find(announcement: &'a [u8]) -> Option<(&'a [u8], ByteOrder)> {
        let list = payload::parse(announcement).ok()?;
        let value = list.find(pid::CONTENT_FILTER_PROPERTY)?;
        (value.len() <= MAX_CONTENT_FILTER_BYTES).then_some((value, list.order()))
    }

    /// Reads a parameter's value.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`]; [`Error::BoundExceeded`] of the parameters of the expression.
    pub fn parse(value: &'a [u8], order: ByteOrder) -> Result<Self, Error> {
        let id = pid::CONTENT_FILTER_PROPERTY;
        let invalid = Error::InvalidParameter(id);
        let mut reader = Reader::new(value, order);
        // A string may end the value without padding, so it is the next one that is aligned.
        let string = |reader: &mut Reader<'a>| {
            align(reader, value.len());
            reader.string().ok_or(invalid)
        };
        let [
            filtered_topic_name,
            related_topic_name,
            class_name,
            expression,
        ] = [
            string(&mut reader)?,
            string(&mut reader)?,
            string(&mut reader)?,
            string(&mut reader)?,
        ];
        align(&mut reader, value.len());
        let count = reader.u32().map_err(|_| invalid)?;
        let mut parameters = heapless::Vec::new();
        for _ in 0..count {
            let parameter = string(&mut reader)?;
            parameters
                .push(parameter)
                .map_err(|_| Error::BoundExceeded(id))?;
        }
        Ok(Self {
            filtered_topic_name,
            related_topic_name,
            class_name,
            expression,
            parameters,
        })
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let strings = self.strings().chain(self.parameters.iter().copied());
        4 + strings.map(string_bytes).sum::<usize>()
    }

    /// Writes it, little-endian, into the first [`buffer_len`](Self::buffer_len) bytes.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn emit(&self, buffer: &mut [u8]) {
        let mut writer = Writer::new(buffer);
        for string in self.strings() {
            put_string(&mut writer, string);
        }
        writer.u32(self.parameters.len() as u32);
        for parameter in &self.parameters {
            put_string(&mut writer, parameter);
        }
    }

    fn strings(&self) -> impl Iterator<Item = &'a str> {
        let topics = [self.filtered_topic_name, self.related_topic_name];
        topics.into_iter().chain([self.class_name, self.expression])
    }
}

/// Passes over padding up to a multiple of four bytes from the value's begin.
fn align(reader: &mut Reader<'_>, value_len: usize) {
    let at = value_len - reader.rest().len();
    let padding = at.next_multiple_of(4) - at;
    // Where there is none left the next read finds that out.
    let _ = reader.take(padding.min(reader.rest().len()));
}

/// Bytes of a string with its length, its NUL and its padding.
fn string_bytes(text: &str) -> usize {
    4 + (text.len() + 1).next_multiple_of(4)
}

fn put_string(writer: &mut Writer<'_>, text: &str) {
    writer.u32(text.len() as u32 + 1);
    writer.put(text.as_bytes());
    let padded = (text.len() + 1).next_multiple_of(4);
    writer.put(&[0; 4][..padded - text.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property<'a>(expression: &'a str, parameters: &[&'a str]) -> ContentFilterProperty<'a> {
        ContentFilterProperty {
            filtered_topic_name: "Near",
            related_topic_name: "Square",
            class_name: ContentFilterProperty::DDSSQL,
            expression,
            parameters: parameters.iter().copied().collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for parameters in [&[][..], &["1"], &["'RED'", "", "12345"]] {
            let written = property("color = %0 AND x < 7", parameters);
            let mut buffer = [0xff; 256];
            let length = written.buffer_len();
            written.emit(&mut buffer[..length]);
            assert_eq!(length % 4, 0);
            let read = ContentFilterProperty::parse(&buffer[..length], ByteOrder::Little);
            assert_eq!(read, Ok(written));
        }
    }

    #[test]
    fn no_cut_and_no_count_is_believed() {
        let written = property("x = 1", &["1", "2"]);
        let mut buffer = [0; 256];
        let length = written.buffer_len();
        written.emit(&mut buffer[..length]);
        for cut in 0..length - 3 {
            assert!(ContentFilterProperty::parse(&buffer[..cut], ByteOrder::Little).is_err());
        }
        let at_count = length - 2 * string_bytes("1") - 4;
        buffer[at_count..at_count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(ContentFilterProperty::parse(&buffer[..length], ByteOrder::Little).is_err());
        buffer[at_count..at_count + 4].copy_from_slice(&2_u32.to_be_bytes());
        assert!(ContentFilterProperty::parse(&buffer[..length], ByteOrder::Big).is_err());
    }
}
