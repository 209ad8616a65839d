//! Who sends and who is meant: GUIDs (RTPS 2.5 §9.3.1).

use core::fmt;

/// The part of a GUID that all entities of a participant share. The bytes have no order: they
/// travel as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

impl GuidPrefix {
    /// Nobody in particular; as a destination, everybody.
    pub const UNKNOWN: Self = Self([0; 12]);
}

/// The part of a GUID that names an entity within its participant: three bytes of key, one of kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityId(pub [u8; 4]);

/// The kinds that an entity identifier's last byte can name, in its lower six bits (RTPS 2.5
/// §9.3.1.2). [`EntityKind::BUILTIN`] is added for built-in entities.
pub struct EntityKind;

impl EntityKind {
    /// A writer of a topic with a key.
    pub const WRITER_WITH_KEY: u8 = 0x02;
    /// A writer of a topic without a key.
    pub const WRITER_NO_KEY: u8 = 0x03;
    /// A reader of a topic without a key.
    pub const READER_NO_KEY: u8 = 0x04;
    /// A reader of a topic with a key.
    pub const READER_WITH_KEY: u8 = 0x07;
    /// A publisher.
    pub const WRITER_GROUP: u8 = 0x08;
    /// A subscriber.
    pub const READER_GROUP: u8 = 0x09;
    /// The two bits that every built-in entity has set.
    pub const BUILTIN: u8 = 0xc0;
}

impl EntityId {
    /// No entity in particular; as a destination, all that match.
    pub const UNKNOWN: Self = Self([0; 4]);
    /// The participant itself.
    pub const PARTICIPANT: Self = Self([0x00, 0x00, 0x01, 0xc1]);
    /// Announces participants.
    pub const SPDP_WRITER: Self = Self([0x00, 0x01, 0x00, 0xc2]);
    /// Hears of participants.
    pub const SPDP_READER: Self = Self([0x00, 0x01, 0x00, 0xc7]);
    /// Announces writers.
    pub const SEDP_PUBLICATIONS_WRITER: Self = Self([0x00, 0x00, 0x03, 0xc2]);
    /// Hears of writers.
    pub const SEDP_PUBLICATIONS_READER: Self = Self([0x00, 0x00, 0x03, 0xc7]);
    /// Announces readers.
    pub const SEDP_SUBSCRIPTIONS_WRITER: Self = Self([0x00, 0x00, 0x04, 0xc2]);
    /// Hears of readers.
    pub const SEDP_SUBSCRIPTIONS_READER: Self = Self([0x00, 0x00, 0x04, 0xc7]);
    /// Says that writers are alive (RTPS 2.5 §8.4.13).
    pub const P2P_MESSAGE_WRITER: Self = Self([0x00, 0x02, 0x00, 0xc2]);
    /// Hears that writers are alive.
    pub const P2P_MESSAGE_READER: Self = Self([0x00, 0x02, 0x00, 0xc7]);

    /// An entity of a user: the lower 24 bits of `key`, and a kind of [`EntityKind`].
    #[must_use]
    pub const fn user(key: u32, kind: u8) -> Self {
        let [_, high, middle, low] = key.to_be_bytes();
        Self([high, middle, low, kind])
    }

    const fn kind(self) -> u8 {
        self.0[3] & 0x3f
    }

    /// Whether the standard defines this entity, rather than a user or a vendor.
    #[inline]
    #[must_use]
    pub const fn is_builtin(self) -> bool {
        self.0[3] & EntityKind::BUILTIN == EntityKind::BUILTIN
    }

    /// Whether it is a writer.
    #[inline]
    #[must_use]
    pub const fn is_writer(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::WRITER_WITH_KEY | EntityKind::WRITER_NO_KEY
        )
    }

    /// Whether it is a reader.
    #[inline]
    #[must_use]
    pub const fn is_reader(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::READER_WITH_KEY | EntityKind::READER_NO_KEY
        )
    }

    /// Whether it is a writer or reader of a topic with a key.
    #[inline]
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        matches!(
            self.kind(),
            EntityKind::WRITER_WITH_KEY | EntityKind::READER_WITH_KEY
        )
    }
}

/// The name of an entity, unique in its domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid {
    /// The participant's part.
    pub prefix: GuidPrefix,
    /// The entity's part.
    pub entity: EntityId,
}

impl Guid {
    /// No entity.
    pub const UNKNOWN: Self = Self {
        prefix: GuidPrefix::UNKNOWN,
        entity: EntityId::UNKNOWN,
    };

    /// From the sixteen bytes that travel.
    #[inline]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, entity @ ..] = bytes;
        Self {
            prefix: GuidPrefix([a, b, c, d, e, f, g, h, i, j, k, l]),
            entity: EntityId(entity),
        }
    }

    /// The sixteen bytes that travel; also the key hash of a built-in topic's instance.
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

/// As displayed: sixteen decimal numbers would help nobody.
impl fmt::Debug for GuidPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// As displayed.
impl fmt::Debug for EntityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// As displayed.
impl fmt::Debug for Guid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
