//! A family of generic netlink, whose number is asked for by its name.

use std::io;

use netlink_packet_core::Emitable;
use netlink_packet_generic::GenlHeader;
use netlink_sys::protocols::NETLINK_GENERIC;

use super::{Attributes, Connection, Denial, Read, text};

/// The family that knows the others (linux/genetlink.h).
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_NUMBER: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Bytes of a generic message's header.
const HEADER_BYTES: usize = 4;

/// A connection to one family.
pub struct Family {
    connection: Connection,
    number: u16,
}

impl Family {
    /// Opens a connection to the family of that name.
    pub fn open(name: &str) -> Result<Self, Denial> {
        let mut connection = Connection::open(NETLINK_GENERIC)?;
        let question = payload(
            GET_FAMILY,
            1,
            &Attributes::new().with(text(FAMILY_NAME, name)),
        );
        let mut number = None;
        connection.ask(CONTROLLER, 0, &question, |answer| {
            number = read(answer).number(FAMILY_NUMBER);
        })?;
        let number = number.and_then(|number| u16::try_from(number).ok());
        Ok(Self {
            connection,
            number: number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?,
        })
    }

    /// Has one command carried out; `answered` gets each answer's attributes.
    pub fn ask(
        &mut self,
        command: u8,
        attributes: &Attributes,
        mut answered: impl FnMut(Read<'_>),
    ) -> Result<(), Denial> {
        let question = payload(command, 1, attributes);
        self.connection
            .ask(self.number, 0, &question, |answer| answered(read(answer)))
    }
}

/// A generic message behind netlink's header.
pub fn payload(command: u8, version: u8, attributes: &Attributes) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    GenlHeader {
        cmd: command,
        version,
    }
    .emit(&mut bytes);
    bytes.extend(attributes.bytes());
    bytes
}

fn read(answer: &[u8]) -> Read<'_> {
    Read(answer.get(HEADER_BYTES..).unwrap_or_default())
}
