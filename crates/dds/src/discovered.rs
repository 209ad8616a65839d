//! What was discovered: the built-in topics of DDS 1.4 §2.2.5 as lists and a callback, what is ignored of
//! it, and what this participant says of itself.
//!
//! *DCPSParticipant* is [`participants`](Participant::participants), *DCPSPublication* and *DCPSSubscription*
//! are [`publications`](Participant::publications) and [`subscriptions`](Participant::subscriptions),
//! *DCPSTopic*, which RTPS does not announce, is [`topics`](Participant::topics), made of the two. They are
//! no readers: what there is now is asked for, and [`on_discovery`](Participant::on_discovery) tells what has
//! changed.

use std::rc::Rc;

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{
    DiscoveryEvent, EndpointKind, IgnoreError, Priority, RemoteEndpoint, RemoteParticipant,
};
use isolane_executor::{JobConfig, JobId};
use isolane_wire::{
    guid::Guid,
    qos::{Octets, PolicyId},
    time::Instant,
};

use crate::{
    error::BuildError,
    participant::Participant,
    runtime::Core,
    state::{State, Task},
};

/// A topic that endpoints of others belong to (*TopicBuiltinTopicData*).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredTopic {
    /// Its name.
    pub name: String,
    /// The name of its type; a topic that has two is two of these.
    pub type_name: String,
    /// Whether its type has a key.
    pub is_keyed: bool,
    /// TOPIC_DATA, of the first endpoint that says something.
    pub topic_data: Octets,
    /// Writers of others.
    pub writers: usize,
    /// Readers of others.
    pub readers: usize,
}

/// A user's function for what discovery brings.
pub(crate) type DiscoveryCallback = Box<dyn FnMut(DiscoveryEvent)>;

/// Who is told of discovery.
#[derive(Default)]
pub(crate) struct DiscoveryListening {
    job: Option<JobId>,
    callback: Option<DiscoveryCallback>,
}

impl State {
    /// There are events of discovery, perhaps.
    pub(crate) fn note_discovery(&mut self, now: Instant) {
        if let Some(job) = self.discovery_listening.job
            && self.engine.has_discovery_event()
        {
            self.executor.activate(job, now);
        }
    }

    /// Removes the callback, to be dropped while the state is free.
    pub(crate) fn clear_discovery_listening(&mut self) -> Option<DiscoveryCallback> {
        if let Some(job) = self.discovery_listening.job.take() {
            self.remove_job(job);
        }
        self.discovery_listening.callback.take()
    }
}

impl Core {
    /// Tells the callback one event of discovery. True: another one waits.
    pub(crate) fn tell_discovery(&self) -> bool {
        let (event, mut callback) = {
            let mut state = self.state.borrow_mut();
            let event = state.engine.next_discovery_event();
            (event, state.discovery_listening.callback.take())
        };
        if let (Some(event), Some(callback)) = (event, &mut callback) {
            callback(event);
        }
        // Declared after the callback: given back before an unwanted one is dropped.
        let mut state = self.state.borrow_mut();
        let listening = &mut state.discovery_listening;
        if listening.job.is_some() && listening.callback.is_none() {
            listening.callback = callback.take();
        }
        state.engine.has_discovery_event()
    }
}

impl Participant {
    /// The participants of others that are known now (*DCPSParticipant*).
    #[must_use]
    pub fn participants(&self) -> Vec<RemoteParticipant> {
        let state = self.core().state.borrow();
        state.engine.remote_participants().cloned().collect()
    }

    /// The endpoints of others that are known now.
    #[must_use]
    pub fn endpoints(&self) -> Vec<RemoteEndpoint> {
        let state = self.core().state.borrow();
        state.engine.remote_endpoints().collect()
    }

    /// The writers among them (*DCPSPublication*).
    #[must_use]
    pub fn publications(&self) -> Vec<RemoteEndpoint> {
        self.endpoints_of(EndpointKind::Writer)
    }

    /// The readers among them (*DCPSSubscription*).
    #[must_use]
    pub fn subscriptions(&self) -> Vec<RemoteEndpoint> {
        self.endpoints_of(EndpointKind::Reader)
    }

    fn endpoints_of(&self, kind: EndpointKind) -> Vec<RemoteEndpoint> {
        let state = self.core().state.borrow();
        let all = state.engine.remote_endpoints();
        all.filter(|endpoint| endpoint.kind == kind).collect()
    }

    /// The topics they belong to (*DCPSTopic*), in the order of their names.
    #[must_use]
    pub fn topics(&self) -> Vec<DiscoveredTopic> {
        let state = self.core().state.borrow();
        let mut topics = Vec::<DiscoveredTopic>::new();
        for endpoint in state.engine.remote_endpoints() {
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

    /// Sets the callback for what discovery brings: it is told of each participant and endpoint of others
    /// that is found, changes or goes, one an activation of a job at the priority of discovery, in
    /// the order it happened. Of what is known already nothing is told: ask for the lists. Where more
    /// has happened than is kept ([`MAX_DISCOVERY_EVENTS`]) it is told
    /// [`Missed`](DiscoveryEvent::Missed).
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc, time::Duration};
    /// use isolane::{DiscoveryChange, DiscoveryEvent, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let here = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let seen = Rc::new(RefCell::new(Vec::new()));
    /// let told = Rc::clone(&seen);
    /// here.on_discovery(move |event| told.borrow_mut().push(event))?;
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
    /// [`MAX_DISCOVERY_EVENTS`]: isolane_engine::limits::MAX_DISCOVERY_EVENTS
    pub fn on_discovery(
        &self,
        callback: impl FnMut(DiscoveryEvent) + 'static,
    ) -> Result<(), BuildError> {
        let former = {
            let mut state = self.core().state.borrow_mut();
            if state.discovery_listening.job.is_none() {
                let config = JobConfig::event("tell of discovery", Priority::DISCOVERY.get());
                let job = state.add_job(config, Task::TellDiscovery)?;
                state.discovery_listening.job = Some(job);
                state.engine.watch_discovery();
            }
            let listening = &mut state.discovery_listening;
            listening.callback.replace(Box::new(callback))
        };
        // What it owns may be a writer, which is deleted now that the state is free.
        drop(former);
        Ok(())
    }

    /// Changes USER_DATA of this participant, the one policy of it that peers hear of; announced at once.
    ///
    /// # Errors
    /// [`BuildError::Octets`].
    pub fn set_user_data(&self, octets: &[u8]) -> Result<(), BuildError> {
        let policy = PolicyId::USER_DATA;
        let octets = Octets::of(octets).ok_or(BuildError::Octets { policy })?;
        self.core().state.borrow_mut().engine.set_user_data(octets);
        Ok(())
    }

    /// Ignores a participant from now on and for good (DDS 1.4 §2.2.2.2.1.14): it goes with all its
    /// endpoints, and what it announces is not taken in. This participant's own GUID: its readers no longer
    /// hear its own writers.
    ///
    /// Nobody is told. A reliable writer of the other side that had matched a reader here goes on waiting for
    /// its acknowledgements, for as long as this participant is there.
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_participant(&self, participant: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.engine.ignore_participant(now, participant.prefix))
    }

    /// Ignores a writer, of others or of this participant (§2.2.2.2.1.16), as
    /// [`ignore_participant`](Self::ignore_participant).
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_publication(&self, writer: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.engine.ignore_endpoint(now, writer))
    }

    /// Ignores a reader likewise (§2.2.2.2.1.17).
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_subscription(&self, reader: Guid) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.engine.ignore_endpoint(now, reader))
    }

    /// Ignores all endpoints of a topic, of others and of this participant (§2.2.2.2.1.15).
    ///
    /// # Errors
    /// [`IgnoreError`].
    pub fn ignore_topic(&self, name: &str) -> Result<(), IgnoreError> {
        self.ignore(|state, now| state.engine.ignore_topic(now, name))
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
