//! Queues and NAPI instances of a device: the generic netlink family `netdev` (linux/netdev.h).
//!
//! The family exists since Linux 6.7, settings of a NAPI instance since 6.13, its thread since 6.17. A kernel omits
//! attributes it does not know, so each value may be absent.

use netlink_packet_core::DefaultNla;
use serde::{Deserialize, Serialize};

use crate::netlink::{AttributeReader, Attributes, Family, NetlinkError, number};

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

/// XDP features of a driver (`enum netdev_xdp_act`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XdpFeatures {
    /// The driver runs XDP programs (native mode).
    pub runs_programs: bool,
    /// Programs can redirect, as to an AF_XDP socket.
    pub redirects: bool,
    /// AF_XDP sockets can bind in zero-copy mode.
    pub has_zero_copy: bool,
}

impl From<u64> for XdpFeatures {
    fn from(bits: u64) -> Self {
        Self {
            runs_programs: bits & 1 != 0,
            redirects: bits & 2 != 0,
            has_zero_copy: bits & 8 != 0,
        }
    }
}

/// Receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQueue {
    /// Number of the queue, from 0.
    pub number: u32,
    /// NAPI instance that serves it, if the driver reports it.
    pub napi: Option<u32>,
    /// True if an AF_XDP socket is bound to it (Linux 6.14).
    pub is_taken: bool,
}

/// NAPI instance, which receives the frames of one or several queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Instance number.
    pub number: u32,
    /// Interrupt.
    pub interrupt: Option<u32>,
    /// Process id of its thread, if there is one.
    pub thread: Option<i32>,
    /// Polls that find no frame before interrupts are enabled again.
    pub deferred_interrupts: Option<u32>,
    /// Nanoseconds between two such polls.
    pub flush_timeout_ns: Option<u64>,
    /// True if it runs in a thread; `None` if the kernel does not report it.
    pub is_threaded: Option<bool>,
}

/// Connection to the family, in the network namespace of the thread that opened it.
pub struct Netdev(Family);

impl Netdev {
    /// Opens the connection.
    ///
    /// # Errors
    /// [`NetlinkError`]; `ENOENT` if the kernel lacks the family.
    pub fn open() -> Result<Netdev, NetlinkError> {
        Family::open("netdev").map(Netdev)
    }

    /// XDP features of a device's driver.
    pub fn xdp_features(&mut self, index: u32) -> Result<Option<XdpFeatures>, NetlinkError> {
        let device = Attributes::new().with(number(DEV_INTERFACE, index));
        let answers = self.0.request(DEV_GET, &device)?;
        let features = answers
            .last()
            .and_then(|it| AttributeReader(it).uint(DEV_XDP_FEATURES));
        Ok(features.map(XdpFeatures::from))
    }

    /// Receive queues of a device that are in use, ascending.
    pub fn receive_queues(&mut self, index: u32) -> Result<Vec<ReceiveQueue>, NetlinkError> {
        let device = Attributes::new().with(number(QUEUE_INTERFACE, index));
        let read = |entry: &Vec<u8>| {
            let entry = AttributeReader(entry);
            let is_receiving = entry.number(QUEUE_TYPE) == Some(RECEIVE);
            Some(ReceiveQueue {
                number: entry.number(QUEUE_NUMBER).filter(|_| is_receiving)?,
                napi: entry.number(QUEUE_NAPI),
                is_taken: entry.has(QUEUE_XSK),
            })
        };
        let entries = self.0.dump(QUEUE_GET, &device)?;
        let mut queues: Vec<ReceiveQueue> = entries.iter().filter_map(read).collect();
        queues.sort_by_key(|queue| queue.number);
        Ok(queues)
    }

    /// NAPI instances of a device, ascending by number.
    pub fn instances(&mut self, index: u32) -> Result<Vec<Instance>, NetlinkError> {
        let device = Attributes::new().with(number(NAPI_INTERFACE, index));
        let read = |entry: &Vec<u8>| {
            let entry = AttributeReader(entry);
            Some(Instance {
                number: entry.number(NAPI_NUMBER)?,
                interrupt: entry.number(NAPI_INTERRUPT),
                thread: entry.number(NAPI_PROCESS).map(|number| number as i32),
                deferred_interrupts: entry.number(NAPI_DEFERRED_INTERRUPTS),
                flush_timeout_ns: entry.uint(NAPI_FLUSH_TIMEOUT),
                is_threaded: entry.number(NAPI_THREADED).map(|value| value != 0),
            })
        };
        let entries = self.0.dump(NAPI_GET, &device)?;
        let mut instances: Vec<Instance> = entries.iter().filter_map(read).collect();
        instances.sort_by_key(|instance| instance.number);
        Ok(instances)
    }

    /// Starts or stops the thread of a NAPI instance.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EINVAL` or `EOPNOTSUPP` before Linux 6.17.
    pub fn set_threaded(&mut self, instance: u32, is_threaded: bool) -> Result<(), NetlinkError> {
        self.set(instance, [number(NAPI_THREADED, is_threaded.into())])
    }

    /// Sets the number of polls without a frame before interrupts are enabled again, and the nanoseconds between two
    /// polls.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_polling(
        &mut self,
        instance: u32,
        polls: u32,
        wait_ns: u64,
    ) -> Result<(), NetlinkError> {
        let wait_ns = u32::try_from(wait_ns).unwrap_or(u32::MAX);
        let polls = number(NAPI_DEFERRED_INTERRUPTS, polls);
        self.set(instance, [polls, number(NAPI_FLUSH_TIMEOUT, wait_ns)])
    }

    fn set<const N: usize>(
        &mut self,
        instance: u32,
        values: [DefaultNla; N],
    ) -> Result<(), NetlinkError> {
        let instance = Attributes::new().with(number(NAPI_NUMBER, instance));
        let attributes = values.into_iter().fold(instance, Attributes::with);
        self.0.request(NAPI_SET, &attributes).map(drop)
    }
}
