//! Receive processing: polling or interrupts, soft interrupts or threads with priorities.
//!
//! The order of priorities is the result of measurements: critical queue > applications > bulk queues > transmit
//! completion > everything else. Bulk threads of the ordinary scheduling class are worse than no threads at all.
//! Per-queue threads do harm if a critical request or its reply arrives on a bulk queue. So threads are planned only if
//! every critical flow was measured on its queue, in both directions.

use isolane_hostnet::napi::{Policy, QueueState};

use crate::setting::{Setting, ThreadClass, Value};

use super::builder::{PlanBuilder, Rationale};
use super::input::{TopicInterface, Unverified};
use super::rules;
use super::steering::require_current_steering;

/// `SCHED_FIFO` priority of the critical queue's receive thread.
pub const CRITICAL_QUEUE_PRIORITY: u8 = 75;
/// `SCHED_FIFO` priority for applications with critical topics: between the critical and the bulk queues.
pub const APPLICATION_PRIORITY: u8 = 70;
/// `SCHED_FIFO` priority of the bulk queues' receive threads.
pub const BULK_QUEUE_PRIORITY: u8 = 60;
/// `SCHED_FIFO` priority of transmit-completion threads of all queues: the kernel's default for interrupt threads.
/// Nothing waits for them, but in the ordinary class they would starve until the transmit ring is full.
pub const TRANSMIT_QUEUE_PRIORITY: u8 = 50;

pub(super) fn plan(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    polling(target, builder);
    // Without a critical queue, which is reported elsewhere, threads have nothing to separate.
    if input.tuning.threaded_napi.value && target.critical_queue.is_some() {
        threads(target, builder);
    }
}

fn polling(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    if input.tuning.deferred_interrupts.value {
        return;
    }
    let topics = input.critical_topics(None);
    let name = target.name();
    let folder = format!("/sys/class/net/{name}");
    let wait = target.device.gro_flush_timeout_ns.unwrap_or(0);
    builder.attribute(
        target.id("deferred-interrupts"),
        &format!("{folder}/napi_defer_hard_irqs"),
        "0",
        Rationale::of(
            &topics,
            format!("interrupts are deferred while the kernel polls every {wait} ns, so a frame waits for the next \
                     poll"),
            "an interrupt for each frame that arrives alone",
        ),
    );
    builder.attribute(
        target.id("flush-timeout"),
        &format!("{folder}/gro_flush_timeout"),
        "0",
        Rationale::of(
            &topics,
            format!(
                "the kernel holds frames that it could merge with later ones, for up to {wait} ns"
            ),
            "fewer frames of bulk streams are merged",
        ),
    );
}

fn threads(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let name = target.name();
    let id = target.id("receive-threads");
    let receive = input.facts.lanes_of(name);
    let work: &[QueueState] = receive.map_or(&[], |lanes| &lanes.napi);
    let of_interrupts: Vec<Thread> = target
        .device
        .interrupts
        .iter()
        .filter_map(|interrupt| {
            let (name, fifo) = interrupt.thread.clone()?;
            Some(Thread {
                name,
                queue: interrupt.queue?,
                work: match (
                    interrupt.only_transmits(),
                    target.is_on_critical_path(interrupt),
                ) {
                    (false, true) => Work::Critical,
                    (true, true) => Work::CriticalSending,
                    (false, false) => Work::Bulk,
                    (true, false) => Work::Sent,
                },
                from: Some(ThreadClass {
                    fifo,
                    cores: Vec::new(),
                }),
                cores: Vec::new(),
            })
        })
        .collect();
    let is_threaded = target.device.threaded == Some(true);
    // Threads of threaded interrupts do the receive processing, so NAPI threads are not needed.
    let needs_switch = of_interrupts.is_empty() && !is_threaded;
    if of_interrupts.is_empty() && target.device.threaded.is_none() {
        builder.not_planned(
            id,
            format!("{name} has no receive threads, and its driver supports none"),
            "",
        );
        return;
    }
    if let Err(Unverified { why, remedy }) = target.verified() {
        builder.not_planned(
            id,
            format!(
                "{why}; with one queue's thread raised and the others lowered, round trips took ten to twenty times \
                 longer if a request or reply arrived on a lowered queue"
            ),
            remedy,
        );
        return;
    }
    if builder.changes_steering(name) {
        builder.not_planned(
            id,
            format!(
                "this plan changes the steering of {name}, so earlier measurements of its receive queues are no \
                 longer valid"
            ),
            "apply this plan, measure the receive queues of critical flows again (isolane tune ports), and plan again",
        );
        return;
    }
    let threads = match of_interrupts.is_empty() || is_threaded {
        true => napi_threads(target, work),
        false => of_interrupts,
    };
    let serves_critical = |thread: &Thread| thread.work == Work::Critical;
    if !threads.iter().any(serves_critical) {
        builder.not_planned(
            id,
            format!("the thread that serves the critical queue of {name} cannot be determined"),
            "run as root, with a kernel that reports the thread of each queue (Linux 6.8 and later)",
        );
        return;
    }
    builder.not_planned(
        "applications.priority",
        format!(
            "these priorities assume that programs with critical topics run at SCHED_FIFO {APPLICATION_PRIORITY}, \
             which this plan does not set; receive work of bulk would starve a program of ordinary priority"
        ),
        format!(
            "chrt -f {APPLICATION_PRIORITY} PROGRAM; for a service: CPUSchedulingPolicy=fifo and \
             CPUSchedulingPriority={APPLICATION_PRIORITY}; for a service that sets its own priority: \
             LimitRTPRIO={APPLICATION_PRIORITY}"
        ),
    );
    let before = builder.steps.len();
    if needs_switch {
        builder.attribute(
            target.id("threaded"),
            &format!("/sys/class/net/{name}/threaded"),
            "1",
            Rationale::of(
                &input.critical_topics(None),
                "receive work in a soft interrupt, also of bulk, runs before every thread; receive threads have \
                 priorities",
                "a wake-up for each frame that arrives alone: the median of a host's part rose from 38 to 53 us",
            ),
        );
    }
    for thread in threads {
        priority(target, thread, builder);
    }
    if builder.steps.len() > before {
        require_current_steering(target, builder);
    }
    if !rules::rules_steer_all(target) {
        builder.limit_to_this_boot(before);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Reception of critical samples.
    Critical,
    /// Transmission of critical samples from lanes by a zero-copy device, without reception.
    CriticalSending,
    /// Reception of all other frames.
    Bulk,
    /// Transmit completion, without reception.
    Sent,
}

struct Thread {
    name: String,
    queue: u32,
    work: Work,
    /// Current scheduling; `None` if the thread does not exist yet.
    from: Option<ThreadClass>,
    /// Planned cores; empty for no change.
    cores: Vec<u16>,
}

/// NAPI threads of a device. Their names follow from the NAPI instances, which exist before the threads.
fn napi_threads(target: &TopicInterface<'_>, work: &[QueueState]) -> Vec<Thread> {
    let input = &target.input;
    let thread = |state: &QueueState| {
        let is_critical = Some(state.queue) == target.critical_queue;
        let known = state.thread.as_ref();
        let from = known.map(|thread| ThreadClass {
            fifo: match thread.policy {
                Some(Policy::Fifo(priority)) => Some(priority),
                _ => None,
            },
            cores: thread
                .cores
                .iter()
                .filter_map(|core| u16::try_from(*core).ok())
                .collect(),
        });
        Thread {
            name: format!("napi/{}-{}", target.name(), state.instance),
            queue: state.queue,
            work: match is_critical {
                true => Work::Critical,
                false => Work::Bulk,
            },
            from,
            cores: match (is_critical, input.core()) {
                (true, Some(core)) => vec![core],
                (false, Some(_)) => input.other_cores(),
                (_, None) => Vec::new(),
            },
        }
    };
    // If the kernel does not report the queues of instances, these are numbered in order. Transmit-only instances come
    // last, and are excluded here.
    let receive = work.iter();
    let receive = receive.filter(|state| state.queue < target.receive_queues);
    receive.map(thread).collect()
}

fn priority(target: &TopicInterface<'_>, thread: Thread, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let (priority, mut why, costs) = match thread.work {
        Work::CriticalSending => (
            CRITICAL_QUEUE_PRIORITY,
            String::from(
                "the device reads the frames of lanes itself, and this thread hands them to it: it sends only what \
                 critical jobs have published",
            ),
            format!(
                "programs below FIFO {CRITICAL_QUEUE_PRIORITY} wait while this thread sends critical frames"
            ),
        ),
        Work::Critical => (
            CRITICAL_QUEUE_PRIORITY,
            format!(
                "critical jobs wait for the frames that this thread receives, so it runs above the applications, \
                 which should run at FIFO {APPLICATION_PRIORITY}"
            ),
            format!(
                "programs below FIFO {CRITICAL_QUEUE_PRIORITY} wait while this thread receives; according to the \
                 measurement, it receives only critical datagrams"
            ),
        ),
        Work::Bulk => (
            BULK_QUEUE_PRIORITY,
            format!(
                "this thread receives bulk when no application with FIFO {APPLICATION_PRIORITY} has work, and before \
                 all ordinary programs; at ordinary priority it would starve, and later occupy a core for \
                 milliseconds"
            ),
            format!(
                "ordinary programs on its cores wait for this thread, also those with critical topics, unless they \
                 run at FIFO {APPLICATION_PRIORITY}"
            ),
        ),
        Work::Sent => (
            TRANSMIT_QUEUE_PRIORITY,
            String::from(
                "this thread completes frames that are already sent, and no program waits for it, so it runs below \
                 all receive threads; at ordinary priority it would starve until the ring is full and nothing can be \
                 sent",
            ),
            String::from("none: this is the kernel's default"),
        ),
    };
    if thread.name.starts_with("irq/") {
        why.push_str(
            "; receive work beyond its budget continues in ksoftirqd at ordinary priority, unless the priority of \
             ksoftirqd is raised as well",
        );
    }
    let from = match thread.from {
        Some(class) => Value::Thread(class),
        None => Value::Absent,
    };
    let to = ThreadClass {
        fifo: Some(priority),
        cores: thread.cores,
    };
    let subject = match thread.work {
        Work::Critical | Work::Bulk => "thread",
        Work::CriticalSending | Work::Sent => "transmit-thread",
    };
    let id = target.id(&format!("{subject}-{}", thread.queue));
    let setting = Setting::Thread { name: thread.name };
    let values = (from, Value::Thread(to));
    let rationale = Rationale::of(&input.critical_topics(None), why, costs);
    builder.change(id, setting, values, rationale);
}
