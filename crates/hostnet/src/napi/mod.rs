//! NAPI threads: priorities of receive processing.
//!
//! By default the kernel receives frames in a soft interrupt, ahead of all threads of the core: frames of a bulk queue
//! delay the critical application as much as its own frames do. NAPI instances, usually one per queue, can run in
//! threads instead, and threads have priorities.
//!
//! # Priorities
//!
//! The thread of a critical queue runs above the applications that wait for its frames. Threads of bulk queues run
//! below these applications and *above everything else* ([`Plan::around`]). SCHED_OTHER for bulk is worse than no
//! thread: once starved, such a thread collects a whole poll budget of frames, and processes it for milliseconds with
//! soft interrupts disabled. So a plan has real-time priorities only. A thread costs one more wake-up for each frame
//! that arrives alone, so threads pay off under heavy bulk traffic.
//!
//! # Restoring
//!
//! [`switch`] returns a [`Guard`], which restores everything on drop. A killed process leaves its settings behind, but
//! their effect is bounded. Threads belong to NAPI instances: on veth these end with the XDP program, elsewhere the
//! threads keep their priorities and do what the soft interrupt would have done. Interrupts stay deferred within the
//! bounds of [`Polling`]. `isolane doctor` shows such threads and deferred interrupts. A later [`Guard`] takes them as
//! the state to restore.

mod plan;
mod thread;

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use self::plan::{NapiError, Plan, Polling, QueuePlan};
pub use self::thread::{Policy, Scheduling, ThreadState};
use crate::limits::{MAX_NAPI_INSTANCES, NAPI_THREAD_PATIENCE};
use crate::netdev::{Instance, Netdev, ReceiveQueue};
use crate::netlink::NetlinkError;

/// Receive processing of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueState {
    /// Number of the receive queue.
    pub queue: u32,
    /// Number of the NAPI instance that serves it.
    pub instance: u32,
    /// Interrupt of the instance; `None` if it has none, or if the kernel does not report it.
    pub interrupt: Option<u32>,
    /// Thread of the instance; `None` if it runs in the soft interrupt.
    pub thread: Option<ThreadState>,
    /// Polling; `None` if the kernel does not report it.
    pub polling: Option<Polling>,
}

/// Receive processing of an interface's queues. Empty if the driver has no NAPI. If the kernel lacks the netlink family
/// `netdev`, contains only instances that run in threads.
///
/// # Errors
/// [`NapiError::NoInterface`]; [`NapiError::System`].
pub fn state(interface_index: u32) -> Result<Vec<QueueState>, NapiError> {
    let name = name_of(interface_index)?;
    let mut netdev = Netdev::open().ok();
    Ok(queues(&mut netdev, interface_index, &name))
}

fn name_of(index: u32) -> Result<String, NapiError> {
    crate::link::name_of(index).ok_or(NapiError::NoInterface { index })
}

fn queues(netdev: &mut Option<Netdev>, index: u32, name: &str) -> Vec<QueueState> {
    let (instances, queues) = match netdev {
        Some(netdev) => (
            netdev.instances(index).unwrap_or_default(),
            netdev.receive_queues(index).unwrap_or_default(),
        ),
        None => (thread::instances(name), Vec::new()),
    };
    assigned(&instances, &queues)
        .into_iter()
        .take(MAX_NAPI_INSTANCES)
        .map(|(queue, instance)| QueueState {
            queue,
            instance: instance.number,
            interrupt: instance.interrupt,
            thread: instance.thread.map(ThreadState::of),
            polling: instance.deferred_interrupts.map(|idle_polls| Polling {
                wait: Duration::from_nanos(instance.flush_timeout_ns.unwrap_or(0)),
                idle_polls,
            }),
        })
        .collect()
}

/// Instance of each queue: as the driver reports, else in order of creation.
fn assigned(instances: &[Instance], queues: &[ReceiveQueue]) -> Vec<(u32, Instance)> {
    let reported: Vec<(u32, Instance)> = queues
        .iter()
        .filter_map(|queue| {
            let instance = instances
                .iter()
                .find(|known| Some(known.number) == queue.napi)?;
            Some((queue.number, *instance))
        })
        .collect();
    match reported.is_empty() {
        false => reported,
        true => (0..).zip(instances.iter().copied()).collect(),
    }
}

/// State of a queue before the switch.
#[derive(Debug)]
struct Before {
    instance: u32,
    was_threaded: bool,
    /// Thread that existed before, and its scheduling.
    scheduling: Option<(i32, Scheduling)>,
    /// Polling, if it was changed.
    polling: Option<Polling>,
}

/// State before a [`switch`], restored on drop.
#[derive(Debug)]
pub struct Guard {
    interface: String,
    before: Vec<Before>,
    state: Vec<QueueState>,
}

/// Moves the receive processing of queues into threads. XDP programs must be attached first: some drivers create new
/// NAPI instances for a program.
///
/// # Errors
/// [`NapiError`]; everything is restored.
pub fn switch(interface_index: u32, plan: &Plan) -> Result<Guard, NapiError> {
    plan.check()?;
    let interface = name_of(interface_index)?;
    let mut netdev = Netdev::open().ok();
    let mut guard = Guard {
        interface,
        before: Vec::new(),
        state: Vec::new(),
    };
    for queue in &plan.queues {
        // A failure drops the guard, which restores what was changed so far.
        switch_queue(&mut netdev, interface_index, queue, &mut guard)?;
    }
    guard.state = queues(&mut netdev, interface_index, &guard.interface);
    Ok(guard)
}

fn switch_queue(
    netdev: &mut Option<Netdev>,
    index: u32,
    plan: &QueuePlan,
    guard: &mut Guard,
) -> Result<(), NapiError> {
    let find = |netdev: &mut Option<Netdev>, interface: &str| {
        queues(netdev, index, interface)
            .into_iter()
            .find(|known| known.queue == plan.queue)
    };
    let known = find(netdev, &guard.interface);
    let is_threaded = known.as_ref().is_some_and(|known| known.thread.is_some());
    if known.is_none() && netdev.is_some() {
        return Err(NapiError::NoInstance {
            interface: guard.interface.clone(),
            queue: plan.queue,
        });
    }
    let thread = known.as_ref().and_then(|known| known.thread.as_ref());
    guard.before.push(Before {
        instance: known.as_ref().map_or(0, |known| known.instance),
        was_threaded: is_threaded,
        scheduling: thread
            .and_then(|thread| Some((thread.process_id, Scheduling::of(thread.process_id).ok()?))),
        polling: None,
    });
    if !is_threaded {
        start(netdev, known.as_ref(), &guard.interface)
            .map_err(NapiError::of("have NAPI run in threads", "CAP_NET_ADMIN"))?;
    }
    let begin = Instant::now();
    let thread = loop {
        let known = find(netdev, &guard.interface);
        if let Some(thread) = known.and_then(|known| known.thread) {
            break thread;
        }
        if begin.elapsed() > NAPI_THREAD_PATIENCE {
            return Err(NapiError::NoThread {
                interface: guard.interface.clone(),
                queue: plan.queue,
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let cores = plan.core.map(|core| vec![core]);
    Scheduling::fifo(plan.priority, cores)
        .apply(thread.process_id)
        .map_err(NapiError::of(
            "set a NAPI thread's priority",
            "CAP_SYS_NICE",
        ))?;
    if let (Some(polling), Some(known), Some(netdev)) = (plan.polling, known, netdev) {
        set_polling(netdev, known.instance, polling)?;
        if let Some(before) = guard.before.last_mut() {
            before.polling = Some(known.polling.unwrap_or(Polling::OFF));
        }
    }
    Ok(())
}

/// Switches threads off and on, because an instance created after the flag was set has no thread.
fn start(
    netdev: &mut Option<Netdev>,
    known: Option<&QueueState>,
    interface: &str,
) -> io::Result<()> {
    if let (Some(netdev), Some(known)) = (netdev, known) {
        let switched = netdev
            .set_threaded(known.instance, false)
            .and_then(|()| netdev.set_threaded(known.instance, true));
        match switched {
            // Before Linux 6.17, only all instances of a device can be switched together.
            Err(error) if is_unknown(&error) => {}
            other => return Ok(other?),
        }
    }
    thread::set_threaded(interface, false)?;
    thread::set_threaded(interface, true)
}

/// Returns whether the kernel does not support a request, or an attribute of it.
fn is_unknown(error: &NetlinkError) -> bool {
    matches!(
        error.error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP)
    )
}

fn set_polling(netdev: &mut Netdev, instance: u32, polling: Polling) -> Result<(), NapiError> {
    let wait_ns = polling.wait.as_nanos() as u64;
    netdev
        .set_polling(instance, polling.idle_polls, wait_ns)
        .map_err(NapiError::of("have a queue polled", "CAP_NET_ADMIN"))
}

impl Guard {
    /// Queues as they were after the switch.
    #[must_use]
    pub fn state(&self) -> &[QueueState] {
        &self.state
    }

    /// Keeps the settings: nothing is restored.
    pub fn keep(mut self) {
        self.before.clear();
    }

    /// Restores one queue; an instance or thread that is gone needs nothing.
    fn restore(netdev: &mut Option<Netdev>, interface: &str, before: &Before) {
        if let (Some(netdev), Some(polling)) = (netdev.as_mut(), before.polling) {
            let _ = set_polling(netdev, before.instance, polling);
        }
        if let Some((process_id, scheduling)) = &before.scheduling {
            let _ = scheduling.apply(*process_id);
        }
        if before.was_threaded {
            return;
        }
        let is_done = netdev
            .as_mut()
            .is_some_and(|netdev| netdev.set_threaded(before.instance, false).is_ok());
        if !is_done {
            let _ = thread::set_threaded(interface, false);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.before.is_empty() {
            return;
        }
        let mut netdev = Netdev::open().ok();
        for before in self.before.iter().rev() {
            Guard::restore(&mut netdev, &self.interface, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(number: u32) -> Instance {
        Instance {
            number,
            ..Instance::default()
        }
    }

    fn queue(number: u32, napi: Option<u32>) -> ReceiveQueue {
        ReceiveQueue {
            number,
            napi,
            is_taken: false,
        }
    }

    #[test]
    fn queues_have_the_instances_the_driver_says_else_those_of_their_order() {
        let instances = [instance(8), instance(9)];
        let reported = assigned(&instances, &[queue(0, Some(9)), queue(1, Some(8))]);
        assert_eq!(reported, [(0, instance(9)), (1, instance(8))]);
        let unreported = assigned(&instances, &[queue(0, None), queue(1, None)]);
        assert_eq!(unreported, [(0, instance(8)), (1, instance(9))]);
    }
}
