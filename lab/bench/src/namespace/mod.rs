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

mod bridged;
mod error;
mod place;
mod receive_work;
mod setup;
mod sysfs;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use isolane_hostnet::netlink::Rtnetlink;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::process::{Cores, Note};

use error::{CONFIGURE_RIGHT, ENTER_RIGHT, step};
use setup::{Namespace, configure_host, connect, introduce, join, plug_in};

pub use bridged::BridgedHosts;
pub use error::TestbedError;
pub use place::{Host, Place};
pub use receive_work::ReceiveThreads;

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
        let notes = std::mem::take(&mut cable.notes);
        let mut testbed = Testbed::of_hosts(a, b, cable, config)?;
        testbed.notes.extend(notes);
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
        Testbed::of_hosts(a, b, cable, config)
    }

    /// Makes two hosts of two network devices of the calling thread's namespace, which something real joins:
    /// a cable, a switch, an emulator's hub. The devices are called `host-a` and `host-b` meanwhile. When
    /// the testbed and all processes in it are gone, the kernel gives them back to the machine.
    pub fn of_devices(devices: [&str; 2], config: &TestbedConfig) -> Result<Testbed, TestbedError> {
        let (mut a, mut b, cable) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        plug_in(&mut a, Host::A, devices[0])?;
        plug_in(&mut b, Host::B, devices[1])?;
        Testbed::of_hosts(a, b, cable, config)
    }

    /// Gives two joined hosts their addresses, and each the other as a neighbour.
    fn of_hosts(
        mut a: Namespace,
        mut b: Namespace,
        cable: Namespace,
        config: &TestbedConfig,
    ) -> Result<Testbed, TestbedError> {
        let hardware_a = configure_host(&mut a, Host::A.interface(), Host::A.address())?;
        let hardware_b = configure_host(&mut b, Host::B.interface(), Host::B.address())?;
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
    pub fn command(&self, place: impl Into<Place>, command: Command) -> Command {
        command_inside(self.descriptor(place.into()), command)
    }

    /// What the device of a host has counted.
    pub fn counters(&self, host: Host) -> Result<DeviceCounters, TestbedError> {
        let link = self.run(host, || Rtnetlink::open()?.link_by_name(host.interface()))?;
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

/// Makes `command` start its program inside a namespace and die with the thread that spawns it.
fn command_inside(namespace: &Arc<OwnedFd>, mut command: Command) -> Command {
    // Owned by the command: it may be spawned after the testbed is gone.
    let namespace = Arc::clone(namespace);
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

/// Moves the calling thread into a namespace.
fn enter(namespace: &OwnedFd) -> Result<(), TestbedError> {
    step(
        "enter a network namespace",
        ENTER_RIGHT,
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)),
    )
}

/// Namespaces belong to threads: whatever changes them runs on a thread that ends afterwards.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
