//! The DDS domain.

use core::fmt;
use core::str::FromStr;

use crate::limits::MAX_DOMAIN;

/// DDS domain, 0 to [`MAX_DOMAIN`]: participants of different domains do not discover each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(u32);

impl Domain {
    /// Creates a domain; `None` above [`MAX_DOMAIN`].
    pub const fn new(domain: u32) -> Option<Self> {
        if domain <= MAX_DOMAIN {
            Some(Self(domain))
        } else {
            None
        }
    }

    /// UDP port range of the domain (RTPS 2.5 §9.6.2.3), 250 ports.
    pub const fn ports(self) -> core::ops::Range<u32> {
        let first = 7_400 + 250 * self.0;
        first..first + 250
    }

    /// Domain id.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The text is not a number from 0 to [`MAX_DOMAIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainError;

impl fmt::Display for DomainError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a domain is a number from 0 to {MAX_DOMAIN}")
    }
}

impl core::error::Error for DomainError {}

impl FromStr for Domain {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, DomainError> {
        text.parse().ok().and_then(Self::new).ok_or(DomainError)
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
