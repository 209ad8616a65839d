//! What the kernel tells of a device's queues beside routes and addresses: the generic netlink
//! family `netdev` (Linux 6.7; settings of a NAPI instance 6.13, its thread 6.17).
//!
//! Numbers are those of `linux/netdev.h`. A kernel that does not know a number leaves it out of its
//! answers, so everything here may be absent.

use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla, NlasIterator, Parseable,
    ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

use crate::limits::{MAX_NETDEV_ANSWERS, NETLINK_DATAGRAM_BYTES};

/// Commands.
const DEV_GET: u8 = 1;
const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;
const NAPI_SET: u8 = 14;

/// Attributes of a device.
const DEV_INTERFACE: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
/// Attributes of a queue.
const QUEUE_NUMBER: u16 = 1;
const QUEUE_INTERFACE: u16 = 2;
const QUEUE_TYPE: u16 = 3;
const QUEUE_NAPI: u16 = 4;
const QUEUE_XSK: u16 = 7;
/// The value of QUEUE_TYPE for receiving.
const RECEIVE: u32 = 0;
/// Attributes of a NAPI instance.
const NAPI_INTERFACE: u16 = 1;
const NAPI_NUMBER: u16 = 2;
const NAPI_INTERRUPT: u16 = 3;
const NAPI_PROCESS: u16 = 4;
const NAPI_DEFERRED_INTERRUPTS: u16 = 5;
const NAPI_FLUSH_TIMEOUT: u16 = 6;
const NAPI_THREADED: u16 = 8;

/// What a driver does with XDP (`enum netdev_xdp_act`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// Programs can pass, drop and send back.
    pub const fn runs_programs(self) -> bool {
        self.0 & 1 != 0
    }

    /// Programs can redirect, as to an AF_XDP socket.
    pub const fn redirects(self) -> bool {
        self.0 & 2 != 0
    }

    /// The device reads and writes frames of AF_XDP sockets itself.
    pub const fn has_zero_copy(self) -> bool {
        self.0 & 8 != 0
    }
}

/// A receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQueue {
    pub number: u32,
    /// The NAPI instance that serves it, if the driver says.
    pub napi: Option<u32>,
    /// An AF_XDP socket is bound to it.
    pub is_taken: bool,
}

/// A NAPI instance: what receives frames of one or several queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub number: u32,
    pub interrupt: Option<u32>,
    /// The thread that runs it, if it has one.
    pub thread: Option<i32>,
    pub deferred_interrupts: Option<u32>,
    pub flush_timeout_ns: Option<u64>,
    /// Whether it runs in a thread; `None` where the kernel cannot say.
    pub is_threaded: Option<bool>,
}

/// A request or an answer: a command with attributes.
#[derive(Clone, Debug)]
struct Message {
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        "netdev"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(buffer: &[u8], header: GenlHeader) -> Result<Message, DecodeError> {
        let attributes = NlasIterator::new(buffer)
            .map(|attribute| DefaultNla::parse(&attribute?))
            .collect::<Result<_, _>>()?;
        Ok(Message {
            command: header.cmd,
            attributes,
        })
    }
}

impl Message {
    /// An attribute's value as a number of four or eight bytes, as the kernel chose.
    fn number(&self, kind: u16) -> Option<u64> {
        let attribute = self.attributes.iter().find(|known| known.kind() == kind)?;
        let mut value = [0; 8];
        let length = attribute.value_len();
        if length > value.len() {
            return None;
        }
        attribute.emit_value(&mut value[..length]);
        Some(match length {
            4 => u64::from(u32::from_ne_bytes([value[0], value[1], value[2], value[3]])),
            8 => u64::from_ne_bytes(value),
            _ => return None,
        })
    }

    fn small(&self, kind: u16) -> Option<u32> {
        self.number(kind).and_then(|value| value.try_into().ok())
    }

    /// Whether there is an attribute that holds others; it has a bit that says so.
    fn has_nest(&self, kind: u16) -> bool {
        let kind = kind | NLA_F_NESTED;
        self.attributes.iter().any(|known| known.kind() == kind)
    }
}

fn attribute(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// A connection to the family, in the network namespace of the thread that opened it.
pub struct Netdev {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl Netdev {
    /// Opens it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the kernel does not have the family.
    pub fn open() -> io::Result<Netdev> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut netdev = Netdev {
            socket,
            family: 0,
            sequence: 0,
        };
        let question = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(Message::family_name().into())],
        });
        let mut family = None;
        netdev.request(question, NLM_F_ACK, |answer: GenlMessage<GenlCtrl>| {
            family = answer.payload.nlas.iter().find_map(|known| match known {
                GenlCtrlAttrs::FamilyId(number) => Some(*number),
                _ => None,
            });
        })?;
        netdev.family = family.ok_or(io::ErrorKind::NotFound)?;
        Ok(netdev)
    }

    /// What a device's driver does with XDP.
    pub fn xdp_features(&mut self, index: u32) -> io::Result<Option<XdpFeatures>> {
        let mut features = None;
        self.ask(
            DEV_GET,
            vec![attribute(DEV_INTERFACE, index)],
            NLM_F_ACK,
            |answer| {
                features = answer.number(DEV_XDP_FEATURES).map(XdpFeatures);
            },
        )?;
        Ok(features)
    }

    /// A device's receive queues that are in use, ascending.
    pub fn receive_queues(&mut self, index: u32) -> io::Result<Vec<ReceiveQueue>> {
        let mut queues = Vec::new();
        self.ask(
            QUEUE_GET,
            vec![attribute(QUEUE_INTERFACE, index)],
            NLM_F_DUMP,
            |answer| {
                if answer.small(QUEUE_TYPE) == Some(RECEIVE)
                    && let Some(number) = answer.small(QUEUE_NUMBER)
                {
                    queues.push(ReceiveQueue {
                        number,
                        napi: answer.small(QUEUE_NAPI),
                        is_taken: answer.has_nest(QUEUE_XSK),
                    });
                }
            },
        )?;
        queues.sort_by_key(|queue| queue.number);
        Ok(queues)
    }

    /// A device's NAPI instances, ascending by number.
    pub fn instances(&mut self, index: u32) -> io::Result<Vec<Instance>> {
        let mut instances = Vec::new();
        self.ask(
            NAPI_GET,
            vec![attribute(NAPI_INTERFACE, index)],
            NLM_F_DUMP,
            |answer| {
                if let Some(number) = answer.small(NAPI_NUMBER) {
                    instances.push(Instance {
                        number,
                        interrupt: answer.small(NAPI_INTERRUPT),
                        thread: answer.small(NAPI_PROCESS).map(|number| number as i32),
                        deferred_interrupts: answer.small(NAPI_DEFERRED_INTERRUPTS),
                        flush_timeout_ns: answer.number(NAPI_FLUSH_TIMEOUT),
                        is_threaded: answer.small(NAPI_THREADED).map(|value| value != 0),
                    });
                }
            },
        )?;
        instances.sort_by_key(|instance| instance.number);
        Ok(instances)
    }

    /// Has a NAPI instance run in a thread of its own, or no longer.
    pub fn set_threaded(&mut self, instance: u32, is_threaded: bool) -> io::Result<()> {
        let threaded = attribute(NAPI_THREADED, u32::from(is_threaded));
        self.set(instance, vec![threaded])
    }

    /// Sets how often a NAPI instance polls without finding anything before it lets interrupts
    /// come again, and how long it waits in between.
    pub fn set_polling(&mut self, instance: u32, polls: u32, wait_ns: u64) -> io::Result<()> {
        let wait_ns = u32::try_from(wait_ns).unwrap_or(u32::MAX);
        self.set(
            instance,
            vec![
                attribute(NAPI_DEFERRED_INTERRUPTS, polls),
                attribute(NAPI_FLUSH_TIMEOUT, wait_ns),
            ],
        )
    }

    fn set(&mut self, instance: u32, mut attributes: Vec<DefaultNla>) -> io::Result<()> {
        attributes.insert(0, attribute(NAPI_NUMBER, instance));
        self.ask(NAPI_SET, attributes, NLM_F_ACK, |_| {})
    }

    fn ask(
        &mut self,
        command: u8,
        attributes: Vec<DefaultNla>,
        flags: u16,
        mut answered: impl FnMut(&Message),
    ) -> io::Result<()> {
        let mut question = GenlMessage::from_payload(Message {
            command,
            attributes,
        });
        question.set_resolved_family_id(self.family);
        self.request(question, flags, |answer| answered(&answer.payload))
    }

    /// Sends one request, and gives each answer to `answered` until the kernel says that it is done.
    fn request<F>(
        &mut self,
        question: GenlMessage<F>,
        flags: u16,
        mut answered: impl FnMut(GenlMessage<F>),
    ) -> io::Result<()>
    where
        F: GenlFamily
            + Clone
            + Emitable
            + ParseableParametrized<[u8], GenlHeader>
            + std::fmt::Debug,
    {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(question));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut buffer = Vec::with_capacity(NETLINK_DATAGRAM_BYTES);
        for _ in 0..MAX_NETDEV_ANSWERS {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<GenlMessage<F>>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                // Messages are padded to four bytes; a length of zero would never end.
                let length = (answer.header.length as usize).next_multiple_of(4).max(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(message) => answered(message),
                    _ => {}
                }
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}
