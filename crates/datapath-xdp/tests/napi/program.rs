//! The smallest XDP program there is: it lets every frame pass.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands and types of `bpf(2)`.
const PROG_LOAD: i64 = 5;
const LINK_CREATE: i64 = 28;
const TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Run by the driver, not by the stack.
const DRIVER_MODE: u32 = 1 << 2;

/// The fields of `union bpf_attr` for PROG_LOAD that matter here; the kernel takes the rest as zero.
#[repr(C)]
struct Load {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
}

/// Those for LINK_CREATE.
#[repr(C)]
struct CreateLink {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// The program on an interface, until this is dropped.
pub(crate) struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

impl Attached {
    pub(crate) fn new(interface_index: u32) -> Attached {
        // r0 = XDP_PASS; exit
        let instructions: [u64; 2] = [0x0000_0002_0000_00b7, 0x0000_0000_0000_0095];
        let license = c"Dual MIT/GPL";
        let program = bpf(
            PROG_LOAD,
            &Load {
                program_type: TYPE_XDP,
                instruction_count: 2,
                instructions: instructions.as_ptr() as u64,
                license: license.as_ptr() as u64,
            },
        );
        let link = bpf(
            LINK_CREATE,
            &CreateLink {
                program: program.as_raw_fd() as u32,
                interface: interface_index,
                attach_type: ATTACH_XDP,
                flags: DRIVER_MODE,
            },
        );
        Attached {
            _program: program,
            _link: link,
        }
    }
}

fn bpf<T>(command: i64, argument: &T) -> OwnedFd {
    // SAFETY: the argument is as long as said, holds no padding, and what it points to is alive
    // during the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(argument),
            size_of::<T>(),
        )
    };
    let error = std::io::Error::last_os_error();
    assert!(descriptor >= 0, "bpf command {command}: {error}");
    // SAFETY: the descriptor was just made, and is nobody else's.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}
