//! Policies that have their effect where endpoints are announced and meet: what they say of themselves, what
//! late joiners are offered, and how all of that changes while they live.
//!
//! A change is announced at once, and both sides match anew: what no longer fits is parted, what now fits is
//! joined, and the statuses of matching tell. A pair that goes on fitting loses nothing.

use isolane_datapath::clock::monotonic_now;
use isolane_wire::{
    cdr::{Representation, TopicType},
    qos::{DataRepresentationId, DurabilityKind, HistoryKind, Octets, PolicyId, QosPolicies},
};

use crate::{
    error::QosError, qos::Qos, reader::DataReader, response::ResponseDeadline, writer::DataWriter,
};

impl Qos {
    /// USER_DATA: what the endpoint says of itself to whoever discovers it; isolane does not look at it.
    /// At most [`MAX_OCTETS`] octets: endpoints with more are refused.
    ///
    /// [`MAX_OCTETS`]: isolane_wire::limits::MAX_OCTETS
    #[must_use]
    pub fn user_data(mut self, octets: &[u8]) -> Self {
        self.policies.user_data = self.bounded(octets, PolicyId::USER_DATA);
        self
    }

    /// TOPIC_DATA, of the topic, as [`user_data`](Self::user_data).
    #[must_use]
    pub fn topic_data(mut self, octets: &[u8]) -> Self {
        self.policies.topic_data = self.bounded(octets, PolicyId::TOPIC_DATA);
        self
    }

    /// GROUP_DATA, of the publisher or subscriber, as [`user_data`](Self::user_data).
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

    /// PARTITION: these and no others, of which [`partition`](Self::partition) says more.
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

    /// DURABILITY. TRANSIENT and PERSISTENT are offered, requested and matched as the standard orders
    /// them, and served as TRANSIENT_LOCAL is: late joiners get the history of a writer while it lives. Nothing
    /// keeps samples beyond their writer, in memory or on disk, which a line in the log says when such a
    /// writer or reader is created.
    #[must_use]
    pub fn durability(mut self, kind: DurabilityKind) -> Self {
        self.policies.durability = kind;
        self
    }

    /// DURABILITY_SERVICE `history_depth`, KEEP_LAST: so many samples of each instance are kept for late
    /// joiners of a TRANSIENT or PERSISTENT writer, if that is more than its HISTORY says.
    #[must_use]
    pub fn service_keep_last(mut self, depth: u16) -> Self {
        self.policies.durability_service.history.kind = HistoryKind::KeepLast;
        self.policies.durability_service.history.depth = i32::from(depth);
        self
    }

    /// DURABILITY_SERVICE KEEP_ALL: as many of each instance as its limits allow, else
    /// [`DEFAULT_SAMPLES`](isolane_engine::limits::DEFAULT_SAMPLES).
    #[must_use]
    pub fn service_keep_all(mut self) -> Self {
        self.policies.durability_service.history.kind = HistoryKind::KeepAll;
        self
    }

    /// DURABILITY_SERVICE `max_samples`: what its depth comes to in all.
    #[must_use]
    pub fn service_max_samples(mut self, samples: u16) -> Self {
        let limits = &mut self.policies.durability_service.resource_limits;
        limits.max_samples = i32::from(samples);
        self
    }

    /// DURABILITY_SERVICE `max_samples_per_instance`: what its depth is at most.
    #[must_use]
    pub fn service_max_samples_per_instance(mut self, samples: u16) -> Self {
        let limits = &mut self.policies.durability_service.resource_limits;
        limits.max_samples_per_instance = i32::from(samples);
        self
    }

    /// What an endpoint has that was created by other ways than these.
    fn existing(policies: &QosPolicies, max_bytes: usize) -> Self {
        let mut existing = Self::best_effort();
        existing.policies = policies.clone();
        existing.max_bytes = Some(max_bytes);
        // A writer offers one; a reader that takes one only was told which.
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

/// Says that a kind of durability is less here than in the standard.
pub(crate) fn log_durability(topic: &str, qos: &Qos, end: &str) {
    let kind = qos.policies.durability;
    if kind >= DurabilityKind::Transient {
        log::warn!(target: "isolane",
            "the {end} of {topic} has DURABILITY {kind:?}: it matches as that, and is served as \
             TransientLocal, by each writer while it lives; nothing keeps samples beyond their writer");
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
    /// Its policies as they are now.
    #[must_use]
    pub fn qos(&self) -> Qos {
        let state = self.core.state.borrow();
        let engine = &state.engine;
        let policies = engine.writer_data(self.id).map(|data| &data.qos);
        let max_bytes = engine.writer_max_payload_bytes(self.id);
        let qos = policies
            .zip(max_bytes)
            .map(|(policies, max_bytes)| Qos::existing(policies, max_bytes));
        let (max_blocking, autodispose) = (self.max_blocking, self.autodispose.get());
        Qos {
            max_blocking,
            autodispose,
            ..qos.expect("a handle's writer exists")
        }
    }

    /// Changes the policies that the standard lets change (DDS 1.4 §2.2.3): USER_DATA, TOPIC_DATA,
    /// GROUP_DATA, DEADLINE, LATENCY_BUDGET, OWNERSHIP_STRENGTH, PARTITION, LIFESPAN, WRITER_DATA_LIFECYCLE. They are announced
    /// again, and readers matched anew. TRANSPORT_PRIORITY, which the standard lets change, is refused: the
    /// level is the lane, the port and the jobs the writer was created with. What a
    /// [`Publisher`](crate::Publisher) shares among its writers is changed there, and not here. A
    /// [`RemoteWriter`](crate::RemoteWriter) keeps the policies it was created with.
    ///
    /// # Errors
    /// [`QosError`]; nothing was changed then.
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let shared = self.publisher.as_ref().map(|group| group.shared(qos));
        let qos = shared.as_ref().unwrap_or(qos);
        let mut state = self.core.state.borrow_mut();
        let engine = &mut state.engine;
        same_size(engine.writer_max_payload_bytes(self.id), qos.max_bytes)?;
        engine.set_writer_qos(monotonic_now(), self.id, &qos.offered(T::EXTENSIBILITY))?;
        self.autodispose.set(qos.autodispose);
        Ok(())
    }
}

impl<T: TopicType> DataReader<T> {
    /// Its policies as they are now. A budget is not among them: it has an observation of its own.
    #[must_use]
    pub fn qos(&self) -> Qos {
        let state = self.core.state.borrow();
        let engine = &state.engine;
        let policies = engine.reader_data(self.id).map(|data| &data.qos);
        let max_bytes = engine.reader_max_payload_bytes(self.id);
        let qos = policies
            .zip(max_bytes)
            .map(|(policies, max_bytes)| Qos::existing(policies, max_bytes));
        let response = &state.readers[self.id.index()].response;
        Qos {
            response_deadline: response.as_ref().map(|response| response.deadline),
            ..qos.expect("a handle's reader exists")
        }
    }

    /// Changes the policies that the standard lets change, as [`DataWriter::set_qos`] does for a writer, and
    /// TIME_BASED_FILTER and READER_DATA_LIFECYCLE. A budget is changed by [`set_budget`](Self::set_budget), and not here.
    ///
    /// # Errors
    /// [`QosError`]; nothing was changed then.
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let shared = self.subscriber.as_ref().map(|group| group.shared(qos));
        let qos = shared.as_ref().unwrap_or(qos);
        let mut state = self.core.state.borrow_mut();
        let engine = &mut state.engine;
        same_size(engine.reader_max_payload_bytes(self.id), qos.max_bytes)?;
        engine.set_reader_qos(monotonic_now(), self.id, &qos.requested())?;
        let response = &mut state.readers[self.id.index()].response;
        if response.as_ref().map(|response| response.deadline) != qos.response_deadline {
            *response = qos.response_deadline.map(ResponseDeadline::new);
        }
        Ok(())
    }
}
