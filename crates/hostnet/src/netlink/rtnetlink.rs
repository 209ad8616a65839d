//! Typed messages of rtnetlink(7): links, addresses, routes, neighbours.

use std::io;

use netlink_packet_core::{Emitable, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::{Answer, Connection, NetlinkError};

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

    /// Sends a request and returns its answers, none for most changes.
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
