//! Two namespaces joined by a veth pair, whose ends are up and have no addresses.

use std::io;

use super::machine::{index_of, ip};
use super::namespace::Namespace;

/// One end of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    A,
    B,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::A, End::B];

    pub(crate) const fn interface(self) -> &'static str {
        match self {
            End::A => "host-a",
            End::B => "host-b",
        }
    }
}

/// Both namespaces of the pair. The calling thread is in neither.
pub(crate) struct Pair([Namespace; 2]);

impl Pair {
    /// Creates devices with this number of queues in each direction. Without the rights for that, prints the reason and
    /// returns `None`.
    pub(crate) fn new(queues: u32) -> Option<Pair> {
        let namespaces = match [Namespace::new(), Namespace::new()] {
            [Ok(a), Ok(b)] => [a, b],
            [Err(error), _] | [_, Err(error)] => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
                println!("not permitted: namespaces need CAP_SYS_ADMIN; nothing was tried");
                return None;
            }
        };
        let pair = Pair(namespaces);
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        let [a, b] = End::BOTH.map(|end| format!("{} {queues}", end.interface()));
        let there = pair.at(End::B).path();
        pair.run(End::A, || {
            ip(&format!(
                "link add {a} type veth peer name {b} netns {there}"
            ))
        });
        for end in End::BOTH {
            pair.set_up(end, true);
        }
        Some(pair)
    }

    /// Namespace of an end.
    pub(crate) fn at(&self, end: End) -> &Namespace {
        &self.0[end as usize]
    }

    /// Runs something at an end, on a separate thread.
    pub(crate) fn run<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        self.at(end).run(work)
    }

    pub(crate) fn interface_index(&self, end: End) -> u32 {
        self.run(end, || index_of(end.interface()))
    }

    /// Sets a device up or down.
    pub(crate) fn set_up(&self, end: End, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        self.run(end, || ip(&format!("link set {} {state}", end.interface())));
    }

    /// Removes the pair of devices; the namespaces stay.
    pub(crate) fn remove_devices(&self) {
        self.run(End::A, || ip(&format!("link del {}", End::A.interface())));
    }
}
