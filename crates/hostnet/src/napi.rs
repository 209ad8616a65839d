//! The priority of network work: a thread for each queue, and how it is scheduled.
//!
//! Ordinarily the kernel receives frames in a soft interrupt, on whatever core and ahead of every
//! thread; so the frames of a bulk queue delay the critical application as much as its own do. A
//! driver's NAPI instances, one a queue, can run in threads instead, and threads have priorities.
//!
//! # Which priorities
//!
//! The critical queue's thread stands above the applications, for what it brings is what they wait
//! for. The bulk queues' threads stand below them, and *above everything else* ([`Plan::around`]).
//! The obvious setting, bulk at the ordinary class, is worse than doing nothing: starved for a
//! while, such a thread collects a whole poll's budget of frames and then works it off for
//! milliseconds with soft interrupts disabled, when nothing on the core can take over. So a plan
//! has real-time priorities only.
//!
//! A thread costs a wake-up more for each frame that comes alone: it is for heavy bulk traffic, not
//! for quiet.
//!
//! # What is left behind
//!
//! [`switch`] returns a [`Guard`] that puts everything back when it is dropped. A process that is
//! killed leaves the settings as they are, and they are bounded: threads belong to the NAPI
//! instances, so where these come and go with the XDP program (veth), they end with it when its link
//! is closed; elsewhere they stay, at their priorities, and do what the soft interrupt would have
//! done; interrupts stay put off within [`Polling`]'s bound. `isolane doctor` shows both, and
//! [`Guard`]s of a later run start from what they find.

mod error;
mod plan;
mod scheduling;
mod sysfs;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use self::error::NapiError;
pub use self::plan::{Plan, Polling, QueuePlan};
pub use self::scheduling::{Policy, Scheduling, ThreadState};
use crate::limits::{MAX_NAPI_INSTANCES, NAPI_THREAD_PATIENCE};
use crate::netdev::{Instance, Netdev, ReceiveQueue};

/// How the receive work of one queue is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueState {
    /// The device's receive queue.
    pub queue: u32,
    /// The kernel's number of the NAPI instance that serves it.
    pub instance: u32,
    /// The interrupt it has; `None` for devices without, or where the kernel does not say.
    pub interrupt: Option<u32>,
    /// The thread it runs in; `None`: a soft interrupt.
    pub thread: Option<ThreadState>,
    /// Polling; `None` where the kernel does not say.
    pub polling: Option<Polling>,
}

/// How the receive work of an interface's queues is done now. Empty where the driver has no NAPI, or
/// the kernel says nothing of it: without the netlink family `netdev` only threads can be seen.
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
        None => (sysfs::instances(name), Vec::new()),
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

/// Which instance serves which queue: as the driver says, else in the order in which they were made.
fn assigned(instances: &[Instance], queues: &[ReceiveQueue]) -> Vec<(u32, Instance)> {
    let told: Vec<(u32, Instance)> = queues
        .iter()
        .filter_map(|queue| {
            let instance = instances
                .iter()
                .find(|known| Some(known.number) == queue.napi)?;
            Some((queue.number, *instance))
        })
        .collect();
    match told.is_empty() {
        false => told,
        true => (0..).zip(instances.iter().copied()).collect(),
    }
}

/// What one queue was like.
#[derive(Debug)]
struct Before {
    instance: u32,
    was_threaded: bool,
    /// The thread that was there before, and how it was scheduled.
    scheduling: Option<(i32, Scheduling)>,
    /// Its polling, if that was changed.
    polling: Option<Polling>,
}

/// What was there before a [`switch`]; puts it back when dropped.
#[derive(Debug)]
pub struct Guard {
    interface: String,
    before: Vec<Before>,
    state: Vec<QueueState>,
}

/// Has the receive work of queues done by threads, as planned. Attach XDP programs first: some drivers
/// make new NAPI instances when one comes.
///
/// # Errors
/// [`NapiError`], and everything is as it was.
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
        // A failure drops the guard, which undoes what was done so far.
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
        thread::sleep(Duration::from_millis(1));
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

/// Off and on again: the flag may be set from before the instance was made, without a thread.
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
            // A kernel before 6.17 knows no thread of one instance, only of all of a device.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            other => return other,
        }
    }
    sysfs::set_threaded(interface, false)?;
    sysfs::set_threaded(interface, true)
}

fn set_polling(netdev: &mut Netdev, instance: u32, polling: Polling) -> Result<(), NapiError> {
    let wait_ns = polling.wait.as_nanos() as u64;
    netdev
        .set_polling(instance, polling.idle_polls, wait_ns)
        .map_err(NapiError::of("have a queue polled", "CAP_NET_ADMIN"))
}

impl Guard {
    /// The queues as they were after the switch.
    #[must_use]
    pub fn state(&self) -> &[QueueState] {
        &self.state
    }

    /// Leaves everything as it is now, for good.
    pub fn keep(mut self) {
        self.before.clear();
    }

    /// Puts one queue back; what is gone by now needs nothing.
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
            let _ = sysfs::set_threaded(interface, false);
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
        let told = assigned(&instances, &[queue(0, Some(9)), queue(1, Some(8))]);
        assert_eq!(told, [(0, instance(9)), (1, instance(8))]);
        let untold = assigned(&instances, &[queue(0, None), queue(1, None)]);
        assert_eq!(untold, [(0, instance(8)), (1, instance(9))]);
    }
}
