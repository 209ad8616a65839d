//! Questions to the kernel by netlink, one at a time, and its answers.
//!
//! A message is a number, a payload of attributes, and nothing of a family is known here: who asks
//! brings bytes ([`attributes`]) and reads bytes. What the kernel says beside an error number is
//! kept, for it often names the reason.

mod attributes;
mod generic;

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr};

pub(crate) use self::attributes::{Attributes, Read, flag, nest, number, text};
pub(crate) use self::generic::Family;
use crate::limits::{MAX_NETLINK_DATAGRAMS, NETLINK_DATAGRAM_BYTES};
use crate::setting::SettingError;

/// Numbers of messages that are not of a family (linux/netlink.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of a message's header.
const HEADER_BYTES: usize = 16;
/// The kernel's words, among the attributes behind an error.
const WORDS: u16 = 1;

/// Why the kernel did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Denial {
    /// The error.
    pub(crate) error: io::Error,
    /// What the kernel says of it.
    words: Option<String>,
}

impl From<io::Error> for Denial {
    fn from(error: io::Error) -> Self {
        Self { error, words: None }
    }
}

impl From<Denial> for SettingError {
    fn from(denial: Denial) -> Self {
        Self::of_system(&denial.error, denial.words.as_deref())
    }
}

/// A socket of one of netlink's protocols, in the network namespace of the thread that opened it.
pub(crate) struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Without these an error is a number only: old kernels.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks for one thing, or has it done; `answered` gets each answer's payload.
    pub(crate) fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        answered: impl FnMut(&[u8]),
    ) -> Result<(), Denial> {
        self.exchange(kind, NLM_F_ACK | flags, payload, answered)
    }

    /// Asks for all there is.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        payload: &[u8],
        answered: impl FnMut(&[u8]),
    ) -> Result<(), Denial> {
        self.exchange(kind, NLM_F_DUMP, payload, answered)
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        mut answered: impl FnMut(&[u8]),
    ) -> Result<(), Denial> {
        self.sequence += 1;
        let bytes = message(kind, flags, self.sequence, payload);
        self.socket.send(&bytes, 0)?;
        let mut buffer = Vec::with_capacity(NETLINK_DATAGRAM_BYTES);
        for _ in 0..MAX_NETLINK_DATAGRAMS {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            let mut rest = buffer.as_slice();
            while let Ok(answer) = NetlinkBuffer::new_checked(rest) {
                let length = answer.length() as usize;
                let payload = &rest[HEADER_BYTES..length];
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                if answer.sequence_number() != self.sequence {
                    continue;
                }
                match answer.message_type() {
                    DONE => return Ok(()),
                    ERROR => return outcome(payload, answer.flags()),
                    _ => answered(payload),
                }
            }
        }
        Err(io::Error::from(io::ErrorKind::InvalidData).into())
    }
}

/// A request's bytes.
pub(crate) fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
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

/// What an answer that ends an exchange says: the number, the header of the request (and its
/// payload, unless it was cut off), and attributes.
fn outcome(payload: &[u8], flags: u16) -> Result<(), Denial> {
    let Some((code, rest)) = payload.split_first_chunk::<4>() else {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    };
    let code = i32::from_ne_bytes(*code);
    if code == 0 {
        return Ok(());
    }
    let is_capped = flags & NLM_F_CAPPED != 0;
    let words = rest
        .get(HEADER_BYTES..)
        .filter(|_| is_capped)
        .and_then(|attributes| Read(attributes).text(WORDS));
    Err(Denial {
        error: io::Error::from_raw_os_error(code.saturating_neg()),
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn an_error_comes_with_the_kernels_words() {
        let mut payload = (-95_i32).to_ne_bytes().to_vec();
        payload.extend([0; HEADER_BYTES]);
        payload.extend(Attributes::new().with(text(WORDS, "not here")).bytes());
        let denial = outcome(&payload, NLM_F_CAPPED).unwrap_err();
        assert_eq!(
            denial.error.raw_os_error(),
            Some(Errno::OPNOTSUPP.raw_os_error())
        );
        assert_eq!(denial.words.as_deref(), Some("not here"));
        assert!(outcome(&0_i32.to_ne_bytes(), 0).is_ok());
        assert!(outcome(&[1, 2], 0).is_err(), "cut off");
    }
}
