//! Bounds of this crate, each with its reason. CDR has its own,
//! [`cdr::limits`](crate::cdr::limits).

/// Maximum number of locators that are stored from each locator list of an announcement.
///
/// A host announces one locator per interface and address family. Locators beyond the maximum are skipped,
/// because one working locator is enough. Eight locators take at most 200 bytes.
pub const MAX_LOCATORS: usize = 8;

/// Maximum length of a topic or type name, in bytes without the NUL.
///
/// DDS sets no bound; other implementations allow 255 or 256 bytes. A longer name is refused. It is not cut,
/// because a cut name would match the wrong topic.
pub const MAX_NAME_BYTES: usize = 256;

/// Maximum length of a participant's name, in bytes. Longer names are cut: they are only displayed.
pub const MAX_ENTITY_NAME_BYTES: usize = 64;

/// Maximum number of names in a PARTITION policy; one or two are usual. An endpoint with more names is refused,
/// because dropping a name would prevent matches.
pub const MAX_PARTITIONS: usize = 8;

/// Maximum length of a partition name, in bytes without the NUL. Endpoints with longer names are refused.
pub const MAX_PARTITION_BYTES: usize = 64;

/// Maximum size of USER_DATA, TOPIC_DATA and GROUP_DATA in bytes. ROS 2 announces about eighty bytes per
/// endpoint. Longer data of peers is cut: isolane does not interpret it.
pub const MAX_OCTETS: usize = 256;

/// Maximum size of an announced content filter in bytes, enough for about twenty comparisons. A writer sends
/// all samples to a reader with a longer filter, and the reader filters them.
pub const MAX_CONTENT_FILTER_BYTES: usize = 1_024;

/// Maximum number of expression parameters: DDS numbers them from 0 to 99 (DDS 1.4 Annex B).
pub const MAX_FILTER_PARAMETERS: usize = 100;

/// Maximum number of data representations that are stored from an endpoint's announcement. The standard defines
/// three (DDS-XTypes 1.3 §7.6.3.1.1).
pub const MAX_DATA_REPRESENTATIONS: usize = 4;

/// Maximum number of VLAN tags in a frame: a service tag and a customer tag (IEEE 802.1Q §9). The classifier
/// has the same limit.
pub const MAX_VLAN_TAGS: usize = 2;
