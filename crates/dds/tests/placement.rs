//! Test that the thread that runs the loop has the requested scheduling from its first run on, and that no other thread
//! has it.
//!
//! Each case has its own thread, whose scheduling ends with it. No loop here spins.

use std::{fs, thread, time::Duration};

use isolane::{BuildError, Builder, Network, Participant, PlacementError, Waiting};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const PRIORITY: u8 = 5;

fn builder() -> Builder {
    Participant::builder(0).memory(&Network::new(1), [10, 0, 0, 1])
}

/// Cores, policy and priority of the calling thread, as the kernel shows them (proc(5)).
fn scheduled() -> (String, u32, u32) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let cores = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    // Fields 40 and 41. The first two fields are the process id, and the name in parentheses.
    let fields: Vec<u32> = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .skip(37)
        .take(2)
        .map(|field| field.trim().parse().unwrap())
        .collect();
    (cores.unwrap().trim().to_owned(), fields[1], fields[0])
}

fn in_a_thread<T: Send + 'static>(case: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(case).join().unwrap()
}

/// Returns whether the process may use SCHED_FIFO; otherwise the tests cannot check it.
fn may_be_realtime() -> bool {
    in_a_thread(|| match builder().realtime(PRIORITY).build() {
        Ok(_) => true,
        Err(BuildError::Placement(PlacementError::NotPermitted { .. })) => false,
        Err(other) => panic!("{other}"),
    })
}

#[test]
fn core_and_priority_are_the_loops_from_its_first_run_on_in_each_combination() {
    let priorities = match may_be_realtime() {
        true => vec![None, Some(PRIORITY)],
        false => vec![None],
    };
    for core in [None, Some(0)] {
        for priority in priorities.clone() {
            in_a_thread(move || {
                let before = scheduled();
                let mut builder = builder();
                if let Some(core) = core {
                    builder = builder.core(core);
                }
                if let Some(priority) = priority {
                    builder = builder.realtime(priority);
                }
                let participant = builder.build().unwrap();
                assert_eq!(scheduled(), before, "it has not run the loop yet");
                let other = in_a_thread(scheduled);
                participant.run_for(Duration::ZERO);
                let cores = core.map_or(before.0.clone(), |core: u16| core.to_string());
                let (policy, number) = match priority {
                    Some(priority) => (SCHED_FIFO, u32::from(priority)),
                    None => (SCHED_OTHER, 0),
                };
                assert_eq!(scheduled(), (cores, policy, number));
                assert_eq!(other, before);
                assert_eq!(participant.warnings().len(), 0);
            });
        }
    }
}

#[test]
fn what_is_refused_is_an_error_or_where_it_is_not_required_a_note_with_what_to_do() {
    for (core, priority, parts) in [
        (Some(4_000), None, ["core 4000 is not online", "online: 0"]),
        (
            None,
            Some(100),
            ["100 is no priority of SCHED_FIFO", "1 to 99"],
        ),
    ] {
        in_a_thread(move || {
            let before = scheduled();
            let asked = |required| {
                let mut builder = builder().require_placement(required);
                if let Some(core) = core {
                    builder = builder.core(core);
                }
                if let Some(priority) = priority {
                    builder = builder.realtime(priority);
                }
                builder.build()
            };
            let refused = asked(true).map(|_| ()).unwrap_err().to_string();
            let participant = asked(false).unwrap();
            participant.run_for(Duration::ZERO);
            for part in parts {
                assert!(refused.contains(part), "no {part} in {refused}");
                assert!(participant.warnings()[0].contains(part));
            }
            assert_eq!(scheduled(), before);
        });
    }
}

#[test]
fn without_the_right_the_remedy_is_named() {
    // Capabilities belong to the thread.
    let refused = in_a_thread(|| {
        let own = capabilities(None).unwrap();
        let without = CapabilitySets {
            effective: own.effective - CapabilitySet::SYS_NICE,
            ..own
        };
        set_capabilities(None, without).unwrap();
        builder()
            .realtime(99)
            .build()
            .map(|_| ())
            .unwrap_err()
            .to_string()
    });
    for part in [
        "SCHED_FIFO with priority 99 is not permitted",
        "LimitRTPRIO=99",
        "CAP_SYS_NICE",
    ] {
        assert!(refused.contains(part), "no {part} in {refused}");
    }
}

#[test]
fn a_loop_that_spins_is_no_realtime_one_where_others_need_its_core() {
    in_a_thread(|| {
        let spinning = || builder().waiting(Waiting::Spin).realtime(PRIORITY);
        let refused = spinning().build().map(|_| ()).unwrap_err();
        assert!(matches!(
            refused,
            BuildError::Placement(PlacementError::Spin { .. })
        ));
        let said = refused.to_string();
        for part in ["bound to no core", "Waiting::Sleep"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        let runtime = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
        if runtime.trim() != "-1" {
            let on_a_core = spinning()
                .core(0)
                .build()
                .map(|_| ())
                .unwrap_err()
                .to_string();
            let reasons = ["sched_rt_runtime_us", "this machine has no other"];
            assert!(
                reasons.iter().any(|part| on_a_core.contains(part)),
                "{on_a_core}"
            );
        }
    });
}
