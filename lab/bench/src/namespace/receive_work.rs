//! The hosts' receive work in kernel threads instead of soft interrupts.
//!
//! Each host's queues get a thread: the critical queue's above the applications, the other one's below
//! them and above everything else. A veth pair has NAPI, and so threads, only with an XDP program or with
//! GRO: GRO is switched on for as long as the threads last, so that they are the same ones whatever
//! program comes and goes. (It merges TCP, of which there is none here.) Receive packet steering is
//! switched off meanwhile: it would put the frames of all queues into one backlog of the core again.
//!
//! The settings belong to a namespace and are files of its sysfs, so a thread of ours stays in the
//! namespace to put everything back there.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use isolane_hostnet::ethtool::Ethtool;
use isolane_hostnet::link::index_of;
use isolane_hostnet::napi::{self, NapiError, Plan};

use super::setup::GENERIC_RECEIVE_OFFLOAD;
use super::{CONFIGURE_RIGHT, Host, Testbed, TestbedError, step, sysfs};
use crate::scenario::transport::{BULK_QUEUE, CRITICAL_QUEUE};

/// Threads that do the hosts' receive work. Dropped, everything is as it was.
#[derive(Debug)]
pub struct ReceiveThreads {
    holders: Vec<Holder>,
}

/// The thread that waits in a host's namespace.
#[derive(Debug)]
struct Holder {
    /// Dropped, it ends.
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReceiveThreads {
    pub(super) fn start(testbed: &Testbed, applications: u8) -> Result<Self, TestbedError> {
        let hold = |host| Holder::start(testbed, host, applications);
        Ok(ReceiveThreads {
            holders: vec![hold(Host::A)?, hold(Host::B)?],
        })
    }

    /// Hosts whose receive work is done so.
    pub fn hosts(&self) -> usize {
        self.holders.len()
    }
}

impl Holder {
    fn start(testbed: &Testbed, host: Host, applications: u8) -> Result<Self, TestbedError> {
        let namespace = testbed.descriptor(host.into()).clone();
        let core = testbed.config().cores.hosts;
        let (ready, is_ready) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("receive work of {}", host.interface()))
            .spawn(move || {
                let entered = super::enter(&namespace);
                let held = entered.and_then(|()| hold(host, core, applications, &ready, &released));
                if let Err(error) = held {
                    // Nobody listens any more: whoever asked has the answer.
                    let _ = ready.send(Err(error));
                }
            });
        let thread = step("start a thread", CONFIGURE_RIGHT, thread)?;
        let holder = Holder {
            release: Some(release),
            thread: Some(thread),
        };
        match is_ready.recv() {
            Ok(Ok(())) => Ok(holder),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => Err(TestbedError::System {
                action: "have receive work done by threads",
                source: io::ErrorKind::BrokenPipe.into(),
            }),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            // It has said what went wrong, if anything did.
            let _ = thread.join();
        }
    }
}

/// In the host's namespace: switches, says so, and puts everything back when released.
fn hold(
    host: Host,
    core: usize,
    applications: u8,
    ready: &Sender<Result<(), TestbedError>>,
    released: &Receiver<()>,
) -> Result<(), TestbedError> {
    let interface = host.interface();
    let offload = |is_on| -> io::Result<()> {
        Ok(Ethtool::open()?.set_features(interface, &[GENERIC_RECEIVE_OFFLOAD], is_on)?)
    };
    let step = |result| step("have receive work done by threads", CONFIGURE_RIGHT, result);
    step(sysfs::show_own_devices())?;
    step(offload(true))?;
    let switched = switch(interface, core, applications);
    let result = match switched {
        Ok(guard) => step(sysfs::steer_receive_work(interface, None).map(drop)).map(|()| {
            let _ = ready.send(Ok(()));
            // Nothing is ever sent: it ends when the other side is dropped.
            let _ = released.recv();
            drop(guard);
        }),
        Err(error) => Err(TestbedError::ReceiveWork(error)),
    };
    step(sysfs::steer_receive_work(interface, Some(core)).map(drop))?;
    step(offload(false))?;
    result
}

fn switch(interface: &str, core: usize, applications: u8) -> Result<napi::Guard, NapiError> {
    let mut plan = Plan::around(applications, &[CRITICAL_QUEUE], &[BULK_QUEUE]);
    for queue in &mut plan.queues {
        queue.core = Some(core);
    }
    napi::switch(index_of(interface).unwrap_or(0), &plan)
}
