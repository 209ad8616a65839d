//! Criticality levels: one scale from the QoS policy to the queue of the network interface.

use core::fmt;

/// Criticality level from 0 to 7, 7 the most critical.
///
/// The level is the clamped TRANSPORT_PRIORITY. It is also used as `SO_PRIORITY`, as priority code point of the VLAN
/// tag, as class selector in the IP header, and as lane number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Level(u8);

impl Level {
    /// Least critical level.
    pub const MIN: Self = Self(0);
    /// Most critical level.
    pub const MAX: Self = Self(7);
    /// Number of levels.
    pub const COUNT: usize = 8;
    /// All levels, least critical first; `ALL[n]` is level n.
    pub const ALL: [Self; Self::COUNT] = [
        Self(0),
        Self(1),
        Self(2),
        Self(3),
        Self(4),
        Self(5),
        Self(6),
        Self(7),
    ];

    /// Creates level `number`; `None` above 7.
    #[inline]
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number <= Self::MAX.0 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Returns the level of a TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15), clamped to 0 to 7.
    #[inline]
    #[must_use]
    pub const fn clamp(transport_priority: i32) -> Self {
        if transport_priority < 0 {
            Self::MIN
        } else if transport_priority > Self::MAX.0 as i32 {
            Self::MAX
        } else {
            Self(transport_priority as u8)
        }
    }

    /// Number of the level, 0 to 7.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Class selector CS0 to CS7 as a six-bit differentiated services code point (RFC 2474 §4.2.2). The TOS
    /// byte is this value shifted left by two.
    #[inline]
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 << 3
    }

    /// Priority code point of the VLAN tag, three bits (IEEE 802.1Q §9.6).
    #[inline]
    #[must_use]
    pub const fn pcp(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
