//! GUIDs of participants and endpoints (RTPS 2.5 §9.3.1).

use core::fmt;

/// GUID prefix, shared by all entities of a participant. Opaque bytes without a byte order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

impl GuidPrefix {
    /// Unknown prefix; as a destination, all participants.
    pub const UNKNOWN: Self = Self([0; 12]);
}

/// Entity id: identifies an entity within its participant by three bytes of key and one of kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityId(pub [u8; 4]);

/// Entity kinds: the lower six bits of an entity id's last byte (RTPS 2.5 §9.3.1.2). Built-in entities also
/// have the bits of [`EntityKind::BUILTIN`].
pub struct EntityKind;

impl EntityKind {
    /// Writer of a keyed topic.
    pub const WRITER_WITH_KEY: u8 = 0x02;
    /// Writer of a topic without key.
    pub const WRITER_NO_KEY: u8 = 0x03;
    /// Reader of a topic without key.
    pub const READER_NO_KEY: u8 = 0x04;
    /// Reader of a keyed topic.
    pub const READER_WITH_KEY: u8 = 0x07;
    /// Publisher.
    pub const WRITER_GROUP: u8 = 0x08;
    /// Subscriber.
    pub const READER_GROUP: u8 = 0x09;
    /// Bits set in every built-in entity.
    pub const BUILTIN: u8 = 0xc0;
}

impl EntityId {
    /// Unknown entity; as a destination, all matched endpoints.
    pub const UNKNOWN: Self = Self([0; 4]);
    /// The participant itself.
    pub const PARTICIPANT: Self = Self([0x00, 0x00, 0x01, 0xc1]);
    /// SPDP writer.
    pub const SPDP_WRITER: Self = Self([0x00, 0x01, 0x00, 0xc2]);
    /// SPDP reader.
    pub const SPDP_READER: Self = Self([0x00, 0x01, 0x00, 0xc7]);
    /// SEDP publications writer.
    pub const SEDP_PUBLICATIONS_WRITER: Self = Self([0x00, 0x00, 0x03, 0xc2]);
    /// SEDP publications reader.
    pub const SEDP_PUBLICATIONS_READER: Self = Self([0x00, 0x00, 0x03, 0xc7]);
    /// SEDP subscriptions writer.
    pub const SEDP_SUBSCRIPTIONS_WRITER: Self = Self([0x00, 0x00, 0x04, 0xc2]);
    /// SEDP subscriptions reader.
    pub const SEDP_SUBSCRIPTIONS_READER: Self = Self([0x00, 0x00, 0x04, 0xc7]);
    /// Participant message writer: sends liveliness assertions (RTPS 2.5 §8.4.13).
    pub const P2P_MESSAGE_WRITER: Self = Self([0x00, 0x02, 0x00, 0xc2]);
    /// Participant message reader: receives liveliness assertions.
    pub const P2P_MESSAGE_READER: Self = Self([0x00, 0x02, 0x00, 0xc7]);

    /// Creates the id of a user-defined entity from the lower 24 bits of `key` and a kind of [`EntityKind`].
    #[must_use]
    pub const fn user(key: u32, kind: u8) -> Self {
        let [_, high, middle, low] = key.to_be_bytes();
        Self([high, middle, low, kind])
    }

    const fn kind(self) -> u8 {
        self.0[3] & 0x3f
    }

    /// Returns true for an entity defined by the standard.
    #[inline]
    #[must_use]
    pub const fn is_builtin(self) -> bool {
        self.0[3] & EntityKind::BUILTIN == EntityKind::BUILTIN
    }

    /// Returns true for a writer.
    #[inline]
    #[must_use]
    pub const fn is_writer(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::WRITER_WITH_KEY | EntityKind::WRITER_NO_KEY
        )
    }

    /// Returns true for a reader.
    #[inline]
    #[must_use]
    pub const fn is_reader(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::READER_WITH_KEY | EntityKind::READER_NO_KEY
        )
    }

    /// Returns true for a writer or reader of a keyed topic.
    #[inline]
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::WRITER_WITH_KEY | EntityKind::READER_WITH_KEY
        )
    }
}

/// Globally unique id of an entity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid {
    /// Participant part.
    pub prefix: GuidPrefix,
    /// Entity part.
    pub entity: EntityId,
}

impl Guid {
    /// Unknown GUID.
    pub const UNKNOWN: Self = Self {
        prefix: GuidPrefix::UNKNOWN,
        entity: EntityId::UNKNOWN,
    };

    /// Decodes the sixteen bytes of the wire form.
    #[inline]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, entity @ ..] = bytes;
        Self {
            prefix: GuidPrefix([a, b, c, d, e, f, g, h, i, j, k, l]),
            entity: EntityId(entity),
        }
    }

    /// Returns the sixteen bytes of the wire form, which are also the key hash of the built-in topics.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.prefix.0;
        let [m, n, o, p] = self.entity.0;
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }
}

fn hexadecimal(bytes: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes
        .iter()
        .try_for_each(|byte| write!(formatter, "{byte:02x}"))
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        hexadecimal(&self.0, formatter)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        hexadecimal(&self.0, formatter)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.prefix, self.entity)
    }
}

/// Formats like [`Display`](fmt::Display), because hexadecimal is more readable than twelve decimal numbers.
impl fmt::Debug for GuidPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
