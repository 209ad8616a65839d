//! Content filter of a reader, announced so that writers can filter samples for the reader (RTPS 2.5 §8.7.4,
//! `ContentFilterProperty_t`).

use super::parse_payload;
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, string_bytes},
    limits::{MAX_CONTENT_FILTER_BYTES, MAX_FILTER_PARAMETERS},
    parameter::pid,
};

/// Content filter of a reader, borrowed from its announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFilterProperty<'a> {
    /// Name of the content-filtered topic.
    pub filtered_topic_name: &'a str,
    /// Name of the topic that is filtered.
    pub related_topic_name: &'a str,
    /// Name of the filter class; the standard's is [`Self::DDSSQL`].
    pub class_name: &'a str,
    /// Filter expression.
    pub expression: &'a str,
    /// Expression parameters: values of `%0`, `%1`, …
    pub parameters: heapless::Vec<&'a str, MAX_FILTER_PARAMETERS>,
}

impl<'a> ContentFilterProperty<'a> {
    /// Filter class of DDS 1.4 Annex B.
    pub const DDSSQL: &'static str = "DDSSQL";

    /// Finds the raw parameter value in a reader's announcement, with its byte order. `None` if there is no filter,
    /// or the filter is longer than [`MAX_CONTENT_FILTER_BYTES`].
    #[must_use]
    pub fn find(announcement: &'a [u8]) -> Option<(&'a [u8], ByteOrder)> {
        let list = parse_payload(announcement).ok()?;
        let value = list.find(pid::CONTENT_FILTER_PROPERTY)?;
        (value.len() <= MAX_CONTENT_FILTER_BYTES).then_some((value, list.order()))
    }

    /// Parses a parameter value.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`]; [`Error::BoundExceeded`] for too many expression parameters.
    pub fn parse(value: &'a [u8], order: ByteOrder) -> Result<Self, Error> {
        let id = pid::CONTENT_FILTER_PROPERTY;
        let invalid = Error::InvalidParameter(id);
        let mut reader = Reader::new(value, order);
        // The last string may lack padding. So padding is skipped before each read, not after it.
        let string = |reader: &mut Reader<'a>| {
            align(reader, value.len());
            reader.string().ok_or(invalid)
        };
        let filtered_topic_name = string(&mut reader)?;
        let related_topic_name = string(&mut reader)?;
        let class_name = string(&mut reader)?;
        let expression = string(&mut reader)?;
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

    /// Number of bytes that [`emit`](Self::emit) writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let strings = self.strings().chain(self.parameters.iter().copied());
        4 + strings.map(string_bytes).sum::<usize>()
    }

    /// Writes the value, little-endian, to the first [`buffer_len`](Self::buffer_len) bytes.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn emit(&self, buffer: &mut [u8]) {
        let mut writer = Writer::new(buffer);
        for string in self.strings() {
            writer.string(string);
        }
        writer.u32(self.parameters.len() as u32);
        for parameter in &self.parameters {
            writer.string(parameter);
        }
    }

    fn strings(&self) -> impl Iterator<Item = &'a str> {
        let topics = [self.filtered_topic_name, self.related_topic_name];
        topics.into_iter().chain([self.class_name, self.expression])
    }
}

/// Skips padding to a multiple of four bytes from the start of the value.
fn align(reader: &mut Reader<'_>, value_len: usize) {
    let at = value_len - reader.rest().len();
    let padding = at.next_multiple_of(4) - at;
    // A missing byte of padding makes the next read fail.
    let _ = reader.take(padding.min(reader.rest().len()));
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
