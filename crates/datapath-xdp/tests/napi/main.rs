//! Tests of NAPI threads with priorities, on a veth pair with an XDP program.

#[path = "../bpf/mod.rs"]
mod bpf;
mod frames;
#[path = "../hosts/mod.rs"]
mod hosts;
#[path = "../packet_socket/mod.rs"]
mod packet_socket;

use std::net::UdpSocket;
use std::time::Duration;

use isolane_hostnet::napi::{NapiError, Plan, Policy, Polling, QueueState, state, switch};

use bpf::PassAll;
use hosts::{HERE, Hosts, THERE, eventually, index_of, ip};

/// Priority that applications would have in these tests.
const APPLICATIONS: u8 = 40;

fn plan() -> Plan {
    Plan::around(APPLICATIONS, &[0], &[1])
}

fn policies(queues: &[QueueState]) -> Vec<Option<Policy>> {
    let policy = |queue: &QueueState| queue.thread.as_ref().and_then(|thread| thread.policy);
    queues.iter().map(policy).collect()
}

/// Names of threads, as the kernel shows them.
fn name_of(process_id: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process_id}/comm")).ok()?;
    Some(name.trim().to_owned())
}

#[test]
fn each_queue_has_a_thread_of_its_priority_until_the_guard_is_dropped() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let before = state(index).expect("the interface is there");
    assert_eq!(policies(&before), [None, None]);

    let guard = switch(index, &plan()).expect("veth with XDP has NAPI");
    let after = state(index).expect("the interface is there");
    assert_eq!(after, guard.state());
    assert_eq!(
        policies(&after),
        [Some(Policy::Fifo(45)), Some(Policy::Fifo(30))]
    );
    assert!(after[0].instance < after[1].instance);
    let mut threads = Vec::new();
    for queue in &after {
        let thread = queue.thread.as_ref().expect("a thread");
        let expected = format!("napi/host-a-{}", queue.instance);
        assert_eq!(name_of(thread.process_id), Some(expected));
        threads.push(thread.process_id);
    }

    drop(guard);
    assert_eq!(state(index).expect("still there"), before);
}

#[test]
fn frames_arrive_through_a_thread_as_they_did_before() {
    let hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let _guard = switch(index, &plan()).expect("veth with XDP has NAPI");
    let receiver = UdpSocket::bind((HERE, 0)).expect("a socket");
    let port = receiver.local_addr().expect("an address").port();
    receiver
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout");
    hosts.there(|| {
        let sender = UdpSocket::bind((THERE, 0)).expect("a socket");
        sender.send_to(b"hello", (HERE, port)).expect("sent");
    });
    let mut bytes = [0; 8];
    let (length, _) = receiver.recv_from(&mut bytes).expect("it arrives");
    assert_eq!(&bytes[..length], b"hello");
}

/// Number of times that a thread has run so far.
fn turns(process_id: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/schedstat"));
    let text = text.expect("scheduling statistics of a thread");
    let turns = text.split_whitespace().nth(2).expect("three numbers");
    turns.parse().expect("a number")
}

/// A frame sent on queue N of one end of a veth pair arrives on queue N of the other. A frame that bypasses the
/// queueing discipline uses the queue with the sending core's number.
#[test]
fn each_thread_receives_the_frames_of_its_queue() {
    let hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let guard = switch(index, &plan()).expect("veth with XDP has NAPI");
    let threads: Vec<i32> = guard
        .state()
        .iter()
        .map(|queue| queue.thread.as_ref().expect("a thread").process_id)
        .collect();
    assert_eq!(threads.len(), 2);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for queue in 0..cores.min(2) {
        let before = [turns(threads[0]), turns(threads[1])];
        hosts.there(|| frames::send(queue, 50));
        let [own, other] = [queue, 1 - queue];
        eventually("the queue's own thread runs", || {
            (turns(threads[own]) >= before[own] + 10).then_some(())
        });
        let others = turns(threads[other]) - before[other];
        assert!(
            others < 10,
            "queue {queue}: the other thread ran {others} times"
        );
    }
}

#[test]
fn a_thread_stays_on_its_core() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let mut plan = plan();
    plan.queues[0].core = Some(0);
    let guard = switch(index, &plan).expect("veth with XDP has NAPI");
    let thread = guard.state()[0].thread.as_ref().expect("a thread");
    assert_eq!(thread.cores, [0]);
}

#[test]
fn polling_is_set_and_put_back() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let before = state(index).expect("the interface is there");
    let polling = Polling {
        wait: Duration::from_micros(50),
        idle_polls: 8,
    };
    let mut plan = plan();
    plan.queues[0].polling = Some(polling);
    let guard = switch(index, &plan).expect("veth with XDP has NAPI");
    assert_eq!(guard.state()[0].polling, Some(polling));
    assert_eq!(guard.state()[1].polling, before[1].polling, "not requested");
    drop(guard);
    assert_eq!(state(index).expect("still there"), before);
}

#[test]
fn a_second_plan_puts_back_what_the_first_had_set() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let first = switch(index, &plan()).expect("veth with XDP has NAPI");
    let between = state(index).expect("the interface is there");
    let second = Plan::around(APPLICATIONS + 20, &[1], &[0]);
    let second = switch(index, &second).expect("again");
    assert_eq!(
        policies(second.state()),
        [Some(Policy::Fifo(50)), Some(Policy::Fifo(65))]
    );
    drop(second);
    assert_eq!(state(index).expect("still there"), between);
    drop(first);
    assert_eq!(policies(&state(index).expect("still there")), [None, None]);
}

/// State after a process is killed: the link of its program is closed, and no setting is restored.
#[test]
fn threads_of_a_veth_end_with_the_program_without_a_restore() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let program = PassAll::attach(index).expect("veth runs programs");
    let guard = switch(index, &plan()).expect("veth with XDP has NAPI");
    let threads: Vec<i32> = guard
        .state()
        .iter()
        .filter_map(|queue| Some(queue.thread.as_ref()?.process_id))
        .collect();
    assert_eq!(threads.len(), 2);
    guard.keep();
    drop(program);
    eventually("the threads end", || {
        threads
            .iter()
            .all(|thread| name_of(*thread).is_none())
            .then_some(())
    });
    assert!(state(index).expect("still there").is_empty());
}

#[test]
fn a_guard_outlives_its_program_and_its_interface() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let program = PassAll::attach(index).expect("veth runs programs");
    let guard = switch(index, &plan()).expect("veth with XDP has NAPI");
    drop(program);
    ip("link del host-a");
    drop(guard);
    assert!(matches!(state(index), Err(NapiError::NoInterface { .. })));
}

#[test]
fn without_a_program_a_veth_has_no_napi_and_says_so() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    assert!(state(index).expect("the interface is there").is_empty());
    let error = switch(index, &plan()).expect_err("there is nothing to switch");
    assert!(matches!(error, NapiError::NoInstance { queue: 0, .. }));
    assert!(error.to_string().contains("attach first"), "{error}");
}

#[test]
fn a_queue_that_is_not_there_undoes_the_others() {
    let _hosts = Hosts::with_queues(2);
    let index = index_of("host-a");
    let _program = PassAll::attach(index).expect("veth runs programs");
    let before = state(index).expect("the interface is there");
    let error = switch(index, &Plan::around(APPLICATIONS, &[0], &[7]));
    assert!(matches!(error, Err(NapiError::NoInstance { queue: 7, .. })));
    assert_eq!(state(index).expect("still there"), before);
}
