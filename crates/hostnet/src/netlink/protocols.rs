//! Connections with a protocol: typed messages of rtnetlink(7), and families of generic netlink (linux/genetlink.h).

use std::io;

use netlink_packet_core::{Emitable, ParseableParametrized};
use netlink_packet_generic::GenlHeader;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};

use super::{Answer, AttributeReader, Attributes, Connection, NetlinkError, text};

/// Connection to the network configuration of the namespace it was opened in, whichever thread uses it later.
/// [`link`](crate::link), [`route`](crate::route) and [`neighbour`](crate::neighbour) add their requests.
pub struct Rtnetlink(Connection);

impl Rtnetlink {
    /// Opens the connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system error.
    pub fn open() -> io::Result<Self> {
        Connection::open(NETLINK_ROUTE).map(Self)
    }

    /// Sends a request and returns its answers; most changes have none.
    pub fn request(
        &mut self,
        message: &RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        let answers = self
            .0
            .request(message.message_type(), flags, &payload(message));
        parsed(answers?)
    }

    /// Dumps the table that a request names.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn dump(
        &mut self,
        message: &RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        parsed(self.0.dump(message.message_type(), &payload(message))?)
    }
}

pub(crate) fn payload(message: &RouteNetlinkMessage) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

fn parsed(answers: Vec<Answer>) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
    let parse =
        |answer: Answer| RouteNetlinkMessage::parse_with_param(&answer.payload[..], answer.kind);
    let messages: Result<_, _> = answers.into_iter().map(parse).collect();
    messages.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error).into())
}

/// Family of the controller, which maps names of families to numbers.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_NUMBER: u16 = 1;
const FAMILY_NAME: u16 = 2;
const HEADER_BYTES: usize = 4;

/// Connection to one family.
pub struct Family {
    connection: Connection,
    number: u16,
}

impl Family {
    /// Opens a connection to the family of that name.
    ///
    /// # Errors
    /// [`NetlinkError`]; `ENOENT` if the kernel lacks the family.
    pub fn open(name: &str) -> Result<Self, NetlinkError> {
        let mut connection = Connection::open(NETLINK_GENERIC)?;
        let question = Attributes::new().with(text(FAMILY_NAME, name));
        let question = generic_payload(GET_FAMILY, &question);
        let answers = attributes_of(connection.request(CONTROLLER, 0, &question)?);
        let number = answers
            .last()
            .and_then(|answer| AttributeReader(answer).number(FAMILY_NUMBER));
        let number = number.and_then(|number| u16::try_from(number).ok());
        Ok(Self {
            connection,
            number: number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?,
        })
    }

    /// Carries out a command; returns the attributes of each answer.
    pub fn request(
        &mut self,
        command: u8,
        attributes: &Attributes,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let question = generic_payload(command, attributes);
        let answers = self.connection.request(self.number, 0, &question)?;
        Ok(attributes_of(answers))
    }

    /// Reads a table; returns the attributes of each entry.
    pub fn dump(
        &mut self,
        command: u8,
        attributes: &Attributes,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let question = generic_payload(command, attributes);
        Ok(attributes_of(self.connection.dump(self.number, &question)?))
    }
}

/// Generic header of version 1, and attributes.
fn generic_payload(command: u8, attributes: &Attributes) -> Vec<u8> {
    let header = GenlHeader {
        cmd: command,
        version: 1,
    };
    let mut bytes = vec![0; HEADER_BYTES];
    header.emit(&mut bytes);
    bytes.extend(attributes.bytes());
    bytes
}

fn attributes_of(answers: Vec<Answer>) -> Vec<Vec<u8>> {
    let behind_header = |answer: Answer| answer.payload.get(HEADER_BYTES..).map(<[u8]>::to_vec);
    answers.into_iter().filter_map(behind_header).collect()
}
