//! Described peers: entered from the description, identified by their first datagram, removed when gone or restarted,
//! and entered again.
//!
//! Messages that impersonate a described participant (spoofing) are rejected. The last part of a described prefix is the
//! start of its participant. No valid sender has a prefix without it. A participant that announces nothing sends no SPDP. Only the described source address is trusted.

use core::time::Duration;

use isolane_wire::{
    builtin_data::{EndpointData, ParticipantData},
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    message::{VENDOR_ID, VERSION},
    time::Instant,
};

use crate::{
    discovery::{
        Discovery, DiscoveryChange, DiscoveryEvent, RemoteParticipant, Validated,
        announcement_store::SerializedAnnouncement,
        static_discovery::{
            Announces, NOT_HEARD, Named, Start, StaticError, StaticParticipant, StaticPeerState,
            digest_of, kind_of, split, start_of,
        },
    },
    limits::{INCARNATION_MEMORY, MAX_STATIC_PEERS, MIN_RESTART_INTERVAL, PREVIOUS_INCARNATIONS},
    matching::Before,
    participant::{LocalParticipant, Shared},
    receiver::MessageReceiver,
    slab::{Full, RemoteParticipantId, WriterProxyId},
    work_queue::Timer,
};

#[derive(Debug)]
pub(crate) struct StaticPeer {
    pub(super) described: StaticParticipant,
    named: Named,
    /// Start that is in the tables, or was last in them; [`NOT_HEARD`] before any datagram has arrived.
    pub(super) start: Start,
    /// Former starts and when they ended. Late datagrams of these are ignored for `INCARNATION_MEMORY`.
    retired: [(Start, Instant); PREVIOUS_INCARNATIONS],
    next_retired: usize,
    /// Start that has sent a farewell, which only an announcement revokes.
    pub(super) left: Option<Start>,
    /// Index in the table of participants; `None` while the peer is removed.
    place: Option<RemoteParticipantId>,
    /// Number of its endpoints entered so far.
    entered: usize,
    /// Start to enter next, once the peer is removed.
    heard: Option<Start>,
    changed: Instant,
    disagrees: bool,
    restarts: u32,
}

impl StaticPeer {
    fn prefix(&self) -> GuidPrefix {
        self.named.at(self.start)
    }

    /// Returns whether a message of a start is ignored instead of entering the peer again. An announcement is never
    /// ignored: the start that replaced this one may have been forged.
    fn is_over(&self, now: Instant, start: Start, announces: bool) -> bool {
        let is_retired = || {
            let mut retired = self.retired.iter();
            retired.any(|&(over, since)| over == start && now < since + INCARNATION_MEMORY)
        };
        start == NOT_HEARD || !announces && (self.left == Some(start) || is_retired())
    }

    /// Returns whether the participant or an endpoint of it still has to be entered.
    fn is_entering(&self) -> bool {
        match self.place {
            None => self.heard.is_some(),
            Some(_) => self.entered < self.described.endpoints.len(),
        }
    }
}

impl LocalParticipant {
    /// Adds a described peer, which is entered in the tables at once and its endpoints matched.
    ///
    /// # Errors
    /// [`StaticError`]; nothing is added then.
    pub fn add_static_peer(
        &mut self,
        now: Instant,
        described: StaticParticipant,
    ) -> Result<(), StaticError> {
        if self.discovery.statics.len() >= MAX_STATIC_PEERS {
            return Err(StaticError::TooManyPeers);
        }
        let named = Named::new(&described.name);
        let prefix = named.at(NOT_HEARD);
        if self.discovery.static_named(prefix).is_some()
            || start_of(self.shared.guid_prefix(), prefix).is_some()
        {
            return Err(StaticError::SameName);
        }
        if self.discovery.participants.is_full()
            || self.discovery.endpoints.free() < described.endpoints.len()
        {
            return Err(StaticError::NoRoom);
        }
        self.discovery.statics.push(StaticPeer {
            described,
            named,
            start: NOT_HEARD,
            retired: [(NOT_HEARD, now); PREVIOUS_INCARNATIONS],
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

    /// Returns the state of the described peers, in the order in which they were added.
    pub fn static_peers(&self) -> impl Iterator<Item = StaticPeerState<'_>> {
        self.discovery.statics.iter().map(|peer| StaticPeerState {
            name: &peer.described.name,
            prefix: peer.prefix(),
            is_present: peer.place.is_some_and(|index| {
                let participant = self.discovery.participants.get(index);
                participant.is_some_and(|participant| !participant.is_leaving())
            }),
            disagrees: peer.disagrees,
            restarts: peer.restarts,
        })
    }

    /// Processes a datagram of a participant that is in no table. Returns true if a described peer has now got that
    /// prefix.
    #[cold]
    pub(crate) fn match_static_peer(
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
        let Some((which, start)) = self.discovery.static_named(prefix) else {
            return false;
        };
        let Some(peer) = self.discovery.statics.get_mut(which) else {
            return false;
        };
        if source.ipv4() != Some(peer.described.address) {
            self.shared.counters.static_impostors += 1;
            return false;
        }
        if peer.is_over(now, start, announces) {
            return false;
        }
        if announces {
            peer.left = None;
        }
        if self
            .discovery
            .is_ignored_participant(&mut self.shared, prefix)
        {
            return false;
        }
        let Some(peer) = self.discovery.statics.get_mut(which) else {
            return false;
        };
        match peer.place {
            // All endpoints of this start are known, and the message belongs to none of them.
            Some(_) if peer.start == start => false,
            Some(index) if peer.start == NOT_HEARD && peer.heard.is_none() => {
                let before = peer.prefix();
                peer.start = start;
                self.name_static(index, before, prefix);
                true
            }
            place => {
                let is_too_soon = now < peer.changed + MIN_RESTART_INTERVAL;
                if peer.heard.is_none() && !is_too_soon {
                    peer.heard = Some(start);
                    if let Some(index) = place {
                        self.discovery.remove_participant(&mut self.shared, index);
                    }
                    self.shared.schedule_discovery();
                }
                false
            }
        }
    }

    /// Replaces the prefix of a described peer, its endpoints and proxies by the one in its first datagram.
    fn name_static(&mut self, index: RemoteParticipantId, before: GuidPrefix, prefix: GuidPrefix) {
        if let Some(participant) = self.discovery.participants.get_mut(index) {
            participant.data.guid.prefix = prefix;
        }
        self.discovery.by_prefix.remove(&before);
        self.discovery.by_prefix.insert(prefix, index);
        for at in self.discovery.endpoints.ids() {
            let Some(endpoint) = self.discovery.endpoints.get_mut(at) else {
                continue;
            };
            if endpoint.participant == index {
                self.discovery.by_guid.remove(&endpoint.guid);
                endpoint.guid.prefix = prefix;
                self.discovery.by_guid.insert(endpoint.guid, at);
            }
        }
        self.rename_proxies(before, prefix);
        let entity = EntityId::PARTICIPANT;
        for (prefix, change) in [
            (before, DiscoveryChange::Gone),
            (prefix, DiscoveryChange::Found),
        ] {
            self.discovery.note_event(
                &mut self.shared,
                DiscoveryEvent::Participant(Guid { prefix, entity }, change),
            );
        }
    }

    /// Enters the next described participant or endpoint. Returns `false` if there is none to enter.
    pub(in crate::discovery) fn enter_static(&mut self, now: Instant) -> bool {
        let Some(which) = self
            .discovery
            .statics
            .iter()
            .position(StaticPeer::is_entering)
        else {
            return false;
        };
        match self.discovery.statics[which].place {
            None => self.enter_static_participant(now, which),
            Some(index) => self.enter_static_endpoint(now, which, index),
        }
        true
    }

    fn enter_static_participant(&mut self, now: Instant, which: usize) {
        let peer = &mut self.discovery.statics[which];
        let Some(start) = peer.heard.take() else {
            return;
        };
        if peer.start != start {
            if peer.start != NOT_HEARD {
                peer.retired[peer.next_retired] = (peer.start, now);
                peer.next_retired = (peer.next_retired + 1) % PREVIOUS_INCARNATIONS;
                peer.restarts += 1;
            }
            peer.start = start;
        }
        (peer.changed, peer.entered) = (now, 0);
        let prefix = peer.prefix();
        let is_assumed_alive = peer.described.announces == Announces::Nothing;
        let lease = match is_assumed_alive {
            true => Duration::MAX,
            false => self.shared.config.timing.lease,
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
        // The description, not an announcement, supplies the address.
        participant.validated = Validated::described(peer.described.address);
        participant.is_assumed_alive = is_assumed_alive;
        participant.awaits_announcement = true;
        let Ok(index) = self.discovery.participants.insert(participant) else {
            self.shared.counters.participants_refused += 1;
            return;
        };
        self.discovery.statics[which].place = Some(index);
        self.enter_participant(prefix, index);
        if !is_assumed_alive {
            self.shared.timers.arm(Timer::Lease(index), now + lease);
        }
        self.discovery.note_event(
            &mut self.shared,
            DiscoveryEvent::Participant(guid, DiscoveryChange::Found),
        );
    }

    fn enter_static_endpoint(
        &mut self,
        now: Instant,
        which: usize,
        participant: RemoteParticipantId,
    ) {
        let peer = &mut self.discovery.statics[which];
        let prefix = peer.prefix();
        let Some(mut data) = peer.described.endpoints.get(peer.entered).cloned() else {
            return;
        };
        peer.entered += 1;
        data.guid.prefix = prefix;
        let kind = kind_of(data.guid.entity);
        if self.discovery.is_ignored_endpoint(&mut self.shared, &data) {
            return;
        }
        let written = SerializedAnnouncement::of(&data, None);
        let topic = self.readers.topic_hash(&data.topic_name);
        let (shared, discovery) = (&mut self.shared, &mut self.discovery);
        let entered = written.and_then(|written| {
            discovery.enter_endpoint(shared, topic, &data, &written, kind, participant)
        });
        match entered {
            Ok(index) => {
                if let Some(endpoint) = self.discovery.endpoints.get_mut(index) {
                    endpoint.is_described = true;
                }
                self.match_remote(now, index, Before::New);
            }
            Err(Full) => self.shared.counters.endpoints_refused += 1,
        }
    }

    /// Requests missing samples from described peers that announce nothing, since an earlier request may be lost or
    /// have come before the peer started. Other peers are asked at each of their announcements.
    pub(crate) fn ask_silent_peers(&mut self) {
        for which in 0..self.discovery.statics.len() {
            let Some(index) = self
                .discovery
                .statics
                .get(which)
                .and_then(|peer| peer.place)
            else {
                continue;
            };
            let participant = self.discovery.participants.get(index);
            let silent = participant.filter(|it| it.is_assumed_alive && !it.is_leaving());
            if let Some(prefix) = silent.map(|silent| silent.data.guid.prefix) {
                self.ask_again(index, prefix);
            }
        }
    }
}

impl Discovery {
    /// Finds the described peer that a prefix names, whatever its start. Returns the peer's index and the start.
    pub(super) fn static_named(&self, prefix: GuidPrefix) -> Option<(usize, Start)> {
        let (named, start) = split(prefix);
        let mut peers = self.statics.iter();
        let which = peers.position(|peer| peer.named == named)?;
        Some((which, start))
    }

    /// Returns whether a participant is not described, and may therefore be entered by its SPDP announcement.
    pub(in crate::discovery) fn is_undescribed(&self, prefix: GuidPrefix) -> bool {
        self.static_named(prefix).is_none()
    }

    /// Returns whether there is a place for a participant that is not described. Places of described peers that are
    /// currently gone stay reserved.
    pub(in crate::discovery) fn has_participant_place(&self) -> bool {
        let gone = self.statics.iter().filter(|peer| peer.place.is_none());
        self.participants.free() > gone.count()
    }

    /// Number of endpoints of described peers that are currently gone, whose places stay reserved.
    pub(in crate::discovery) fn missing_static_endpoints(&self) -> usize {
        let missing = |peer: &StaticPeer| peer.described.endpoints.len() - peer.entered;
        self.statics.iter().map(missing).sum()
    }

    pub(in crate::discovery) fn note_static_gone(&mut self, index: RemoteParticipantId) {
        let mut peers = self.statics.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.place == Some(index)) {
            (peer.place, peer.entered) = (None, 0);
        }
    }

    /// Returns whether static discovery is in use, for this participant or a peer.
    #[inline]
    pub(crate) fn uses_descriptions(&self, shared: &Shared) -> bool {
        !self.statics.is_empty() || shared.config.described.is_some()
    }

    pub(in crate::discovery) fn is_known_by_description(&self, guid: Guid) -> bool {
        let found = self.by_guid.get(&guid);
        let endpoint = found.and_then(|&index| self.endpoints.get(index));
        endpoint.is_some_and(|endpoint| endpoint.is_described)
    }

    /// Counts a disagreement if a described endpoint is announced with different data.
    pub(in crate::discovery) fn compare_described(
        &mut self,
        shared: &mut Shared,
        data: &EndpointData,
    ) {
        let found = self.by_guid.get(&data.guid);
        let endpoint = found.and_then(|&index| self.endpoints.get(index));
        let disagrees = endpoint.is_some_and(|endpoint| {
            let described = endpoint.data(&self.announcements);
            let both = [&described, data].map(core::slice::from_ref);
            let [described, announced] = both.map(digest_of);
            described != announced
        });
        shared.counters.static_disagreements += u64::from(disagrees);
    }

    /// Compares the digest that a participant announces with that of the local description.
    pub(in crate::discovery) fn compare_digest(
        &mut self,
        shared: &mut Shared,
        index: RemoteParticipantId,
    ) {
        let participant = &self.participants[index];
        let mut peers = self.statics.iter_mut();
        let Some(peer) = peers.find(|peer| peer.place == Some(index)) else {
            return;
        };
        let disagrees = participant.data.static_digest != Some(peer.described.digest());
        let did = core::mem::replace(&mut peer.disagrees, disagrees);
        shared.counters.static_disagreements += u64::from(disagrees && !did);
    }
}

impl LocalParticipant {
    /// Returns whether an SPDP announcement is accepted. Announcements in the name of a described participant are
    /// rejected if they come from another address, or if the participant is described to announce nothing.
    /// Announcements of other participants are rejected if this one announces nothing itself.
    pub(in crate::discovery) fn admits(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: Locator,
        is_farewell: bool,
    ) -> bool {
        let is_described = self.shared.config.described.is_some();
        if is_described && start_of(self.shared.guid_prefix(), prefix).is_some() {
            // Another participant uses our own name.
            self.shared.counters.static_impostors += 1;
            return false;
        }
        let Some((which, start)) = self.discovery.static_named(prefix) else {
            return self.shared.announces() != Announces::Nothing;
        };
        let Some(peer) = self.discovery.statics.get_mut(which) else {
            return false;
        };
        // Nothing would ever revoke a forged farewell of a participant that announces nothing.
        let is_silent = peer.described.announces == Announces::Nothing;
        if is_silent || source.ipv4() != Some(peer.described.address) {
            self.shared.counters.static_impostors += 1;
            return false;
        }
        if !is_farewell {
            self.meet(now, prefix, source, true);
            return true;
        }
        let is_its = peer.start == start;
        if is_its {
            peer.left = Some(start);
        }
        is_its
    }

    /// Returns the writer's first proxy if this message is the first of a described peer since its start.
    #[cold]
    #[inline(never)]
    pub(crate) fn lookup_described(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        writer: &Guid,
    ) -> Option<WriterProxyId> {
        let is_met = self.discovery.uses_descriptions(&self.shared)
            && self.match_static_peer(now, message.prefix, message.source);
        match is_met {
            true => self.readers.by_writer.recall(writer),
            false => None,
        }
    }
}

impl Discovery {
    /// Returns whether a prefix is that of a described participant without a start. It is in the tables until the first
    /// datagram arrives, but no real sender uses it. Anybody who knows the description can compute it.
    #[inline]
    pub(crate) fn is_unknown_prefix(&mut self, shared: &mut Shared, prefix: GuidPrefix) -> bool {
        split(prefix).1 == NOT_HEARD && self.is_described_name(shared, prefix)
    }

    #[cold]
    #[inline(never)]
    fn is_described_name(&mut self, shared: &mut Shared, prefix: GuidPrefix) -> bool {
        let is_described =
            self.static_named(prefix).is_some() || shared.is_any_start_of_this(prefix);
        shared.counters.static_impostors += u64::from(is_described);
        is_described
    }
}
