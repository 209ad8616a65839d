//! Every bound of this crate, with its reason.

/// Datagrams one call of a datapath moves at most. Sixteen make the cost of a system call small
/// beside that of the datagrams (a sixteenth of about 200 ns), and are the longest that a more
/// critical lane waits for one call.
pub const MAX_BURST: usize = 16;

/// (frame, destination) pairs of one transmit burst: a frame for each of 16 destinations in a
/// full burst would be 256; most frames have one. A single frame reaches this many unicast
/// readers without a copy.
pub const MAX_MESSAGES: usize = 64;

/// Bytes of a frame. Peers send datagrams of up to 65.5 kB (Fast DDS), and 65,507 bytes are the
/// most that UDP over IPv4 carries; the next power of two keeps frames on page boundaries, so
/// that a page of memory is touched for one frame only.
pub const FRAME_BYTES: usize = 65_536;

/// The largest UDP payload over IPv4: 65,535 less 20 bytes of IPv4 and 8 of UDP header.
pub const MAX_UDP_PAYLOAD: usize = 65_507;

/// Receive frames of an open lane: one burst armed in the datapath, and a few that jobs may
/// hold while the next burst is received.
pub const RECEIVE_FRAMES: usize = MAX_BURST + 4;

/// Transmit frames of a level: two bursts, so that one can be filled while another leaves.
pub const TRANSMIT_FRAMES: usize = 2 * MAX_BURST;

/// Frames of one class at most, leased ones included: at 64 KiB each 4 GiB of addresses.
pub const MAX_CLASS_FRAMES: usize = 65_536;

/// Interfaces used at once. A host with more names those it means.
pub const MAX_INTERFACES: usize = 8;

/// Participants a host can have in one domain: RTPS 2.5 §9.6.2.3 leaves ports for 120 between
/// 7410 and the next domain's 7650.
pub const MAX_PARTICIPANT_ID: u32 = 119;

/// The last domain whose ports fit into 16 bits (RTPS 2.5 §9.6.2.3): 7400 + 250 · 232 = 65,400,
/// which leaves room for 63 participants.
pub const MAX_DOMAIN: u32 = 232;

/// Errors of earlier datagrams (ICMP) read at once from a socket: enough for one burst, and a
/// bound on the work that a host which refuses everything can cause in one call.
pub const MAX_BOUNCES: usize = MAX_BURST;

/// Messages about changed addresses of the host that one look takes: a host that changes more of them in a second is
/// looked at again in the next.
pub const MAX_ADDRESS_CHANGES: usize = 64;

/// A distance of the two clocks that differs by more than this from the last one: they are read
/// one directly after the other, which takes some ten nanoseconds, with system calls a few hundred.
/// A smaller step shifts the stamps of one burst by no more than that.
pub const CLOCK_STEP_NS: u64 = 5_000;

/// Readings that must agree that the wall clock was stepped: an interrupt may fall between the
/// two clocks of a reading, hardly between those of three in a row.
pub const CLOCK_READINGS: usize = 3;

/// Notes a datapath keeps about what it had to do without: one a socket and interface, at most.
pub const MAX_NOTES: usize = 64;

/// Bytes a lane of the memory datapath queues, unless configured: as much as Linux gives a UDP
/// socket by default (`net.core.rmem_default`).
pub const MEMORY_QUEUE_BYTES: usize = 212_992;

/// Datagrams a lane of the memory datapath queues, unless configured.
pub const MEMORY_QUEUE_DATAGRAMS: usize = 256;

/// Participants on one memory network: one a value of the last byte of the address.
pub const MEMORY_MEMBERS: usize = 256;

/// Queues of devices that frames are received from: as many as lanes, one each.
pub const MAX_DEVICE_QUEUES: usize = 8;

/// Ports of single topics in one lane: each is looked at when one of them is readable, by a system
/// call of its own.
pub const MAX_LANE_FLOWS: usize = 16;
