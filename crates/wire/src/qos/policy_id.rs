//! QoS policy ids, used to report incompatible policies.

use core::fmt;

/// QoS policy id (DDS 1.4 §2.3.3, `QosPolicyId_t`; DDS-XTypes 1.3 §7.6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

/// Defines the constants and their names.
macro_rules! policies {
    ($($name:ident = $number:literal,)+) => {
        #[allow(missing_docs, reason = "the names are the policies'")]
        impl PolicyId {
            $(pub const $name: Self = Self($number);)+

            /// Name of the policy in the standard; `UNKNOWN` if it has none.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

policies! {
    USER_DATA = 1,
    DURABILITY = 2,
    PRESENTATION = 3,
    DEADLINE = 4,
    LATENCY_BUDGET = 5,
    OWNERSHIP = 6,
    OWNERSHIP_STRENGTH = 7,
    LIVELINESS = 8,
    TIME_BASED_FILTER = 9,
    PARTITION = 10,
    RELIABILITY = 11,
    DESTINATION_ORDER = 12,
    HISTORY = 13,
    RESOURCE_LIMITS = 14,
    ENTITY_FACTORY = 15,
    WRITER_DATA_LIFECYCLE = 16,
    READER_DATA_LIFECYCLE = 17,
    TOPIC_DATA = 18,
    GROUP_DATA = 19,
    TRANSPORT_PRIORITY = 20,
    LIFESPAN = 21,
    DURABILITY_SERVICE = 22,
    DATA_REPRESENTATION = 23,
    TYPE_CONSISTENCY_ENFORCEMENT = 24,
}

impl fmt::Debug for PolicyId {
    /// Formats the name, or the number of an unknown policy.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(formatter, "PolicyId({})", self.0),
            name => formatter.write_str(name),
        }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
