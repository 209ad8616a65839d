//! Room for sockets: a port takes one for each receive queue.

use isolane_hostnet::rx_queue_probe::ReceiveQueues;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a program has beside.
const OTHERS: u64 = 64;

/// Raises what this process may open to what so many ports take, as far as it may. Where that is not enough, opening
/// says so.
pub(super) fn make_room(ports: usize, queues: ReceiveQueues) {
    let wanted = ports as u64 * (u64::from(queues.count()) + 2) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    // What is refused is found out when a socket is opened.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        },
    );
}
