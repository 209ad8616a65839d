//! XDP programs of a few instructions, written as instructions, for tests of sockets and receive work without the
//! classifier.

#![allow(
    dead_code,
    reason = "each test and example needs one of these programs"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Number of lanes of each queue in a program's maps.
const LANES: u32 = 8;
const SLOTS: u32 = 8 * LANES;

/// Ethertype for experiments (IEEE 802.1), which no host answers.
pub(crate) const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

// Commands of bpf(2), and types of maps and programs.
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_OF_COUNTERS: u32 = 2;
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_AT_DRIVER: u32 = 6;
const ATTACH_AT_DRIVER: u32 = 37;
const IN_NATIVE_MODE: u32 = 4;

/// `union bpf_attr` in 64-bit words; unused fields are 0.
type Attributes = [u64; 16];

fn bpf(command: i32, attributes: &Attributes) -> io::Result<RawFd> {
    // SAFETY: the attributes are as long as said; pointers among them lead to memory that each
    // caller below borrows for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_ptr(),
            size_of::<Attributes>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as RawFd)
}

fn owned(descriptor: io::Result<RawFd>) -> io::Result<OwnedFd> {
    // SAFETY: bpf(2) made the descriptor just now.
    descriptor.map(|raw| unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Two 32-bit words in their order in memory.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

struct Map(OwnedFd);

impl Map {
    fn new(kind: u32, value_bytes: u32) -> io::Result<Map> {
        let mut attributes = Attributes::default();
        attributes[0] = pair(kind, 4);
        attributes[1] = pair(value_bytes, SLOTS);
        owned(bpf(MAP_CREATE, &attributes)).map(Map)
    }

    fn call<T>(&self, command: i32, key: u32, value: &mut T) -> io::Result<()> {
        let mut attributes = Attributes::default();
        attributes[0] = pair(self.0.as_raw_fd() as u32, 0);
        attributes[1] = (&raw const key).expose_provenance() as u64;
        attributes[2] = std::ptr::from_mut(value).expose_provenance() as u64;
        bpf(command, &attributes).map(drop)
    }

    fn delete(&self, key: u32) -> io::Result<()> {
        let mut attributes = Attributes::default();
        attributes[0] = pair(self.0.as_raw_fd() as u32, 0);
        attributes[1] = (&raw const key).expose_provenance() as u64;
        bpf(MAP_DELETE, &attributes).map(drop)
    }
}

/// Encoded instruction.
fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    let [low, high] = offset.to_ne_bytes();
    let [a, b, c, d] = number.to_ne_bytes();
    u64::from_ne_bytes([code, from << 4 | to, low, high, a, b, c, d])
}

const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const STORE_WORD: u8 = 0x63;
const ADD_ATOMICALLY: u8 = 0xdb;
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const ADD_REGISTER: u8 = 0x0f;
const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
const SHIFT_RIGHT: u8 = 0x77;
const IF_EQUAL: u8 = 0x15;
const IF_DIFFERENT: u8 = 0x55;
const IF_GREATER: u8 = 0x2d;
const LOAD_LONG: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const THAT_IS_A_MAP: u8 = 1;
const REDIRECT: i32 = 51;
const LOOK_UP: i32 = 1;
const PASS: i32 = 2;

/// Instructions at the start of a program: register 2 points to the first `bytes` of the frame; a shorter frame passes.
/// `rest` is the number of instructions up to the one that passes. The context stays in register 6.
fn begin(bytes: i32, rest: i16) -> Vec<u64> {
    vec![
        instruction(MOVE, 6, 1, 0, 0),
        instruction(LOAD_WORD, 2, 6, 0, 0),
        instruction(LOAD_WORD, 3, 6, 4, 0),
        instruction(MOVE, 4, 2, 0, 0),
        instruction(ADD, 4, 0, 0, bytes),
        instruction(IF_GREATER, 4, 3, rest, 0),
    ]
}

/// Instructions that set register `to` to receive queue · 8 + register 7.
fn slot(to: u8) -> [u64; 4] {
    [
        instruction(LOAD_WORD, to, 6, 16, 0),
        instruction(AND, to, 0, 0, 7),
        instruction(SHIFT_LEFT, to, 0, 0, 3),
        instruction(ADD_REGISTER, to, 7, 0, 0),
    ]
}

fn load_map(to: u8, map: &Map) -> [u64; 2] {
    let descriptor = map.0.as_raw_fd();
    [
        instruction(LOAD_LONG, to, THAT_IS_A_MAP, 0, descriptor),
        instruction(0, 0, 0, 0, 0),
    ]
}

fn pass() -> [u64; 2] {
    [
        instruction(SET, 0, 0, 0, PASS),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// Program that stays attached to a device until it is dropped.
struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Loads a program and attaches it in native mode, in the calling thread's network namespace.
fn attach(instructions: &[u64], interface_index: u32) -> io::Result<Attached> {
    let licence = c"GPL";
    let mut complaint = vec![0_u8; 16_384];
    let mut attributes = Attributes::default();
    attributes[0] = pair(PROGRAM_AT_DRIVER, instructions.len() as u32);
    attributes[1] = instructions.as_ptr().expose_provenance() as u64;
    attributes[2] = licence.as_ptr().expose_provenance() as u64;
    attributes[3] = pair(1, complaint.len() as u32);
    attributes[4] = complaint.as_mut_ptr().expose_provenance() as u64;
    let program = owned(bpf(PROGRAM_LOAD, &attributes)).map_err(|error| {
        let end = complaint.iter().position(|&byte| byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&complaint[..end]);
        io::Error::new(error.kind(), format!("{error}\n{text}"))
    })?;
    let mut attributes = Attributes::default();
    attributes[0] = pair(program.as_raw_fd() as u32, interface_index);
    attributes[1] = pair(ATTACH_AT_DRIVER, IN_NATIVE_MODE);
    let link = owned(bpf(LINK_CREATE, &attributes))?;
    Ok(Attached {
        _program: program,
        _link: link,
    })
}

/// Program that passes every frame. With it, a device receives as with any XDP program.
pub(crate) struct PassAll {
    _attached: Attached,
}

impl PassAll {
    /// Attaches the program in the calling thread's network namespace.
    pub(crate) fn attach(interface_index: u32) -> io::Result<PassAll> {
        let _attached = attach(&pass(), interface_index)?;
        Ok(PassAll { _attached })
    }
}

/// Program that redirects frames of [`ETHER_TYPE`] to sockets. The first byte of a frame's payload is its lane. All
/// other frames pass, and so do frames of a queue and lane without a socket.
pub(crate) struct Redirect {
    sockets: Map,
    _attached: Attached,
}

impl Redirect {
    /// Attaches the program in the calling thread's network namespace.
    pub(crate) fn attach(interface_index: u32) -> io::Result<Redirect> {
        let sockets = Map::new(MAP_OF_SOCKETS, 4)?;
        let ether_type = i32::from(u16::from_ne_bytes(ETHER_TYPE));
        let mut program = begin(15, 13);
        program.extend([
            instruction(LOAD_HALF, 5, 2, 12, 0),
            instruction(IF_DIFFERENT, 5, 0, 11, ether_type),
            instruction(LOAD_BYTE, 7, 2, 14, 0),
            instruction(AND, 7, 0, 0, 7),
        ]);
        program.extend(slot(2));
        program.extend(load_map(1, &sockets));
        program.extend([
            instruction(SET, 3, 0, 0, PASS),
            instruction(CALL, 0, 0, 0, REDIRECT),
            instruction(EXIT, 0, 0, 0, 0),
        ]);
        program.extend(pass());
        Ok(Redirect {
            _attached: attach(&program, interface_index)?,
            sockets,
        })
    }

    /// Redirects frames of the lane on that receive queue to the socket from now on.
    pub(crate) fn name(&self, queue: u32, lane: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut value = socket.as_raw_fd() as u32;
        let key = queue * LANES + lane;
        self.sockets.call(MAP_UPDATE, key, &mut value)
    }

    /// Lets frames of the lane pass again.
    pub(crate) fn forget(&self, queue: u32, lane: u32) -> io::Result<()> {
        self.sockets.delete(queue * LANES + lane)
    }
}

/// Program that counts IPv4 frames by receive queue and class (from their DSCP), and passes all frames.
pub(crate) struct ClassCounter {
    counts: Map,
    _attached: Attached,
}

impl ClassCounter {
    /// Attaches the program in the calling thread's network namespace.
    pub(crate) fn attach(interface_index: u32) -> io::Result<ClassCounter> {
        let counts = Map::new(MAP_OF_COUNTERS, 8)?;
        let ether_type = i32::from(u16::from_ne_bytes([8, 0]));
        let mut program = begin(34, 17);
        program.extend([
            instruction(LOAD_HALF, 5, 2, 12, 0),
            instruction(IF_DIFFERENT, 5, 0, 15, ether_type),
            instruction(LOAD_BYTE, 7, 2, 15, 0),
            instruction(SHIFT_RIGHT, 7, 0, 0, 5),
        ]);
        program.extend(slot(3));
        program.extend([
            instruction(STORE_WORD, 10, 3, -4, 0),
            instruction(MOVE, 2, 10, 0, 0),
            instruction(ADD, 2, 0, 0, -4),
        ]);
        program.extend(load_map(1, &counts));
        program.extend([
            instruction(CALL, 0, 0, 0, LOOK_UP),
            instruction(IF_EQUAL, 0, 0, 2, 0),
            instruction(SET, 1, 0, 0, 1),
            instruction(ADD_ATOMICALLY, 0, 1, 0, 0),
        ]);
        program.extend(pass());
        Ok(ClassCounter {
            _attached: attach(&program, interface_index)?,
            counts,
        })
    }

    /// Number of frames of a class that arrived on a receive queue.
    pub(crate) fn count(&self, queue: u32, class: u32) -> io::Result<u64> {
        let mut count = 0_u64;
        let key = queue * LANES + class;
        self.counts.call(MAP_LOOKUP, key, &mut count)?;
        Ok(count)
    }
}

/// Program that forwards every frame to another device. It puts so much metadata in front that no program behind it has
/// room for more. The last eight bytes are [`METADATA`](Self::METADATA).
pub(crate) struct ForwardFull {
    _attached: Attached,
}

impl ForwardFull {
    /// The eight bytes directly in front of each frame.
    pub(crate) const METADATA: [u8; 8] = [0x55; 8];

    /// Attaches the program; both devices are in the calling thread's network namespace.
    pub(crate) fn attach(from: u32, to: u32) -> io::Result<ForwardFull> {
        const MAKE_ROOM: i32 = 54;
        const FORWARD: i32 = 23;
        let make_room = |bytes: i32| {
            [
                instruction(MOVE, 1, 6, 0, 0),
                instruction(SET, 2, 0, 0, -bytes),
                instruction(CALL, 0, 0, 0, MAKE_ROOM),
            ]
        };
        let pattern = i32::from_ne_bytes([Self::METADATA[0]; 4]);
        let mut program = vec![instruction(MOVE, 6, 1, 0, 0)];
        program.extend(make_room(8));
        program.extend([
            instruction(LOAD_WORD, 2, 6, 8, 0),
            instruction(LOAD_WORD, 3, 6, 0, 0),
            instruction(MOVE, 4, 2, 0, 0),
            instruction(ADD, 4, 0, 0, 8),
            // Jumps to the forwarding part, without the pattern.
            instruction(IF_GREATER, 4, 3, 3, 0),
            instruction(SET, 5, 0, 0, pattern),
            instruction(STORE_WORD, 2, 5, 0, 0),
            instruction(STORE_WORD, 2, 5, 4, 0),
        ]);
        // The kernel and the driver determine the maximum; larger requests are refused.
        for bytes in [128, 64, 32, 16, 8, 4] {
            program.extend(make_room(bytes));
        }
        program.extend([
            instruction(SET, 1, 0, 0, to as i32),
            instruction(SET, 2, 0, 0, 0),
            instruction(CALL, 0, 0, 0, FORWARD),
            instruction(EXIT, 0, 0, 0, 0),
        ]);
        let _attached = attach(&program, from)?;
        Ok(ForwardFull { _attached })
    }
}
