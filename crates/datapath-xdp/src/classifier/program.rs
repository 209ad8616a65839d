//! Loading of the checked-in BPF object: its programs and maps.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{Map, MapError, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunOptions, TestRunResult, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use isolane_hostnet::kernel;

use super::error::ClassifierError;
use super::shared_memory::{Memory, Shared};
use crate::limits::{LOAD_ATTEMPTS, VERIFIER_LOG_BYTES};

/// BPF object built by `cargo xtask classifier`.
static OBJECT: &[u8] = include_bytes_aligned!("../../classifier/classifier.bpf.o");

/// Hash of a program's instructions as computed by the kernel; distinguishes builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub [u8; 8]);

/// Prints 16 hexadecimal digits, as bpftool does.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Program in the object.
struct Program {
    /// Name of its function in `classifier.bpf.c`.
    name: &'static str,
    /// Expected tags by SHA-1 (kernels up to Linux 6.17) and by SHA-256 (since 6.18). A tag is the first eight bytes of
    /// the hash over all instructions, without map numbers.
    ///
    /// All values were computed from the object. Linux 6.18 reported the SHA-256 values, and Linux 6.12 the SHA-1 value
    /// of `isolane`. The SHA-1 value of `isolane_start` has not been observed on a kernel.
    tags: [Tag; 2],
}

/// Decides on each frame.
const CLASSIFY: Program = Program {
    name: "isolane",
    tags: [
        Tag([0xa8, 0x76, 0x5e, 0x93, 0x48, 0xf5, 0x10, 0x4e]),
        Tag([0xb4, 0x47, 0xd2, 0xdf, 0x8c, 0x43, 0x7a, 0x96]),
    ],
};

/// Starts the timer of a budget.
const START: Program = Program {
    name: "isolane_start",
    tags: [
        Tag([0x3d, 0x16, 0xc2, 0x76, 0xee, 0x63, 0x1e, 0xfe]),
        Tag([0xdf, 0xd9, 0x41, 0x0d, 0x95, 0x88, 0xcb, 0xd3]),
    ],
};

/// Loaded programs and maps.
pub(super) struct Loaded {
    ebpf: Ebpf,
    pub(super) tag: Tag,
    /// Whether the program that starts timers was loaded.
    pub(super) has_timers: bool,
}

impl Loaded {
    pub(super) fn new(stamps: bool, traces: bool, timers: bool) -> Result<Loaded, ClassifierError> {
        Loaded::of(OBJECT, stamps, traces, timers)
    }

    fn of(
        object: &[u8],
        stamps: bool,
        traces: bool,
        timers: bool,
    ) -> Result<Loaded, ClassifierError> {
        let (stamps, traces) = (u32::from(stamps), u32::from(traces));
        let mut ebpf = EbpfLoader::new()
            .override_global("STAMPS", &stamps, true)
            .override_global("TRACES", &traces, true)
            .load(object)
            .map_err(explain)?;
        let classify = program(&mut ebpf, CLASSIFY.name)?;
        load(classify).map_err(|error| explain(error.into()))?;
        let tag = checked_tag(&CLASSIFY, classify)?;
        // A kernel without BPF timers still has everything else required.
        let mut has_timers = false;
        if timers {
            let start = program(&mut ebpf, START.name)?;
            has_timers = load(start).is_ok();
            if has_timers {
                checked_tag(&START, start)?;
            }
        }
        Ok(Loaded {
            ebpf,
            tag,
            has_timers,
        })
    }

    /// Maps the memory shared with the program.
    pub(super) fn memory(&self) -> Result<Memory, ClassifierError> {
        let Some(Map::Array(map)) = self.ebpf.map("shared") else {
            return Err(unlike_us("the object has no map `shared`"));
        };
        let information = map.info().map_err(|error| explain(error.into()))?;
        if information.value_size() as usize != size_of::<Shared>() {
            return Err(unlike_us("the object's layout is not this program's"));
        }
        let doing = "mapping the classifier's memory";
        Memory::map(map.fd().as_fd()).map_err(ClassifierError::system(doing))
    }

    /// Adds a socket to the map of lanes, or removes it.
    pub(super) fn set_socket(
        &mut self,
        index: u32,
        socket: Option<BorrowedFd<'_>>,
    ) -> Result<(), ClassifierError> {
        let map = self.ebpf.map_mut("lanes");
        let map = map.ok_or_else(|| unlike_us("the object has no map `lanes`"))?;
        let mut lanes = XskMap::try_from(map).map_err(|error| explain(error.into()))?;
        let done = match socket {
            Some(socket) => lanes.set(index, socket.as_raw_fd(), 0),
            None => lanes.unset(index),
        };
        done.map_err(|error| explain(error.into()))
    }

    /// Descriptor of the classifier program, for attaching.
    pub(super) fn descriptor(&mut self) -> Result<BorrowedFd<'_>, ClassifierError> {
        let program = program(&mut self.ebpf, CLASSIFY.name)?;
        let descriptor = program.fd().map_err(|error| explain(error.into()))?;
        Ok(descriptor.as_fd())
    }

    /// Starts or restarts the timer of a server.
    pub(super) fn start_timer(&self, server: usize) -> Result<(), ClassifierError> {
        // The kernel accepts no frame shorter than an Ethernet header.
        let mut frame = [0; 14];
        frame[..4].copy_from_slice(&(server as u32).to_ne_bytes());
        match self.run(START.name, &frame, None)? {
            PASS => Ok(()),
            _ => Err(ClassifierError::System {
                doing: "starting a budget's timer",
                cause: io::ErrorKind::Unsupported.into(),
            }),
        }
    }

    /// Runs the classifier on a frame as if it had arrived on this interface and queue; returns the XDP action.
    pub(super) fn classify(
        &self,
        frame: &[u8],
        arrival: Option<(u32, u32)>,
    ) -> Result<u32, ClassifierError> {
        self.run(CLASSIFY.name, frame, arrival)
    }

    fn run(
        &self,
        name: &str,
        frame: &[u8],
        arrival: Option<(u32, u32)>,
    ) -> Result<u32, ClassifierError> {
        let context = arrival.map(|(interface_index, queue)| {
            // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
            let fields = [0, frame.len() as u32, 0, interface_index, queue, 0];
            let mut bytes = [0; 24];
            for (to, field) in bytes.chunks_exact_mut(4).zip(fields) {
                to.copy_from_slice(&field.to_ne_bytes());
            }
            bytes
        });
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.ctx_in = context.as_ref().map(|bytes| &bytes[..]);
        self.test_run(name, options)
            .map(|result| result.return_value)
    }

    fn test_run(
        &self,
        name: &str,
        options: TestRunOptions<'_>,
    ) -> Result<TestRunResult, ClassifierError> {
        let program = self.ebpf.program(name);
        let program = program.ok_or_else(|| unlike_us("the object lacks a program"))?;
        let program: &Xdp =
            (program.try_into()).map_err(|error: ProgramError| explain(error.into()))?;
        program
            .test_run(options)
            .map_err(|error| explain(error.into()))
    }
}

/// `XDP_PASS`.
const PASS: u32 = 2;

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("tag", &format_args!("{}", self.tag))
            .field("has_timers", &self.has_timers)
            .finish_non_exhaustive()
    }
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, ClassifierError> {
    let program = ebpf.program_mut(name);
    let program = program.ok_or_else(|| unlike_us("the object lacks a program"))?;
    program
        .try_into()
        .map_err(|error: ProgramError| explain(error.into()))
}

/// Verifies and loads a program, with retries. The verifier fails with EAGAIN if its thread is interrupted, as happens
/// on a busy machine; that says nothing about the program.
fn load(program: &mut Xdp) -> Result<(), ProgramError> {
    let mut result = program.load();
    for _ in 1..LOAD_ATTEMPTS {
        match &result {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.kind() == io::ErrorKind::WouldBlock =>
            {
                result = program.load();
            }
            _ => break,
        }
    }
    result
}

/// Tag of a loaded program (`BPF_OBJ_GET_INFO_BY_FD`).
///
/// # Errors
/// The loaded program is not the one this build was tested with. It is not attached.
fn checked_tag(program: &Program, loaded: &Xdp) -> Result<Tag, ClassifierError> {
    let information = loaded.info().map_err(|error| explain(error.into()))?;
    let tag = Tag(information.tag().to_be_bytes());
    program.check_tag(tag)?;
    Ok(tag)
}

impl Program {
    fn check_tag(&self, tag: Tag) -> Result<(), ClassifierError> {
        let Program { name, tags } = self;
        if tags.contains(&tag) {
            return Ok(());
        }
        let [sha1, sha256] = tags;
        Err(ClassifierError::System {
            doing: "checking the classifier's tag",
            cause: io::Error::other(format!(
                "the kernel gives the program {name} the tag {tag}, but this build expects {sha1} (until Linux 6.17) \
                 or {sha256} (later). Build isolane again from its sources, or use the datapath udp"
            )),
        })
    }
}

fn unlike_us(what: &'static str) -> ClassifierError {
    ClassifierError::System {
        doing: "reading the classifier's object",
        cause: io::Error::other(what),
    }
}

/// Maps a load error to its cause.
fn explain(error: EbpfError) -> ClassifierError {
    let release = kernel::release();
    let (doing, cause, log) = match error {
        EbpfError::MapError(MapError::CreateError { io_error, .. }) => {
            ("creating the classifier's maps", io_error, String::new())
        }
        EbpfError::ProgramError(ProgramError::LoadError {
            io_error,
            verifier_log,
        }) => (
            "loading the classifier",
            io_error,
            last_lines(&verifier_log.to_string()),
        ),
        EbpfError::ProgramError(ProgramError::SyscallError(error))
        | EbpfError::ProgramError(ProgramError::MapError(MapError::SyscallError(error)))
        | EbpfError::MapError(MapError::SyscallError(error)) => (
            "a bpf system call for the classifier",
            error.io_error,
            String::new(),
        ),
        other => {
            let doing = "loading the classifier";
            let cause = io::Error::other(other.to_string());
            return ClassifierError::System { doing, cause };
        }
    };
    // EACCES: the verifier refuses what it would allow with all capabilities.
    let is_denied =
        cause.raw_os_error() == Some(libc::EPERM) || !kernel::missing_capabilities().0.is_empty();
    if is_denied {
        return denied(cause, &release);
    }
    if !kernel::is_since(&release, 5, 9) {
        return ClassifierError::TooOld {
            release,
            what: "an XDP program that is detached when its process ends",
            needs: "5.9",
        };
    }
    if log.is_empty() {
        return ClassifierError::System { doing, cause };
    }
    ClassifierError::Rejected {
        release,
        cause,
        log,
    }
}

/// Distinguishes the causes of EPERM: a missing capability, one held in a user namespace only, and, before 5.11, the
/// limit of locked memory.
fn denied(cause: io::Error, release: &str) -> ClassifierError {
    let missing = kernel::missing_capabilities();
    if !missing.0.is_empty() {
        return ClassifierError::Denied { missing };
    }
    if kernel::in_user_namespace() {
        return ClassifierError::UserNamespace;
    }
    if !kernel::is_since(release, 5, 11) {
        return ClassifierError::Memlock {
            bytes: size_of::<Shared>(),
            limit_bytes: memlock_limit_bytes(),
        };
    }
    ClassifierError::System {
        doing: "loading the classifier (has a security module or a lockdown forbidden it?)",
        cause,
    }
}

fn memlock_limit_bytes() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    limit.rlim_cur
}

/// Last lines of a log, joined to one line.
fn last_lines(log: &str) -> String {
    let from = log.len().saturating_sub(VERIFIER_LOG_BYTES);
    let from = (from..=log.len()).find(|at| log.is_char_boundary(*at));
    let end = log.get(from.unwrap_or_default()..).unwrap_or_default();
    let lines: Vec<&str> = end
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}
