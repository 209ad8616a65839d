//! Peers that are known by a description: entered, recognised by their first datagram, parted from when they are gone or
//! have started again, and entered anew.

use core::time::Duration;

use isolane_wire::{
    discovery::{EndpointData, ParticipantData},
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    rtps::{VENDOR_ID, VERSION},
    time::Instant,
};

use super::{
    super::{DiscoveryChange, DiscoveryEvent, RemoteParticipant, Validated, announced::Written},
    Announces, StaticError, StaticParticipant, StaticPeerState,
    names::{NOT_HEARD, Named, Start, digest_of, kind_of, split, start_of},
};
use crate::{
    engine::{Engine, Subject},
    limits::{MAX_STATIC_PEERS, RETIRED_STARTS, START_MEMORY, START_PAUSE},
    table::Full,
};

/// A described peer.
#[derive(Debug)]
pub(crate) struct StaticPeer {
    pub(super) described: StaticParticipant,
    named: Named,
    /// Which start of it is in the tables, or was last; [`NOT_HEARD`]: nothing came of any.
    pub(super) start: Start,
    /// Starts that are over, and since when: what is late of them is nobody's for a while.
    retired: [(Start, Instant); RETIRED_STARTS],
    next_retired: usize,
    /// The start that has said good-bye, which only an announcement takes back.
    pub(super) left: Option<Start>,
    /// Where it lies in the table of participants; `None`: it is gone.
    place: Option<u16>,
    /// So many of its endpoints were entered.
    entered: usize,
    /// The start to enter when it is gone.
    heard: Option<Start>,
    changed: Instant,
    disagrees: bool,
    restarts: u32,
}

impl StaticPeer {
    fn prefix(&self) -> GuidPrefix {
        self.named.at(self.start)
    }

    /// Whether what comes of a start is not to bring it back. Who announces itself is there, whatever was believed of
    /// it: another start may have been forged.
    fn is_over(&self, now: Instant, start: Start, announces: bool) -> bool {
        let is_retired = || {
            let mut retired = self.retired.iter();
            retired.any(|&(over, since)| over == start && now < since + START_MEMORY)
        };
        start == NOT_HEARD || !announces && (self.left == Some(start) || is_retired())
    }

    /// Whether a step is to be made to enter it.
    fn is_entering(&self) -> bool {
        match self.place {
            None => self.heard.is_some(),
            Some(_) => self.entered < self.described.endpoints.len(),
        }
    }
}

impl Engine {
    /// Describes a peer, which lies in the tables from now on, its endpoints matched.
    ///
    /// # Errors
    /// [`StaticError`]; nothing was described then.
    pub fn add_static_peer(
        &mut self,
        now: Instant,
        described: StaticParticipant,
    ) -> Result<(), StaticError> {
        if self.statics.len() >= MAX_STATIC_PEERS {
            return Err(StaticError::TooManyPeers);
        }
        let named = Named::new(&described.name);
        let prefix = named.at(NOT_HEARD);
        if self.static_named(prefix).is_some() || start_of(self.guid_prefix(), prefix).is_some() {
            return Err(StaticError::SameName);
        }
        if self.participants.is_full() || self.endpoints.free() < described.endpoints.len() {
            return Err(StaticError::NoRoom);
        }
        self.statics.push(StaticPeer {
            described,
            named,
            start: NOT_HEARD,
            retired: [(NOT_HEARD, now); RETIRED_STARTS],
            next_retired: 0,
            left: None,
            place: None,
            entered: 0,
            heard: Some(NOT_HEARD),
            changed: now,
            disagrees: false,
            restarts: 0,
        });
        while self.enter_static(now) {}
        Ok(())
    }

    /// The peers that are described, in the order of their description.
    pub fn static_peers(&self) -> impl Iterator<Item = StaticPeerState<'_>> {
        self.statics.iter().map(|peer| StaticPeerState {
            name: &peer.described.name,
            prefix: peer.prefix(),
            is_present: peer.place.is_some_and(|index| {
                let participant = self.participants.get(index);
                participant.is_some_and(|participant| !participant.is_leaving())
            }),
            disagrees: peer.disagrees,
            restarts: peer.restarts,
        })
    }

    /// The peer of this name at whichever start, and the start.
    pub(super) fn static_named(&self, prefix: GuidPrefix) -> Option<(usize, Start)> {
        let (named, start) = split(prefix);
        let mut peers = self.statics.iter();
        let which = peers.position(|peer| peer.named == named)?;
        Some((which, start))
    }

    /// Something came of a participant that is in no table. True: it is, under that name, from now on.
    #[cold]
    pub(crate) fn meet_static(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: Locator,
    ) -> bool {
        self.meet(now, prefix, source, false)
    }

    pub(super) fn meet(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: Locator,
        announces: bool,
    ) -> bool {
        let Some((which, start)) = self.static_named(prefix) else {
            return false;
        };
        let Some(peer) = self.statics.get_mut(which) else {
            return false;
        };
        if source.ipv4() != Some(peer.described.address) {
            self.counters.static_impostors += 1;
            return false;
        }
        if peer.is_over(now, start, announces) {
            return false;
        }
        if announces {
            peer.left = None;
        }
        if self.is_ignored_participant(prefix) {
            return false;
        }
        let Some(peer) = self.statics.get_mut(which) else {
            return false;
        };
        match peer.place {
            // Of that start everything is known, and this belongs to nothing of it.
            Some(_) if peer.start == start => false,
            Some(index) if peer.start == NOT_HEARD && peer.heard.is_none() => {
                let before = peer.prefix();
                peer.start = start;
                self.name_static(index, before, prefix);
                true
            }
            place => {
                let is_too_soon = now < peer.changed + START_PAUSE;
                if peer.heard.is_none() && !is_too_soon {
                    peer.heard = Some(start);
                    if let Some(index) = place {
                        self.remove_participant(index);
                    }
                    self.file_discovery();
                }
                false
            }
        }
    }

    /// The first datagram of a described peer has told its whole name.
    fn name_static(&mut self, index: u16, before: GuidPrefix, prefix: GuidPrefix) {
        if let Some(participant) = self.participants.get_mut(index) {
            participant.data.guid.prefix = prefix;
        }
        self.participant_by_prefix.remove(&before);
        self.participant_by_prefix.insert(prefix, index);
        for at in 0..self.endpoints.end() {
            let Some(endpoint) = self.endpoints.get_mut(at) else {
                continue;
            };
            if endpoint.participant == index {
                self.endpoint_by_guid.remove(&endpoint.guid);
                endpoint.guid.prefix = prefix;
                self.endpoint_by_guid.insert(endpoint.guid, at);
            }
        }
        self.rename_proxies(before, prefix);
        let entity = EntityId::PARTICIPANT;
        for (prefix, change) in [
            (before, DiscoveryChange::Gone),
            (prefix, DiscoveryChange::Found),
        ] {
            self.note_event(DiscoveryEvent::Participant(Guid { prefix, entity }, change));
        }
    }

    /// Whether a participant that is not in the tables may be entered by what it announces. A described one is entered
    /// by its description alone.
    pub(in crate::discovery) fn is_stranger(&self, prefix: GuidPrefix) -> bool {
        self.static_named(prefix).is_none()
    }

    /// Whether there is a place for a stranger: those of described peers that are gone are kept for them.
    pub(in crate::discovery) fn has_participant_place(&self) -> bool {
        let gone = self.statics.iter().filter(|peer| peer.place.is_none());
        self.participants.free() > gone.count()
    }

    /// Endpoints of described peers that are gone, whose places are kept for them.
    pub(in crate::discovery) fn missing_static_endpoints(&self) -> usize {
        let missing = |peer: &StaticPeer| peer.described.endpoints.len() - peer.entered;
        self.statics.iter().map(missing).sum()
    }

    /// A described peer is out of the tables.
    pub(in crate::discovery) fn note_static_gone(&mut self, index: u16) {
        let mut peers = self.statics.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.place == Some(index)) {
            (peer.place, peer.entered) = (None, 0);
        }
    }

    /// Enters a described peer that has been heard of: the participant, or one of its endpoints. False: there is
    /// none.
    pub(in crate::discovery) fn enter_static(&mut self, now: Instant) -> bool {
        let Some(which) = self.statics.iter().position(StaticPeer::is_entering) else {
            return false;
        };
        match self.statics[which].place {
            None => self.enter_static_participant(now, which),
            Some(index) => self.enter_static_endpoint(now, which, index),
        }
        true
    }

    fn enter_static_participant(&mut self, now: Instant, which: usize) {
        let peer = &mut self.statics[which];
        let Some(start) = peer.heard.take() else {
            return;
        };
        if peer.start != start {
            if peer.start != NOT_HEARD {
                peer.retired[peer.next_retired] = (peer.start, now);
                peer.next_retired = (peer.next_retired + 1) % RETIRED_STARTS;
                peer.restarts += 1;
            }
            peer.start = start;
        }
        (peer.changed, peer.entered) = (now, 0);
        let prefix = peer.prefix();
        let is_assumed_alive = peer.described.announces == Announces::Nothing;
        let lease = match is_assumed_alive {
            true => Duration::MAX,
            false => self.config.timing.lease,
        };
        let data = ParticipantData {
            version: VERSION,
            vendor: VENDOR_ID,
            lease,
            entity_name: peer.described.name.clone(),
            ..ParticipantData::new(prefix)
        };
        let guid = data.guid;
        let mut participant = RemoteParticipant::new(data, now);
        // Where it is reached is not its own word.
        participant.validated = Validated::described(peer.described.address);
        participant.is_assumed_alive = is_assumed_alive;
        participant.awaits_first_word = true;
        let Ok(index) = self.participants.insert(participant) else {
            self.counters.participants_refused += 1;
            return;
        };
        self.statics[which].place = Some(index);
        self.enter_participant(prefix, index);
        if !is_assumed_alive {
            self.timers
                .arm(Subject::lease(index, &self.config.limits), now + lease);
        }
        self.note_event(DiscoveryEvent::Participant(guid, DiscoveryChange::Found));
    }

    fn enter_static_endpoint(&mut self, now: Instant, which: usize, participant: u16) {
        let peer = &mut self.statics[which];
        let prefix = peer.prefix();
        let Some(mut data) = peer.described.endpoints.get(peer.entered).cloned() else {
            return;
        };
        peer.entered += 1;
        data.guid.prefix = prefix;
        let kind = kind_of(data.guid.entity);
        if self.is_ignored_endpoint(&data) {
            return;
        }
        let written = Written::of(&data, None);
        match written.and_then(|it| self.enter_endpoint(&data, &it, kind, participant)) {
            Ok(index) => {
                if let Some(endpoint) = self.endpoints.get_mut(index) {
                    endpoint.is_described = true;
                }
                self.match_remote(now, index);
            }
            Err(Full) => self.counters.endpoints_refused += 1,
        }
    }

    /// Asks described peers that announce nothing by the clock for what those that do are asked for when they announce
    /// themselves: the first question may have been lost, or have come before they were there.
    pub(crate) fn ask_silent_peers(&mut self) {
        for which in 0..self.statics.len() {
            let Some(index) = self.statics.get(which).and_then(|peer| peer.place) else {
                continue;
            };
            let participant = self.participants.get(index);
            let silent = participant.filter(|it| it.is_assumed_alive && !it.is_leaving());
            if let Some(prefix) = silent.map(|silent| silent.data.guid.prefix) {
                self.ask_again(index, prefix);
            }
        }
    }

    /// Whether anything here is known by a description.
    #[inline]
    pub(crate) fn uses_descriptions(&self) -> bool {
        !self.statics.is_empty() || self.config.described.is_some()
    }

    /// Whether an endpoint of a peer is known by its description, whatever is announced of it.
    pub(in crate::discovery) fn is_known_by_description(&self, guid: Guid) -> bool {
        let found = self.endpoint_by_guid.get(&guid);
        let endpoint = found.and_then(|&index| self.endpoints.get(index));
        endpoint.is_some_and(|endpoint| endpoint.is_described)
    }

    /// A described endpoint is announced as well.
    pub(in crate::discovery) fn compare_described(&mut self, data: &EndpointData) {
        let found = self.endpoint_by_guid.get(&data.guid);
        let endpoint = found.and_then(|&index| self.endpoints.get(index));
        let disagrees = endpoint.is_some_and(|endpoint| {
            let described = endpoint.data(&self.announcements);
            let both = [&described, data].map(core::slice::from_ref);
            let [described, announced] = both.map(digest_of);
            described != announced
        });
        self.counters.static_disagreements += u64::from(disagrees);
    }

    /// Compares what a participant announces of its description with what is described here.
    pub(in crate::discovery) fn compare_digest(&mut self, index: u16) {
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let mut peers = self.statics.iter_mut();
        let Some(peer) = peers.find(|peer| peer.place == Some(index)) else {
            return;
        };
        let disagrees = participant.data.static_digest != Some(peer.described.digest());
        let did = core::mem::replace(&mut peer.disagrees, disagrees);
        self.counters.static_disagreements += u64::from(disagrees && !did);
    }
}
