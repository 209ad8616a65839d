//! Validated system description.

use crate::domain::Domain;
use crate::host::Host;
use crate::participant::Participant;
use crate::problem::Problem;
use crate::source::Sourced;
use crate::topic::Topic;
use crate::tuning::Tuning;

/// Described system. A system can only be created from a description. Incomplete or contradictory descriptions are
/// refused, so users of a system need no further checks.
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
    /// DDS domain of all topics.
    pub fn domain(&self) -> &Sourced<Domain> {
        &self.domain
    }

    /// Replaces the domain, for a command line option.
    pub fn set_domain(&mut self, domain: Sourced<Domain>) {
        self.domain = domain;
    }

    /// Hosts in the order of the description.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Topics in the order of the description.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Returns the host with this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name.value == name)
    }

    /// Returns the entry of a machine with the host name `hostname`: the host with that name, otherwise the only host.
    /// `None` if there are several and none has that name.
    pub fn host_of_machine(&self, hostname: &str) -> Option<&Host> {
        let only = match self.hosts() {
            [only] => Some(only),
            _ => None,
        };
        self.host(hostname).or(only)
    }

    /// Returns the topic with a name.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.iter().find(|topic| topic.name.value == name)
    }

    /// Participants known without discovery, in the order of the description.
    pub fn participants(&self) -> &[Participant] {
        &self.participants
    }

    /// Returns the participant with this name.
    pub fn participant(&self, name: &str) -> Option<&Participant> {
        let mut all = self.participants.iter();
        all.find(|participant| participant.name.value == name)
    }

    /// Topics that a host sends.
    pub fn sends<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Topic> {
        self.topics
            .iter()
            .filter(move |topic| topic.from.value.iter().any(|name| name == host))
    }

    /// Topics that a host receives.
    pub fn receives<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Topic> {
        self.topics
            .iter()
            .filter(move |topic| topic.to.value.iter().any(|name| name == host))
    }

    /// Settings of `isolane tune`.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Warnings about the description.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}
