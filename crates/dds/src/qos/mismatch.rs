//! All reasons why two endpoints do not match, for diagnosis.
//!
//! The protocol makes the same checks when it matches endpoints, and stops at the first failure.

use std::fmt;

use isolane_rtps::{incompatible_policies, partitions_match};
use isolane_wire::{builtin_data::EndpointData, qos::PolicyId};

/// Reason why a writer and a reader do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The topic names differ.
    Topic,
    /// The type names differ.
    Type,
    /// Only one of the types has a key.
    Key,
    /// The endpoints share no partition (DDS 1.4 §2.2.3.13).
    Partition,
    /// The writer offers less than the reader requests in this policy (§2.2.3).
    Policy(PolicyId),
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Topic => "topic name",
            Self::Type => "type name",
            Self::Key => "key",
            Self::Partition => PolicyId::PARTITION.name(),
            Self::Policy(policy) => policy.name(),
        })
    }
}

/// Returns all reasons why a writer and a reader do not match. An empty list means that their announcements match.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Difference, Network, Participant, PolicyId, Qos, TopicType, differences};
///
/// #[derive(TopicType)]
/// struct Reading { celsius: f32 }
///
/// let network = Network::new(1);
/// let looker = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let other = Participant::builder(0).memory(&network, [10, 0, 0, 2]).build()?;
/// let _writer = other.create_writer::<Reading>("Readings", &Qos::best_effort())?;
/// let _reader = other.create_reader::<Reading>("Readings", &Qos::reliable().transient_local())?;
/// while looker.endpoints().len() < 2 {
///     looker.run_for(Duration::from_millis(1));
///     other.run_for(Duration::from_millis(1));
/// }
/// let (writers, readers) = (looker.publications(), looker.subscriptions());
/// assert_eq!(
///     differences(&writers[0].data, &readers[0].data),
///     [
///         Difference::Policy(PolicyId::DURABILITY),
///         Difference::Policy(PolicyId::RELIABILITY),
///     ]
/// );
/// # Ok::<(), isolane::BuildError>(())
/// ```
#[must_use]
pub fn differences(writer: &EndpointData, reader: &EndpointData) -> Vec<Difference> {
    let stated = [
        (writer.topic_name == reader.topic_name, Difference::Topic),
        (writer.type_name == reader.type_name, Difference::Type),
        (writer.is_keyed() == reader.is_keyed(), Difference::Key),
        (
            partitions_match(&writer.qos.partition, &reader.qos.partition),
            Difference::Partition,
        ),
    ];
    let stated = stated
        .into_iter()
        .filter_map(|(agrees, difference)| (!agrees).then_some(difference));
    let policies = incompatible_policies(&writer.qos, &reader.qos).map(Difference::Policy);
    stated.chain(policies).collect()
}
