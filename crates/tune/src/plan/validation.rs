//! Validation of untrusted plans: accepts the steps that planning can produce, and no others.
//!
//! Anybody may have written a plan file, and root applies it. So each step must be one that planning makes for some
//! machine and description. A kernel file must be in the list, with a value in its range. A [`Document`] must have
//! parameters that planning gives it on this machine. A device setting must change in the direction in which planning
//! changes it. A test checks that the plans of all recorded machines are valid.

use super::builder::RULES;
use super::device::disabled_offloads;
use super::{
    BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, Precondition, Step, TRANSMIT_QUEUE_PRIORITY,
};
use isolane_model::is_interface_name;

use crate::facts::{Coalescing, FlowRule, Queues, RingSizes, RootQdisc, TrafficClasses};
use crate::limits::{MIN_TRANSMIT_RING_FRAMES, PFIFO_FRAMES, STATISTICS_SECONDS};
use crate::setting::{Document, Setting, Value};

/// Values that planning writes to a kernel file.
#[derive(Clone, Copy)]
enum Range {
    /// Exactly this text.
    Is(&'static str),
    /// [`STATISTICS_SECONDS`].
    Seconds,
    /// Mask of cores (`0000000f`).
    Mask,
    /// List of cores or ports (`0-2,6`), possibly empty.
    List,
    /// Number of bytes larger than before, in whole pages.
    MoreBytes,
}

/// Kernel files that planning writes. `#` matches a number, `@` an interface name.
#[rustfmt::skip]
const ATTRIBUTES: [(&str, Range); 19] = [
    ("/sys/devices/system/cpu/cpu#/online", Range::Is("0")),
    ("/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor", Range::Is("performance")),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/disable", Range::Is("1")),
    ("/sys/devices/virtual/workqueue/cpumask", Range::Mask),
    ("/proc/irq/default_smp_affinity", Range::Mask),
    ("/proc/irq/#/smp_affinity_list", Range::List),
    ("/proc/sys/kernel/watchdog_cpumask", Range::List),
    ("/proc/sys/vm/stat_interval", Range::Seconds),
    ("/proc/sys/kernel/sched_rt_runtime_us", Range::Is("-1")),
    ("/sys/kernel/debug/sched/fair_server/cpu#/runtime", Range::Is("0")),
    ("/sys/kernel/mm/transparent_hugepage/enabled", Range::Is("madvise")),
    ("/proc/sys/net/core/rmem_max", Range::MoreBytes),
    ("/proc/sys/net/core/rmem_default", Range::MoreBytes),
    ("/proc/sys/net/ipv4/ip_local_reserved_ports", Range::List),
    ("/proc/sys/net/core/busy_read", Range::Is("0")),
    ("/sys/class/net/@/napi_defer_hard_irqs", Range::Is("0")),
    ("/sys/class/net/@/gro_flush_timeout", Range::Is("0")),
    ("/sys/class/net/@/threaded", Range::Is("1")),
    ("/sys/class/net/@/queues/rx-#/rps_cpus", Range::Mask),
];

/// Page size in bytes, to which buffers are rounded.
const PAGE_BYTES: u64 = 4096;

impl Step {
    /// Returns whether planning can produce this step on a machine with these cores. `found`: the setting's original
    /// value from the journal, which planning may restore.
    pub(crate) fn is_valid(&self, found: Option<&Value>, cores: &[u16]) -> bool {
        found == Some(&self.to) || is_valid(&self.setting, &self.from, &self.to, cores)
    }
}

/// Cores that all documents of one plan must agree on.
#[derive(Debug, Default)]
pub(crate) struct CoreAssignment<'a> {
    executor: Option<u16>,
    others: Option<&'a [u16]>,
}

impl<'a> CoreAssignment<'a> {
    /// Returns whether a step can belong to the same plan as the steps admitted before. A plan has one executor core
    /// and one list of other cores, which excludes the executor's.
    pub(crate) fn admit(&mut self, step: &'a Step) -> bool {
        let Value::Document(document) = &step.to else {
            return true;
        };
        let (executor, others) = (document.executor_core(), document.other_cores());
        let is_agreed = self
            .executor
            .is_none_or(|known| executor.is_none_or(|it| it == known))
            && self
                .others
                .is_none_or(|known| others.is_none_or(|it| it == known));
        let executor = self.executor.or(executor);
        let others = self.others.or(others);
        let is_alone = executor.is_none_or(|core| !others.unwrap_or_default().contains(&core));
        if is_agreed && is_alone {
            *self = Self { executor, others };
        }
        is_agreed && is_alone
    }
}

impl Precondition {
    /// Returns whether planning can require this setting: it must determine the steering of frames to queues.
    pub(crate) fn is_valid(&self) -> bool {
        super::steered_interface(&self.setting).is_some_and(is_interface_name)
    }
}

fn is_valid(setting: &Setting, from: &Value, to: &Value, cores: &[u16]) -> bool {
    if setting
        .interface()
        .is_some_and(|name| !is_interface_name(name))
    {
        return false;
    }
    match (setting, from, to) {
        (Setting::Attribute { path }, Value::Text(from), Value::Text(to)) => {
            let mut known = ATTRIBUTES.iter();
            let known = known.find(|(pattern, _)| matches_pattern(path, pattern));
            known.is_some_and(|(_, range)| range.has(from, to))
        }
        (Setting::Document { path }, _, Value::Document(document)) => {
            document.path() == *path && has_valid_parameters(document, cores)
        }
        (Setting::Channels { .. }, Value::Queues(from), Value::Queues(to)) => {
            is_queue_change(from, to)
        }
        (Setting::Rings { .. }, Value::Rings(from), Value::Rings(to)) => is_ring_change(from, to),
        (Setting::Coalescing { .. }, Value::Coalescing(from), Value::Coalescing(to)) => {
            is_coalescing_change(from, to)
        }
        (Setting::Feature { feature, .. }, _, Value::Switch(on)) => match on {
            true => feature == RULES,
            false => disabled_offloads().any(|known| known == feature),
        },
        (Setting::RssTable { .. }, Value::Table(from), Value::Table(to)) => from.len() == to.len(),
        (Setting::UdpHash { .. }, _, Value::Switch(on)) => *on,
        (Setting::FlowRule { .. }, Value::Absent, Value::Rule(rule)) => match rule {
            FlowRule::Port { destination, .. } => destination.is_some(),
            FlowRule::Priority { vlan_priority, .. } => *vlan_priority < 8,
        },
        (Setting::FlowRule { .. }, Value::Rule(rule), Value::Absent) => {
            matches!(
                rule,
                FlowRule::Port {
                    destination: Some(_),
                    ..
                }
            )
        }
        (Setting::RootQdisc { .. }, _, Value::Qdisc(qdisc)) => match qdisc {
            RootQdisc::Pfifo { frames } => *frames == PFIFO_FRAMES,
            RootQdisc::Mqprio(classes) => are_valid_classes(classes),
            _ => false,
        },
        (Setting::Thread { name }, _, Value::Thread(class)) => {
            let priorities = [
                CRITICAL_QUEUE_PRIORITY,
                BULK_QUEUE_PRIORITY,
                TRANSMIT_QUEUE_PRIORITY,
            ];
            is_receive_thread(name)
                && class.fifo.is_some_and(|fifo| priorities.contains(&fifo))
                && are_valid_cores(&class.cores, cores)
        }
        _ => false,
    }
}

/// Returns whether planning gives a document these parameters on a machine with these cores.
fn has_valid_parameters(document: &Document, cores: &[u16]) -> bool {
    let executor = document.executor_core();
    let others = document.other_cores().unwrap_or_default();
    let is_right = are_valid_cores(executor.as_slice(), cores)
        && are_valid_cores(others, cores)
        && executor.is_none_or(|core| !others.contains(&core));
    is_right
        && match document {
            // The list must lack at least the executor's core.
            Document::UnitCores { cores: others, .. }
            | Document::ManagerCores { cores: others } => {
                !others.is_empty() && (cores.is_empty() || others.len() < cores.len())
            }
            Document::KernelArguments { lists, .. } => {
                !lists.is_empty() && lists.is_sorted_by(|one, next| one < next)
            }
            Document::CriticalSlice { .. }
            | Document::IrqbalanceBannedCpus { .. }
            | Document::RealtimeLimits => true,
        }
}

/// Returns whether these are cores of the machine, ascending. `of_machine`: all its cores; empty if unknown.
fn are_valid_cores(cores: &[u16], of_machine: &[u16]) -> bool {
    let is_there = |core: &u16| of_machine.is_empty() || of_machine.contains(core);
    cores.is_sorted_by(|one, next| one < next) && cores.iter().all(is_there)
}

impl Range {
    fn has(self, from: &str, to: &str) -> bool {
        let consists_of = |letters: fn(char) -> bool, between: &str| {
            to.chars()
                .all(|letter| letters(letter) || between.contains(letter))
        };
        match self {
            Self::Is(text) => to == text,
            Self::Seconds => to == STATISTICS_SECONDS.to_string(),
            Self::Mask => !to.is_empty() && consists_of(|letter| letter.is_ascii_hexdigit(), ","),
            Self::List => consists_of(|letter| letter.is_ascii_digit(), ",-"),
            Self::MoreBytes => {
                let number = |text: &str| text.parse::<u64>().ok();
                number(to).is_some_and(|to| to % PAGE_BYTES == 0 && Some(to) > number(from))
            }
        }
    }
}

/// Returns whether no queue count shrinks: planning only adds queues.
fn is_queue_change(from: &Queues, to: &Queues) -> bool {
    to.rx >= from.rx && to.tx >= from.tx && to.combined >= from.combined
}

/// Returns whether receive rings do not shrink and transmit rings do not grow.
fn is_ring_change(from: &RingSizes, to: &RingSizes) -> bool {
    to.rx >= from.rx && (to.tx == from.tx || (MIN_TRANSMIT_RING_FRAMES..from.tx).contains(&to.tx))
}

/// Returns whether the change makes interrupts come sooner. The old number of microseconds may be a mode of the driver,
/// so any new number is accepted.
fn is_coalescing_change(from: &Coalescing, to: &Coalescing) -> bool {
    let at_most = |from: Option<u32>, to: Option<u32>| to.is_none() || to <= from;
    let off = |from: Option<bool>, to: Option<bool>| {
        to.is_none() || (from.is_some() && to == Some(false))
    };
    to.rx_usecs.is_some() <= from.rx_usecs.is_some()
        && to.tx_usecs.is_some() <= from.tx_usecs.is_some()
        && at_most(from.rx_frames, to.rx_frames)
        && at_most(from.tx_frames, to.tx_frames)
        && off(from.adaptive_rx, to.adaptive_rx)
        && off(from.adaptive_tx, to.adaptive_tx)
}

fn are_valid_classes(classes: &TrafficClasses) -> bool {
    let mut of_priorities = classes.class_of_priority.iter();
    let are_there = of_priorities.all(|class| usize::from(*class) < classes.queues.len());
    are_there && classes.queues.iter().all(|(count, _)| *count > 0)
}

/// Returns whether this names a thread of an interrupt (`irq/24-eth0-rx-0`) or of a NAPI instance (`napi/eth0-8193`).
fn is_receive_thread(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let of_interrupt = name.strip_prefix("irq/").and_then(|it| it.split_once('-'));
    let of_instance = name
        .strip_prefix("napi/")
        .and_then(|it| it.rsplit_once('-'));
    of_interrupt.is_some_and(|(number, _)| is_number(number))
        || of_instance
            .is_some_and(|(interface, number)| is_interface_name(interface) && is_number(number))
}

fn matches_pattern(path: &str, pattern: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_part = |(part, pattern): (&str, &str)| match pattern.split_once('#') {
        _ if pattern == "@" => is_interface_name(part),
        None => part == pattern,
        Some((before, behind)) => part
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(behind))
            .is_some_and(is_number),
    };
    path.split('/').count() == pattern.split('/').count()
        && path.split('/').zip(pattern.split('/')).all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::CoreList;
    use crate::setting::ThreadClass;
    use crate::setting::Unit;

    const CORES: [u16; 4] = [0, 1, 2, 3];

    fn attribute(path: &str, from: &str, to: &str) -> bool {
        let setting = Setting::Attribute { path: path.into() };
        is_valid(
            &setting,
            &Value::Text(from.into()),
            &Value::Text(to.into()),
            &CORES,
        )
    }

    fn eth0() -> String {
        String::from("eth0")
    }

    #[test]
    fn of_attributes_only_known_ones_in_their_range() {
        for (path, from, to) in [
            ("/sys/devices/system/cpu/cpu3/online", "1", "0"),
            (
                "/sys/devices/system/cpu/cpu3/cpuidle/state2/disable",
                "0",
                "1",
            ),
            ("/proc/irq/24/smp_affinity_list", "0-3", "0-1,3"),
            ("/sys/class/net/en0/queues/rx-11/rps_cpus", "f", "0000000d"),
            ("/proc/sys/net/core/rmem_max", "212992", "4194304"),
            (
                "/proc/sys/net/ipv4/ip_local_reserved_ports",
                "",
                "7400-7425",
            ),
        ] {
            assert!(attribute(path, from, to), "{path}");
        }
        for (path, from, to) in [
            ("/proc/sys/net/ipv4/ip_forward", "0", "1"),
            ("/proc/sys/kernel/core_pattern", "core", "|/tmp/x"),
            ("/sys/devices/system/cpu/cpu3/online", "0", "1"),
            ("/sys/devices/system/cpu/cpu/online", "1", "0"),
            ("/sys/devices/system/cpu/cpu3/../cpu4/online", "1", "0"),
            ("/proc/irq/24/smp_affinity_list", "0-3", "0\n1"),
            ("/sys/class/net/../threaded", "0", "1"),
            ("/sys/class/net/en0/queues/rx-1/rps_cpus", "f", "x"),
            ("/proc/sys/net/core/rmem_max", "4194304", "4096"),
            ("/proc/sys/net/core/rmem_max", "1", "4095"),
        ] {
            assert!(!attribute(path, from, to), "{path}");
        }
    }

    fn document(document: Document) -> Step {
        let path = document.path();
        Step {
            id: "boot.x".into(),
            setting: Setting::Document { path },
            from: Value::Absent,
            to: Value::Document(document),
            why: String::new(),
            topics: Vec::new(),
            costs: String::new(),
            undo: String::new(),
            when: super::super::When::Reboot,
        }
    }

    /// Checks documents that planning can produce, and others that it cannot.
    fn assert_made(made: &[Document], others: &[Document]) {
        let is_made = |it: &&Document| document((*it).clone()).is_valid(None, &CORES);
        let refused: Vec<_> = made.iter().filter(|it| !is_made(it)).collect();
        let taken: Vec<_> = others.iter().filter(is_made).collect();
        assert!(refused.is_empty(), "{refused:?}");
        assert!(taken.is_empty(), "{taken:?}");
    }

    #[test]
    fn units_are_kept_to_some_cores_of_the_machine_in_their_order() {
        for unit in Unit::ALL {
            let to = |cores: &[u16]| Document::UnitCores {
                unit,
                cores: cores.to_vec(),
            };
            assert_made(
                &[to(&[0, 1, 2]), to(&[1, 3])],
                &[to(&[]), to(&CORES), to(&[2, 1]), to(&[1, 1]), to(&[0, 4])],
            );
        }
    }

    #[test]
    fn systemd_is_kept_to_some_cores_of_the_machine_in_their_order() {
        let to = |cores: &[u16]| Document::ManagerCores {
            cores: cores.to_vec(),
        };
        assert_made(
            &[to(&[0, 1, 2]), to(&[3])],
            &[to(&[]), to(&CORES), to(&[2, 1]), to(&[1, 1]), to(&[9])],
        );
    }

    #[test]
    fn the_slice_of_critical_programs_is_on_a_core_of_the_machine() {
        let on = |core| Document::CriticalSlice { core };
        assert_made(&[on(0), on(3)], &[on(4), on(u16::MAX)]);
    }

    #[test]
    fn irqbalance_leaves_a_core_of_the_machine_alone() {
        let of = |core| Document::IrqbalanceBannedCpus { core };
        assert_made(&[of(0), of(3)], &[of(4), of(u16::MAX)]);
    }

    #[test]
    fn arguments_of_the_kernel_name_each_list_once_and_send_interrupts_to_other_cores() {
        let of = |core, lists: &[CoreList], interrupts: &[u16]| Document::KernelArguments {
            core,
            lists: lists.to_vec(),
            interrupts: interrupts.to_vec(),
        };
        let all = CoreList::ALL;
        assert_made(
            &[
                of(3, &all, &[0, 1, 2]),
                of(3, &all, &[]),
                of(0, &[CoreList::RcuNocbs], &[1]),
            ],
            &[
                of(4, &all, &[0, 1]),
                of(3, &[], &[0, 1]),
                of(3, &[CoreList::NohzFull, CoreList::NohzFull], &[0]),
                of(3, &[CoreList::NohzFull, CoreList::Isolcpus], &[0]),
                of(3, &all, &[0, 3]),
                of(3, &all, &[1, 0]),
                of(3, &all, &[0, 7]),
            ],
        );
    }

    #[test]
    fn rights_have_no_parameters() {
        assert_made(&[Document::RealtimeLimits], &[]);
    }

    #[test]
    fn where_the_cores_of_the_machine_are_not_seen_their_order_still_counts() {
        let to = |cores: &[u16]| {
            document(Document::ManagerCores {
                cores: cores.to_vec(),
            })
        };
        assert!(to(&[0, 9]).is_valid(None, &[]));
        assert!(!to(&[9, 0]).is_valid(None, &[]));
    }

    #[test]
    fn documents_of_one_plan_have_one_core_of_the_executor_and_leave_it_to_nothing_else() {
        let units = |unit, cores: &[u16]| {
            document(Document::UnitCores {
                unit,
                cores: cores.to_vec(),
            })
        };
        let slice = document(Document::CriticalSlice { core: 3 });
        let system = units(Unit::System, &[0, 1, 2]);
        let are_admitted = |steps: &[&Step]| {
            let mut cores = CoreAssignment::default();
            let admitted: Vec<bool> = steps.iter().map(|step| cores.admit(step)).collect();
            admitted
        };
        let steps = [
            &document(Document::RealtimeLimits),
            &system,
            &units(Unit::User, &[0, 1, 2]),
            &slice,
            &document(Document::IrqbalanceBannedCpus { core: 3 }),
        ];
        assert_eq!(are_admitted(&steps), [true; 5]);
        let banned = document(Document::IrqbalanceBannedCpus { core: 2 });
        assert_eq!(are_admitted(&[&slice, &banned]), [true, false]);
        assert_eq!(are_admitted(&[&system, &banned]), [true, false]);
        assert_eq!(are_admitted(&[&banned, &system]), [true, false]);
        let fewer = units(Unit::User, &[0, 1]);
        assert_eq!(
            are_admitted(&[&system, &fewer, &slice]),
            [true, false, true]
        );
    }

    #[test]
    fn of_documents_only_known_ones_at_their_place() {
        let document = Document::KernelArguments {
            core: 3,
            lists: vec![CoreList::NohzFull],
            interrupts: vec![0, 1],
        };
        let at = |path: String, to: Value| {
            is_valid(&Setting::Document { path }, &Value::Absent, &to, &CORES)
        };
        let value = Value::Document(document.clone());
        assert!(at(document.path(), value.clone()));
        assert!(!at("/root/.ssh/authorized_keys".into(), value));
        let text = Value::Text(document.text());
        assert!(!at(document.path(), text), "text is not taken");
        assert!(!at(document.path(), Value::Absent), "nor is a file removed");
        let folder = Setting::Folder { path: "/a".into() };
        assert!(!is_valid(&folder, &Value::Absent, &Value::Present, &CORES));
    }

    #[test]
    fn of_a_device_only_changes_in_the_direction_of_planning() {
        let queues = |count| {
            Value::Queues(Queues {
                combined: count,
                ..Queues::default()
            })
        };
        let rings = |rx, tx| Value::Rings(RingSizes { rx, tx });
        let moderation = |rx_usecs, adaptive| {
            Value::Coalescing(Coalescing {
                rx_usecs: Some(rx_usecs),
                rx_frames: Some(rx_usecs),
                adaptive_rx: Some(adaptive),
                ..Coalescing::default()
            })
        };
        let table = |entries: &[u32]| Value::Table(entries.to_vec());
        let rule = |destination: Option<&str>| {
            Value::Rule(FlowRule::Port {
                destination: destination.map(|it| it.parse().expect("an address")),
                destination_port: 7_407,
                queue: 1,
            })
        };
        let pfifo = |frames| Value::Qdisc(RootQdisc::Pfifo { frames });
        let classes = |class| {
            Value::Qdisc(RootQdisc::Mqprio(TrafficClasses {
                class_of_priority: [class; 16],
                queues: vec![(1, 0), (1, 1)],
                offloaded: false,
            }))
        };
        let off = Value::Switch(false);
        let on = Value::Switch(true);
        let feature = |feature: &str| Setting::Feature {
            interface: eth0(),
            feature: feature.into(),
        };
        let interface = eth0;
        let at = |location| Setting::FlowRule {
            interface: eth0(),
            location,
        };
        let channels = Setting::Channels {
            interface: interface(),
        };
        let ring = Setting::Rings {
            interface: interface(),
        };
        let coalescing = Setting::Coalescing {
            interface: interface(),
        };
        let rss = Setting::RssTable {
            interface: interface(),
        };
        let hash = Setting::UdpHash {
            interface: interface(),
        };
        let root = Setting::RootQdisc {
            interface: interface(),
        };
        let none = Value::Absent;
        for (setting, from, to, is_made) in [
            (&channels, queues(1), queues(2), true),
            (&channels, queues(2), queues(1), false),
            (&ring, rings(256, 4096), rings(1024, 64), true),
            (&ring, rings(1024, 256), rings(256, 256), false),
            (&ring, rings(256, 256), rings(256, 8), false),
            (
                &coalescing,
                moderation(50, true),
                moderation(0, false),
                true,
            ),
            (
                &coalescing,
                moderation(50, false),
                moderation(50, true),
                false,
            ),
            (
                &coalescing,
                moderation(1, false),
                moderation(200, false),
                false,
            ),
            (&feature("rx-lro"), on.clone(), off.clone(), true),
            (&feature("rx-lro"), off.clone(), on.clone(), false),
            (&feature("rx-checksum"), on.clone(), off.clone(), false),
            (&feature(RULES), off.clone(), on.clone(), true),
            (&rss, table(&[0, 1]), table(&[0, 0]), true),
            (&rss, table(&[0, 1]), table(&[0]), false),
            (&hash, off.clone(), on.clone(), true),
            (&hash, on, off, false),
            (&at(3), none.clone(), rule(Some("10.0.0.1")), true),
            (&at(3), none.clone(), rule(None), false),
            (&at(3), rule(Some("10.0.0.1")), none.clone(), true),
            (&at(3), rule(None), none, false),
            (&root, pfifo(1), pfifo(PFIFO_FRAMES), true),
            (&root, pfifo(PFIFO_FRAMES), pfifo(1), false),
            (&root, pfifo(1), classes(1), true),
            (&root, pfifo(1), classes(2), false),
        ] {
            assert_eq!(
                is_valid(setting, &from, &to, &CORES),
                is_made,
                "{setting}: {from} -> {to}"
            );
        }
        let elsewhere_queue = Setting::UdpHash {
            interface: "../eth0".into(),
        };
        assert!(!is_valid(
            &elsewhere_queue,
            &Value::Absent,
            &Value::Switch(true),
            &CORES
        ));
        let queue = Setting::QueueQdisc {
            interface: eth0(),
            queue: 0,
        };
        assert!(!is_valid(&queue, &pfifo(1), &pfifo(PFIFO_FRAMES), &CORES));
    }

    #[test]
    fn of_threads_only_those_of_receive_work_at_the_priorities_of_planning() {
        let on = |name: &str, fifo, cores: &[u16]| {
            let class = ThreadClass {
                fifo,
                cores: cores.to_vec(),
            };
            let setting = Setting::Thread { name: name.into() };
            is_valid(&setting, &Value::Absent, &Value::Thread(class), &CORES)
        };
        let thread = |name: &str, fifo| on(name, fifo, &[1]);
        assert!(thread("irq/24-eth0-rx-0", Some(CRITICAL_QUEUE_PRIORITY)));
        assert!(thread("napi/eth0-8193", Some(BULK_QUEUE_PRIORITY)));
        assert!(!thread("kthreadd", Some(CRITICAL_QUEUE_PRIORITY)));
        assert!(!thread("irq/eth0", Some(CRITICAL_QUEUE_PRIORITY)));
        assert!(!thread("napi/eth0-8193", Some(99)));
        assert!(!thread("napi/eth0-8193", None));
        let on = |cores| on("napi/eth0-8193", Some(BULK_QUEUE_PRIORITY), cores);
        assert!(on(&[]) && on(&[0, 2]));
        assert!(!on(&[2, 0]) && !on(&[4]));
    }

    #[test]
    fn what_the_journal_found_may_be_put_back_and_what_is_relied_on_steers() {
        let text = |text: &str| Value::Text(text.into());
        let step = Step {
            id: "restore.x".into(),
            setting: Setting::Document {
                path: "/etc/x".into(),
            },
            from: Value::Absent,
            to: text("theirs\n"),
            why: String::new(),
            topics: Vec::new(),
            costs: String::new(),
            undo: String::new(),
            when: super::super::When::Now,
        };
        assert!(step.is_valid(Some(&text("theirs\n")), &CORES));
        assert!(!step.is_valid(Some(&text("others\n")), &CORES));
        assert!(!step.is_valid(None, &CORES));
        let relied_on = |setting| Precondition {
            setting,
            value: Value::Switch(true),
        };
        assert!(relied_on(Setting::UdpHash { interface: eth0() }).is_valid());
        let shadow = Setting::Document {
            path: "/etc/shadow".into(),
        };
        assert!(!relied_on(shadow).is_valid());
    }
}
