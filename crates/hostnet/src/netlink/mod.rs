//! Requests to the kernel by netlink (netlink(7)).
//!
//! A [`Connection`] sends one request at a time, and reads until the kernel acknowledges it or ends the dump.
//! [`Rtnetlink`] carries the typed messages of rtnetlink(7), [`Family`] the attributes of a generic netlink family. An
//! error keeps the kernel's own message (extended acknowledgement). A dump that changed while it was read is repeated.

mod attributes;
mod protocols;

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

pub use self::attributes::{AttributeReader, Attributes, flag, nest, number, text};
pub(crate) use self::protocols::payload;
pub use self::protocols::{Family, Rtnetlink};
use crate::limits::{
    MAX_NETLINK_DATAGRAMS, MAX_NETLINK_DUMPS, NETLINK_DATAGRAM_BYTES, NETLINK_PATIENCE,
};

/// Message types of netlink itself (linux/netlink.h). Families' types start at 16.
pub(crate) const ERROR: u16 = 2;
pub(crate) const DONE: u16 = 3;
pub(crate) const FIRST_OF_FAMILY: u16 = 16;
const HEADER_BYTES: usize = 16;
/// Attribute with the kernel's error message (NLMSGERR_ATTR_MSG).
const ERROR_MESSAGE: u16 = 1;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", .message.as_ref().map(|message| format!(": {message}")).unwrap_or_default())]
pub struct NetlinkError {
    /// System error.
    pub error: io::Error,
    /// Kernel's message, if it sent one.
    pub message: Option<String>,
}

impl From<io::Error> for NetlinkError {
    fn from(error: io::Error) -> Self {
        Self {
            error,
            message: None,
        }
    }
}

impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> Self {
        match error.message {
            Some(_) => io::Error::new(error.error.kind(), error),
            None => error.error,
        }
    }
}

/// Netlink socket in the network namespace of the thread that opened it.
pub struct Connection {
    socket: Socket,
    sequence: u32,
}

/// Message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Message type.
    pub kind: u16,
    /// Bytes after the header.
    pub payload: Vec<u8>,
}

impl Connection {
    /// Opens a socket of a netlink protocol.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(NETLINK_PATIENCE))?;
        // Old kernels refuse these options, and report errors as numbers only.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request and returns its answers; most changes have none.
    pub fn request(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<Answer>, NetlinkError> {
        let (answers, _) = self.exchange(kind, NLM_F_ACK | flags, payload)?;
        Ok(answers)
    }

    /// Reads a whole, consistent table.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EAGAIN` if the table changed during each of [`MAX_NETLINK_DUMPS`] dumps.
    pub fn dump(&mut self, kind: u16, payload: &[u8]) -> Result<Vec<Answer>, NetlinkError> {
        for _ in 0..MAX_NETLINK_DUMPS {
            let (answers, dump) = self.exchange(kind, NLM_F_DUMP, payload)?;
            if dump == Dump::Whole {
                return Ok(answers);
            }
        }
        Err(NetlinkError {
            error: io::Error::from(rustix::io::Errno::AGAIN),
            message: Some(String::from("the list changes each time it is requested")),
        })
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<(Vec<Answer>, Dump), NetlinkError> {
        self.sequence += 1;
        let request = request_bytes(kind, flags, self.sequence, payload);
        self.socket.send(&request, 0)?;
        let mut buffer = Vec::with_capacity(NETLINK_DATAGRAM_BYTES);
        let (mut answers, mut dump) = (Vec::new(), Dump::Whole);
        for _ in 0..MAX_NETLINK_DATAGRAMS {
            buffer.clear();
            match self.socket.recv(&mut buffer, 0) {
                // A handled signal; counted as a datagram, so that the loop stays bounded.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                received => received.map_err(receive_error)?,
            };
            if take(&buffer, self.sequence, &mut dump, &mut answers)? {
                return Ok((answers, dump));
            }
        }
        Err(io::Error::from(io::ErrorKind::InvalidData).into())
    }
}

/// Consistency of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dump {
    Whole,
    /// Table changed during the dump: entries may be missing or duplicated (NLM_F_DUMP_INTR).
    Interrupted,
}

fn receive_error(error: io::Error) -> NetlinkError {
    let is_timeout = error.kind() == io::ErrorKind::WouldBlock;
    NetlinkError {
        message: is_timeout.then(|| {
            let seconds = NETLINK_PATIENCE.as_secs();
            format!("the kernel has not answered within {seconds} s")
        }),
        error,
    }
}

/// Message of a datagram, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) port: u32,
    pub(crate) payload: &'a [u8],
}

/// Messages of a datagram; ends at the first malformed one.
pub(crate) struct Messages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header = NetlinkBuffer::new_checked(self.0).ok()?;
        // `new_checked` has compared the length with the header size and with the datagram.
        let length = header.length() as usize;
        let message = Message {
            kind: header.message_type(),
            flags: header.flags(),
            sequence: header.sequence_number(),
            port: header.port_number(),
            payload: self.0.get(HEADER_BYTES..length)?,
        };
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// Collects the answers in a datagram; returns whether the last of them ends the exchange.
fn take(
    datagram: &[u8],
    sequence: u32,
    dump: &mut Dump,
    answers: &mut Vec<Answer>,
) -> Result<bool, NetlinkError> {
    for message in Messages(datagram).filter(|message| message.sequence == sequence) {
        if message.flags & NLM_F_DUMP_INTR != 0 {
            *dump = Dump::Interrupted;
        }
        match message.kind {
            DONE => return end_of_dump(message.payload).map(|()| true),
            ERROR => return outcome(message.payload, message.flags).map(|()| true),
            kind => answers.push(Answer {
                kind,
                payload: message.payload.to_vec(),
            }),
        }
    }
    Ok(false)
}

/// Bytes of a request.
pub(crate) fn request_bytes(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.length = (HEADER_BYTES + payload.len()) as u32;
    header.message_type = kind;
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut bytes = vec![0; HEADER_BYTES];
    header.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// Result of a dump: a number, negative for an error, then attributes. Old kernels omit both.
pub(crate) fn end_of_dump(payload: &[u8]) -> Result<(), NetlinkError> {
    let Some((code, attributes)) = payload.split_first_chunk::<4>() else {
        return Ok(());
    };
    error_of(*code, Some(attributes))
}

/// Result of a request: the number, the request's header (and its payload, unless the acknowledgement is capped), then
/// attributes.
pub(crate) fn outcome(payload: &[u8], flags: u16) -> Result<(), NetlinkError> {
    let Some((code, rest)) = payload.split_first_chunk::<4>() else {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    };
    let is_capped = flags & NLM_F_CAPPED != 0;
    error_of(*code, rest.get(HEADER_BYTES..).filter(|_| is_capped))
}

fn error_of(code: [u8; 4], attributes: Option<&[u8]>) -> Result<(), NetlinkError> {
    match i32::from_ne_bytes(code) {
        code @ ..0 => Err(NetlinkError {
            error: io::Error::from_raw_os_error(code.saturating_neg()),
            message: attributes.and_then(|bytes| AttributeReader(bytes).text(ERROR_MESSAGE)),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn an_error_comes_with_the_kernels_words() {
        let mut payload = (-95_i32).to_ne_bytes().to_vec();
        payload.extend([0; HEADER_BYTES]);
        let words = Attributes::new().with(text(ERROR_MESSAGE, "not here"));
        payload.extend(words.bytes());
        let error = outcome(&payload, NLM_F_CAPPED).unwrap_err();
        let number = Some(Errno::OPNOTSUPP.raw_os_error());
        assert_eq!(error.error.raw_os_error(), number);
        assert_eq!(error.message.as_deref(), Some("not here"));
        assert!(error.to_string().ends_with(": not here"), "{error}");
        assert!(outcome(&0_i32.to_ne_bytes(), 0).is_ok());
        assert!(outcome(&[1, 2], 0).is_err(), "cut off");
    }

    /// A message as the kernel sends it.
    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = request_bytes(kind, flags, 7, payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn taken(datagram: &[u8]) -> (Result<bool, NetlinkError>, Dump, Vec<Vec<u8>>) {
        let (mut dump, mut answers) = (Dump::Whole, Vec::new());
        let end = take(datagram, 7, &mut dump, &mut answers);
        let payloads = answers.into_iter().map(|answer| answer.payload);
        (end, dump, payloads.collect())
    }

    #[test]
    fn a_list_ends_with_a_number_that_may_be_an_error() {
        let entry = message(36, 2, &[1, 2, 3, 4]);
        let (end, dump, answers) = taken(&entry);
        assert!(!end.expect("more follows"));
        assert_eq!((dump, answers), (Dump::Whole, vec![vec![1, 2, 3, 4]]));
        let done = [entry.clone(), message(DONE, 2, &0_i32.to_ne_bytes())].concat();
        assert!(taken(&done).0.expect("it is whole"));
        assert!(taken(&message(DONE, 2, &[])).0.expect("old kernels"));
        let mut failed = (-12_i32).to_ne_bytes().to_vec();
        failed.extend(
            Attributes::new()
                .with(text(ERROR_MESSAGE, "no room"))
                .bytes(),
        );
        let failed = [entry, message(DONE, 2, &failed)].concat();
        let error = taken(&failed).0.unwrap_err();
        assert_eq!(error.error.raw_os_error(), Some(12));
        assert_eq!(error.message.as_deref(), Some("no room"));
    }

    #[test]
    fn a_list_that_was_changed_meanwhile_is_known() {
        let entry = message(36, 2, &[1, 2, 3, 4]);
        let changed = message(36, 2 | NLM_F_DUMP_INTR, &[1, 2, 3, 4]);
        let done = message(DONE, 2, &0_i32.to_ne_bytes());
        let changed_at_its_end = message(DONE, 2 | NLM_F_DUMP_INTR, &0_i32.to_ne_bytes());
        let dump = |messages: [&Vec<u8>; 2]| taken(&messages.map(Vec::as_slice).concat()).1;
        assert_eq!(dump([&entry, &done]), Dump::Whole);
        assert_eq!(dump([&changed, &done]), Dump::Interrupted);
        assert_eq!(dump([&entry, &changed_at_its_end]), Dump::Interrupted);
    }

    #[test]
    fn an_answer_that_does_not_come_is_not_waited_for_without_end() {
        use rustix::net::sockopt::socket_timeout;
        let connection = Connection::open(netlink_sys::protocols::NETLINK_ROUTE).expect("netlink");
        let patience = socket_timeout(&connection.socket, Timeout::Recv).expect("a socket");
        assert_eq!(patience, Some(NETLINK_PATIENCE));
        let over = receive_error(io::ErrorKind::WouldBlock.into());
        assert!(over.message.expect("words").contains("not answered"));
    }
}
