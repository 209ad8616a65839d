//! The system: what a description says, complete and consistent.

use crate::domain::Domain;
use crate::host::Host;
use crate::participant::Participant;
use crate::problem::Problem;
use crate::source::Sourced;
use crate::topic::Topic;
use crate::tuning::Tuning;

/// A described system. There is no way to make one but to read a description, and reading refuses
/// everything that is incomplete or contradicts itself: whoever holds one need not check it again.
#[derive(Clone, Debug)]
pub struct System {
    pub(crate) domain: Sourced<Domain>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) participants: Vec<Participant>,
    pub(crate) tuning: Tuning,
    pub(crate) warnings: Vec<Problem>,
}

impl System {
    /// The DDS domain of all its topics.
    pub fn domain(&self) -> &Sourced<Domain> {
        &self.domain
    }

    /// Replaces the domain, as the command line does.
    pub fn set_domain(&mut self, domain: Sourced<Domain>) {
        self.domain = domain;
    }

    /// The hosts in the order of the description.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The topics in the order of the description.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name.value == name)
    }

    /// The topic of that name.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.iter().find(|topic| topic.name.value == name)
    }

    /// The participants that are known without discovery, in the order of the description.
    pub fn participants(&self) -> &[Participant] {
        &self.participants
    }

    /// The participant of that name.
    pub fn participant(&self, name: &str) -> Option<&Participant> {
        let mut all = self.participants.iter();
        all.find(|participant| participant.name.value == name)
    }

    /// The topics a host sends.
    pub fn sends<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Topic> {
        self.topics
            .iter()
            .filter(move |topic| topic.from.value.iter().any(|name| name == host))
    }

    /// The topics a host receives.
    pub fn receives<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Topic> {
        self.topics
            .iter()
            .filter(move |topic| topic.to.value.iter().any(|name| name == host))
    }

    /// What `isolane tune` may change on the hosts.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// What is allowed but probably not meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}
