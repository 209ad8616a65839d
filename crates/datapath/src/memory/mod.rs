//! In-process datapath on one thread, for tests, examples and simulations without a kernel.
//!
//! A [`Network`] is the medium; [`Network::attach`] returns a participant's [`Memory`] datapath. Unicast and multicast
//! locators have the form of those of `udp`, so the protocol cannot tell the two datapaths apart. Delivery is
//! deterministic: datagrams are in the receivers' queues, in order, when `send_burst` returns. Configured losses come
//! from a seeded generator.
//!
//! As in a kernel, a datagram is copied into the receiver's queue when sent, and into the receiver's frame when
//! received. A slow reader thus holds none of the sender's frames. The queue is bounded in datagrams and bytes; excess
//! datagrams are dropped and counted at the receiver.

mod network;

use std::cell::RefCell;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use isolane_wire::locator::Locator;

use crate::burst::{ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
use crate::contract::{Capabilities, Datapath, OpenError, Wakeup};
use crate::kind::DatapathFactory;
use crate::lane::Lane;
use crate::ledger::{Ledger, ReceiveDrop, Refusal};
use crate::limits::{MAX_UDP_PAYLOAD, MEMORY_QUEUE_BYTES, MEMORY_QUEUE_DATAGRAMS};
use crate::network::NetworkConfig;
use crate::pool::{Class, Pool, PoolConfig};
use network::{Medium, MemberId};

/// Configuration of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Domain that determines groups and ports.
    pub domain: u32,
    /// Seed of the losses.
    pub seed: u64,
    /// Loss probability in millionths. Lost datagrams count as arrived and dropped by [`ReceiveDrop::FAULT_LOSS`].
    pub loss_per_million: u32,
    /// Maximum datagrams in a lane's queue.
    pub queue_datagrams: usize,
    /// Maximum bytes in a lane's queue.
    pub queue_bytes: usize,
    /// Default frame pool of a participant.
    pub pool: PoolConfig,
}

impl MemoryConfig {
    /// Creates a configuration with domain 0 and no loss.
    #[must_use]
    pub fn new(seed: u64) -> MemoryConfig {
        MemoryConfig {
            domain: 0,
            seed,
            loss_per_million: 0,
            queue_datagrams: MEMORY_QUEUE_DATAGRAMS,
            queue_bytes: MEMORY_QUEUE_BYTES,
            pool: PoolConfig::default(),
        }
    }
}

/// Medium that connects participants of this thread; clones share the network.
#[derive(Clone)]
pub struct Network {
    medium: Rc<RefCell<Medium>>,
}

impl Network {
    /// Creates a network without loss.
    #[must_use]
    pub fn new(seed: u64) -> Network {
        Network::with_config(MemoryConfig::new(seed))
    }

    /// Creates a network with a configuration.
    #[must_use]
    pub fn with_config(config: MemoryConfig) -> Network {
        Network {
            medium: Rc::new(RefCell::new(Medium::new(config))),
        }
    }

    /// Changes the loss probability.
    pub fn set_loss_per_million(&self, loss_per_million: u32) {
        self.medium.borrow_mut().config.loss_per_million = loss_per_million;
    }

    /// Attaches a participant. Several participants may have the same address; their ports differ.
    #[must_use]
    pub fn attach(&self, address: [u8; 4]) -> Memory {
        let pool_config = self.medium.borrow().config.pool;
        self.attach_with_pool(address, pool_config)
    }

    /// Attaches a participant with a specific frame pool.
    #[must_use]
    pub fn attach_with_pool(&self, address: [u8; 4], pool_config: PoolConfig) -> Memory {
        let member = self.medium.borrow_mut().attach(address);
        let max_frame_bytes = pool_config.frame_bytes - pool_config.head_room_bytes;
        Memory {
            medium: Rc::clone(&self.medium),
            member,
            pool: Pool::new(pool_config),
            capabilities: Capabilities {
                max_frame_bytes: max_frame_bytes.min(MAX_UDP_PAYLOAD),
                head_room_bytes: 0,
                receive_copies: 1,
                transmit_copies: 1,
                kernel_copies: 0,
                zero_copy: false,
                multicast: true,
                wakeup: Wakeup::Poll,
                timestamps: false,
                priorities: true,
                shaping: false,
                segmented_lanes: Lane::ALL_BITS,
            },
            reached_by: Default::default(),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Network")
            .field(&self.medium.borrow().config)
            .finish()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = Lane::ALL
            .into_iter()
            .flat_map(|lane| self.unicast(lane).to_vec());
        f.debug_tuple("Memory")
            .field(&open.collect::<Vec<_>>())
            .finish()
    }
}

/// Locators of a lane; none while closed.
#[derive(Default)]
struct ReachedBy {
    unicast: Option<Locator>,
    multicast: Option<Locator>,
}

/// Participant's end of a [`Network`]; dropping it detaches the participant.
pub struct Memory {
    medium: Rc<RefCell<Medium>>,
    member: MemberId,
    pool: Pool,
    capabilities: Capabilities,
    reached_by: [ReachedBy; Lane::COUNT],
}

impl Memory {
    /// Reason for which a datagram cannot be sent at all.
    fn refusal(&self, bytes: usize, to: &Locator) -> Option<Refusal> {
        if to.ipv4().is_none() {
            Some(Refusal::UNKNOWN_DESTINATION)
        } else if bytes > self.capabilities.max_frame_bytes {
            Some(Refusal::TOO_LONG)
        } else {
            None
        }
    }
}

impl DatapathFactory for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(self: Box<Self>, _network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(self)
    }
}

impl Datapath for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        let reached_by = &mut self.reached_by[lane.index()];
        if reached_by.unicast.is_some() {
            return Ok(());
        }
        self.pool.reserve_lane(lane)?;
        let mut medium = self.medium.borrow_mut();
        let (unicast, group) = medium.open(self.member, lane)?;
        reached_by.unicast = Some(unicast);
        reached_by.multicast = Some(group);
        Ok(())
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.reached_by[lane.index()].unicast.as_slice()
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.reached_by[lane.index()].multicast.as_slice()
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let mut medium = self.medium.borrow_mut();
        let Some(inbox) = medium.inbox(self.member, lane) else {
            return 0;
        };
        let room = burst.capacity() - burst.len();
        let limit = limit.min(room);
        let mut taken = 0;
        while taken < limit && !inbox.queue.is_empty() {
            let Some(mut frame) = self.pool.take(Class::Receive(lane)) else {
                inbox.ledger.starved += 1;
                break;
            };
            let Some((from, len)) = inbox.queue.pop_into(frame.buffer_mut()) else {
                break;
            };
            taken += 1;
            // Counted again below, by outcome.
            inbox.ledger.arrived -= 1;
            inbox.ledger.pending -= 1;
            if len > frame.capacity() {
                inbox.ledger.note_dropped(ReceiveDrop::TRUNCATED, 1);
                continue;
            }
            frame.set_range(0..len);
            inbox.ledger.note_received(len);
            let received = ReceivedFrame {
                frame,
                from,
                arrived: None,
            };
            // Cannot fail: `limit` is at most the burst's room.
            let _ = burst.push(received);
        }
        inbox.ledger.largest_burst = inbox.ledger.largest_burst.max(taken as u64);
        taken
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        let mut medium = self.medium.borrow_mut();
        let mut report = SendReport::default();
        let from = self.reached_by[lane.index()].unicast;
        let unaddressed = burst.unaddressed();
        let ledger = medium.transmit_ledger(self.member, lane);
        ledger.note_refused(Refusal::NO_DESTINATION, unaddressed);
        report.refused += unaddressed as u32;
        for message in burst.messages() {
            for bytes in burst.frame(message).datagrams() {
                let refusal = self.refusal(bytes.len(), &message.to);
                match (from, refusal) {
                    (Some(from), None) => {
                        let reached = medium.deliver(from, &message.to, bytes);
                        let ledger = medium.transmit_ledger(self.member, lane);
                        ledger.note_sent(bytes.len());
                        if reached == 0 && !message.to.is_multicast() {
                            ledger.bounced += 1;
                        }
                        report.sent += 1;
                    }
                    (from, refusal) => {
                        let closed = from.is_none().then_some(Refusal::LANE_CLOSED);
                        let reason = closed.or(refusal).unwrap_or(Refusal::OTHER);
                        let ledger = medium.transmit_ledger(self.member, lane);
                        ledger.note_refused(reason, 1);
                        report.refused += 1;
                    }
                }
            }
        }
        burst.clear();
        report
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        Vec::new()
    }

    fn ready_lanes(&mut self) -> u16 {
        self.medium.borrow().ready(self.member)
    }

    fn ledger(&self) -> Ledger {
        self.medium.borrow().ledger(self.member)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.medium.borrow_mut().detach(self.member);
    }
}

#[cfg(test)]
mod tests;
