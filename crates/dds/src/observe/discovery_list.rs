//! List of the participants and endpoints that a participant knows, as it gives the list to other processes.
//!
//! The list is a stream of lines of JSON. The first line is the source. Then come its own participant and endpoints,
//! the discovered participants, the discovered endpoints, and a last line with the number of entities that have no line,
//! because their announcement would be too long. An entity is the payload of its SPDP or SEDP announcement (RTPS 2.5
//! §9.6.3) in hexadecimal digits.

use std::{
    fmt,
    io::{self, BufRead, ErrorKind, Read},
};

use isolane_rtps::{EndpointKind, RemoteEndpoint, limits::DISCOVERY_SLOT_BYTES};
use isolane_wire::{
    BufferTooSmall,
    builtin_data::{EndpointData, ParticipantData},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::schema::Counts;
use crate::limits::{LIST_BYTES, LIST_LINE_BYTES};

/// Schema of a list. The number increases when a key changes its meaning.
pub const DISCOVERED_SCHEMA: &str = "isolane/discovered/2";

/// Returns the name of the abstract Unix socket for lists of the `number`th participant of a process:
/// `isolane/PID/N/discovered`.
#[must_use]
pub fn discovered_socket_name(pid: u32, number: u32) -> String {
    format!("{}/discovered", super::socket_name(pid, number))
}

/// Participant that gives a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListSource {
    /// Schema: [`DISCOVERED_SCHEMA`].
    pub schema: String,
    /// Number of the participant within its process.
    pub number: u32,
    /// Name in discovery.
    pub name: String,
    /// Domain id.
    pub domain: u32,
    /// GUID prefix.
    pub guid_prefix: String,
    /// Time in microseconds for which the loop has run since the participant was enabled; 0 while it is disabled.
    pub age_us: f64,
    /// True if it discovers participants and endpoints by their announcements (SPDP and SEDP). False if static discovery
    /// replaces one of them, so that the participant knows only described entities.
    pub discovers_all: bool,
    /// Counters of the RTPS participant.
    pub counters: Counts,
}

/// Participants and endpoints that a participant knows, with itself and its own endpoints.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiscoveredList {
    /// Participant that gives the list.
    pub source: ListSource,
    /// Participants.
    pub participants: Vec<ParticipantData>,
    /// Endpoints.
    pub endpoints: Vec<RemoteEndpoint>,
    /// Number of entities that are not in the list, because their announcement is too long.
    pub omitted: u64,
}

impl DiscoveredList {
    /// Reads a list to its last line. Returns `None` if `is_wanted` returns false for its source.
    ///
    /// # Errors
    /// The stream ends early, has another form or schema, is longer than [`LIST_BYTES`], or has a line longer than
    /// [`LIST_LINE_BYTES`].
    pub fn read(
        stream: impl BufRead,
        is_wanted: impl FnOnce(&ListSource) -> bool,
    ) -> io::Result<Option<Self>> {
        let mut stream = stream.take(LIST_BYTES);
        let source = match Line::read(&mut stream)? {
            Line::Source(source) if source.schema == DISCOVERED_SCHEMA => source,
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        if !is_wanted(&source) {
            return Ok(None);
        }
        let mut list = Self {
            source,
            participants: Vec::new(),
            endpoints: Vec::new(),
            omitted: 0,
        };
        while list.add(Line::read(&mut stream)?)? {}
        Ok(Some(list))
    }

    /// Adds the entity of a line. Returns false for the last line.
    fn add(&mut self, line: Line) -> io::Result<bool> {
        let invalid = |_| io::Error::from(ErrorKind::InvalidData);
        match line {
            Line::Source(_) => return Err(ErrorKind::InvalidData.into()),
            Line::Participant(Announcement(payload)) => {
                let data = ParticipantData::parse(&payload).map_err(invalid)?;
                self.participants.push(data);
            }
            Line::Writer(Announcement(payload)) => self.endpoints.push(RemoteEndpoint {
                data: EndpointData::parse_writer(&payload).map_err(invalid)?,
                kind: EndpointKind::Writer,
            }),
            Line::Reader(Announcement(payload)) => self.endpoints.push(RemoteEndpoint {
                data: EndpointData::parse_reader(&payload).map_err(invalid)?,
                kind: EndpointKind::Reader,
            }),
            Line::End { omitted } => {
                self.omitted = omitted;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Line of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Source(ListSource),
    Participant(Announcement),
    Writer(Announcement),
    Reader(Announcement),
    End { omitted: u64 },
}

impl Line {
    /// Reads a line of at most [`LIST_LINE_BYTES`].
    fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        let mut text = Vec::new();
        let length = stream
            .take(LIST_LINE_BYTES as u64)
            .read_until(b'\n', &mut text)?;
        if text.last() != Some(&b'\n') && length < LIST_LINE_BYTES {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_slice(&text).map_err(|_| ErrorKind::InvalidData.into())
    }

    /// Creates the line of a participant; `None` if its announcement is longer than `max_bytes`.
    pub(super) fn participant(data: &ParticipantData, max_bytes: usize) -> Option<Self> {
        Announcement::of(|buffer| data.emit(buffer), max_bytes).map(Self::Participant)
    }

    /// Creates the line of an endpoint; `None` if its announcement is longer than `max_bytes`.
    pub(super) fn endpoint(
        kind: EndpointKind,
        data: &EndpointData,
        max_bytes: usize,
    ) -> Option<Self> {
        let announcement = Announcement::of(|buffer| data.emit(buffer), max_bytes)?;
        Some(match kind {
            EndpointKind::Writer => Self::Writer(announcement),
            EndpointKind::Reader => Self::Reader(announcement),
        })
    }
}

/// Payload of an announcement. Its JSON form is hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announcement(Vec<u8>);

impl Announcement {
    fn of(
        emit: impl FnOnce(&mut [u8]) -> Result<usize, BufferTooSmall>,
        max_bytes: usize,
    ) -> Option<Self> {
        let mut buffer = [0; DISCOVERY_SLOT_BYTES];
        let length = emit(&mut buffer[..max_bytes]).ok()?;
        Some(Self(buffer[..length].to_vec()))
    }
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in &self.0 {
            for digit in [byte >> 4, byte & 15] {
                fmt::Write::write_char(f, DIGITS[usize::from(digit)].into())?;
            }
        }
        Ok(())
    }
}

impl Serialize for Announcement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Announcement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes
            .map(Self)
            .ok_or_else(|| D::Error::custom("not hexadecimal"))
    }
}

/// Value of a hexadecimal digit.
fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_wire::guid::GuidPrefix;

    fn lines(lines: &[Line]) -> String {
        let text = |line| serde_json::to_string(line).unwrap() + "\n";
        lines.iter().map(text).collect()
    }

    fn source(schema: &str) -> Line {
        Line::Source(ListSource {
            schema: schema.into(),
            number: 0,
            name: "seen".into(),
            domain: 3,
            guid_prefix: String::new(),
            age_us: 1.0,
            discovers_all: true,
            counters: Counts::new(),
        })
    }

    #[test]
    fn a_list_is_read_only_if_it_is_whole_and_of_this_schema() {
        let data = ParticipantData::new(GuidPrefix([7; 12]));
        let participant = Line::participant(&data, DISCOVERY_SLOT_BYTES).unwrap();
        let whole = [
            source(DISCOVERED_SCHEMA),
            participant,
            Line::End { omitted: 3 },
        ];
        let read = |text: &str| DiscoveredList::read(text.as_bytes(), |source| source.domain == 3);
        let list = read(&lines(&whole)).unwrap().expect("it is wanted");
        assert_eq!(
            (list.participants.as_slice(), list.omitted),
            (&[data][..], 3)
        );
        for (text, why) in [
            (lines(&whole[..2]), ErrorKind::UnexpectedEof),
            (String::new(), ErrorKind::UnexpectedEof),
            (lines(&[source("other/9")]), ErrorKind::InvalidData),
            (lines(&whole[1..]), ErrorKind::InvalidData),
            (
                lines(&whole[..1]) + "{\"writer\":\"0x\"}\n",
                ErrorKind::InvalidData,
            ),
            (
                lines(&whole[..1]) + "{\"writer\":\"00\"}\n",
                ErrorKind::InvalidData,
            ),
            // A line may not be longer than the longest valid one, even if its end comes.
            (
                " ".repeat(LIST_LINE_BYTES) + &lines(&whole),
                ErrorKind::InvalidData,
            ),
        ] {
            assert_eq!(read(&text).unwrap_err().kind(), why, "{text}");
        }
        let other = DiscoveredList::read(lines(&whole).as_bytes(), |source| source.domain == 4);
        assert!(other.unwrap().is_none());
    }
}
