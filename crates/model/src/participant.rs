//! A participant that its peers know by the description, without discovering it: where it is reached, and which topics
//! it writes and reads.

use std::net::Ipv4Addr;

use crate::source::Sourced;
use crate::word::Word;

/// A described participant, `[participant.NAME]`: one program on one host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Participant {
    /// Its name, from which its GUID follows.
    pub name: Sourced<String>,
    /// The host it runs on.
    pub host: Sourced<String>,
    /// Where it is reached, and where its datagrams come from.
    pub address: Sourced<Ipv4Addr>,
    /// The UDP port of level 0; level *l* is at the port + *l*.
    pub port: Sourced<u16>,
    /// What it says of itself.
    pub announces: Sourced<Announces>,
    /// The topics it writes, each once, each described.
    pub writes: Sourced<Vec<String>>,
    /// The topics it reads, likewise. It reads or writes one at least.
    pub reads: Sourced<Vec<String>>,
}

impl Participant {
    /// How many ports from [`port`](Self::port) on are its own, one a level.
    pub const PORTS: u16 = 8;

    /// The ports that it takes.
    pub fn ports(&self) -> core::ops::Range<u16> {
        self.port.value..self.port.value + Self::PORTS
    }
}

/// What a described participant says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Announces {
    /// Itself, and what is not described (SPDP and SEDP).
    #[default]
    All,
    /// Itself (SPDP), so that it can be seen to be gone.
    Itself,
    /// Nothing: it is taken to be alive.
    Nothing,
}

impl Word for Announces {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("all", Self::All),
        ("itself", Self::Itself),
        ("nothing", Self::Nothing),
    ];
}
