//! Kernel interfaces without a library: two small XDP programs, live frames, and interface statistics.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::thread::{CpuSet, Pid, sched_setaffinity};

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// Frames made at once: the kernel's maximum between two reschedules.
const BATCH: u32 = 64;

/// Program, or its link.
pub(crate) struct Program(OwnedFd);

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 2],
    log_buffer: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface_index: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    bytes_in: u32,
    bytes_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_bytes_in: u32,
    context_bytes_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

fn bpf<T>(command: libc::c_long, argument: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the argument and what it points to are valid for the sizes given with them.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *argument, size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}

/// Instruction: operation, registers and immediate value; the offset is 0.
const fn instruction(operation: u8, registers: u8, immediate: u32) -> u64 {
    operation as u64 | (registers as u64) << 8 | (immediate as u64) << 32
}
/// Loads a number into a register.
const fn load(register: u8, number: u32) -> u64 {
    instruction(0xb7, register, number)
}
const EXIT: u64 = instruction(0x95, 0, 0);
const XDP_DROP: u32 = 1;
/// `bpf_redirect(interface, flags)`.
const REDIRECT: u64 = instruction(0x85, 0, 23);

impl Program {
    /// Program that drops each frame by its first instruction.
    pub(crate) fn that_drops() -> io::Result<Program> {
        Program::load(&[load(0, XDP_DROP), EXIT])
    }

    /// Program that redirects each frame to an interface.
    pub(crate) fn that_sends(interface_index: u32) -> io::Result<Program> {
        Program::load(&[load(1, interface_index), load(2, 0), REDIRECT, EXIT])
    }

    fn load(instructions: &[u64]) -> io::Result<Program> {
        let mut argument = Load {
            kind: BPF_PROG_TYPE_XDP,
            count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            attach_type: BPF_XDP,
            ..Load::default()
        };
        let descriptor = bpf(BPF_PROG_LOAD, &mut argument)?;
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(Program(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Attaches the program to an interface's driver, as long as the result lives.
    pub(crate) fn attach(&self, interface_index: u32) -> io::Result<Program> {
        let descriptor = self.0.as_raw_fd() as u32;
        let mut argument = [descriptor, interface_index, BPF_XDP, XDP_FLAGS_DRV_MODE];
        let descriptor = bpf(BPF_LINK_CREATE, &mut argument)?;
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(Program(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Runs the program on `count` copies of a frame, as if received from a device.
    pub(crate) fn run_live(&self, frame: &[u8], count: u32) -> io::Result<()> {
        let mut argument = TestRun {
            program: self.0.as_raw_fd() as u32,
            bytes_in: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: count,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch: BATCH,
            ..TestRun::default()
        };
        bpf(BPF_PROG_TEST_RUN, &mut argument).map(drop)
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes `/sys` show the interfaces of this thread's network namespace.
pub(crate) fn show_own_interfaces() -> io::Result<()> {
    // SAFETY: no memory is passed; the program has no other thread yet.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let (none, root, sysfs, sys) = (
        ptr::null(),
        c"/".as_ptr(),
        c"sysfs".as_ptr(),
        c"/sys".as_ptr(),
    );
    // SAFETY: the names are C strings, and no data is passed.
    check(unsafe { libc::mount(none, root, none, private, ptr::null()) })?;
    // SAFETY: as above.
    check(unsafe { libc::mount(sysfs, sys, sysfs, 0, ptr::null()) })
}

/// Switches NAPI reception of a veth without a program, through its GRO setting.
pub(crate) fn receive_by_napi(interface: &str, is_on: bool) -> io::Result<()> {
    const ETHTOOL_SGRO: u32 = 0x2c;
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let mut value = [ETHTOOL_SGRO, u32::from(is_on)];
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    // SAFETY: the request points to a value of the size that this command takes.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })
}

/// Recreates the kernel thread that receives for an interface. It exists only while NAPI is on.
pub(crate) fn napi_thread(interface: &str) -> io::Result<u32> {
    let threaded = format!("/sys/class/net/{interface}/threaded");
    fs::write(&threaded, "0")?;
    fs::write(&threaded, "1")?;
    // The kernel truncates thread names.
    let name: String = format!("napi/{interface}-").chars().take(15).collect();
    let processes = fs::read_dir("/proc")?.filter_map(Result::ok);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = numbers.find(|number| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|comm| comm.starts_with(&name))
    });
    found.ok_or_else(|| io::Error::other(format!("no thread receives for {interface}")))
}

/// CPU time of a thread in nanoseconds.
pub(crate) fn on_cpu_ns(thread: u32) -> io::Result<u64> {
    let times = fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
    let first = times
        .split_whitespace()
        .next()
        .and_then(|time| time.parse().ok());
    first.ok_or_else(|| io::Error::other("the kernel keeps no times of threads"))
}

/// Pins a thread (0: the calling one) to a CPU.
pub(crate) fn pin(thread: u32, cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(Pid::from_raw(thread as i32), &cpus)?)
}

/// Frames that NAPI took from an interface's ring.
pub(crate) fn received(interface: &str) -> io::Result<u64> {
    let path = format!("/sys/class/net/{interface}/statistics/rx_packets");
    let count = fs::read_to_string(path)?;
    count.trim().parse().map_err(io::Error::other)
}

/// Datagrams dropped by full sockets of a port.
pub(crate) fn refused_by_sockets(port: u16) -> io::Result<u64> {
    let sockets = fs::read_to_string("/proc/thread-self/net/udp")?;
    let of_port = format!(":{port:04X} ");
    let lines = sockets.lines().filter(|line| {
        let local = line.split_whitespace().nth(1).unwrap_or_default();
        format!("{local} ").ends_with(&of_port)
    });
    let drops = lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
    Ok(drops.sum())
}
