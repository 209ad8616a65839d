//! The checked-in object, loaded: its programs and maps in the kernel.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{Map, MapError, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};

use super::error::ClassifierError;
use super::layout::Shared;
use super::memory::Memory;
use super::rights;
use crate::limits::VERIFIER_LOG_BYTES;

/// The object, as `cargo xtask classifier` builds it.
static OBJECT: &[u8] = include_bytes_aligned!("../../classifier/classifier.bpf.o");

/// The programs' names: functions of `classifier.bpf.c`.
const CLASSIFY: &str = "isolane";
const START: &str = "isolane_start";

/// What the kernel computes of a program's instructions: tells two builds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub [u8; 8]);

/// 16 hexadecimal digits, as other tools print it.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The object in the kernel.
pub(super) struct Loaded {
    ebpf: Ebpf,
    pub(super) tag: Tag,
    /// Whether the program that starts timers could be loaded.
    pub(super) has_timers: bool,
}

impl Loaded {
    pub(super) fn new(stamps: bool, traces: bool, timers: bool) -> Result<Loaded, ClassifierError> {
        let (stamps, traces) = (u32::from(stamps), u32::from(traces));
        let mut ebpf = EbpfLoader::new()
            .override_global("STAMPS", &stamps, true)
            .override_global("TRACES", &traces, true)
            .load(OBJECT)
            .map_err(explain)?;
        let classify = program(&mut ebpf, CLASSIFY)?;
        classify.load().map_err(|error| explain(error.into()))?;
        let information = classify.info().map_err(|error| explain(error.into()))?;
        let tag = Tag(information.tag().to_be_bytes());
        // A kernel without timers for programs has everything else that is needed.
        let has_timers = timers && program(&mut ebpf, START)?.load().is_ok();
        Ok(Loaded {
            ebpf,
            tag,
            has_timers,
        })
    }

    /// Maps the memory that the program shares with us.
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

    /// Puts a socket into the map of lanes, or takes it out.
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

    /// The classifier itself, to be attached.
    pub(super) fn descriptor(&mut self) -> Result<BorrowedFd<'_>, ClassifierError> {
        let program = program(&mut self.ebpf, CLASSIFY)?;
        let descriptor = program.fd().map_err(|error| explain(error.into()))?;
        Ok(descriptor.as_fd())
    }

    /// Starts the timer of a server, or starts it anew.
    pub(super) fn start_timer(&mut self, server: usize) -> Result<(), ClassifierError> {
        // The shortest frame the kernel takes is an Ethernet header.
        let mut frame = [0; 14];
        frame[..4].copy_from_slice(&(server as u32).to_ne_bytes());
        match self.run(START, &frame, None)? {
            PASS => Ok(()),
            _ => Err(ClassifierError::System {
                doing: "starting a budget's timer",
                cause: io::ErrorKind::Unsupported.into(),
            }),
        }
    }

    /// Shows the classifier a frame as if it had arrived on this interface and queue; returns what
    /// it says.
    pub(super) fn classify(
        &mut self,
        frame: &[u8],
        arrival: Option<(u32, u32)>,
    ) -> Result<u32, ClassifierError> {
        self.run(CLASSIFY, frame, arrival)
    }

    fn run(
        &mut self,
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
        let program = program(&mut self.ebpf, name)?;
        let result = program.test_run(options);
        result
            .map(|result| result.return_value)
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

fn unlike_us(what: &'static str) -> ClassifierError {
    ClassifierError::System {
        doing: "reading the classifier's object",
        cause: io::Error::other(what),
    }
}

/// What an error of loading means to whoever started us.
fn explain(error: EbpfError) -> ClassifierError {
    let release = rights::kernel_release();
    let (doing, cause, log) = match error {
        EbpfError::MapError(MapError::CreateError { io_error, .. }) => {
            ("making the classifier's maps", io_error, String::new())
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
            "asking the kernel for the classifier",
            error.io_error,
            String::new(),
        ),
        other => {
            let doing = "loading the classifier";
            let cause = io::Error::other(other.to_string());
            return ClassifierError::System { doing, cause };
        }
    };
    // The verifier refuses with EACCES what it would allow a process that has all capabilities.
    let is_denied = cause.raw_os_error() == Some(libc::EPERM) || !rights::missing().0.is_empty();
    if is_denied {
        return denied(cause, &release);
    }
    if !rights::is_since(&release, 5, 9) {
        return ClassifierError::TooOld {
            release,
            what: "a program that goes with its owner",
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

/// The kernel says "not permitted" to the missing capability, to the one that does not count, and,
/// before 5.11, to too much locked memory.
fn denied(cause: io::Error, release: &str) -> ClassifierError {
    let missing = rights::missing();
    if !missing.0.is_empty() {
        return ClassifierError::Denied { missing };
    }
    if rights::in_user_namespace() {
        return ClassifierError::UserNamespace;
    }
    if !rights::is_since(release, 5, 11) {
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

/// The end of a log, on one line.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a stamp.
    const STAMP: usize = 8;

    #[test]
    fn the_end_of_a_log_is_quoted_on_one_line() {
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines("first\n  second\n\n"), "first; second");
        let long = "ä".repeat(VERIFIER_LOG_BYTES);
        assert!(last_lines(&long).len() <= VERIFIER_LOG_BYTES);
    }

    #[test]
    fn a_tag_is_printed_as_other_tools_do() {
        let tag = Tag([0xd1, 0xe5, 0x4b, 0x94, 0x62, 0x32, 0x83, 0x0f]);
        assert_eq!(tag.to_string(), "d1e54b946232830f");
    }

    /// A frame that the program redirects, as it leaves the program, for each way of loading it.
    #[test]
    fn a_stamp_is_in_front_of_the_frame_if_it_was_asked_for() {
        for stamps in [false, true] {
            let mut loaded = match Loaded::new(stamps, false, false) {
                Ok(loaded) => loaded,
                Err(ClassifierError::Denied { .. } | ClassifierError::UserNamespace) => {
                    let in_ci = std::env::var_os("CI").is_some();
                    assert!(!in_ci, "CI must allow programs to be loaded");
                    eprintln!("no program can be loaded here: nothing was tried");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            let memory = loaded.memory().unwrap();
            let port = 7_411_u16;
            memory.first[usize::from(port)].store(1, std::sync::atomic::Ordering::Relaxed);
            memory.flows[0]
                .port
                .store(port, std::sync::atomic::Ordering::Relaxed);
            memory.queues[0]
                .bound
                .store(1, std::sync::atomic::Ordering::Relaxed);
            // To 0.0.0.0, lane 0; of no socket, so that it passes after it was stamped.
            let frame = [
                &[0; 12][..],
                &[0x08, 0x00],
                &[
                    0x45, 0, 0, 32, 0, 0, 0, 0, 1, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ],
                &[0, 0, 0x1c, 0xf3, 0, 12, 0, 0],
                b"RTPS",
            ]
            .concat();
            let mut out = vec![0; frame.len() + STAMP];
            let mut options = TestRunOptions::new();
            options.data_in = Some(&frame);
            options.data_out = Some(&mut out);
            let classify = program(&mut loaded.ebpf, CLASSIFY).unwrap();
            let (before, ran, after) = (now_ns(), classify.test_run(options).unwrap(), now_ns());
            let front = if stamps { STAMP } else { 0 };
            assert_eq!(ran.data_size_out as usize, frame.len() + front);
            assert_eq!(out[front..front + frame.len()], frame);
            if stamps {
                let stamp = u64::from_ne_bytes(out[..STAMP].try_into().unwrap());
                assert!(
                    (before..=after).contains(&stamp),
                    "{before} {stamp} {after}"
                );
            }
        }
    }

    fn now_ns() -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}
