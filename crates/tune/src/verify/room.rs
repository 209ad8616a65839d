//! Descriptor limit for sockets: a port needs one socket per receive queue.

use isolane_hostnet::rx_queue_probe::ReceiveQueues;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for the rest of the program.
const OTHERS: u64 = 64;

/// Raises the descriptor limit for `ports` ports as far as permitted. If it is still too low, opening a socket fails.
pub(super) fn raise_descriptor_limit(ports: usize, queues: ReceiveQueues) {
    let wanted = ports as u64 * (u64::from(queues.count()) + 2) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    // A refusal shows when a socket is opened.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        },
    );
}
