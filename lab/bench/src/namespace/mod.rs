//! Two test hosts and the cable between them, in separate network namespaces.
//!
//! ```text
//!   host A               cable                 host B
//!   10.78.0.1            (no addresses)        10.78.0.2
//!   host-a ===veth=== cable-a .. cable-b ===veth=== host-b
//! ```
//!
//! The namespaces are anonymous: only file descriptors of this process and the processes inside hold them. When the
//! last one is closed, even by kill -9, the kernel removes the namespaces and their devices. Nothing is written under
//! `/run/netns`.
//!
//! The two veth pairs are not connected until a [`cable`](crate::cable) runs.

mod receive_work;
mod setup;

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::{io, thread};

use isolane_hostnet::netlink::Rtnetlink;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::process::{Cores, Note};
use setup::{Namespace, configure_host, introduce, join, plug_in};

pub use receive_work::ReceiveThreads;
pub use setup::BridgedHosts;

/// Configuration of a [`TestHosts`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestHostsConfig {
    /// MTU of the devices, in bytes.
    pub mtu: u32,
    /// Transmit and receive queues of each device.
    pub queues: u32,
    /// Cores that do the receive work.
    pub cores: Cores,
}

impl Default for TestHostsConfig {
    fn default() -> Self {
        TestHostsConfig {
            mtu: 1500,
            queues: 2,
            cores: Cores::of_machine(),
        }
    }
}

/// Three configured namespaces, held by this process.
#[derive(Debug)]
pub struct TestHosts {
    host_a: Arc<OwnedFd>,
    host_b: Arc<OwnedFd>,
    cable: Arc<OwnedFd>,
    config: TestHostsConfig,
    notes: Vec<Note>,
}

impl TestHosts {
    /// Makes the namespaces and their devices. The calling thread stays in its namespace.
    pub fn new(config: &TestHostsConfig) -> Result<TestHosts, TestHostsError> {
        let (mut a, mut b, mut cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        for (namespace, host) in [(&mut a, Host::A), (&mut b, Host::B)] {
            let ends = [host.interface(), host.cable_interface()];
            join([namespace, &mut cable], ends, config, false)?;
        }
        let notes = std::mem::take(&mut cable.notes);
        let mut testbed = TestHosts::of_hosts(a, b, cable, config)?;
        testbed.notes.extend(notes);
        testbed.steer_receive_work();
        Ok(testbed)
    }

    /// Makes two hosts joined directly by one veth pair, `host-a` and `host-b`, with the offloads of a device. The kernel
    /// does the receive work on the sender's core.
    pub fn without_cable(config: &TestHostsConfig) -> Result<TestHosts, TestHostsError> {
        let (mut a, mut b, cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let ends = [Host::A.interface(), Host::B.interface()];
        join([&mut a, &mut b], ends, config, true)?;
        TestHosts::of_hosts(a, b, cable, config)
    }

    /// Makes two hosts from two devices of the calling thread's namespace that hardware or an emulator connects. The
    /// devices are renamed to `host-a` and `host-b`. The kernel returns them when the testbed and all processes in it
    /// have ended.
    pub fn of_devices(
        devices: [&str; 2],
        config: &TestHostsConfig,
    ) -> Result<TestHosts, TestHostsError> {
        let (mut a, mut b, cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        plug_in(&mut a, Host::A, devices[0])?;
        plug_in(&mut b, Host::B, devices[1])?;
        TestHosts::of_hosts(a, b, cable, config)
    }

    /// Gives two joined hosts their addresses, and each the other as a neighbour.
    fn of_hosts(
        mut a: Namespace,
        mut b: Namespace,
        cable: Namespace,
        config: &TestHostsConfig,
    ) -> Result<TestHosts, TestHostsError> {
        let hardware_a = configure_host(&mut a, Host::A.interface(), Host::A.address())?;
        let hardware_b = configure_host(&mut b, Host::B.interface(), Host::B.address())?;
        introduce(&mut a, Host::A, &hardware_b)?;
        introduce(&mut b, Host::B, &hardware_a)?;
        Ok(TestHosts {
            host_a: Arc::new(a.descriptor),
            host_b: Arc::new(b.descriptor),
            cable: Arc::new(cable.descriptor),
            config: config.clone(),
            notes: [a.notes, b.notes].concat(),
        })
    }

    /// Configuration of this testbed.
    pub fn config(&self) -> &TestHostsConfig {
        &self.config
    }

    /// Steps the machine did not allow.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Moves the calling thread into a namespace for good; sockets it opens from now on belong there.
    pub fn enter(&self, place: impl Into<Place>) -> Result<(), TestHostsError> {
        enter(self.descriptor(place.into()))
    }

    /// Runs `work` on a new thread inside a namespace and waits for its end. A panic of `work` propagates to the
    /// caller.
    pub fn run<T: Send>(
        &self,
        place: impl Into<Place>,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, TestHostsError> {
        let place = place.into();
        on_own_thread(|| {
            self.enter(place)?;
            Ok(work())
        })
    }

    /// Makes `command` start its program inside a namespace and die with its parent.
    ///
    /// The kernel watches the *thread* that spawns: when that thread ends, the child is killed. Spawn from a thread
    /// that lives as long as the child shall.
    pub fn command(&self, place: impl Into<Place>, command: Command) -> Command {
        command_inside(self.descriptor(place.into()), command)
    }

    /// Frames that a host's device has sent since its creation (as `ip -s link` shows them).
    pub fn sent_frames(&self, host: Host) -> Result<u64, TestHostsError> {
        let link = self.run(host, || Rtnetlink::open()?.link_by_name(host.interface()))?;
        let link = step("read a device's counters", CONFIGURE_RIGHT, link)?;
        Ok(link.counters.tx_packets)
    }

    /// Moves the hosts' receive work to kernel threads, with queue 0 as the critical one, until the returned value is
    /// dropped. `applications` is the applications' SCHED_FIFO priority.
    pub fn thread_receive_work(&self, applications: u8) -> Result<ReceiveThreads, TestHostsError> {
        ReceiveThreads::start(self, applications)
    }

    fn descriptor(&self, place: Place) -> &Arc<OwnedFd> {
        match place {
            Place::Host(Host::A) => &self.host_a,
            Place::Host(Host::B) => &self.host_b,
            Place::Cable => &self.cable,
        }
    }

    /// Moves receive work to the configured cores. By default a frame is received on the sender's core; the flood's
    /// core would then do the hosts' receive work, and a baseline would look too good.
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
                setup::show_own_devices()?;
                for interface in interfaces {
                    setup::steer_receive_work(interface, Some(core))?;
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

/// Makes `command` start its program inside a namespace and die with the thread that spawns it.
fn command_inside(namespace: &Arc<OwnedFd>, mut command: Command) -> Command {
    // The command may be spawned after the testbed is gone, so it owns a reference.
    let namespace = Arc::clone(namespace);
    let parent = rustix::process::getpid();
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the line above, no signal will come.
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

fn enter(namespace: &OwnedFd) -> Result<(), TestHostsError> {
    step(
        "enter a network namespace",
        ENTER_RIGHT,
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)),
    )
}

/// Runs `work` on a new thread that ends afterwards, because a namespace belongs to a thread.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Test host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Host 10.78.0.1, where round trips start.
    A,
    /// Host 10.78.0.2, which answers them.
    B,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::A, Host::B];

    /// IPv4 address of the host.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Host::A => Ipv4Addr::new(10, 78, 0, 1),
            Host::B => Ipv4Addr::new(10, 78, 0, 2),
        }
    }

    /// Network device of the host.
    pub const fn interface(self) -> &'static str {
        match self {
            Host::A => "host-a",
            Host::B => "host-b",
        }
    }

    /// Device of the cable that is connected to this host.
    pub const fn cable_interface(self) -> &'static str {
        match self {
            Host::A => "cable-a",
            Host::B => "cable-b",
        }
    }

    /// The opposite host.
    pub const fn other(self) -> Host {
        match self {
            Host::A => Host::B,
            Host::B => Host::A,
        }
    }
}

/// Namespace of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A test host.
    Host(Host),
    /// Namespace of the relay.
    Cable,
}

impl From<Host> for Place {
    fn from(host: Host) -> Place {
        Place::Host(host)
    }
}

/// Reasons why a testbed cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TestHostsError {
    /// A capability is missing.
    #[error(
        "cannot {action}: not permitted, this needs {right}. Run as root, or inside \
         `unshare --user --map-root-user --net --mount` where the machine allows that"
    )]
    NotPermitted {
        /// Step that failed.
        action: &'static str,
        /// Required capability.
        right: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action}: {source}")]
    System {
        /// Step that failed.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Receive work could not be moved from soft interrupts to threads.
    #[error("receive work cannot be done by threads: {0}")]
    ReceiveWork(#[from] isolane_hostnet::napi::NapiError),
}

/// Capability to make and enter namespaces.
const ENTER_RIGHT: &str = "CAP_SYS_ADMIN";
/// Capability to make and configure devices.
const CONFIGURE_RIGHT: &str = "CAP_NET_ADMIN";

/// Maps a system call's error to the step it failed in and the capability it needs.
fn step<T, E: Into<io::Error>>(
    action: &'static str,
    right: &'static str,
    result: Result<T, E>,
) -> Result<T, TestHostsError> {
    result.map_err(|error| match error.into() {
        source if source.kind() == io::ErrorKind::PermissionDenied => {
            TestHostsError::NotPermitted { action, right }
        }
        source => TestHostsError::System { action, source },
    })
}
