//! Questions to the kernel by netlink, one at a time, and its answers.
//!
//! A message is a number, a payload of attributes, and nothing of a family is known here: who asks
//! brings bytes ([`attributes`]) and reads bytes. What the kernel says beside an error number is
//! kept, for it often names the reason. A list that changed while it was told is asked for again.

mod attributes;
mod generic;

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

pub use self::attributes::{Attributes, Read, flag, nest, number, text};
pub use self::generic::Family;
use crate::limits::{
    MAX_NETLINK_DATAGRAMS, MAX_NETLINK_QUESTIONS, NETLINK_DATAGRAM_BYTES, NETLINK_PATIENCE,
};

/// Numbers of messages that are not of a family (linux/netlink.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of a message's header.
const HEADER_BYTES: usize = 16;
/// The kernel's words, among the attributes behind an error.
const WORDS: u16 = 1;

/// Why the kernel did not do what it was asked.
#[derive(Debug)]
pub struct Denial {
    /// The error.
    pub error: io::Error,
    /// What the kernel says of it.
    pub words: Option<String>,
}

impl From<io::Error> for Denial {
    fn from(error: io::Error) -> Self {
        Self { error, words: None }
    }
}

/// A socket of one of netlink's protocols, in the network namespace of the thread that opened it.
pub struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(NETLINK_PATIENCE))?;
        // Without these an error is a number only: old kernels.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks for one thing, or has it done; `answered` gets each answer's payload.
    pub fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        answered: impl FnMut(&[u8]),
    ) -> Result<(), Denial> {
        self.exchange(kind, NLM_F_ACK | flags, payload, answered)
            .map(drop)
    }

    /// Asks for all there is; `answered` gets it once, as it was at one time.
    pub fn dump(
        &mut self,
        kind: u16,
        payload: &[u8],
        mut answered: impl FnMut(&[u8]),
    ) -> Result<(), Denial> {
        for _ in 0..MAX_NETLINK_QUESTIONS {
            let mut answers = Vec::new();
            let keep = |answer: &[u8]| answers.push(answer.to_vec());
            if self.exchange(kind, NLM_F_DUMP, payload, keep)? == Dump::Whole {
                answers.iter().for_each(|answer| answered(answer));
                return Ok(());
            }
        }
        let error = io::Error::from(rustix::io::Errno::AGAIN);
        Err(Denial {
            error,
            words: Some(String::from("the list changes each time it is asked for")),
        })
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        mut answered: impl FnMut(&[u8]),
    ) -> Result<Dump, Denial> {
        self.sequence += 1;
        let bytes = message(kind, flags, self.sequence, payload);
        self.socket.send(&bytes, 0)?;
        let mut buffer = Vec::with_capacity(NETLINK_DATAGRAM_BYTES);
        let mut dump = Dump::Whole;
        for _ in 0..MAX_NETLINK_DATAGRAMS {
            buffer.clear();
            self.socket.recv(&mut buffer, 0).map_err(of_receiving)?;
            let end = take(&buffer, self.sequence, &mut dump, &mut answered)?;
            if end {
                return Ok(dump);
            }
        }
        Err(io::Error::from(io::ErrorKind::InvalidData).into())
    }
}

/// Whether a list is as it was at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dump {
    Whole,
    /// It was changed meanwhile: something may be missing, or there twice.
    Changed,
}

fn of_receiving(error: io::Error) -> Denial {
    let is_over = error.kind() == io::ErrorKind::WouldBlock;
    Denial {
        words: is_over.then(|| {
            let seconds = NETLINK_PATIENCE.as_secs();
            format!("the kernel has not answered within {seconds} s")
        }),
        error,
    }
}

/// Takes one datagram of answers; whether it was the last one.
fn take(
    datagram: &[u8],
    sequence: u32,
    dump: &mut Dump,
    answered: &mut impl FnMut(&[u8]),
) -> Result<bool, Denial> {
    let mut rest = datagram;
    while let Ok(answer) = NetlinkBuffer::new_checked(rest) {
        let length = answer.length() as usize;
        let payload = &rest[HEADER_BYTES..length];
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        if answer.sequence_number() != sequence {
            continue;
        }
        if answer.flags() & NLM_F_DUMP_INTR != 0 {
            *dump = Dump::Changed;
        }
        match answer.message_type() {
            DONE => return end_of_list(payload).map(|()| true),
            ERROR => return outcome(payload, answer.flags()).map(|()| true),
            _ => answered(payload),
        }
    }
    Ok(false)
}

/// A request's bytes.
pub fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
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

/// What stands behind the last entry of a list: a number, below 0 if the kernel could not go on, and
/// attributes. Old kernels leave both out.
fn end_of_list(payload: &[u8]) -> Result<(), Denial> {
    let Some((code, attributes)) = payload.split_first_chunk::<4>() else {
        return Ok(());
    };
    match i32::from_ne_bytes(*code) {
        code @ ..0 => Err(Denial {
            error: io::Error::from_raw_os_error(code.saturating_neg()),
            words: Read(attributes).text(WORDS),
        }),
        _ => Ok(()),
    }
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

    /// A message as the kernel sends it.
    fn told(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = message(kind, flags, 7, payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn taken(datagram: &[u8]) -> (Result<bool, Denial>, Dump, Vec<Vec<u8>>) {
        let (mut dump, mut answers) = (Dump::Whole, Vec::new());
        let mut keep = |answer: &[u8]| answers.push(answer.to_vec());
        let end = take(datagram, 7, &mut dump, &mut keep);
        (end, dump, answers)
    }

    #[test]
    fn a_list_ends_with_a_number_that_may_be_an_error() {
        let entry = told(36, 2, &[1, 2, 3, 4]);
        let (end, dump, answers) = taken(&entry);
        assert!(!end.expect("more follows"));
        assert_eq!((dump, answers), (Dump::Whole, vec![vec![1, 2, 3, 4]]));
        let done = [entry.clone(), told(DONE, 2, &0_i32.to_ne_bytes())].concat();
        assert!(taken(&done).0.expect("it is whole"));
        assert!(taken(&told(DONE, 2, &[])).0.expect("old kernels"));
        let mut failed = (-12_i32).to_ne_bytes().to_vec();
        failed.extend(Attributes::new().with(text(WORDS, "no room")).bytes());
        let failed = [entry, told(DONE, 2, &failed)].concat();
        let denial = taken(&failed).0.unwrap_err();
        assert_eq!(denial.error.raw_os_error(), Some(12));
        assert_eq!(denial.words.as_deref(), Some("no room"));
    }

    #[test]
    fn a_list_that_was_changed_meanwhile_is_known() {
        let entry = told(36, 2, &[1, 2, 3, 4]);
        let changed = told(36, 2 | NLM_F_DUMP_INTR, &[1, 2, 3, 4]);
        let done = told(DONE, 2, &0_i32.to_ne_bytes());
        let changed_at_its_end = told(DONE, 2 | NLM_F_DUMP_INTR, &0_i32.to_ne_bytes());
        assert_eq!(
            taken(&[entry.clone(), done.clone()].concat()).1,
            Dump::Whole
        );
        assert_eq!(taken(&[changed, done].concat()).1, Dump::Changed);
        assert_eq!(
            taken(&[entry, changed_at_its_end].concat()).1,
            Dump::Changed
        );
    }

    #[test]
    fn an_answer_that_does_not_come_is_not_waited_for_without_end() {
        use rustix::net::sockopt::socket_timeout;
        let connection = Connection::open(netlink_sys::protocols::NETLINK_ROUTE).expect("netlink");
        let patience = socket_timeout(&connection.socket, Timeout::Recv).expect("a socket");
        assert_eq!(patience, Some(NETLINK_PATIENCE));
        let over = of_receiving(io::ErrorKind::WouldBlock.into());
        assert!(over.words.expect("words").contains("not answered"));
    }
}
