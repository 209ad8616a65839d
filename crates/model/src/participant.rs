//! Described participants: those that their peers know from the description, without discovery.

use std::net::Ipv4Addr;

use crate::source::Sourced;
use crate::word::Word;

/// Described participant, `[participant.NAME]`: one program on one host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Participant {
    /// Name, from which the GUID is derived.
    pub name: Sourced<String>,
    /// Host on which the participant runs.
    pub host: Sourced<String>,
    /// Address at which the participant receives, and from which it sends.
    pub address: Sourced<Ipv4Addr>,
    /// UDP port of level 0; level *l* uses the port + *l*.
    pub port: Sourced<u16>,
    /// Discovery announcements that the participant sends.
    pub announces: Sourced<Announces>,
    /// Names of the described topics that the participant writes, without duplicates.
    pub writes: Sourced<Vec<String>>,
    /// Names of the described topics that it reads, without duplicates. At least one topic is written or read.
    pub reads: Sourced<Vec<String>>,
}

impl Participant {
    /// Number of ports from [`port`](Self::port) on, one for each level.
    pub const PORTS: u16 = 8;

    /// Port range of the participant.
    pub fn ports(&self) -> core::ops::Range<u16> {
        self.port.value..self.port.value + Self::PORTS
    }
}

/// Discovery announcements of a described participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Announces {
    /// The participant and its endpoints that are not described (SPDP and SEDP).
    #[default]
    All,
    /// The participant only (SPDP), so that its lease can expire.
    Itself,
    /// No announcement: peers assume that the participant is alive.
    Nothing,
}

impl Word for Announces {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("all", Self::All),
        ("itself", Self::Itself),
        ("nothing", Self::Nothing),
    ];
}
