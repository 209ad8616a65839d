//! BPF link that attaches the program to the interface and detaches it with its owner.
//!
//! `bpf(2)` creates the link directly. Where the kernel refuses a link, the loader's library would
//! fall back to an attachment without an owner. Such a program would outlive a killed process and
//! drop frames by budgets that are no longer replenished.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// XDP attach mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttachMode {
    /// Driver mode: runs before the kernel allocates an skb.
    #[default]
    Native,
    /// Generic mode (`XDP_FLAGS_SKB_MODE`): runs on skbs, after the driver. Works on every device and saves nothing;
    /// used only on request.
    Generic,
}

/// Constants of `linux/bpf.h` and `linux/if_link.h`.
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

/// First fields of `struct bpf_link_info`, for a link of type XDP.
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

/// Program attached to an interface for as long as this value lives.
#[derive(Debug)]
pub(super) struct Link(OwnedFd);

/// Calls `bpf(2)` with an argument of plain numbers. The kernel reads fields beyond its end as
/// zeros.
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
        // SAFETY: the call has made this descriptor, and no other owner has it.
        Ok(Link(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Index of the attached interface. `None` once the interface is gone; the link outlives it.
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
