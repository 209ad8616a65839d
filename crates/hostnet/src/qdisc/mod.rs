//! How frames wait for a device: its root queueing discipline, and those of its queues below it, by
//! rtnetlink.
//!
//! Their options are structures here and attributes there (`linux/pkt_sched.h`): [`options`] writes
//! and reads them.

mod kinds;
mod options;

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_sys::protocols::NETLINK_ROUTE;

pub use self::kinds::{
    CreditShaper, EarliestTime, GateSchedule, QueueQdisc, RootQdisc, TrafficClasses,
};
use crate::netlink::{Attributes, Connection, Denial, Read};

/// Messages (linux/rtnetlink.h).
const NEW: u16 = 36;
const DELETE: u16 = 37;
const GET: u16 = 38;
/// The attribute that names the discipline.
const KIND: u16 = 1;
/// The parent of a root.
const ROOT: u32 = 0xffff_ffff;
/// The handle of a root that is ours: its classes are named by it. The kernel gives away handles from
/// 8000: on, people take small ones.
const OURS: u32 = 0x1501_0000;
/// The part of a class that names its discipline.
const HANDLE: u32 = 0xffff_0000;
/// Counters, and those of bytes and frames among them.
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
/// Bytes of `struct tcmsg`.
const HEADER_BYTES: usize = 20;

/// A connection to the network configuration of the calling thread's namespace.
pub struct Queueing(Connection);

/// A discipline as the kernel lists it.
struct Listed {
    parent: u32,
    handle: u32,
    name: String,
    attributes: Vec<u8>,
}

impl Queueing {
    pub fn open() -> io::Result<Self> {
        Connection::open(NETLINK_ROUTE).map(Self)
    }

    /// All of a device.
    fn list(&mut self, index: u32) -> Result<Vec<Listed>, Denial> {
        let mut found = Vec::new();
        self.0.dump(GET, &header(index, 0, 0), |answer| {
            if let Some((of, parent, handle, attributes)) = parse_header(answer)
                && of == index
            {
                found.push(Listed {
                    parent,
                    handle,
                    name: attributes.text(KIND).unwrap_or_default(),
                    attributes: attributes.0.to_vec(),
                });
            }
        })?;
        Ok(found)
    }

    /// A device's root; `None`: it has none that can be seen.
    pub fn root(&mut self, interface: &str) -> Result<Option<RootQdisc>, Denial> {
        let listed = self.list(index_of(interface)?)?;
        let root = listed.into_iter().find(|listed| listed.parent == ROOT);
        Ok(root.map(|root| parse_root(root.handle, root.name, Read(&root.attributes))))
    }

    /// Sets it.
    pub fn set_root(&mut self, interface: &str, root: &RootQdisc) -> Result<(), Denial> {
        let index = index_of(interface)?;
        let standing = self.root(interface)?;
        let requests = requests_of_root(index, standing.as_ref(), root).ok_or_else(unsupported)?;
        for request in requests {
            self.0
                .ask(request.kind, request.flags, &request.payload, |_| {})?;
        }
        Ok(())
    }

    /// How frames wait for one queue; `None`: nothing of a root with classes is there.
    pub fn of_queue(&mut self, interface: &str, queue: u16) -> Result<Option<QueueQdisc>, Denial> {
        let listed = self.list(index_of(interface)?)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        let root = root.filter(|root| root.handle != 0);
        let class = root.map(|root| class_of(root.handle, queue));
        let found = listed.iter().find(|listed| Some(listed.parent) == class);
        Ok(found.map(|found| options::parse_of_queue(&found.name, Read(&found.attributes))))
    }

    pub fn set_of_queue(
        &mut self,
        interface: &str,
        queue: u16,
        qdisc: &QueueQdisc,
    ) -> Result<(), Denial> {
        let index = index_of(interface)?;
        let attributes = match qdisc {
            QueueQdisc::Pfifo { frames } => options::pfifo(*frames),
            QueueQdisc::CreditShaper(shaper) => options::credit_shaper(shaper),
            QueueQdisc::EarliestTime(time) => options::earliest_time(time),
            QueueQdisc::Other { .. } => return Err(unsupported()),
        };
        let listed = self.list(index)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        // What the kernel takes of itself has classes that nothing can be put below.
        let root = root
            .filter(|root| root.handle != 0)
            .ok_or_else(unsupported)?;
        let parent = class_of(root.handle, queue);
        let request = Request::put(index, 0, parent, &attributes);
        self.0
            .ask(request.kind, request.flags, &request.payload, |_| {})
    }

    /// Frames that went through each transmit queue's discipline so far; empty where there is none for each.
    pub fn sent(&mut self, interface: &str) -> Result<BTreeMap<u32, u64>, Denial> {
        let listed = self.list(index_of(interface)?)?;
        let root = listed.iter().find(|listed| listed.parent == ROOT);
        let Some(root) = root.map(|root| root.handle) else {
            return Ok(BTreeMap::new());
        };
        let of_queue = |listed: &Listed| {
            let queue = queue_of(root, listed.parent)?;
            Some((queue, frames_sent(Read(&listed.attributes))?))
        };
        Ok(listed.iter().filter_map(of_queue).collect())
    }
}

/// One request, as it is sent.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    kind: u16,
    flags: u16,
    payload: Vec<u8>,
}

impl Request {
    /// Makes a discipline, or changes the one of that kind which is there.
    fn put(index: u32, handle: u32, parent: u32, attributes: &Attributes) -> Self {
        Self {
            kind: NEW,
            flags: NLM_F_CREATE | NLM_F_REPLACE,
            payload: [header(index, handle, parent), attributes.bytes()].concat(),
        }
    }

    /// Takes away the root, whatever it is.
    fn delete_root(index: u32) -> Self {
        Self {
            kind: DELETE,
            flags: 0,
            payload: header(index, 0, ROOT),
        }
    }
}

/// What has a root stand in place of another one; `None`: this program does not know how.
///
/// The default is had by taking away what was set. So is room for a root with classes where another
/// one with classes stands: `mqprio` cannot be changed, the classes of `taprio` neither, and if one
/// took the place of the other the kernel would end the old one last, and the device's classes with
/// it, which are the new one's by then (`mqprio_destroy`, `taprio_destroy`).
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
    // What is of another form may have classes too.
    if let Some(RootQdisc::Mqprio(_) | RootQdisc::Taprio(_) | RootQdisc::Other { .. }) = standing {
        requests.push(Request::delete_root(index));
    }
    requests.push(Request::put(index, OURS, ROOT, &attributes));
    // In each of its queues the shortest way there is.
    requests.extend(queues(classes).into_iter().map(|queue| {
        let parent = class_of(OURS, queue);
        Request::put(index, 0, parent, &options::pfifo(None))
    }));
    Some(requests)
}

fn unsupported() -> Denial {
    io::Error::from(rustix::io::Errno::OPNOTSUPP).into()
}

/// The number of an interface in the calling thread's namespace.
pub fn index_of(interface: &str) -> io::Result<u32> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    Ok(rustix::net::netdevice::name_to_index(&socket, interface)?)
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
fn parse_header(answer: &[u8]) -> Option<(u32, u32, u32, Read<'_>)> {
    let (header, attributes) = answer.split_first_chunk::<HEADER_BYTES>()?;
    let field = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Some((field(4), field(12), field(8), Read(attributes)))
}

fn parse_root(handle: u32, name: String, attributes: Read<'_>) -> RootQdisc {
    // What nobody set has no handle.
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

/// The class of a transmit queue below a root; the first queue's is 1.
fn class_of(root: u32, queue: u16) -> u32 {
    root | (u32::from(queue) + 1)
}

/// The transmit queue of a class below a root.
fn queue_of(root: u32, class: u32) -> Option<u32> {
    let is_below = class != ROOT && class & HANDLE == root;
    (class & !HANDLE).checked_sub(1).filter(|_| is_below)
}

/// Of `struct gnet_stats_basic`: bytes, then packets.
fn frames_sent(attributes: Read<'_>) -> Option<u64> {
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
