//! Receive work of the hosts in kernel threads (threaded NAPI) instead of soft interrupts.
//!
//! Each host has a thread per queue. The critical queue's thread has a higher priority than the applications, the other
//! thread a lower one, which is still above everything else. A veth pair has NAPI only with an XDP program or with GRO.
//! GRO is therefore enabled while the threads exist, so that they survive a change of XDP program. (GRO merges TCP
//! segments, and there is no TCP here.) Receive packet steering is disabled meanwhile, because it would put the frames
//! of all queues into one backlog.
//!
//! The settings are files in a namespace's sysfs, so a thread stays in the namespace to restore them.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use isolane_hostnet::ethtool::Ethtool;
use isolane_hostnet::link::index_of;
use isolane_hostnet::napi::{self, NapiError, Plan};

use super::setup::{self, GENERIC_RECEIVE_OFFLOAD};
use super::{CONFIGURE_RIGHT, Host, TestHosts, TestHostsError, step};
use crate::scenario::transport::{BULK_QUEUE, CRITICAL_QUEUE};

/// Handle of the receive threads. Dropping it restores the previous settings.
#[derive(Debug)]
pub struct ReceiveThreads {
    holders: Vec<Holder>,
}

/// Thread that waits in a host's namespace.
#[derive(Debug)]
struct Holder {
    /// Sender whose drop ends the thread.
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReceiveThreads {
    pub(super) fn start(testbed: &TestHosts, applications: u8) -> Result<Self, TestHostsError> {
        let hold = |host| Holder::start(testbed, host, applications);
        Ok(ReceiveThreads {
            holders: vec![hold(Host::A)?, hold(Host::B)?],
        })
    }

    /// Number of hosts with receive threads.
    pub fn hosts(&self) -> usize {
        self.holders.len()
    }
}

impl Holder {
    fn start(testbed: &TestHosts, host: Host, applications: u8) -> Result<Self, TestHostsError> {
        let namespace = testbed.descriptor(host.into()).clone();
        let core = testbed.config().cores.hosts;
        let (ready, is_ready) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("receive work of {}", host.interface()))
            .spawn(move || {
                let entered = crate::namespace::enter(&namespace);
                let held = entered.and_then(|()| hold(host, core, applications, &ready, &released));
                if let Err(error) = held {
                    // The receiver is gone only after it got an answer.
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
            Err(mpsc::RecvError) => Err(TestHostsError::System {
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
            // The thread has already reported an error, if any.
            let _ = thread.join();
        }
    }
}

/// Enables the threads in the host's namespace, reports to `ready`, and restores the settings on release.
fn hold(
    host: Host,
    core: usize,
    applications: u8,
    ready: &Sender<Result<(), TestHostsError>>,
    released: &Receiver<()>,
) -> Result<(), TestHostsError> {
    let interface = host.interface();
    let offload = |is_on| -> io::Result<()> {
        Ok(Ethtool::open()?.set_features(interface, &[GENERIC_RECEIVE_OFFLOAD], is_on)?)
    };
    let step = |result| step("have receive work done by threads", CONFIGURE_RIGHT, result);
    step(setup::show_own_devices())?;
    step(offload(true))?;
    let switched = switch(interface, core, applications);
    let result = match switched {
        Ok(guard) => step(setup::steer_receive_work(interface, None).map(drop)).map(|()| {
            let _ = ready.send(Ok(()));
            // No value is ever sent; the call ends when the sender is dropped.
            let _ = released.recv();
            drop(guard);
        }),
        Err(error) => Err(TestHostsError::ReceiveWork(error)),
    };
    step(setup::steer_receive_work(interface, Some(core)).map(drop))?;
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
