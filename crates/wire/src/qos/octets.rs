//! Opaque octets of USER_DATA, TOPIC_DATA and GROUP_DATA (DDS 1.4 §2.2.3.1 to §2.2.3.3).

use core::fmt;

use super::wire_form::WireForm;
use crate::{
    bytes::{Reader, Writer},
    limits::MAX_OCTETS,
};

/// Application-defined octets, at most [`MAX_OCTETS`]. Longer data of a peer is cut, see
/// [`is_cut`](Self::is_cut): a cut value is better than an unreachable peer.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Octets {
    kept: heapless::Vec<u8, MAX_OCTETS>,
    is_cut: bool,
}

impl Octets {
    /// Creates an empty value.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            kept: heapless::Vec::new(),
            is_cut: false,
        }
    }

    /// Copies `octets`; `None` if longer than [`MAX_OCTETS`].
    #[must_use]
    pub fn of(octets: &[u8]) -> Option<Self> {
        let kept = heapless::Vec::from_slice(octets).ok()?;
        Some(Self {
            kept,
            is_cut: false,
        })
    }

    /// Marks these octets as the first part of a longer value ([`is_cut`](Self::is_cut)).
    #[must_use]
    pub fn of_more(self) -> Self {
        Self {
            is_cut: true,
            ..self
        }
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.kept
    }

    /// Returns true if there are no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns true if the peer announced more octets than these.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Formats the octets as escaped ASCII: most are text.
impl fmt::Debug for Octets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.is_cut { ", cut" } else { "" };
        write!(formatter, "Octets(\"{}\"{cut})", self.kept.escape_ascii())
    }
}

/// Sequence of octets.
impl WireForm for Octets {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u32().ok()? as usize;
        let octets = reader.take(count).ok()?;
        let kept = &octets[..count.min(MAX_OCTETS)];
        Some(Self {
            kept: heapless::Vec::from_slice(kept).ok()?,
            is_cut: count > MAX_OCTETS,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.kept.len() as u32);
        writer.put(&self.kept);
    }

    fn bytes(&self) -> usize {
        4 + self.kept.len()
    }
}
