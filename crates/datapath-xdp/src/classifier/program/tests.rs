use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::classifier::{Counts, FlowReason};

/// Size of a stamp in bytes.
const STAMP: usize = 8;

#[test]
fn the_end_of_a_log_is_quoted_on_one_line() {
    assert_eq!(last_lines(""), "");
    assert_eq!(last_lines("first\n  second\n\n"), "first; second");
    let long = "ä".repeat(VERIFIER_LOG_BYTES);
    assert!(last_lines(&long).len() <= VERIFIER_LOG_BYTES);
}

#[test]
fn a_tag_is_printed_as_other_tools_do() {
    let tag = Tag([0xd1, 0xe5, 0x4b, 0x94, 0x62, 0x32, 0x83, 0x0f]);
    assert_eq!(tag.to_string(), "d1e54b946232830f");
}

#[test]
fn a_program_with_another_tag_is_refused() {
    for (program, other_program) in [(CLASSIFY, START), (START, CLASSIFY)] {
        for tag in program.tags {
            assert!(program.check_tag(tag).is_ok(), "{tag}");
            let mut other = tag;
            other.0[7] ^= 1;
            for other in [other, other_program.tags[0]] {
                let refused = program.check_tag(other).expect_err("another program");
                let refused = refused.to_string();
                for said in [program.name, &other.to_string(), &tag.to_string()] {
                    assert!(refused.contains(said), "no {said} in {refused}");
                }
            }
        }
    }
}

/// The loaded programs have the recorded tags, and modified programs are refused. Skipped where no program can be
/// loaded.
#[test]
fn the_tag_of_each_program_that_is_loaded_is_compared() {
    let Some(loaded) = with_rights(Loaded::new(false, false, true)) else {
        return;
    };
    // Each program first sets its return value to XDP_PASS, in a different register (`w0 = 2`, `w6 = 2`).
    for (program, register) in [(CLASSIFY, 0), (START, 6)] {
        let pass = [0xb4, register, 0, 0, PASS as u8, 0, 0, 0];
        let mut places = OBJECT.windows(pass.len());
        let place = places.position(|bytes| bytes == pass);
        let mut object = OBJECT.to_vec();
        object[place.expect("it can pass a frame") + 4] = 1;
        let changed = |timers| Loaded::of(&object, false, false, timers);
        if program.name == START.name {
            assert!(changed(false).is_ok(), "it is not loaded");
            if !loaded.has_timers {
                return;
            }
        }
        let refused = changed(true).expect_err("a changed program").to_string();
        let named = format!("the kernel gives the program {} the tag", program.name);
        assert!(refused.contains(&named), "{refused}");
    }
}

const PORT: u16 = 7_411;

/// Frame to address 0.0.0.0 and the port.
fn frame() -> Vec<u8> {
    [
        &[0; 12][..],
        &[0x08, 0x00],
        &[
            0x45, 0, 0, 32, 0, 0, 0, 0, 1, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        &[0, 0, 0x1c, 0xf3, 0, 12, 0, 0],
        b"RTPS",
    ]
    .concat()
}

/// Program with a flow for `frame()` in slot 0 and lane 0. The lane's socket is closed, so frames pass after all
/// steps. `None` where no program can be loaded.
fn loaded(stamps: bool) -> Option<(Loaded, Memory)> {
    let loaded = with_rights(Loaded::new(stamps, false, false))?;
    let memory = loaded.memory().unwrap();
    memory.first[usize::from(PORT)].store(1, Relaxed);
    memory.flows[0].port.store(PORT, Relaxed);
    memory.queues[0].bound.store(1, Relaxed);
    Some((loaded, memory))
}

/// Unwraps the loaded object; `None` without the rights to load.
fn with_rights(loaded: Result<Loaded, ClassifierError>) -> Option<Loaded> {
    match loaded {
        Ok(loaded) => Some(loaded),
        Err(ClassifierError::Denied { .. } | ClassifierError::UserNamespace) => {
            let in_ci = std::env::var_os("CI").is_some();
            assert!(!in_ci, "CI must allow programs to be loaded");
            eprintln!("no program can be loaded here: nothing was tried");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_requested_stamp_is_in_front_of_the_frame() {
    for stamps in [false, true] {
        let Some((loaded, _)) = loaded(stamps) else {
            return;
        };
        let frame = frame();
        let mut out = vec![0; frame.len() + STAMP];
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.data_out = Some(&mut out);
        let before = now_ns();
        let ran = loaded.test_run(CLASSIFY.name, options).unwrap();
        let after = now_ns();
        let front = if stamps { STAMP } else { 0 };
        assert_eq!(ran.data_size_out as usize, frame.len() + front);
        assert_eq!(out[front..front + frame.len()], frame);
        if stamps {
            let stamp = u64::from_ne_bytes(out[..STAMP].try_into().unwrap());
            assert!(
                (before..=after).contains(&stamp),
                "{before} {stamp} {after}"
            );
        }
    }
}

#[test]
fn processors_that_charge_a_budget_together_take_no_more_than_there_is() {
    const CAPACITY: u64 = 50_000;
    const FRAMES: u32 = 100_000;
    const THREADS: u64 = 4;
    let Some((loaded, memory)) = loaded(false) else {
        return;
    };
    memory.servers[0].left.store(CAPACITY as i64, Relaxed);
    memory.flows[0]
        .over
        .store(crate::classifier::shared_memory::DROP, Relaxed);
    let frame = frame();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut options = TestRunOptions::new();
                options.data_in = Some(&frame);
                options.repeat = FRAMES;
                loaded.test_run(CLASSIFY.name, options).unwrap();
            });
        }
    });
    let counts = Counts::read(&memory).flows[0];
    assert_eq!(counts.get(FlowReason::NoLane), CAPACITY);
    assert_eq!(
        counts.total(),
        THREADS * u64::from(FRAMES),
        "none is uncounted"
    );
    let left = memory.servers[0].left.load(Relaxed);
    assert!((-(THREADS as i64)..=0).contains(&left), "{left}");
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
