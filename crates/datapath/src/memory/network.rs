//! Medium of a memory network: participants, their open lanes with their datagram queues, and delivery.

use std::collections::VecDeque;

use isolane_wire::locator::Locator;

use super::MemoryConfig;
use crate::contract::OpenError;
use crate::lane::Lane;
use crate::ledger::{Ledger, ReceiveDrop, ReceiveLedger, TransmitLedger};
use crate::limits::MEMORY_MEMBERS;
use crate::ports;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberId(usize);

/// Receive side of an open lane.
pub(super) struct Inbox {
    unicast: Locator,
    group: Locator,
    pub(super) queue: DatagramQueue,
    pub(super) ledger: ReceiveLedger,
}

struct Member {
    address: [u8; 4],
    /// Distinguishes participants with the same address.
    participant_id: u32,
    inboxes: [Option<Inbox>; Lane::COUNT],
    transmit: [TransmitLedger; Lane::COUNT],
}

/// Seeded generator of losses (xorshift, 64 bits).
struct Losses(u64);

impl Losses {
    fn new(seed: u64) -> Losses {
        // Spreads neighbouring seeds over all bits (the finaliser of MurmurHash3). State 0 is avoided, because the
        // generator never leaves it.
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Losses((mixed ^ (mixed >> 33)) | 1)
    }

    /// Returns true for `per_million` of a million calls on average.
    fn happens(&mut self, per_million: u32) -> bool {
        if per_million == 0 {
            return false;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % 1_000_000 < u64::from(per_million)
    }
}

pub(super) struct Medium {
    pub(super) config: MemoryConfig,
    members: Vec<Option<Member>>,
    losses: Losses,
}

impl Medium {
    pub(super) fn new(config: MemoryConfig) -> Medium {
        Medium {
            config,
            members: Vec::new(),
            losses: Losses::new(config.seed),
        }
    }

    pub(super) fn attach(&mut self, address: [u8; 4]) -> MemberId {
        let taken = |participant_id: u32| {
            let mut members = self.members.iter().flatten();
            members
                .any(|member| member.address == address && member.participant_id == participant_id)
        };
        let participant_id = (0..).find(|id| !taken(*id)).unwrap_or(u32::MAX);
        let member = Member {
            address,
            participant_id,
            inboxes: Default::default(),
            transmit: Default::default(),
        };
        let free = self.members.iter().position(Option::is_none);
        let line = free.unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() - 1
        });
        self.members[line] = Some(member);
        MemberId(line)
    }

    pub(super) fn detach(&mut self, member: MemberId) {
        self.members[member.0] = None;
    }

    fn member(&self, member: MemberId) -> &Member {
        self.members[member.0].as_ref().expect("attached")
    }

    fn member_mut(&mut self, member: MemberId) -> &mut Member {
        self.members[member.0].as_mut().expect("attached")
    }

    /// Opens a lane and returns its unicast and multicast locators.
    pub(super) fn open(
        &mut self,
        member: MemberId,
        lane: Lane,
    ) -> Result<(Locator, Locator), OpenError> {
        if member.0 >= MEMORY_MEMBERS {
            let limit = MEMORY_MEMBERS;
            return Err(OpenError::NetworkFull { limit });
        }
        let config = self.config;
        let Member {
            address,
            participant_id,
            ..
        } = *self.member(member);
        let port = match lane.level() {
            None => ports::metatraffic_unicast(config.domain, participant_id)?,
            Some(level) => level_port(participant_id, level.get())?,
        };
        let unicast = Locator::udpv4(address, port);
        let (group, group_port) = ports::group(config.domain, lane)?;
        let group = Locator::udpv4(group, group_port);
        self.member_mut(member).inboxes[lane.index()] = Some(Inbox {
            unicast,
            group,
            queue: DatagramQueue::new(config.queue_datagrams, config.queue_bytes),
            ledger: ReceiveLedger::default(),
        });
        Ok((unicast, group))
    }

    pub(super) fn inbox(&mut self, member: MemberId, lane: Lane) -> Option<&mut Inbox> {
        self.member_mut(member).inboxes[lane.index()].as_mut()
    }

    pub(super) fn transmit_ledger(&mut self, member: MemberId, lane: Lane) -> &mut TransmitLedger {
        &mut self.member_mut(member).transmit[lane.index()]
    }

    /// Delivers a datagram to all lanes with locator `to`, including the sender's, and returns the number of lanes.
    pub(super) fn deliver(&mut self, from: Locator, to: &Locator, bytes: &[u8]) -> usize {
        let Medium {
            config,
            members,
            losses,
        } = self;
        let inboxes = members
            .iter_mut()
            .flatten()
            .flat_map(|member| member.inboxes.iter_mut().flatten());
        let mut reached = 0;
        for inbox in inboxes.filter(|inbox| inbox.unicast == *to || inbox.group == *to) {
            reached += 1;
            if losses.happens(config.loss_per_million) {
                inbox.ledger.note_dropped(ReceiveDrop::FAULT_LOSS, 1);
            } else if inbox.queue.push(from, bytes) {
                inbox.ledger.arrived += 1;
                inbox.ledger.pending += 1;
            } else {
                inbox.ledger.note_dropped(ReceiveDrop::QUEUE_FULL, 1);
            }
        }
        reached
    }

    pub(super) fn ready(&self, member: MemberId) -> u16 {
        let inboxes = &self.member(member).inboxes;
        let waits = |lane: &Lane| {
            let inbox = inboxes[lane.index()].as_ref();
            inbox.is_some_and(|inbox| !inbox.queue.is_empty())
        };
        let lanes = Lane::ALL.into_iter().filter(waits);
        lanes.fold(0, |set, lane| set | lane.bit())
    }

    pub(super) fn ledger(&self, member: MemberId) -> Ledger {
        let member = self.member(member);
        let mut ledger = Ledger::default();
        for lane in Lane::ALL {
            let lines = ledger.lane_mut(lane);
            lines.transmit = member.transmit[lane.index()];
            if let Some(inbox) = &member.inboxes[lane.index()] {
                lines.receive = inbox.ledger;
            }
        }
        ledger
    }
}

/// Port of a level, from the range of a kernel's ephemeral ports.
fn level_port(participant_id: u32, level: u8) -> Result<u16, OpenError> {
    let port = 32_768 + participant_id * 8 + u32::from(level);
    u16::try_from(port).map_err(|_| OpenError::NetworkFull {
        limit: MEMORY_MEMBERS,
    })
}

/// Source and length of a queued datagram.
struct Entry {
    from: Locator,
    len: usize,
}

/// Datagram queue of a lane: FIFO bounded in datagrams and bytes, allocated when the lane opens.
pub(super) struct DatagramQueue {
    entries: VecDeque<Entry>,
    max_datagrams: usize,
    /// Consecutive payloads, wrapping around.
    ring: Box<[u8]>,
    /// Position of the oldest payload.
    head: usize,
    used: usize,
}

impl DatagramQueue {
    fn new(max_datagrams: usize, max_bytes: usize) -> DatagramQueue {
        DatagramQueue {
            entries: VecDeque::with_capacity(max_datagrams),
            max_datagrams,
            ring: vec![0; max_bytes].into_boxed_slice(),
            head: 0,
            used: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a datagram; returns false, without effect, if it does not fit.
    fn push(&mut self, from: Locator, bytes: &[u8]) -> bool {
        let room = self.ring.len() - self.used;
        if bytes.len() > room || self.entries.len() == self.max_datagrams {
            return false;
        }
        let tail = (self.head + self.used) % self.ring.len().max(1);
        let (first, second) = bytes.split_at(bytes.len().min(self.ring.len() - tail));
        self.ring[tail..tail + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.used += bytes.len();
        let len = bytes.len();
        self.entries.push_back(Entry { from, len });
        true
    }

    /// Removes the oldest datagram and returns its source and length. Copies as much as fits to `buffer`.
    pub(super) fn pop_into(&mut self, buffer: &mut [u8]) -> Option<(Locator, usize)> {
        let Entry { from, len } = self.entries.pop_front()?;
        let copied = len.min(buffer.len());
        let before_end = copied.min(self.ring.len() - self.head);
        let (first, second) = buffer[..copied].split_at_mut(before_end);
        first.copy_from_slice(&self.ring[self.head..self.head + first.len()]);
        second.copy_from_slice(&self.ring[..second.len()]);
        self.head = (self.head + len) % self.ring.len().max(1);
        self.used -= len;
        Some((from, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Locator = Locator::udpv4([10, 0, 0, 1], 7410);

    fn pop(queue: &mut DatagramQueue) -> Option<Vec<u8>> {
        let mut buffer = [0; 32];
        let (from, len) = queue.pop_into(&mut buffer)?;
        assert_eq!(from, FROM);
        Some(buffer[..len].to_vec())
    }

    #[test]
    fn datagrams_go_round_the_ring_unchanged() {
        let mut queue = DatagramQueue::new(4, 10);
        for round in 0..50_u8 {
            assert!(queue.push(FROM, &[round; 4]));
            assert!(queue.push(FROM, &[]));
            assert!(queue.push(FROM, &[round + 1; 5]));
            assert_eq!(pop(&mut queue), Some(vec![round; 4]));
            assert_eq!(pop(&mut queue), Some(vec![]));
            assert_eq!(pop(&mut queue), Some(vec![round + 1; 5]));
            assert_eq!(pop(&mut queue), None);
        }
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_is_taken_off_whole() {
        let mut queue = DatagramQueue::new(4, 100);
        assert!(queue.push(FROM, &[1; 40]));
        assert!(queue.push(FROM, &[2; 4]));
        let mut buffer = [0; 32];
        assert_eq!(queue.pop_into(&mut buffer), Some((FROM, 40)));
        assert_eq!(buffer, [1; 32]);
        assert_eq!(pop(&mut queue), Some(vec![2; 4]));
    }

    #[test]
    fn both_bounds_are_kept() {
        let mut queue = DatagramQueue::new(2, 10);
        assert!(!queue.push(FROM, &[0; 11]));
        assert!(queue.push(FROM, &[1; 10]));
        assert!(!queue.push(FROM, &[2]));
        assert!(queue.push(FROM, &[]));
        assert!(!queue.push(FROM, &[]), "two datagrams are there");
        assert_eq!(pop(&mut queue), Some(vec![1; 10]));
        assert!(queue.push(FROM, &[3]));
    }
}
