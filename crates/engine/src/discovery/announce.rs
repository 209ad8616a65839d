//! SPDP announcements sent by this participant (RTPS 2.5 §8.5.3), and its farewell.
//!
//! An announcement is a datagram built on demand. It goes periodically to all configured addresses, and to each
//! participant that these do not reach. A newly discovered participant is answered at once.

use core::time::Duration;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    discovery::{BuiltinEndpoints, EndpointKey, ParticipantData, emit_key_guid},
    guid::EntityId,
    locator::Locator,
    rtps::{DataHead, PayloadKind, StatusInfo, VENDOR_ID, VERSION},
    sequence::SequenceNumber,
};

use super::{Announces, RemoteParticipant};
use crate::{
    engine::Engine,
    fingerprint::Fingerprint,
    limits::DISCOVERY_SLOT_BYTES,
    priority::Priority,
    work::{Destinations, Work, WorkKind},
};

impl Engine {
    fn participant_data(&self) -> ParticipantData {
        ParticipantData {
            guid: self.guid(EntityId::PARTICIPANT),
            version: VERSION,
            vendor: VENDOR_ID,
            lease: self.config.timing.lease,
            builtin_endpoints: self.builtin_endpoints(),
            domain_id: Some(self.config.domain),
            metatraffic_unicast: self.config.metatraffic_unicast.clone(),
            metatraffic_multicast: self.config.metatraffic_multicast.clone(),
            default_unicast: self.config.default_unicast.clone(),
            default_multicast: Default::default(),
            entity_name: self.config.name.clone(),
            user_data: self.config.user_data.clone(),
            static_digest: self.own_digest(),
        }
    }

    fn builtin_endpoints(&self) -> u32 {
        let of_participants = BuiltinEndpoints::PARTICIPANT_ANNOUNCER
            | BuiltinEndpoints::PARTICIPANT_DETECTOR
            | BuiltinEndpoints::P2P_MESSAGE_WRITER
            | BuiltinEndpoints::P2P_MESSAGE_READER;
        match self.announces() {
            Announces::Itself | Announces::Nothing => of_participants,
            Announces::All => {
                of_participants
                    | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
                    | BuiltinEndpoints::PUBLICATIONS_DETECTOR
                    | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
                    | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR
            }
        }
    }

    /// Returns the time until the next periodic announcement.
    ///
    /// Participants that start together, as when a machine is switched on, would announce themselves together forever.
    /// They would overflow each other's inboxes in the same order every time. Therefore each participant waits once,
    /// after its initial announcements, for a part of the period derived from its GUID.
    pub(crate) fn announce_period(&mut self) -> Duration {
        let timing = self.config.timing;
        let (first, period) = (timing.announce_initial_period, timing.announce_period);
        if self.announcements_sent < u32::from(timing.announce_initial_count) {
            return first;
        }
        if core::mem::replace(&mut self.is_in_phase, true) || first >= period {
            return period;
        }
        let part = Fingerprint::NEW.with(&self.guid_prefix().0).part();
        let spread_ns = (period - first).as_nanos() as u64;
        let waits_ns = (u128::from(spread_ns) * u128::from(part)) >> 16;
        first + Duration::from_nanos(waits_ns as u64)
    }

    /// Files an announcement: for all addresses if `subject` is 0, or for the participant with index `subject - 1`.
    pub(crate) fn file_announcement(&mut self, subject: u16) {
        if self.announces() == Announces::Nothing {
            return;
        }
        let is_filed = match subject.checked_sub(1) {
            None => core::mem::replace(&mut self.announce_filed, true),
            Some(index) => self.participants.get_mut(index).is_none_or(|participant| {
                core::mem::replace(&mut participant.announce_filed, true)
            }),
        };
        if !is_filed {
            self.file(Priority::DISCOVERY, WorkKind::Announce, subject);
        }
    }

    /// Files an announcement for all addresses, and for each participant that these do not reach.
    pub(crate) fn announce_now(&mut self) {
        self.file_announcement(0);
        for index in 0..self.participants.end() {
            let peer = self.participants.get(index);
            if peer.is_some_and(|peer| !peer.is_leaving() && self.is_unlisted(peer)) {
                self.file_announcement(index + 1);
            }
        }
    }

    /// Returns whether announcements to the configured addresses do not reach a participant: it lists this participant,
    /// but is not listed here.
    fn is_unlisted(&self, peer: &RemoteParticipant) -> bool {
        let listed = &self.config.announce_to;
        let is_reached = |locator: &Locator| listed.binary_search(locator).is_ok();
        !peer.data.metatraffic_unicast.iter().any(is_reached)
            && !peer.data.metatraffic_multicast.iter().any(is_reached)
    }

    /// Files announcements for the participants that the configured addresses do not reach. An announcement that is
    /// still filed has waited for a whole period. For a validated participant it then gets the highest priority, as the
    /// periodic announcement does.
    pub(crate) fn file_announcements_to_unlisted(&mut self) {
        for index in 0..self.participants.end() {
            let peer = self.participants.get(index);
            let Some(peer) = peer.filter(|peer| !peer.is_leaving() && self.is_unlisted(peer))
            else {
                continue;
            };
            let is_starved = peer.announce_filed && peer.is_proven();
            if is_starved {
                self.board.withdraw(&[WorkKind::Announce], index + 1);
                self.file(Priority::HIGHEST, WorkKind::Announce, index + 1);
            } else {
                self.file_announcement(index + 1);
            }
        }
    }

    /// Writes the SPDP announcement for all addresses (0), or for the participant with index `subject - 1`.
    pub(crate) fn announce(&mut self, subject: u16, buffer: &mut [u8]) -> Option<Work> {
        let mut only = None;
        let to = match subject.checked_sub(1) {
            None => {
                self.announce_filed = false;
                self.announcements_sent = self.announcements_sent.saturating_add(1);
                Destinations::Announce
            }
            Some(index) => {
                self.participants.get_mut(index)?.announce_filed = false;
                let participant = self.participants.get(index)?;
                let locators = &participant.data.metatraffic_unicast;
                let locator = self.choose_of(participant, locators)?;
                only = Some((participant.data.guid.prefix, locator));
                Destinations::Listed(BoundedVec::from_iter([locator]))
            }
        };
        let mut payload = [0; DISCOVERY_SLOT_BYTES];
        let length = self.participant_data().emit(&mut payload).ok()?;
        let emitted = self.emit_announcement(buffer, PayloadKind::Data, None, &payload[..length]);
        let bytes = only.map_or(emitted, |(prefix, to)| {
            self.spend(prefix, Some(&to), emitted)
        });
        Some(Work {
            kind: WorkKind::Announce,
            level: None,
            bytes,
            to,
        })
    }

    /// Writes the farewell, which disposes this participant at every peer, and returns its length in bytes. It must be
    /// the last datagram sent, [to all](Self::farewell_to) addresses.
    pub fn farewell(&mut self, buffer: &mut [u8]) -> usize {
        if self.announces() == Announces::Nothing {
            return 0;
        }
        let mut payload = [0; 64];
        let guid = self.guid(EntityId::PARTICIPANT);
        let Ok(length) = emit_key_guid(EndpointKey::Participant, guid, &mut payload) else {
            return 0;
        };
        let status = Some(StatusInfo {
            disposed: true,
            unregistered: true,
        });
        self.emit_announcement(buffer, PayloadKind::Key, status, &payload[..length])
    }

    /// Returns the addresses of the farewell: the configured ones, and one of each known participant that these do not
    /// reach.
    pub fn farewell_to(&self) -> impl Iterator<Item = Locator> {
        let unlisted = self
            .remote_participants()
            .filter(|peer| self.is_unlisted(peer));
        let address =
            |peer: &RemoteParticipant| self.choose_of(peer, &peer.data.metatraffic_unicast);
        let listed = self.config.announce_to.iter().copied();
        listed.chain(unlisted.filter_map(address))
    }

    fn emit_announcement(
        &mut self,
        buffer: &mut [u8],
        kind: PayloadKind,
        status: Option<StatusInfo>,
        payload: &[u8],
    ) -> usize {
        let header = self.header;
        let guid = self.guid(EntityId::PARTICIPANT);
        let head = DataHead {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence: SequenceNumber(if status.is_some() { 2 } else { 1 }),
            key_hash: status.map(|_| guid.to_bytes()),
            status,
            payload: kind,
        };
        self.finish(
            buffer,
            |message| message.data(&head, payload).map(|_| ()),
            header,
        )
    }
}
