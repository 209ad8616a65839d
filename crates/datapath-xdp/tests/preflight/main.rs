//! Tests of the obstacles to lanes that are found, on a veth pair.

#[path = "../bpf/mod.rs"]
mod bpf;
#[path = "../hosts/mod.rs"]
mod hosts;

use isolane_datapath_xdp::preflight::{Check, Outcome, Subject, Wanted, look};
use isolane_hostnet::xdp_facts::{Sockets, XdpFacts};

use isolane_datapath_xdp::socket::{BindMode, ChunkBytes, Queue, QueueConfig, Umem};

use bpf::PassAll;
use hosts::{Hosts, index_of, ip};

fn wanted() -> Wanted {
    Wanted {
        queues: vec![0],
        ..Wanted::default()
    }
}

fn obstacles(interface: &str, wanted: &Wanted) -> Vec<Check> {
    let mut checks = look(interface, wanted);
    checks.retain(|check| check.outcome == Outcome::Impossible);
    checks
}

/// Returns the only obstacle, which must belong to this subject.
fn obstacle(interface: &str, wanted: &Wanted, subject: Subject) -> Check {
    let mut checks = obstacles(interface, wanted);
    assert_eq!(checks.len(), 1, "{checks:#?}");
    let check = checks.remove(0);
    assert_eq!(check.subject, subject, "{check:#?}");
    check
}

#[test]
fn nothing_is_in_the_way_on_a_veth_pair() {
    let _hosts = Hosts::with_queues(2);
    assert_eq!(obstacles("host-a", &wanted()), []);
    let device = XdpFacts::look("host-a").device.expect("it is there");
    assert_eq!(device.driver.as_deref(), Some("veth"));
    assert_eq!(device.receive_queues(), Some(2));
}

#[test]
fn an_interface_that_is_down_renamed_or_moved_away_is_reported() {
    let hosts = Hosts::new();
    ip("link set host-a down");
    let check = obstacle("host-a", &wanted(), Subject::Interface);
    assert!(check.remedy.contains("ip link set host-a up"), "{check:?}");
    ip("link set host-a up");
    ip("link set host-a name critical0");
    obstacle("host-a", &wanted(), Subject::Interface);
    assert_eq!(obstacles("critical0", &wanted()), []);
    ip(&format!("link set critical0 netns {}", hosts.path()));
    obstacle("critical0", &wanted(), Subject::Interface);
}

#[test]
fn packets_longer_than_a_lanes_frames_are_reported() {
    let _hosts = Hosts::new();
    ip("link set host-a mtu 9000");
    obstacle("host-a", &wanted(), Subject::Mtu);
}

#[test]
fn another_program_is_named_and_left_alone() {
    let _hosts = Hosts::new();
    let _program = PassAll::attach(index_of("host-a")).expect("veth runs programs");
    let check = obstacle("host-a", &wanted(), Subject::Program);
    let ours = format!("process {}", std::process::id());
    assert!(check.what.contains("program "), "{check:?}");
    assert!(check.what.contains(&ours), "{check:?}");
    assert!(ip("-d link show host-a").contains("prog/xdp"));
}

#[test]
fn a_missing_queue_and_impossible_zero_copy_are_reported() {
    let _hosts = Hosts::with_queues(2);
    let beyond = Wanted {
        queues: vec![2],
        ..wanted()
    };
    obstacle("host-a", &beyond, Subject::Queues);
    let zero_copy = Wanted {
        zero_copy: true,
        ..wanted()
    };
    obstacle("host-a", &zero_copy, Subject::ZeroCopy);
}

#[test]
fn an_interface_whose_driver_runs_no_programs_is_reported() {
    let _hosts = Hosts::new();
    let mut checks = obstacles("lo", &wanted());
    checks.retain(|check| check.subject == Subject::Driver);
    assert_eq!(checks.len(), 1);
}

#[test]
fn a_queue_that_another_program_has_is_reported() {
    let _hosts = Hosts::with_queues(2);
    // SAFETY: no address is given to any ring.
    let fresh = unsafe { Umem::fresh(64, ChunkBytes::TwoKib) };
    let (umem, _chunks) = fresh.expect("memory");
    let config = QueueConfig {
        interface_index: index_of("host-a"),
        queue: 1,
        mode: BindMode::Copy,
        fill_entries: 64,
        completion_entries: 64,
    };
    let taken = Queue::open(&umem, &config).expect("a queue of a veth");
    assert_eq!(obstacles("host-a", &wanted()), [], "queue 0 is free");
    let second = Wanted {
        queues: vec![1],
        ..wanted()
    };
    let check = obstacle("host-a", &second, Subject::Queues);
    assert!(check.what.contains("queue 1"), "{check:?}");
    drop(taken);
    // The kernel releases a queue some time after its socket is closed.
    hosts::eventually("the queue is free", || {
        obstacles("host-a", &second).is_empty().then_some(())
    });
}

/// Removes all effective capabilities of the calling thread.
fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        process: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        process: 0,
    };
    let none = [0_u32; 6];
    // SAFETY: header and data have the sizes of this version, and are alive during the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    assert_eq!(result, 0);
}

#[test]
fn capabilities_that_are_missing_are_named_exactly() {
    let _hosts = Hosts::new();
    drop_capabilities();
    let ground = XdpFacts::look("host-a");
    let expected = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];
    assert_eq!(ground.missing_capabilities, expected);
    assert_eq!(ground.sockets, Sockets::Refused);
    let subjects: Vec<Subject> = obstacles("host-a", &wanted())
        .iter()
        .map(|check| check.subject)
        .collect();
    assert_eq!(subjects, [Subject::Capabilities, Subject::Sockets]);
    let much = Wanted {
        memory_bytes: u64::MAX,
        ..wanted()
    };
    let memory = obstacles("host-a", &much);
    let limited = ground.lockable_bytes.is_some();
    let is_reported = memory.iter().any(|check| check.subject == Subject::Memory);
    assert_eq!(is_reported, limited, "{memory:?}");
}
