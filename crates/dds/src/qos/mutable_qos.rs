//! Policies that are announced and matched: user data, durability for late joiners, partitions. Changes of policies at
//! run time.
//!
//! A change is announced at once, and both sides match again. Pairs that no longer match are separated, new matches
//! are made, and the match statuses report both. A pair that still matches loses nothing.

use isolane_datapath::clock::monotonic_now;
use isolane_wire::{
    builtin_data::EndpointData,
    cdr::{Representation, TopicType},
    qos::{DataRepresentationId, DurabilityKind, HistoryKind, Octets, PolicyId},
};

use crate::{
    error::QosError,
    qos::Qos,
    reader::{DataReader, ResponseDeadline},
    writer::DataWriter,
};

setters! {
    Qos:

    /// DURABILITY: whether late joiners receive samples written before.
    ///
    /// TRANSIENT and PERSISTENT are matched as in the standard, but have the effect of TRANSIENT_LOCAL: late joiners
    /// receive the history of a writer while it exists. No service keeps samples beyond their writer, in memory or on
    /// disk. A warning in the log says so when such a writer or reader is created.
    durability(kind: DurabilityKind) => policies.durability = kind;

    /// DURABILITY_SERVICE `history_depth` with KEEP_LAST: number of samples of each instance that a TRANSIENT or
    /// PERSISTENT writer keeps for late joiners, if that is more than the depth of HISTORY.
    service_keep_last(depth: u16) =>
        policies.durability_service.history.kind = HistoryKind::KeepLast,
        policies.durability_service.history.depth = i32::from(depth);

    /// DURABILITY_SERVICE KEEP_ALL: keeps as many samples of each instance as the limits of DURABILITY_SERVICE allow,
    /// or 64 ([`DEFAULT_SAMPLES`](isolane_rtps::limits::DEFAULT_SAMPLES)) without limits.
    service_keep_all() => policies.durability_service.history.kind = HistoryKind::KeepAll;

    /// DURABILITY_SERVICE `max_samples`: bound for the samples of all instances.
    service_max_samples(samples: u16) =>
        policies.durability_service.resource_limits.max_samples = i32::from(samples);

    /// DURABILITY_SERVICE `max_samples_per_instance`: bound for the depth.
    service_max_samples_per_instance(samples: u16) =>
        policies.durability_service.resource_limits.max_samples_per_instance = i32::from(samples);
}

impl Qos {
    /// USER_DATA: octets announced to every participant that discovers the endpoint; isolane does not interpret them.
    /// Creation fails with more than [`MAX_OCTETS`] octets.
    ///
    /// [`MAX_OCTETS`]: isolane_wire::limits::MAX_OCTETS
    #[must_use]
    pub fn user_data(mut self, octets: &[u8]) -> Self {
        self.policies.user_data = self.bounded(octets, PolicyId::USER_DATA);
        self
    }

    /// TOPIC_DATA: octets about the topic, with the bound of [`user_data`](Self::user_data).
    #[must_use]
    pub fn topic_data(mut self, octets: &[u8]) -> Self {
        self.policies.topic_data = self.bounded(octets, PolicyId::TOPIC_DATA);
        self
    }

    /// GROUP_DATA: octets about the publisher or subscriber, with the bound of [`user_data`](Self::user_data).
    #[must_use]
    pub fn group_data(mut self, octets: &[u8]) -> Self {
        self.policies.group_data = self.bounded(octets, PolicyId::GROUP_DATA);
        self
    }

    fn bounded(&mut self, octets: &[u8], policy: PolicyId) -> Octets {
        let bounded = Octets::of(octets);
        if bounded.is_none() {
            self.excess_octets = Some(policy);
        }
        bounded.unwrap_or_default()
    }

    /// PARTITION: replaces all partitions with these; see [`partition`](Self::partition).
    ///
    /// ```
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Door { is_open: bool }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::best_effort();
    /// let writer = participant.create_writer::<Door>("Doors", &qos.clone().partition("left/front"))?;
    /// let reader = participant.create_reader::<Door>("Doors", &qos.partition("left/*"))?;
    /// assert_eq!(reader.matched_writers(), 1);
    /// writer.set_qos(&writer.qos().partitions(["right/front"]))?;
    /// assert_eq!(reader.matched_writers(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn partitions<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.policies.partition.clear();
        self.excess_partition = None;
        names.into_iter().fold(self, Self::partition)
    }

    /// Returns the QoS of an existing endpoint, from its announcement.
    fn existing(data: Option<&EndpointData>, max_bytes: Option<usize>) -> Self {
        let policies = &data.expect("a handle's endpoint exists").qos;
        let mut existing = Self::best_effort();
        existing.policies = policies.clone();
        existing.max_bytes = max_bytes;
        // A writer offers one representation. A reader with a single one accepts only that.
        if let [only] = policies.data_representation[..] {
            existing.takes_only = true;
            existing.representation = Some(match only {
                DataRepresentationId::XCDR2 => Representation::Xcdr2,
                _ => Representation::Xcdr1,
            });
        }
        existing
    }
}

/// Logs that TRANSIENT and PERSISTENT are served as TRANSIENT_LOCAL.
pub(crate) fn log_durability(topic: &str, qos: &Qos, end: &str) {
    let kind = qos.policies.durability;
    if kind >= DurabilityKind::Transient {
        warn!(
            "the {end} of {topic} has DURABILITY {kind:?}: it matches as that, and is served as \
             TransientLocal, by each writer while it lives; nothing keeps samples beyond their writer"
        );
    }
}

fn same_size(existing: Option<usize>, asked: Option<usize>) -> Result<(), QosError> {
    match (existing, asked) {
        (Some(existing), Some(asked)) if existing != asked => {
            Err(QosError::MaxBytes { existing, asked })
        }
        _ => Ok(()),
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Returns the current policies.
    #[must_use]
    pub fn qos(&self) -> Qos {
        let state = self.core.state.borrow();
        let protocol = &state.protocol;
        let max_bytes = protocol.writer_max_payload_bytes(self.id);
        Qos {
            max_blocking: self.max_blocking,
            autodispose: self.autodispose.get(),
            ..Qos::existing(protocol.writer_data(self.id), max_bytes)
        }
    }

    /// Changes the mutable policies (DDS 1.4 §2.2.3): USER_DATA, TOPIC_DATA, GROUP_DATA, DEADLINE, LATENCY_BUDGET,
    /// OWNERSHIP_STRENGTH, PARTITION, LIFESPAN, WRITER_DATA_LIFECYCLE.
    ///
    /// The writer is announced and matched again. A change of TRANSPORT_PRIORITY, which the standard allows, is
    /// refused, because the level determines the writer's lane, port and jobs. Policies shared by a
    /// [`Publisher`](crate::Publisher) are changed there. A [`WriterHandle`](crate::WriterHandle) keeps its policies.
    ///
    /// # Errors
    /// [`QosError`]; nothing was changed then.
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let shared = self.publisher.as_ref().map(|group| group.shared(qos));
        let qos = shared.as_ref().unwrap_or(qos);
        let mut state = self.core.state.borrow_mut();
        let protocol = &mut state.protocol;
        same_size(protocol.writer_max_payload_bytes(self.id), qos.max_bytes)?;
        protocol.set_writer_qos(monotonic_now(), self.id, &qos.offered(T::EXTENSIBILITY))?;
        self.autodispose.set(qos.autodispose);
        Ok(())
    }
}

impl<T: TopicType> DataReader<T> {
    /// Returns the current policies, without the budget, which [`flow`](Self::flow) reports.
    #[must_use]
    pub fn qos(&self) -> Qos {
        let state = self.core.state.borrow();
        let protocol = &state.protocol;
        let max_bytes = protocol.reader_max_payload_bytes(self.id);
        let response = &state.reader_slots[self.id.index()].response;
        Qos {
            response_deadline: response.as_ref().map(|response| response.deadline),
            ..Qos::existing(protocol.reader_data(self.id), max_bytes)
        }
    }

    /// Changes the mutable policies as [`DataWriter::set_qos`], and also TIME_BASED_FILTER and READER_DATA_LIFECYCLE.
    /// [`set_budget`](Self::set_budget) changes the budget.
    ///
    /// # Errors
    /// [`QosError`]; nothing was changed then.
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let shared = self.subscriber.as_ref().map(|group| group.shared(qos));
        let qos = shared.as_ref().unwrap_or(qos);
        let mut state = self.core.state.borrow_mut();
        let protocol = &mut state.protocol;
        same_size(protocol.reader_max_payload_bytes(self.id), qos.max_bytes)?;
        protocol.set_reader_qos(monotonic_now(), self.id, &qos.requested())?;
        let response = &mut state.reader_slots[self.id.index()].response;
        if response.as_ref().map(|response| response.deadline) != qos.response_deadline {
            *response = qos.response_deadline.map(ResponseDeadline::new);
        }
        Ok(())
    }
}
