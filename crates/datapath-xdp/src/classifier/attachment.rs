//! Programs on the XDP hook: the BPF link of this process's program, and the identity of another process's program.
//!
//! The link is created directly by `bpf(2)`, and detaches the program when its owner ends. If the kernel refuses a
//! link, the loader's library would fall back to an attachment without an owner. Such a program would outlive a killed
//! process and drop frames by budgets that are no longer replenished.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use aya::programs::loaded_programs;
use isolane_hostnet::link;

use super::program::Tag;
use crate::limits::MAX_NAMED_OWNERS;

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

/// Calls `bpf(2)` with an argument of plain numbers. The kernel reads fields beyond the argument's end as zeros.
fn bpf<T>(command: libc::c_long, argument: &mut T) -> io::Result<libc::c_int> {
    let size = size_of::<T>();
    // SAFETY: the argument is valid for its size, and so is what it points to; both callers ensure this.
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

    /// Index of the attached interface. `None` once the interface is gone; the link outlives the interface.
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

/// XDP program that another process attached. Without CAP_SYS_ADMIN only its id is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Program id.
    pub id: u32,
    /// Name and tag, if permitted to query.
    pub name_and_tag: Option<(String, Tag)>,
    /// Some of the processes that hold the program, by process id and name. Empty if only the interface holds the
    /// program, or without permission.
    pub owners: Vec<(u32, String)>,
}

impl Foreign {
    /// Returns the program on the XDP hook of an interface.
    pub(crate) fn on(interface_index: u32) -> io::Result<Option<Foreign>> {
        let program = link::xdp_program(&link::describe(interface_index)?);
        Ok(program.map(|id| Foreign {
            id,
            name_and_tag: name_and_tag(id),
            owners: owners(id),
        }))
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {}", self.id)?;
        if let Some((name, tag)) = &self.name_and_tag {
            write!(f, " \"{name}\" with tag {tag}")?;
        }
        for (place, (process, name)) in self.owners.iter().enumerate() {
            let joint = if place == 0 { " of" } else { "," };
            write!(f, "{joint} process {process} ({name})")?;
        }
        Ok(())
    }
}

fn name_and_tag(id: u32) -> Option<(String, Tag)> {
    let mut programs = loaded_programs().filter_map(Result::ok);
    let program = programs.find(|program| program.id() == id)?;
    let name = String::from_utf8_lossy(program.name()).into_owned();
    Some((name, Tag(program.tag().to_be_bytes())))
}

/// Processes with a descriptor of the program or of the link that attached it.
fn owners(id: u32) -> Vec<(u32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| holds(*process, id));
    let named = numbers.map(|process| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        (process, name.trim().to_owned())
    });
    named.take(MAX_NAMED_OWNERS).collect()
}

fn holds(process: u32, id: u32) -> bool {
    let directory = format!("/proc/{process}/fdinfo");
    let Ok(descriptors) = fs::read_dir(Path::new(&directory)) else {
        return false;
    };
    descriptors.filter_map(Result::ok).any(|descriptor| {
        fs::read_to_string(descriptor.path()).is_ok_and(|about| names_program(&about, id))
    })
}

fn names_program(about: &str, id: u32) -> bool {
    let numbers = about
        .lines()
        .filter_map(|line| line.strip_prefix("prog_id:"));
    numbers
        .filter_map(|number| number.trim().parse().ok())
        .any(|number: u32| number == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_names_the_program_it_holds() {
        let link =
            "pos:\t0\nlink_type:\txdp\nlink_id:\t7\nprog_tag:\tda\nprog_id:\t12\nifindex:\t3\n";
        assert!(names_program(link, 12));
        assert!(!names_program(link, 1));
        assert!(!names_program("pos:\t0\n", 12));
    }

    #[test]
    fn a_foreign_program_is_reported_with_all_that_is_known() {
        let mut foreign = Foreign {
            id: 12,
            name_and_tag: None,
            owners: Vec::new(),
        };
        assert_eq!(foreign.to_string(), "program 12");
        foreign.name_and_tag = Some(("filter".into(), Tag([0xda; 8])));
        foreign.owners = vec![(7, "firewall".into()), (8, "other".into())];
        assert_eq!(
            foreign.to_string(),
            "program 12 \"filter\" with tag dadadadadadadada of process 7 (firewall), process 8 (other)"
        );
    }
}
