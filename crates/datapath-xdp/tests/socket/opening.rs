//! Tests of errors on opening, and of opening again after an end.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use isolane_datapath_xdp::socket::{
    BindMode, BusyPoll, Mode, OpenError, Queue, QueueConfig, ReceiveSocket, RingKind,
    TransmitSocket,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::hosts::{End, Pair};
use crate::support::{Memory, config};

/// Error of opening a queue at end A.
fn error(pair: &Pair, config: &QueueConfig) -> OpenError {
    let memory = Memory::new(16);
    pair.run(End::A, || Queue::open(&memory.umem, config).unwrap_err())
}

#[test]
fn zero_copy_is_refused_by_veth_and_auto_reads_back_that_it_copies() {
    let Some(pair) = Pair::new(1) else { return };
    let wanted = |mode| QueueConfig {
        mode,
        ..config(&pair, End::A, 0)
    };
    let refused = error(&pair, &wanted(BindMode::ZeroCopy));
    assert!(matches!(refused, OpenError::NoZeroCopy { .. }), "{refused}");
    assert!(refused.to_string().contains("host-a"), "{refused}");
    for mode in [BindMode::Auto, BindMode::Copy] {
        let memory = Memory::new(16);
        let queue = pair.run(End::A, || Queue::open(&memory.umem, &wanted(mode)).unwrap());
        assert_eq!(queue.mode(), Mode::Copy);
    }
}

#[test]
fn a_queue_belongs_to_one_memory() {
    let Some(pair) = Pair::new(2) else { return };
    let memory = Memory::new(16);
    let _queue = pair.run(End::A, || {
        Queue::open(&memory.umem, &config(&pair, End::A, 0)).unwrap()
    });
    let taken = error(&pair, &config(&pair, End::A, 0));
    assert!(
        matches!(&taken, OpenError::QueueTaken { interface, queue: 0 } if interface == "host-a"),
        "{taken}"
    );
    // The other queue is free.
    let other = Memory::new(16);
    pair.run(End::A, || {
        Queue::open(&other.umem, &config(&pair, End::A, 1)).unwrap()
    });
}

#[test]
fn the_memory_of_one_queue_cannot_be_had_on_it_twice() {
    let Some(pair) = Pair::new(1) else { return };
    let memory = Memory::new(16);
    let at = config(&pair, End::A, 0);
    pair.run(End::A, || {
        let queue = Queue::open(&memory.umem, &at).unwrap();
        // With separate rings, the error does not concern the sockets that share the first socket's rings.
        let second = queue.open_shared(&at).unwrap_err();
        assert!(matches!(second, OpenError::NoQueue { .. }), "{second}");
    });
}

#[test]
fn what_is_not_there_is_named() {
    let Some(pair) = Pair::new(2) else { return };
    let beyond = error(&pair, &config(&pair, End::A, 2));
    assert!(
        matches!(&beyond, OpenError::NoQueue { queue: 2, interface } if interface == "host-a"),
        "{beyond}"
    );
    let nowhere = QueueConfig {
        interface_index: 999,
        ..config(&pair, End::A, 0)
    };
    let nowhere = error(&pair, &nowhere);
    assert!(
        matches!(&nowhere, OpenError::NoInterface { interface } if interface == "number 999"),
        "{nowhere}"
    );
}

#[test]
fn rings_that_cannot_be_are_refused_by_name() {
    let Some(pair) = Pair::new(1) else { return };
    for entries in [0, 3, 1 << 20] {
        let config = QueueConfig {
            completion_entries: entries,
            ..config(&pair, End::A, 0)
        };
        let refused = error(&pair, &config);
        assert!(
            matches!(
                refused,
                OpenError::RingEntries {
                    ring: RingKind::Completion,
                    ..
                }
            ),
            "{refused}"
        );
    }
    let memory = Memory::new(16);
    pair.run(End::A, || {
        let queue = Queue::open(&memory.umem, &config(&pair, End::A, 0)).unwrap();
        let receive = ReceiveSocket::open(&queue, 100).unwrap_err();
        assert!(receive.to_string().contains("receive ring"), "{receive}");
        let transmit = TransmitSocket::open(&queue, 100).unwrap_err();
        assert!(transmit.to_string().contains("transmit ring"), "{transmit}");
    });
}

#[test]
fn a_queue_can_be_taken_while_its_interface_is_down() {
    let Some(pair) = Pair::new(1) else { return };
    pair.set_up(End::A, false);
    let memory = Memory::new(16);
    let queue = pair.run(End::A, || {
        Queue::open(&memory.umem, &config(&pair, End::A, 0)).unwrap()
    });
    assert_eq!(queue.mode(), Mode::Copy);
}

/// Removes a capability of the calling thread permanently.
fn give_up(capability: CapabilitySet) {
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(capability);
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_missing_capability_is_named() {
    let Some(pair) = Pair::new(1) else { return };
    let at = config(&pair, End::A, 0);
    let memory = Memory::new(16);
    pair.run(End::A, || {
        let queue = Queue::open(&memory.umem, &at).unwrap();
        let socket = ReceiveSocket::open(&queue, 16).unwrap();
        give_up(CapabilitySet::NET_ADMIN);
        let busy_poll = BusyPoll {
            microseconds: 20,
            budget: 64,
        };
        let refused = socket.set_busy_poll(busy_poll).unwrap_err();
        assert!(refused.to_string().contains("CAP_NET_ADMIN"), "{refused}");
        give_up(CapabilitySet::NET_RAW);
        let refused = ReceiveSocket::open(&queue, 16).unwrap_err();
        assert!(refused.to_string().contains("CAP_NET_RAW"), "{refused}");
    });
}

#[test]
fn memory_beyond_what_may_be_locked_is_refused_with_its_size() {
    let Some(pair) = Pair::new(1) else { return };
    let at = config(&pair, End::A, 0);
    let memory = Memory::new(16);
    let refused = pair.run(End::A, || {
        give_up(CapabilitySet::IPC_LOCK);
        // The limit applies to the process. Other tests have the capability, so it does not apply to them.
        let limit = getrlimit(Resource::Memlock);
        let low = Rlimit {
            current: Some(4_096),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Memlock, low).unwrap();
        let refused = Queue::open(&memory.umem, &at).unwrap_err();
        setrlimit(Resource::Memlock, limit).unwrap();
        refused
    });
    assert!(
        matches!(refused, OpenError::MemoryLock { bytes: 32_768 }),
        "{refused}"
    );
}

/// Another process that holds a queue: it has inherited one of its sockets, and does nothing.
struct Holder(std::process::Child);

impl Holder {
    fn of(socket: &ReceiveSocket) -> Holder {
        let held = socket.as_fd().as_raw_fd();
        let mut command = Command::new("sleep");
        command.arg("60");
        let keep = move || {
            // SAFETY: between fork and exec, dup takes a number and no memory; the copy is not closed
            // when the program begins.
            match unsafe { libc::dup(held) } {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            }
        };
        // SAFETY: the closure makes one system call, and allocates nothing.
        unsafe { command.pre_exec(keep) };
        Holder(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_queue_can_be_taken_as_soon_as_its_program_was_killed() {
    let Some(pair) = Pair::new(1) else { return };
    let at = config(&pair, End::A, 0);
    let memory = Memory::new(16);
    pair.run(End::A, || {
        let queue = Queue::open(&memory.umem, &at).unwrap();
        let socket = ReceiveSocket::open(&queue, 16).unwrap();
        let mut holder = Holder::of(&socket);
        drop((socket, queue));
        let taken = Queue::open(&memory.umem, &at).unwrap_err();
        assert!(matches!(taken, OpenError::QueueTaken { .. }), "{taken}");
        holder.kill();
        // On a machine that stalls, the kernel may need longer than one attempt waits.
        let again = (0..10).find_map(|_| Queue::open(&memory.umem, &at).ok());
        assert!(again.is_some(), "the queue of a dead program stays taken");
    });
}
