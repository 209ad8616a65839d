//! Network namespace. A thread is in one namespace at a time. Devices and sockets stay in the namespace in which they
//! were created, whichever thread uses them later.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::machine::{ip, set};

/// Clones refer to the same namespace. It exists as long as a clone, or a thread or socket in it.
#[derive(Clone)]
pub(crate) struct Namespace(Arc<File>);

impl Namespace {
    /// Creates a namespace with only a loopback interface.
    pub(crate) fn new() -> io::Result<Namespace> {
        on_own_thread(|| {
            // SAFETY: only the calling thread changes its network namespace; no memory and no
            // descriptor table is involved, and the thread ends here.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            // Router solicitations and duplicate address detection would be frames that no test has sent.
            if Path::new("/proc/sys/net/ipv6").exists() {
                for which in ["all", "default"] {
                    set(&format!("net/ipv6/conf/{which}/disable_ipv6"), "1");
                }
            }
            ip("link set lo up");
            current().map(Arc::new).map(Namespace)
        })
    }

    /// Moves the calling thread there permanently.
    pub(crate) fn enter(&self) {
        move_to(&self.0);
    }

    /// Runs something there on the calling thread. The thread returns even after a panic, so that a failing test
    /// affects no other test on its thread.
    pub(crate) fn visit<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Back(File);
        impl Drop for Back {
            fn drop(&mut self) {
                move_to(&self.0);
            }
        }
        let _back = Back(current().expect("this thread's namespace"));
        self.enter();
        work()
    }

    /// Runs something there on a separate thread, whose core and priority it may change.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        on_own_thread(|| {
            self.enter();
            work()
        })
    }

    /// Name of the namespace for `ip`.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

fn move_to(namespace: &File) {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("to enter a namespace, which needs root");
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
