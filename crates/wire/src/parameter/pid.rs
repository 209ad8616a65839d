//! Parameter identifiers (RTPS 2.5 §9.6.3 and §9.6.4, DDS-XTypes 1.3 §7.6.3.2).

/// Padding; the value is ignored.
pub const PAD: u16 = 0x0000;
/// End of the list.
pub const SENTINEL: u16 = 0x0001;
/// Participant lease: a duration.
pub const PARTICIPANT_LEASE_DURATION: u16 = 0x0002;
/// TIME_BASED_FILTER: a duration.
pub const TIME_BASED_FILTER: u16 = 0x0004;
/// Topic name: a string.
pub const TOPIC_NAME: u16 = 0x0005;
/// OWNERSHIP_STRENGTH: a long.
pub const OWNERSHIP_STRENGTH: u16 = 0x0006;
/// Type name: a string.
pub const TYPE_NAME: u16 = 0x0007;
/// Domain id: an unsigned long.
pub const DOMAIN_ID: u16 = 0x000f;
/// RTPS version: two bytes.
pub const PROTOCOL_VERSION: u16 = 0x0015;
/// Vendor id: two bytes.
pub const VENDOR_ID: u16 = 0x0016;
/// RELIABILITY: kind, max_blocking_time.
pub const RELIABILITY: u16 = 0x001a;
/// LIVELINESS: kind, lease_duration.
pub const LIVELINESS: u16 = 0x001b;
/// DURABILITY: kind.
pub const DURABILITY: u16 = 0x001d;
/// DURABILITY_SERVICE: cleanup delay, history, resource limits.
pub const DURABILITY_SERVICE: u16 = 0x001e;
/// OWNERSHIP: kind.
pub const OWNERSHIP: u16 = 0x001f;
/// PRESENTATION: access scope, two booleans.
pub const PRESENTATION: u16 = 0x0021;
/// DEADLINE: a duration.
pub const DEADLINE: u16 = 0x0023;
/// DESTINATION_ORDER: kind.
pub const DESTINATION_ORDER: u16 = 0x0025;
/// LATENCY_BUDGET: a duration.
pub const LATENCY_BUDGET: u16 = 0x0027;
/// PARTITION: a sequence of strings.
pub const PARTITION: u16 = 0x0029;
/// LIFESPAN: a duration.
pub const LIFESPAN: u16 = 0x002b;
/// USER_DATA: a sequence of bytes.
pub const USER_DATA: u16 = 0x002c;
/// GROUP_DATA: a sequence of bytes.
pub const GROUP_DATA: u16 = 0x002d;
/// TOPIC_DATA: a sequence of bytes.
pub const TOPIC_DATA: u16 = 0x002e;
/// Unicast locator of the endpoint; may repeat.
pub const UNICAST_LOCATOR: u16 = 0x002f;
/// Multicast locator of the endpoint; may repeat.
pub const MULTICAST_LOCATOR: u16 = 0x0030;
/// Unicast locator of endpoints that announce no locators; may repeat.
pub const DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
/// Unicast locator of the built-in endpoints; may repeat.
pub const METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
/// Multicast locator of the built-in endpoints; may repeat.
pub const METATRAFFIC_MULTICAST_LOCATOR: u16 = 0x0033;
/// Number of assertions of MANUAL_BY_PARTICIPANT liveliness: a long.
pub const PARTICIPANT_MANUAL_LIVELINESS_COUNT: u16 = 0x0034;
/// Content filter of a reader.
pub const CONTENT_FILTER_PROPERTY: u16 = 0x0035;
/// HISTORY: kind, depth.
pub const HISTORY: u16 = 0x0040;
/// RESOURCE_LIMITS: three longs.
pub const RESOURCE_LIMITS: u16 = 0x0041;
/// True if the reader expects inline QoS with every sample: a boolean.
pub const EXPECTS_INLINE_QOS: u16 = 0x0043;
/// Multicast locator of endpoints that announce no locators; may repeat.
pub const DEFAULT_MULTICAST_LOCATOR: u16 = 0x0048;
/// TRANSPORT_PRIORITY: a long.
pub const TRANSPORT_PRIORITY: u16 = 0x0049;
/// Participant: a GUID.
pub const PARTICIPANT_GUID: u16 = 0x0050;
/// Publisher or subscriber: a GUID.
pub const GROUP_GUID: u16 = 0x0052;
/// Publisher or subscriber: an entity id.
pub const GROUP_ENTITY_ID: u16 = 0x0053;
/// Results of the filters that the writer applied to a sample.
pub const CONTENT_FILTER_INFO: u16 = 0x0055;
/// First sequence number of a coherent set.
pub const COHERENT_SET: u16 = 0x0056;
/// Destination reader of a directed write: a GUID.
pub const DIRECTED_WRITE: u16 = 0x0057;
/// Built-in endpoints of a participant: a bit set.
pub const BUILTIN_ENDPOINT_SET: u16 = 0x0058;
/// Properties: names and values.
pub const PROPERTY_LIST: u16 = 0x0059;
/// Endpoint: a GUID.
pub const ENDPOINT_GUID: u16 = 0x005a;
/// Maximum serialized size of the type: a long.
pub const TYPE_MAX_SIZE_SERIALIZED: u16 = 0x0060;
/// Original writer of a forwarded sample.
pub const ORIGINAL_WRITER_INFO: u16 = 0x0061;
/// Entity name for display: a string.
pub const ENTITY_NAME: u16 = 0x0062;
/// First group sequence number of a coherent set.
pub const GROUP_COHERENT_SET: u16 = 0x0063;
/// Group sequence number of a sample, counted over the whole publisher.
pub const GROUP_SEQ_NUM: u16 = 0x0064;
/// Digest of the writers of a publisher.
pub const WRITER_GROUP_INFO: u16 = 0x0065;
/// Key hash: sixteen bytes.
pub const KEY_HASH: u16 = 0x0070;
/// Disposed and unregistered flags: four bytes, always big-endian.
pub const STATUS_INFO: u16 = 0x0071;
/// DATA_REPRESENTATION: a sequence of shorts.
pub const DATA_REPRESENTATION: u16 = 0x0073;
/// TYPE_CONSISTENCY_ENFORCEMENT.
pub const TYPE_CONSISTENCY_ENFORCEMENT: u16 = 0x0074;
/// Type identifiers.
pub const TYPE_INFORMATION: u16 = 0x0075;
/// isolane's digest of the static endpoint description of a participant: eight bytes, always big-endian.
/// Identifiers from 0x8000 are vendor-specific.
pub const ISOLANE_STATIC_DIGEST: u16 = 0x8101;
