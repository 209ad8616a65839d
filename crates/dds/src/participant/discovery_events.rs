//! Discovered entities: the built-in topics of DDS 1.4 §2.2.5 as lists and a callback, the ignore operations, and the
//! participant's USER_DATA.
//!
//! [`participants`](Participant::participants) is *DCPSParticipant*, [`publications`](Participant::publications)
//! *DCPSPublication* and [`subscriptions`](Participant::subscriptions) *DCPSSubscription*.
//! [`topics`](Participant::topics) is *DCPSTopic*, derived from the two, because RTPS does not announce it. There are
//! no built-in readers: the lists return the current state, and [`on_discovery`](Participant::on_discovery) reports
//! changes.

use std::rc::Rc;

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{
    DiscoveryEvent, EndpointKind, IgnoreError, LocalParticipant, Priority, RemoteEndpoint,
    RemoteParticipant,
};
use isolane_wire::{
    guid::Guid,
    qos::{Octets, PolicyId},
    time::Instant,
};

use crate::{
    error::BuildError, participant::Participant, participant::event_loop::Core,
    participant::jobs::Task, participant::state::State,
};

/// Topic of remote endpoints (*TopicBuiltinTopicData*).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredTopic {
    /// Topic name.
    pub name: String,
    /// Type name. A topic with two types has two entries.
    pub type_name: String,
    /// True if the type has a key.
    pub is_keyed: bool,
    /// TOPIC_DATA of the first endpoint that has any.
    pub topic_data: Octets,
    /// Number of remote writers.
    pub writers: usize,
    /// Number of remote readers.
    pub readers: usize,
}

pub(crate) type DiscoveryCallback = Box<dyn FnMut(DiscoveryEvent)>;

#[derive(Default)]
pub(crate) struct DiscoveryListening {
    job: Option<JobId>,
    callback: Option<DiscoveryCallback>,
}

impl DiscoveryListening {
    /// Activates the callback's job if there are discovery events.
    pub(crate) fn note_events(
        &self,
        executor: &mut Executor,
        protocol: &LocalParticipant,
        now: Instant,
    ) {
        if let Some(job) = self.job
            && protocol.has_discovery_event()
        {
            executor.activate(job, now);
        }
    }

    /// Removes the callback. Returns its job, for removal, and the callback. Drop the callback only while the state is
    /// not borrowed.
    pub(crate) fn clear(&mut self) -> (Option<JobId>, Option<DiscoveryCallback>) {
        (self.job.take(), self.callback.take())
    }
}

impl Core {
    /// Passes one discovery event to the callback. Returns true if another one is pending.
    pub(crate) fn notify_discovery(&self) -> bool {
        let (event, mut callback) = {
            let mut state = self.state.borrow_mut();
            let event = state.protocol.next_discovery_event();
            (event, state.listeners.discovery.callback.take())
        };
        if let (Some(event), Some(callback)) = (event, &mut callback) {
            callback(event);
        }
        // Declared after the callback, so that the borrow ends before a removed callback is dropped.
        let mut state = self.state.borrow_mut();
        let listening = &mut state.listeners.discovery;
        if listening.job.is_some() && listening.callback.is_none() {
            listening.callback = callback.take();
        }
        state.protocol.has_discovery_event()
    }
}

impl Participant {
    /// Returns the remote participants known now (*DCPSParticipant*).
    #[must_use]
    pub fn participants(&self) -> Vec<RemoteParticipant> {
        let state = self.core().state.borrow();
        state.protocol.remote_participants().cloned().collect()
    }

    /// Returns the remote endpoints known now.
    #[must_use]
    pub fn endpoints(&self) -> Vec<RemoteEndpoint> {
        let state = self.core().state.borrow();
        state.protocol.remote_endpoints().collect()
    }

    /// Returns the remote writers known now (*DCPSPublication*).
    #[must_use]
    pub fn publications(&self) -> Vec<RemoteEndpoint> {
        self.endpoints_of(EndpointKind::Writer)
    }

    /// Returns the remote readers known now (*DCPSSubscription*).
    #[must_use]
    pub fn subscriptions(&self) -> Vec<RemoteEndpoint> {
        self.endpoints_of(EndpointKind::Reader)
    }

    fn endpoints_of(&self, kind: EndpointKind) -> Vec<RemoteEndpoint> {
        let state = self.core().state.borrow();
        let all = state.protocol.remote_endpoints();
        all.filter(|endpoint| endpoint.kind == kind).collect()
    }

    /// Returns the topics of the remote endpoints known now (*DCPSTopic*), sorted by name.
    #[must_use]
    pub fn topics(&self) -> Vec<DiscoveredTopic> {
        let state = self.core().state.borrow();
        let mut topics = Vec::<DiscoveredTopic>::new();
        for endpoint in state.protocol.remote_endpoints() {
            let data = &endpoint.data;
            let key = (data.topic_name.as_str(), data.type_name.as_str());
            let place = topics.binary_search_by(|it| (&*it.name, &*it.type_name).cmp(&key));
            let at = place.unwrap_or_else(|at| {
                topics.insert(at, new_topic(&endpoint));
                at
            });
            let topic = &mut topics[at];
            match endpoint.kind {
                EndpointKind::Writer => topic.writers += 1,
                EndpointKind::Reader => topic.readers += 1,
            }
            if topic.topic_data.is_empty() {
                topic.topic_data = data.qos.topic_data.clone();
            }
        }
        topics
    }

    /// Sets the callback for discovery events: each remote participant or endpoint that is found, changes or
    /// disappears.
    ///
    /// A job at discovery's priority passes one event per activation, in the order of occurrence. Entities known before
    /// cause no events; use the lists. If more events occur than are stored ([`MAX_DISCOVERY_EVENTS`]), the callback
    /// receives [`Missed`](DiscoveryEvent::Missed).
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc, time::Duration};
    /// use isolane::{DiscoveryChange, DiscoveryEvent, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let here = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let seen = Rc::new(RefCell::new(Vec::new()));
    /// let events = Rc::clone(&seen);
    /// here.on_discovery(move |event| events.borrow_mut().push(event))?;
    /// let there = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// there.poll();
    /// assert!(here.run_until(Duration::from_secs(5), || !seen.borrow().is_empty()));
    /// let found = DiscoveryEvent::Participant(there.guid(), DiscoveryChange::Found);
    /// assert_eq!(*seen.borrow(), [found]);
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    ///
    /// [`MAX_DISCOVERY_EVENTS`]: isolane_rtps::limits::MAX_DISCOVERY_EVENTS
    pub fn on_discovery(
        &self,
        callback: impl FnMut(DiscoveryEvent) + 'static,
    ) -> Result<(), BuildError> {
        let former = {
            let state = &mut *self.core().state.borrow_mut();
            if state.listeners.discovery.job.is_none() {
                let config = JobConfig::event("tell of discovery", Priority::DISCOVERY.get());
                let job = state
                    .jobs
                    .add(&mut state.executor, config, Task::Discovery)?;
                state.listeners.discovery.job = Some(job);
                state.protocol.watch_discovery();
            }
            let listening = &mut state.listeners.discovery;
            listening.callback.replace(Box::new(callback))
        };
        // The callback may own a writer, whose deletion borrows the state.
        drop(former);
        Ok(())
    }

    /// Changes USER_DATA of this participant, the only policy that a participant announces, and announces it at once.
    ///
    /// # Errors
    /// [`BuildError::Octets`].
    pub fn set_user_data(&self, octets: &[u8]) -> Result<(), BuildError> {
        let policy = PolicyId::USER_DATA;
        let octets = Octets::of(octets).ok_or(BuildError::Octets { policy })?;
        self.core()
            .state
            .borrow_mut()
            .protocol
            .set_user_data(octets);
        Ok(())
    }

    /// Ignores a participant permanently (DDS 1.4 §2.2.2.2.1.14): it is removed with all its endpoints, and its
    /// announcements are discarded. With this participant's own GUID, local readers and writers no longer match.
    ///
    /// The ignored participant is not informed. Its reliable writers keep waiting for acknowledgements from matched
    /// readers of this participant, as long as this participant exists.
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_participant(&self, participant: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.protocol.ignore_participant(now, participant.prefix))
    }

    /// Ignores a remote or local writer (§2.2.2.2.1.16) permanently, like
    /// [`ignore_participant`](Self::ignore_participant).
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_publication(&self, writer: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.protocol.ignore_endpoint(now, writer))
    }

    /// Ignores a remote or local reader (§2.2.2.2.1.17) permanently, like
    /// [`ignore_participant`](Self::ignore_participant).
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_subscription(&self, reader: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.protocol.ignore_endpoint(now, reader))
    }

    /// Ignores all remote and local endpoints of a topic (§2.2.2.2.1.15).
    ///
    /// # Errors
    /// [`IgnoreError`].
    pub fn ignore_topic(&self, name: &str) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.protocol.ignore_topic(now, name))
    }

    fn ignore(
        &self,
        ignore: impl FnOnce(&mut State, Instant) -> Result<(), IgnoreError>,
    ) -> Result<(), IgnoreError> {
        let core = Rc::clone(self.core());
        let mut state = core.state.borrow_mut();
        ignore(&mut state, monotonic_now())
    }
}

fn new_topic(endpoint: &RemoteEndpoint) -> DiscoveredTopic {
    let data = &endpoint.data;
    DiscoveredTopic {
        name: data.topic_name.as_str().into(),
        type_name: data.type_name.as_str().into(),
        is_keyed: data.is_keyed(),
        topic_data: Octets::new(),
        writers: 0,
        readers: 0,
    }
}
