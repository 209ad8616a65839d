//! Every bound of this crate, with its reason. Those of CDR stand in
//! [`cdr::limits`](crate::cdr::limits).

/// Most locators kept of one list in an announcement.
///
/// A host announces one per interface and address family it speaks; further ones are skipped, since
/// one that works is enough. Eight fills no more than 200 bytes a list.
pub const MAX_LOCATORS: usize = 8;

/// Longest topic or type name, in bytes without the NUL.
///
/// DDS sets no bound, but other implementations stop at 255 or 256; a longer name is refused, not
/// cut, since a cut name would match the wrong topic.
pub const MAX_NAME_BYTES: usize = 256;

/// Longest name of a participant, in bytes. It is only shown to people, so a longer one is cut.
pub const MAX_ENTITY_NAME_BYTES: usize = 64;

/// Most names in one PARTITION policy. In practice there are one or two; an endpoint with more is
/// refused, since forgetting one would part endpoints that belong together.
pub const MAX_PARTITIONS: usize = 8;

/// Longest name of a partition, in bytes without the NUL; an endpoint with a longer one is refused.
pub const MAX_PARTITION_BYTES: usize = 64;

/// Most octets of USER_DATA, TOPIC_DATA or GROUP_DATA. ROS 2 announces some eighty of them with an endpoint;
/// of longer ones of a peer the first are kept, since nothing that isolane does depends on them.
pub const MAX_OCTETS: usize = 256;

/// Bytes of an announced content filter that are kept: some twenty comparisons. A reader with a longer one
/// filters alone, as one does whose writer knows no filters.
pub const MAX_CONTENT_FILTER_BYTES: usize = 1_024;

/// Most parameters of a content filter: DDS numbers them from 0 to 99 (DDS 1.4 Annex B).
pub const MAX_FILTER_PARAMETERS: usize = 100;

/// Most data representations kept of an endpoint: the standard defines three (DDS-XTypes 1.3
/// §7.6.3.1.1).
pub const MAX_DATA_REPRESENTATIONS: usize = 4;

/// Most VLAN tags in front of the payload of an Ethernet frame: a service tag and a customer tag
/// (IEEE 802.1Q §9). The classifier looks no further either.
pub const MAX_VLAN_TAGS: usize = 2;
