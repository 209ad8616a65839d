//! Medium of a memory network: participants, their open lanes, and delivery.

use isolane_wire::locator::Locator;

use super::MemoryConfig;
use super::queue::DatagramQueue;
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
        // Spreads neighbouring seeds over all bits (the finaliser of MurmurHash3). The generator
        // never leaves the state 0.
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

    /// Delivers a datagram to all lanes with locator `to`, including the sender's, and returns their number.
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
