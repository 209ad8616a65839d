//! What USER_DATA, TOPIC_DATA and GROUP_DATA carry: octets that only their users understand
//! (DDS 1.4 §2.2.3.1 to §2.2.3.3).

use core::fmt;

use super::wire_form::WireForm;
use crate::{
    bytes::{Reader, Writer},
    limits::MAX_OCTETS,
};

/// Octets of an application, [`MAX_OCTETS`] at most. What a peer announced beyond them is cut off, which
/// [`is_cut`](Self::is_cut) says: a part is of more use than a peer that cannot be talked with.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Octets {
    kept: heapless::Vec<u8, MAX_OCTETS>,
    is_cut: bool,
}

impl Octets {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            kept: heapless::Vec::new(),
            is_cut: false,
        }
    }

    /// These; `None` if they are more than [`MAX_OCTETS`].
    #[must_use]
    pub fn of(octets: &[u8]) -> Option<Self> {
        let kept = heapless::Vec::from_slice(octets).ok()?;
        Some(Self {
            kept,
            is_cut: false,
        })
    }

    /// The same octets as the first of more that a peer has announced ([`is_cut`](Self::is_cut)).
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether these are the first of more that a peer has announced.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// As text where it is text, which it mostly is.
impl fmt::Debug for Octets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.is_cut { ", cut" } else { "" };
        write!(formatter, "Octets(\"{}\"{cut})", self.kept.escape_ascii())
    }
}

/// A sequence of octets.
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
