//! Receive work of the hosts in kernel threads (threaded NAPI) instead of soft interrupts.
//!
//! Each host has a thread per queue. The critical queue's thread has a higher priority than the applications, the other
//! thread a lower one, which is still above everything else. A veth pair has NAPI only with an XDP program or with GRO.
//! GRO is therefore enabled while the threads exist, so that they survive a change of XDP program. (GRO merges TCP
//! segments, and there is no TCP here.) Receive packet steering is disabled meanwhile, because it would put the frames
//! of all queues into one backlog.
//!
//! The settings are files in a namespace's sysfs, so a thread enters the namespace to change them, and another one to
//! restore them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use isolane_hostnet::ethtool::Ethtool;
use isolane_hostnet::link::index_of;
use isolane_hostnet::napi::{self, Plan};

use super::setup::{self, GENERIC_RECEIVE_OFFLOAD};
use super::{CONFIGURE_RIGHT, Host, TestHosts, TestHostsError, enter, on_own_thread};
use crate::scenario::transport::{BULK_QUEUE, CRITICAL_QUEUE};

/// Handle of the receive threads. Dropping it restores the previous settings.
#[derive(Debug)]
pub struct ReceiveThreads {
    _hosts: [HostThreads; 2],
}

/// Receive threads of a host.
#[derive(Debug)]
struct HostThreads {
    namespace: Arc<OwnedFd>,
    host: Host,
    /// Core of the threads, and of the receive work before and afterwards.
    core: usize,
    /// State of the queues before.
    before: Option<napi::Guard>,
}

impl ReceiveThreads {
    pub(super) fn start(testbed: &TestHosts, applications: u8) -> Result<Self, TestHostsError> {
        let start = |host: Host| HostThreads::start(testbed, host, applications);
        Ok(ReceiveThreads {
            _hosts: [start(Host::A)?, start(Host::B)?],
        })
    }
}

impl HostThreads {
    fn start(testbed: &TestHosts, host: Host, applications: u8) -> Result<Self, TestHostsError> {
        // If a step fails, dropping this value restores the settings.
        let mut threads = HostThreads {
            namespace: testbed.descriptor(host.into()).clone(),
            host,
            core: testbed.config().cores.hosts,
            before: None,
        };
        let mut plan = Plan::around(applications, &[CRITICAL_QUEUE], &[BULK_QUEUE]);
        for queue in &mut plan.queues {
            queue.core = Some(threads.core);
        }
        let interface = host.interface();
        threads.before = threads.in_namespace(|| {
            step(threads.merge_segments(true))?;
            let before = napi::switch(index_of(interface).unwrap_or(0), &plan)?;
            step(setup::steer_receive_work(interface, None))?;
            Ok(Some(before))
        })?;
        Ok(threads)
    }

    /// Runs `work` in the host's namespace, with the host's devices in `/sys`.
    fn in_namespace<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, TestHostsError> + Send,
    ) -> Result<T, TestHostsError> {
        on_own_thread(|| {
            enter(&self.namespace)?;
            step(setup::show_own_devices())?;
            work()
        })
    }

    /// Switches GRO of the host's device.
    fn merge_segments(&self, is_on: bool) -> io::Result<()> {
        let interface = self.host.interface();
        Ok(Ethtool::open()?.set_features(interface, &[GENERIC_RECEIVE_OFFLOAD], is_on)?)
    }
}

impl Drop for HostThreads {
    fn drop(&mut self) {
        let before = self.before.take();
        // Settings that cannot be restored end with the namespace.
        let _ = self.in_namespace(|| {
            drop(before);
            step(setup::steer_receive_work(
                self.host.interface(),
                Some(self.core),
            ))?;
            step(self.merge_segments(false))
        });
    }
}

fn step<T>(result: io::Result<T>) -> Result<T, TestHostsError> {
    super::step("have receive work done by threads", CONFIGURE_RIGHT, result)
}
