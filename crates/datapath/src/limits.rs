//! Bounds of this crate, each with its reason.

/// Maximum datagrams moved by a call. With sixteen, each datagram costs a sixteenth of a system call (about 200 ns).
/// The bound also limits the time that a more critical lane waits for a call.
pub const MAX_BURST: usize = 16;

/// Maximum (frame, destination) pairs in a transmit burst. A full burst with 16 destinations for each frame would have
/// 256 pairs, but most frames have one destination. A single frame reaches this many unicast readers without a copy.
pub const MAX_MESSAGES: usize = 64;

/// Size of a frame in bytes. Peers send datagrams up to 65.5 kB (Fast DDS); the maximum of UDP over IPv4 is 65,507. The
/// next power of two keeps frames on page boundaries, so no two frames share a page.
pub const FRAME_BYTES: usize = 65_536;

/// Maximum UDP payload over IPv4: 65,535 less 20 bytes of IPv4 and 8 of UDP header.
pub const MAX_UDP_PAYLOAD: usize = 65_507;

/// Maximum datagrams in a segmented burst that is sent: UDP_MAX_SEGMENTS of Linux before 6.9. A received one may have
/// more (128 since 6.9).
pub const MAX_SEGMENTS: usize = 64;

/// Receive frames of a lane: one burst armed in the datapath, and a few held by jobs while the next burst is received.
pub const RECEIVE_FRAMES: usize = MAX_BURST + 4;

/// Transmit frames of a level: two bursts, so that one can be filled while another is sent.
pub const TRANSMIT_FRAMES: usize = 2 * MAX_BURST;

/// Maximum frames of a class, including leased ones: 4 GiB of address space at 64 KiB each.
pub const MAX_CLASS_FRAMES: usize = 65_536;

/// Maximum number of interfaces. A host with more must name those to use.
pub const MAX_INTERFACES: usize = 8;

/// Maximum participant id of a host in a domain: RTPS 2.5 §9.6.2.3 leaves ports for 120 between 7410 and the next
/// domain's 7650.
pub const MAX_PARTICIPANT_ID: u32 = 119;

/// Last domain whose ports fit into 16 bits (RTPS 2.5 §9.6.2.3): 7400 + 250 · 232 = 65,400, with room for 63
/// participants.
pub const MAX_DOMAIN: u32 = 232;

/// Maximum number of errors of earlier datagrams (ICMP) read from a socket in one call: as many as a burst has
/// datagrams. A host that refuses every datagram thus causes bounded work.
pub const MAX_BOUNCES: usize = MAX_BURST;

/// Maximum number of address change messages read in a check; further ones are read in the next check, a second later.
pub const MAX_ADDRESS_CHANGES: usize = 64;

/// Minimum change of the offset between the two clocks that counts as a step. The two clocks are read within some ten
/// nanoseconds, or a few hundred with system calls. A smaller step shifts a burst's stamps by less.
pub const CLOCK_STEP_NS: u64 = 5_000;

/// Readings that must agree on a step. An interrupt may fall between the readings of the two clocks once, but hardly
/// three times in a row.
pub const CLOCK_READINGS: usize = 3;

/// Maximum number of drop reasons that one datapath adds: AF_XDP has nine.
pub const MAX_OWN_RECEIVE_DROPS: usize = 16;

/// Maximum number of refusal reasons that one datapath adds: AF_XDP has two.
pub const MAX_OWN_REFUSALS: usize = 8;

/// Maximum number of kinds of events that one datapath adds: AF_XDP has eighteen.
pub const MAX_OWN_EVENTS: usize = 24;

/// Maximum number of warnings of a datapath: about one for each socket and interface.
pub const MAX_WARNINGS: usize = 64;

/// Default queue size of a memory datapath lane in bytes: that of a participant's socket, so that a large sample fits.
pub const MEMORY_QUEUE_BYTES: usize = 1 << 20;

/// Default queue size of a memory datapath lane in datagrams: 768 datagrams of 1,365 B fill these bytes.
pub const MEMORY_QUEUE_DATAGRAMS: usize = 768;

/// Maximum participants in a memory network: one for each value of the address' last byte.
pub const MEMORY_MEMBERS: usize = 256;

/// Maximum device queues to receive from: one for each level.
pub const MAX_DEVICE_QUEUES: usize = 8;

/// Maximum flows in a lane: when one is readable, each is checked by a system call.
pub const MAX_LANE_FLOWS: usize = 16;

/// Rate in bits per second assumed for a link whose driver does not report one.
pub const USUAL_LINK_BITS_PER_S: u64 = 1_000_000_000;
