//! Queueing disciplines of a device: the root, and those of its transmit queues.
//!
//! Options are structures for some kinds and attributes for others (`linux/pkt_sched.h`); `options` encodes and
//! decodes them.

mod options;

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_sys::protocols::NETLINK_ROUTE;
use serde::{Deserialize, Serialize};

use crate::link::index_of;
use crate::netlink::{AttributeReader, Attributes, Connection, NetlinkError};

/// Messages (linux/rtnetlink.h).
const NEW: u16 = 36;
const DELETE: u16 = 37;
const GET: u16 = 38;
/// Attribute that names the kind.
const KIND: u16 = 1;
/// Parent of a root (TC_H_ROOT).
const ROOT: u32 = 0xffff_ffff;
/// Handle of isolane's roots, from which their class ids derive. The kernel assigns handles from 8000: on; users choose
/// small ones.
const OURS: u32 = 0x1501_0000;
/// Mask of the qdisc's handle in a class id.
const HANDLE: u32 = 0xffff_0000;
/// Counters attribute; among them bytes and packets.
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
/// Size of `struct tcmsg` in bytes.
const HEADER_BYTES: usize = 20;

/// Root qdisc of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RootQdisc {
    /// The kernel's default: `mq`, `fq_codel`, `noqueue`, `pfifo_fast`.
    Default {
        /// Kind.
        name: String,
    },
    /// First-in, first-out queue.
    Pfifo {
        /// Limit in frames.
        frames: u32,
    },
    /// Transmit queues per traffic class (mqprio), each with a `pfifo`.
    Mqprio(TrafficClasses),
    /// Traffic classes with clock-driven gates (taprio, IEEE 802.1Qbv).
    Taprio(GateSchedule),
    /// Another kind, which is left unchanged.
    Other {
        /// Kind.
        name: String,
    },
}

/// Traffic classes and the transmit queues of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficClasses {
    /// Class of each of the kernel's sixteen priorities.
    pub class_of_priority: [u8; 16],
    /// Queues of each class: their number, and the first of them.
    pub queues: Vec<(u16, u16)>,
    /// True if the classes are offloaded to the device (`hw 1`).
    pub offloaded: bool,
}

/// Traffic classes with clock-driven gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSchedule {
    /// Classes; `offloaded` means that the device operates the gates.
    pub classes: TrafficClasses,
    /// Start of the first cycle in nanoseconds of TAI.
    pub base_time_ns: i64,
    /// Entries of the cycle: mask of open gates, one bit per class, and duration in nanoseconds.
    pub entries: Vec<(u32, u32)>,
}

/// Qdisc of one transmit queue, under a classful root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueQdisc {
    /// First-in, first-out queue.
    Pfifo {
        /// Limit in frames; `None` for the device's queue length.
        frames: Option<u32>,
    },
    /// Credit-based shaper (cbs, IEEE 802.1Qav).
    CreditShaper(CreditShaper),
    /// Earliest TxTime first (etf).
    EarliestTime(EarliestTime),
    /// Another kind, which is left unchanged.
    Other {
        /// Kind.
        name: String,
    },
}

/// Parameters of the credit-based shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditShaper {
    /// Idle slope, the reserved rate, in kbit/s.
    pub idle_slope_kbps: i32,
    /// Send slope, idle slope minus link rate, in kbit/s: negative.
    pub send_slope_kbps: i32,
    /// High credit in bytes.
    pub high_credit_bytes: i32,
    /// Low credit in bytes: negative.
    pub low_credit_bytes: i32,
    /// True if the device does the shaping.
    pub offloaded: bool,
}

/// Parameters of etf, which sends each frame at its SO_TXTIME.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarliestTime {
    /// Nanoseconds before its SO_TXTIME at which a frame is passed to the device.
    pub delta_ns: i32,
    /// Clock id; 11 is CLOCK_TAI.
    pub clock: i32,
    /// True if the device enforces the time.
    pub offloaded: bool,
}

/// Connection to the qdiscs of the namespace it was opened in.
pub struct Queueing(Connection);

/// Qdisc as listed by the kernel.
struct Listed {
    parent: u32,
    handle: u32,
    name: String,
    attributes: Vec<u8>,
}

impl Queueing {
    /// Opens the connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system error.
    pub fn open() -> io::Result<Self> {
        Connection::open(NETLINK_ROUTE).map(Self)
    }

    /// Qdiscs of a device.
    fn list(&mut self, interface: &str) -> Result<Vec<Listed>, NetlinkError> {
        let index = index_of(interface)?;
        let answers = self.0.dump(GET, &header(index, 0, 0))?;
        let listed = answers.iter().filter_map(|answer| {
            let (of, parent, handle, attributes) = parse_header(&answer.payload)?;
            (of == index).then(|| Listed {
                parent,
                handle,
                name: attributes.text(KIND).unwrap_or_default(),
                attributes: attributes.0.to_vec(),
            })
        });
        Ok(listed.collect())
    }

    fn send(&mut self, request: &Request) -> Result<(), NetlinkError> {
        self.0
            .request(request.kind, request.flags, &request.payload)
            .map(drop)
    }

    /// Root of a device; `None` if none is listed.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn root(&mut self, interface: &str) -> Result<Option<RootQdisc>, NetlinkError> {
        let listed = self.list(interface)?;
        let root = listed.into_iter().find(|listed| listed.parent == ROOT);
        Ok(root.map(|root| parse_root(root.handle, root.name, AttributeReader(&root.attributes))))
    }

    /// Replaces the root.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EOPNOTSUPP` for [`RootQdisc::Other`].
    pub fn set_root(&mut self, interface: &str, root: &RootQdisc) -> Result<(), NetlinkError> {
        let index = index_of(interface)?;
        let standing = self.root(interface)?;
        let requests = requests_of_root(index, standing.as_ref(), root).ok_or_else(unsupported)?;
        for request in requests {
            self.send(&request)?;
        }
        Ok(())
    }

    /// Qdisc of one transmit queue; `None` if the root is classless.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn of_queue(
        &mut self,
        interface: &str,
        queue: u16,
    ) -> Result<Option<QueueQdisc>, NetlinkError> {
        let listed = self.list(interface)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        let root = root.filter(|root| root.handle != 0);
        let class = root.map(|root| class_of(root.handle, queue));
        let found = listed.iter().find(|listed| Some(listed.parent) == class);
        Ok(found
            .map(|found| options::parse_of_queue(&found.name, AttributeReader(&found.attributes))))
    }

    /// Replaces the qdisc of one transmit queue.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EOPNOTSUPP` for [`QueueQdisc::Other`], or under a classless root.
    pub fn set_of_queue(
        &mut self,
        interface: &str,
        queue: u16,
        qdisc: &QueueQdisc,
    ) -> Result<(), NetlinkError> {
        let index = index_of(interface)?;
        let attributes = match qdisc {
            QueueQdisc::Pfifo { frames } => options::pfifo(*frames),
            QueueQdisc::CreditShaper(shaper) => options::credit_shaper(shaper),
            QueueQdisc::EarliestTime(time) => options::earliest_time(time),
            QueueQdisc::Other { .. } => return Err(unsupported()),
        };
        let listed = self.list(interface)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        // The classes of the kernel's default accept no children.
        let root = root
            .filter(|root| root.handle != 0)
            .ok_or_else(unsupported)?;
        let parent = class_of(root.handle, queue);
        self.send(&Request::put(index, 0, parent, &attributes))
    }

    /// Frames sent through the qdisc of each transmit queue; empty if the queues have none.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn sent(&mut self, interface: &str) -> Result<BTreeMap<u32, u64>, NetlinkError> {
        let listed = self.list(interface)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        let Some(root) = root.map(|root| root.handle) else {
            return Ok(BTreeMap::new());
        };
        let of_queue = |listed: &Listed| {
            let queue = queue_of(root, listed.parent)?;
            Some((queue, frames_sent(AttributeReader(&listed.attributes))?))
        };
        Ok(listed.iter().filter_map(of_queue).collect())
    }
}

/// Encoded request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    kind: u16,
    flags: u16,
    payload: Vec<u8>,
}

impl Request {
    /// Creates a qdisc, or changes one of the same kind.
    fn put(index: u32, handle: u32, parent: u32, attributes: &Attributes) -> Self {
        Self {
            kind: NEW,
            flags: NLM_F_CREATE | NLM_F_REPLACE,
            payload: [header(index, handle, parent), attributes.bytes()].concat(),
        }
    }

    /// Deletes the root, whatever its kind.
    fn delete_root(index: u32) -> Self {
        Self {
            kind: DELETE,
            flags: 0,
            payload: header(index, 0, ROOT),
        }
    }
}

/// Requests that replace a root; `None` for a root of another kind.
///
/// Deleting the root restores the default. A classful root is deleted before another is created: `mqprio` and the
/// classes of `taprio` cannot be changed. If one replaced the other, the kernel would destroy the old one last,
/// together with the device's classes, which then belong to the new one (`mqprio_destroy`, `taprio_destroy`).
fn requests_of_root(
    index: u32,
    standing: Option<&RootQdisc>,
    root: &RootQdisc,
) -> Option<Vec<Request>> {
    let (attributes, classes) = match root {
        RootQdisc::Default { .. } => {
            return Some(match standing {
                Some(RootQdisc::Default { .. }) => Vec::new(),
                _ => vec![Request::delete_root(index)],
            });
        }
        RootQdisc::Pfifo { frames } => {
            let attributes = options::pfifo(Some(*frames));
            return Some(vec![Request::put(index, 0, ROOT, &attributes)]);
        }
        RootQdisc::Mqprio(classes) => (options::mqprio(classes), classes),
        RootQdisc::Taprio(schedule) => (options::taprio(schedule), &schedule.classes),
        RootQdisc::Other { .. } => return None,
    };
    let mut requests = Vec::new();
    // A root of another kind may be classful too.
    if let Some(RootQdisc::Mqprio(_) | RootQdisc::Taprio(_) | RootQdisc::Other { .. }) = standing {
        requests.push(Request::delete_root(index));
    }
    requests.push(Request::put(index, OURS, ROOT, &attributes));
    // A `pfifo` of the device's queue length for each transmit queue.
    requests.extend(queues(classes).into_iter().map(|queue| {
        let parent = class_of(OURS, queue);
        Request::put(index, 0, parent, &options::pfifo(None))
    }));
    Some(requests)
}

fn unsupported() -> NetlinkError {
    io::Error::from(rustix::io::Errno::OPNOTSUPP).into()
}

/// `struct tcmsg`.
fn header(index: u32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for field in [index, handle, parent, 0] {
        bytes.extend(field.to_ne_bytes());
    }
    bytes
}

/// Index, parent, handle and attributes.
fn parse_header(answer: &[u8]) -> Option<(u32, u32, u32, AttributeReader<'_>)> {
    let (header, attributes) = answer.split_first_chunk::<HEADER_BYTES>()?;
    let field = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Some((field(4), field(12), field(8), AttributeReader(attributes)))
}

fn parse_root(handle: u32, name: String, attributes: AttributeReader<'_>) -> RootQdisc {
    // The kernel's default has no handle.
    if handle == 0 {
        return RootQdisc::Default { name };
    }
    let known = match name.as_str() {
        "pfifo" => options::parse_frames(attributes).map(|frames| RootQdisc::Pfifo { frames }),
        "mqprio" => options::parse_mqprio(attributes).map(RootQdisc::Mqprio),
        "taprio" => options::parse_taprio(attributes).map(RootQdisc::Taprio),
        _ => None,
    };
    known.unwrap_or(RootQdisc::Other { name })
}

/// Class id of a transmit queue under a root; the first queue's is 1.
fn class_of(root: u32, queue: u16) -> u32 {
    root | (u32::from(queue) + 1)
}

/// Transmit queue of a class under a root.
fn queue_of(root: u32, class: u32) -> Option<u32> {
    let is_below = class != ROOT && class & HANDLE == root;
    (class & !HANDLE).checked_sub(1).filter(|_| is_below)
}

/// Packets of `struct gnet_stats_basic`, which follow the bytes.
fn frames_sent(attributes: AttributeReader<'_>) -> Option<u64> {
    let basic = attributes.nest(STATISTICS)?.value(BASIC)?;
    let packets = basic.get(8..12)?.try_into().ok()?;
    Some(u32::from_ne_bytes(packets).into())
}

/// All transmit queues of the classes, ascending.
fn queues(classes: &TrafficClasses) -> Vec<u16> {
    let of_class = |(number, first): &(u16, u16)| *first..first.saturating_add(*number);
    let mut queues: Vec<u16> = classes.queues.iter().flat_map(of_class).collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

#[cfg(test)]
mod tests;
