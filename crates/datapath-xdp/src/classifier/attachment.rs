//! The program's place at the driver: a link that goes with its owner.
//!
//! Made by the kernel's own call rather than through the loader's library, which would fall back to
//! an attachment without owner where the kernel refuses a link: such a program stays when its process
//! is killed, and drops frames by budgets that nobody fills up.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// How a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttachMode {
    /// In the driver, before the kernel makes a packet of a frame.
    #[default]
    Native,
    /// Behind the driver, for each packet the kernel has made: works everywhere and saves nothing. Only
    /// for those who ask for it.
    Generic,
}

/// From `linux/bpf.h` and `linux/if_link.h`.
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface_index: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct GetInfo {
    descriptor: u32,
    length: u32,
    information: u64,
}

/// The front of `struct bpf_link_info`, for a link of type XDP.
#[repr(C)]
#[derive(Default)]
struct LinkInformation {
    kind: u32,
    id: u32,
    program_id: u32,
    padding: u32,
    interface_index: u32,
    padding_of_the_union: u32,
}

/// A program at a driver, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Link(OwnedFd);

/// Calls `bpf(2)` with an argument that is made of plain numbers, of which the kernel takes those
/// behind its end for zeros.
fn bpf<T>(command: libc::c_long, argument: &mut T) -> io::Result<libc::c_int> {
    let size = size_of::<T>();
    // SAFETY: the argument is valid for its size, and so is what it points to; both callers see to
    // that.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *argument, size) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}

impl Link {
    pub(super) fn new(
        program: BorrowedFd<'_>,
        interface_index: u32,
        mode: AttachMode,
    ) -> io::Result<Link> {
        let mut argument = LinkCreate {
            program: program.as_raw_fd() as u32,
            interface_index,
            attach_type: BPF_XDP,
            flags: match mode {
                AttachMode::Native => XDP_FLAGS_DRV_MODE,
                AttachMode::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        let descriptor = bpf(BPF_LINK_CREATE, &mut argument)?;
        // SAFETY: the call has made this descriptor, and nobody else has it.
        Ok(Link(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// The interface it is on; `None` once that is gone. A link outlives its interface, empty.
    pub(super) fn interface_index(&self) -> Option<u32> {
        let mut information = LinkInformation::default();
        let mut argument = GetInfo {
            descriptor: self.0.as_raw_fd() as u32,
            length: size_of::<LinkInformation>() as u32,
            information: &raw mut information as u64,
        };
        bpf(BPF_OBJ_GET_INFO_BY_FD, &mut argument).ok()?;
        Some(information.interface_index).filter(|index| *index != 0)
    }
}
