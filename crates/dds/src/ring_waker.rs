//! Wait of a thread or task for the loop, at the other end of a ring.
//!
//! The waiting side registers its waker, then looks into the ring. The loop changes the ring, then wakes. At least one
//! of the two sees what the other has done.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use atomic_waker::AtomicWaker;

/// Loop's end of the waker. Dropping this wakes for the last time; drop the ring's end before.
#[derive(Default)]
pub(crate) struct RingWaker(pub(crate) Arc<AtomicWaker>);

impl RingWaker {
    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}

impl Drop for RingWaker {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Waker of a thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Waker of this thread, so that only its first wait allocates.
    static UNPARK: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

/// Calls `poll` until it is ready, and sleeps in between. Returns `None` at `until`.
pub(crate) fn block_on<R>(
    until: Option<Instant>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>,
) -> Option<R> {
    UNPARK.with(|waker| {
        loop {
            if let Poll::Ready(result) = poll(&mut Context::from_waker(waker)) {
                return Some(result);
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return None,
                Some(left) => thread::park_timeout(left),
            }
        }
    })
}
