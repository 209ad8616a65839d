//! Encapsulation header of a serialized payload.
//!
//! The header is a 16-bit identifier, always big-endian, then 16 bits of options (RTPS 2.5 §10.2, XTypes 1.3
//! §7.6.3.1.2). The two lowest option bits give the number of padding bytes after the body. Alignment in the
//! body counts from the body's start, after this header.

use core::fmt;

use super::CdrError;

/// Size of the encapsulation header in bytes.
pub const ENCAPSULATION_BYTES: usize = 4;

/// Version of CDR (XTypes 1.3 §7.4.1 and §7.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Version 1, the default of DDS: 8-byte primitives are aligned to 8; appendable and final types are
    /// encoded alike.
    #[default]
    Xcdr1,
    /// Version 2: alignment is at most 4; a DHEADER precedes appendable structures, and collections of
    /// non-primitive elements.
    Xcdr2,
}

impl Representation {
    /// Maximum alignment in bytes.
    #[inline]
    pub const fn max_alignment(self) -> usize {
        match self {
            Self::Xcdr1 => 8,
            Self::Xcdr2 => 4,
        }
    }
}

/// Extensibility of a type: how its versions may differ (XTypes 1.3 §7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// No members can be added: both sides have the same members. The default of `#[derive(TopicType)]`.
    Final,
    /// Members may be added at the end. The default of IDL (XTypes 1.3 §7.3.3.1.1).
    Appendable,
}

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// Byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };
}

/// Encapsulation identifier (RTPS 2.5 §10.2, XTypes 1.3 Table 60); any value, supported or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncapsulationId(pub u16);

impl EncapsulationId {
    /// Plain CDR, big-endian.
    pub const CDR_BE: Self = Self(0x0000);
    /// Plain CDR, little-endian.
    pub const CDR_LE: Self = Self(0x0001);
    /// Parameter list, big-endian.
    pub const PL_CDR_BE: Self = Self(0x0002);
    /// Parameter list, little-endian.
    pub const PL_CDR_LE: Self = Self(0x0003);

    /// Returns the identifier of a payload; `None` if the payload is shorter than two bytes.
    #[must_use]
    pub const fn of_payload(payload: &[u8]) -> Option<Self> {
        match payload {
            &[high, low, ..] => Some(Self(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }

    /// Name of the identifier in the standards; `None` if the standards do not define it.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0000 => "CDR_BE",
            0x0001 => "CDR_LE",
            0x0002 => "PL_CDR_BE",
            0x0003 => "PL_CDR_LE",
            0x0006 => "CDR2_BE",
            0x0007 => "CDR2_LE",
            0x0008 => "D_CDR2_BE",
            0x0009 => "D_CDR2_LE",
            0x000a => "PL_CDR2_BE",
            0x000b => "PL_CDR2_LE",
            _ => return None,
        })
    }

    /// Extensibility of the writer's type; `None` if the identifier does not give it. In XCDR1, final and
    /// appendable types have the same identifier.
    #[must_use]
    pub const fn extensibility(self) -> Option<&'static str> {
        match self.0 {
            0x0002 | 0x0003 | 0x000a | 0x000b => Some("mutable"),
            0x0006 | 0x0007 => Some("final"),
            0x0008 | 0x0009 => Some("appendable"),
            _ => None,
        }
    }
}

impl fmt::Display for EncapsulationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "{:#06x}", self.0),
        }
    }
}

/// Encoding of a payload's body, as its encapsulation header gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encapsulation {
    /// Version of CDR.
    pub representation: Representation,
    /// Byte order.
    pub order: ByteOrder,
    /// True if the body begins with a DHEADER (`D_CDR2`): the writer's type is appendable.
    pub delimited: bool,
}

impl Encapsulation {
    /// Returns the encapsulation of a type in a representation. Only appendable types in XCDR2 have a DHEADER.
    #[inline]
    pub const fn of(
        representation: Representation,
        extensibility: Extensibility,
        order: ByteOrder,
    ) -> Self {
        let delimited = matches!(
            (representation, extensibility),
            (Representation::Xcdr2, Extensibility::Appendable)
        );
        Self {
            representation,
            order,
            delimited,
        }
    }

    /// Encapsulation identifier (XTypes 1.3 Table 60; Table 39 has other values, a known misprint).
    #[inline]
    pub const fn identifier(self) -> u16 {
        let big_endian = match (self.representation, self.delimited) {
            (Representation::Xcdr1, _) => 0x0000,
            (Representation::Xcdr2, false) => 0x0006,
            (Representation::Xcdr2, true) => 0x0008,
        };
        match self.order {
            ByteOrder::Big => big_endian,
            ByteOrder::Little => big_endian + 1,
        }
    }

    /// Parses an [`identifier`](Self::identifier).
    ///
    /// # Errors
    /// [`CdrError::UnknownEncapsulation`] for parameter lists (mutable types), XML, and every other identifier
    /// outside 0x0000..=0x0001 and 0x0006..=0x0009.
    #[inline]
    pub const fn from_identifier(identifier: u16) -> Result<Self, CdrError> {
        let (representation, delimited) = match identifier {
            0x0000 | 0x0001 => (Representation::Xcdr1, false),
            0x0006 | 0x0007 => (Representation::Xcdr2, false),
            0x0008 | 0x0009 => (Representation::Xcdr2, true),
            unknown => return Err(CdrError::UnknownEncapsulation(unknown)),
        };
        let order = if identifier & 1 == 0 {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        };
        Ok(Self {
            representation,
            order,
            delimited,
        })
    }

    /// Encodes the header of a body that is followed by `padding` bytes, 0 to 3.
    #[inline]
    pub const fn header(self, padding: u8) -> [u8; ENCAPSULATION_BYTES] {
        let [high, low] = self.identifier().to_be_bytes();
        [high, low, 0, padding & 0b11]
    }

    /// Splits a payload into its encapsulation and its body without the padding.
    ///
    /// # Errors
    /// [`CdrError::Truncated`] if the payload is shorter than its header and padding;
    /// [`CdrError::UnknownEncapsulation`] as [`from_identifier`](Self::from_identifier).
    #[inline]
    pub fn split(payload: &[u8]) -> Result<(Self, &[u8]), CdrError> {
        let Some((&[high, low, _, options], body)) = payload.split_first_chunk() else {
            return Err(CdrError::Truncated);
        };
        let encapsulation = Self::from_identifier(u16::from_be_bytes([high, low]))?;
        let padding = usize::from(options & 0b11);
        let length = body.len().checked_sub(padding).ok_or(CdrError::Truncated)?;
        Ok((encapsulation, body.get(..length).unwrap_or_default()))
    }
}
