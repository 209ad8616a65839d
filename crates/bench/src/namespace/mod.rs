//! Two test hosts and the cable between them, in network namespaces of their own.
//!
//! ```text
//!   host A               cable                 host B
//!   10.78.0.1            (no addresses)        10.78.0.2
//!   host-a ===veth=== cable-a .. cable-b ===veth=== host-b
//! ```
//!
//! The namespaces are anonymous: nothing but file descriptors of this process (and the processes
//! inside) holds them. When the last one is gone, by whatever end, kill -9 included, the kernel
//! takes the namespaces down with all devices in them. Nothing is written under `/run/netns`.
//!
//! Nobody relays between the two veth pairs until a [`cable`](crate::cable) runs.

mod netlink;
mod receive_work;
mod sysfs;

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::process::{Cores, Note};
use crate::system::ethtool::{self, Offload};

use netlink::{Netlink, VethEnd};

pub use receive_work::ReceiveThreads;

/// One of the two test hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// 10.78.0.1, where round trips start.
    A,
    /// 10.78.0.2, where they turn.
    B,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::A, Host::B];

    /// The host's IPv4 address.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Host::A => Ipv4Addr::new(10, 78, 0, 1),
            Host::B => Ipv4Addr::new(10, 78, 0, 2),
        }
    }

    /// The host's network device.
    pub const fn interface(self) -> &'static str {
        match self {
            Host::A => "host-a",
            Host::B => "host-b",
        }
    }

    /// The end of the cable that is plugged into this host.
    pub const fn cable_interface(self) -> &'static str {
        match self {
            Host::A => "cable-a",
            Host::B => "cable-b",
        }
    }

    /// The host at the other end.
    pub const fn other(self) -> Host {
        match self {
            Host::A => Host::B,
            Host::B => Host::A,
        }
    }
}

/// One of the three namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A test host.
    Host(Host),
    /// Where the relay runs.
    Cable,
}

impl From<Host> for Place {
    fn from(host: Host) -> Place {
        Place::Host(host)
    }
}

/// What can be chosen about a [`Testbed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestbedConfig {
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// Transmit and receive queues of each device.
    pub queues: u32,
    /// Where receive work is done.
    pub cores: Cores,
}

impl Default for TestbedConfig {
    fn default() -> Self {
        TestbedConfig {
            mtu: 1500,
            queues: 2,
            cores: Cores::of_machine(),
        }
    }
}

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A right is missing.
    #[error(
        "cannot {action}: not permitted, this needs {right}. Run as root, or inside \
         `unshare --user --map-root-user --net --mount` where the machine allows that"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
        /// The capability it takes.
        right: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Receive work stays in soft interrupts.
    #[error("receive work cannot be done by threads: {0}")]
    ReceiveWork(#[from] isolane_datapath_xdp::napi::NapiError),
}

/// What it takes to make and enter namespaces.
const ENTER_RIGHT: &str = "CAP_SYS_ADMIN";
/// What it takes to make and configure devices.
const CONFIGURE_RIGHT: &str = "CAP_NET_ADMIN";

/// Names the step a system call failed in, and the right it lacks.
fn step<T, E: Into<io::Error>>(
    action: &'static str,
    right: &'static str,
    result: Result<T, E>,
) -> Result<T, TestbedError> {
    result.map_err(|error| match error.into() {
        source if source.kind() == io::ErrorKind::PermissionDenied => {
            TestbedError::NotPermitted { action, right }
        }
        source => TestbedError::System { action, source },
    })
}

/// What a host's device counted since it was made (as `ip -s link` shows it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Frames the device delivered to its host.
    pub rx_frames: u64,
    /// Frames dropped on the way in.
    pub rx_dropped: u64,
    /// Frames the host sent.
    pub tx_frames: u64,
    /// Frames dropped on the way out.
    pub tx_dropped: u64,
}

/// The three namespaces, configured, held by this process.
#[derive(Debug)]
pub struct Testbed {
    host_a: Arc<OwnedFd>,
    host_b: Arc<OwnedFd>,
    cable: Arc<OwnedFd>,
    config: TestbedConfig,
    notes: Vec<Note>,
}

impl Testbed {
    /// Makes the namespaces and everything in them. The calling thread stays where it is.
    pub fn new(config: &TestbedConfig) -> Result<Testbed, TestbedError> {
        let (mut a, mut b, mut cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        connect(&mut a, &mut cable, Host::A, config)?;
        connect(&mut b, &mut cable, Host::B, config)?;
        let hardware_a = configure_host(&mut a, Host::A)?;
        let hardware_b = configure_host(&mut b, Host::B)?;
        introduce(&mut a, Host::A, &hardware_b)?;
        introduce(&mut b, Host::B, &hardware_a)?;
        let mut testbed = Testbed {
            host_a: Arc::new(a.descriptor),
            host_b: Arc::new(b.descriptor),
            cable: Arc::new(cable.descriptor),
            config: config.clone(),
            notes: [a.notes, b.notes, cable.notes].concat(),
        };
        testbed.steer_receive_work();
        Ok(testbed)
    }

    /// Makes two hosts joined by one veth pair, `host-a` and `host-b` its ends, with no cable between
    /// them: the kernel alone hands frames over, and does the receive work where it does so by
    /// itself, on the core of the sender.
    pub fn without_cable(config: &TestbedConfig) -> Result<Testbed, TestbedError> {
        let (mut a, mut b, cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let ends = [Host::A.interface(), Host::B.interface()];
        join([&mut a, &mut b], ends, config)?;
        let hardware_a = configure_host(&mut a, Host::A)?;
        let hardware_b = configure_host(&mut b, Host::B)?;
        introduce(&mut a, Host::A, &hardware_b)?;
        introduce(&mut b, Host::B, &hardware_a)?;
        Ok(Testbed {
            host_a: Arc::new(a.descriptor),
            host_b: Arc::new(b.descriptor),
            cable: Arc::new(cable.descriptor),
            config: config.clone(),
            notes: [a.notes, b.notes].concat(),
        })
    }

    /// What this testbed was made from.
    pub fn config(&self) -> &TestbedConfig {
        &self.config
    }

    /// What the machine did not allow.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Moves the calling thread into a namespace, for the rest of its life: sockets it opens from
    /// now on belong there.
    pub fn enter(&self, place: impl Into<Place>) -> Result<(), TestbedError> {
        enter(self.descriptor(place.into()))
    }

    /// Runs `work` on a thread of its own inside a namespace and waits for its end. A panic of
    /// `work` goes on in the caller.
    pub fn run<T: Send>(
        &self,
        place: impl Into<Place>,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, TestbedError> {
        let place = place.into();
        on_own_thread(|| {
            self.enter(place)?;
            Ok(work())
        })
    }

    /// Makes `command` start its program inside a namespace and die with its parent.
    ///
    /// The kernel watches the *thread* that spawns: when that thread ends, the child is killed.
    /// Spawn from a thread that lives as long as the child shall.
    pub fn command(&self, place: impl Into<Place>, mut command: Command) -> Command {
        // Owned by the command: it may be spawned after the testbed is gone.
        let namespace = Arc::clone(self.descriptor(place.into()));
        let parent = rustix::process::getpid();
        let before_exec = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above: then no signal comes any more.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only: it takes no lock,
        // allocates nothing, and its errors are plain numbers.
        unsafe { command.pre_exec(before_exec) };
        command
    }

    /// What the device of a host has counted.
    pub fn counters(&self, host: Host) -> Result<DeviceCounters, TestbedError> {
        let link = self.run(host, || Netlink::open()?.link(host.interface()))?;
        let counters = step("read a device's counters", CONFIGURE_RIGHT, link)?.counters;
        Ok(DeviceCounters {
            rx_frames: counters.rx_packets,
            rx_dropped: counters.rx_dropped,
            tx_frames: counters.tx_packets,
            tx_dropped: counters.tx_dropped,
        })
    }

    /// Has the hosts' receive work done by kernel threads, around applications of that FIFO priority,
    /// until what is returned is dropped: queue 0 is the critical one.
    pub fn thread_receive_work(&self, applications: u8) -> Result<ReceiveThreads, TestbedError> {
        ReceiveThreads::start(self, applications)
    }

    fn descriptor(&self, place: Place) -> &Arc<OwnedFd> {
        match place {
            Place::Host(Host::A) => &self.host_a,
            Place::Host(Host::B) => &self.host_b,
            Place::Cable => &self.cable,
        }
    }

    /// Without this a frame is received on the core it was sent from: the flood's core would do
    /// the hosts' receive work, and a baseline measured so is flattered.
    fn steer_receive_work(&mut self) {
        let Cores { hosts, cable } = self.config.cores;
        let work: [(Place, &[&str], usize); 3] = [
            (Host::A.into(), &[Host::A.interface()], hosts),
            (Host::B.into(), &[Host::B.interface()], hosts),
            (
                Place::Cable,
                &[Host::A.cable_interface(), Host::B.cable_interface()],
                cable,
            ),
        ];
        for (place, interfaces, core) in work {
            let steered = self.run(place, || -> io::Result<()> {
                sysfs::show_own_devices()?;
                for interface in interfaces {
                    sysfs::steer_receive_work(interface, Some(core))?;
                }
                Ok(())
            });
            let why = match steered {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            self.notes.push(Note::new(
                format!(
                    "steer receive work of {} to core {core}",
                    interfaces.join(", ")
                ),
                why,
                "receive work runs on the sender's core, which flatters sockets",
            ));
        }
    }
}

/// Moves the calling thread into a namespace.
fn enter(namespace: &OwnedFd) -> Result<(), TestbedError> {
    step(
        "enter a network namespace",
        ENTER_RIGHT,
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)),
    )
}

/// A namespace while it is being configured.
struct Namespace {
    descriptor: OwnedFd,
    netlink: Netlink,
    /// Any socket opened inside: device ioctls act on the namespace of their socket.
    control: UdpSocket,
    notes: Vec<Note>,
}

impl Namespace {
    /// Makes it on a thread of its own, which leaves only descriptors behind.
    fn new() -> Result<Namespace, TestbedError> {
        on_own_thread(|| {
            // SAFETY: only the calling thread changes its network namespace; no memory and no
            // descriptor table is involved, and the thread ends here.
            let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
            step("make a network namespace", ENTER_RIGHT, unshared)?;
            let mut notes = Vec::new();
            if let Err(error) = sysfs::disable_ipv6() {
                notes.push(Note::new(
                    "disable IPv6",
                    error,
                    "a few neighbour discovery frames cross the cable",
                ));
            }
            let open = || -> io::Result<Namespace> {
                let mut netlink = Netlink::open()?;
                let loopback = netlink.link("lo")?.index;
                netlink.set_up(loopback)?;
                Ok(Namespace {
                    descriptor: std::fs::File::open("/proc/thread-self/ns/net")?.into(),
                    netlink,
                    control: UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
                    notes,
                })
            };
            step("open a network namespace", CONFIGURE_RIGHT, open())
        })
    }
}

/// Joins a host and the cable.
fn connect(
    host: &mut Namespace,
    cable: &mut Namespace,
    name: Host,
    config: &TestbedConfig,
) -> Result<(), TestbedError> {
    let ends = [name.interface(), name.cable_interface()];
    join([host, cable], ends, config)
}

/// Joins two namespaces by a veth pair of these names, both ends up.
fn join(
    [first, second]: [&mut Namespace; 2],
    interfaces: [&'static str; 2],
    config: &TestbedConfig,
) -> Result<(), TestbedError> {
    let end = |name| VethEnd {
        name,
        mtu: config.mtu,
        queues: config.queues,
    };
    let mut join = || -> io::Result<()> {
        first.netlink.create_veth(
            &end(interfaces[0]),
            &end(interfaces[1]),
            second.descriptor.as_fd(),
        )?;
        for (namespace, interface) in [(&mut *first, interfaces[0]), (&mut *second, interfaces[1])]
        {
            let index = namespace.netlink.link(interface)?.index;
            // Segments are cut and merged by nobody: a frame on this link is a frame.
            for offload in [
                Offload::TcpSegmentation,
                Offload::GenericSegmentation,
                Offload::GenericReceive,
            ] {
                ethtool::switch(&namespace.control, interface, offload, false)?;
            }
            namespace.netlink.set_up(index)?;
        }
        Ok(())
    };
    step("make a veth pair", CONFIGURE_RIGHT, join())
}

/// Gives a host its address and a way for multicast; returns its hardware address.
fn configure_host(namespace: &mut Namespace, host: Host) -> Result<Vec<u8>, TestbedError> {
    let mut configure = || -> io::Result<Vec<u8>> {
        let link = namespace.netlink.link(host.interface())?;
        namespace
            .netlink
            .add_address(link.index, host.address(), 24)?;
        // For senders that name no interface: without a route, multicast is unreachable.
        namespace
            .netlink
            .add_route(link.index, Ipv4Addr::new(224, 0, 0, 0), 4)?;
        Ok(link.address)
    };
    step("configure a test host", CONFIGURE_RIGHT, configure())
}

/// Tells a host where the other one is: no ARP delays or disturbs a measurement.
fn introduce(
    namespace: &mut Namespace,
    host: Host,
    other_hardware_address: &[u8],
) -> Result<(), TestbedError> {
    let mut introduce = || -> io::Result<()> {
        let index = namespace.netlink.link(host.interface())?.index;
        namespace.netlink.add_permanent_neighbour(
            index,
            host.other().address(),
            other_hardware_address,
        )
    };
    step("name a test host's neighbour", CONFIGURE_RIGHT, introduce())
}

/// Namespaces belong to threads: whatever changes them runs on a thread that ends afterwards.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
