//! Participant that runs on its own thread, and the handle to it for other threads.
//!
//! The thread builds the participant, because a participant never leaves its thread, and runs its loop. Handles push
//! calls into a ring and wake the loop through its eventfd. The loop makes one of these calls between two
//! activations. A lock orders the handles that push. A call waits for room, except the call of a dropped
//! [`ReaderHandle`]: otherwise two loops whose callbacks drop handles of each other could wait for each other. The loop's
//! thread takes no lock and never waits for room in its own
//! ring: the calls of its own callbacks wait in a list of the thread, and the loop
//! makes all of them after the activation. Samples do not pass through this ring: see [`WriterHandle`] and
//! [`ReaderHandle`].

use std::{
    cell::RefCell,
    os::fd::OwnedFd,
    panic::resume_unwind,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle, ThreadId},
    time::Duration,
};

use isolane_rtps::ReaderId;
use isolane_wire::cdr::TopicType;
use rtrb::{Producer, RingBuffer};

use crate::{
    error::BuildError,
    limits::{HANDLE_CALLS, HANDLE_LINGER},
    participant::Participant,
    qos::Qos,
    reader::handle::ReaderHandle,
    writer::handle::WriterHandle,
};

/// Time between two attempts to push a call into a full ring.
const RETRY: Duration = Duration::from_millis(1);
/// Time after which a thread that waits for the result of a call checks that the participant's thread still runs.
const CHECK: Duration = Duration::from_millis(20);

thread_local! {
    /// Calls that the loop on this thread makes after the running activation; at most a few for each [`ReaderHandle`].
    static OWN_CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// Call of a handle, made on the participant's thread.
pub(crate) enum Call {
    Run(Box<dyn FnOnce(&Participant) + Send>),
    /// Makes the callback job of a reader ready. The number is the generation of its slot.
    ResumeReader(ReaderId, u32),
    RemoveReader(ReaderId, u32),
}

impl Call {
    fn make(self, participant: &Participant) {
        match self {
            Self::Run(function) => function(participant),
            Self::ResumeReader(id, generation) => {
                participant.core().resume_callback(id, generation);
            }
            Self::RemoveReader(id, generation) => {
                participant.core().remove_callback(id, generation);
            }
        }
    }
}

/// The participant's thread has ended: its handle was dropped, or a callback panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the participant's thread has ended: keep its ParticipantHandle for as long as it is needed, and look for a panic of a callback"
)]
pub struct ThreadEnded;

/// Sender of calls to a participant's thread.
#[derive(Clone)]
pub(crate) struct Caller {
    calls: Arc<Mutex<Producer<Call>>>,
    wake: Arc<OwnedFd>,
    thread: ThreadId,
}

impl Caller {
    /// Pushes a call, and waits while the ring has no room for it. A [`Call::RemoveReader`] never waits: only such calls
    /// use the ring's last slots, which are as many as the participant has readers at most.
    pub(crate) fn send(&self, call: Call) -> Result<(), ThreadEnded> {
        if self.is_here() {
            // While the thread ends and its list is gone, all readers are gone too.
            let _ = OWN_CALLS.try_with(|calls| calls.borrow_mut().push(call));
            wake(&self.wake);
            return Ok(());
        }
        let is_removal = matches!(call, Call::RemoveReader(..));
        loop {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.is_abandoned() {
                return Err(ThreadEnded);
            }
            let reserved = calls.buffer().capacity() - HANDLE_CALLS;
            if calls.slots() > if is_removal { 0 } else { reserved } {
                let _ = calls.push(call);
                break;
            }
            drop(calls);
            thread::sleep(RETRY);
        }
        wake(&self.wake);
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.is_abandoned()
    }

    fn is_here(&self) -> bool {
        self.thread == thread::current().id()
    }

    /// # Panics
    /// On the participant's own thread, which would wait for itself.
    pub(crate) fn assert_elsewhere(&self) {
        assert!(!self.is_here(), "a callback cannot wait for its own thread");
    }

    /// Calls a function on the participant's thread and returns its result. Panics as
    /// [`assert_elsewhere`](Self::assert_elsewhere).
    pub(crate) fn call<R: Send + 'static>(
        &self,
        function: impl FnOnce(&Participant) -> R + Send + 'static,
    ) -> Result<R, ThreadEnded> {
        self.assert_elsewhere();
        let (sender, result) = mpsc::sync_channel(1);
        let call = move |participant: &Participant| {
            // The calling thread waits for the result.
            let _ = sender.send(function(participant));
        };
        self.send(Call::Run(Box::new(call)))?;
        loop {
            match result.recv_timeout(CHECK) {
                Ok(value) => return Ok(value),
                // A call that the thread has not taken before its end stays in the ring.
                Err(RecvTimeoutError::Timeout) if !self.has_ended() => {}
                // The result may have arrived between the timeout and the end of the thread.
                Err(_) => return result.try_recv().map_err(|_| ThreadEnded),
            }
        }
    }
}

fn wake(descriptor: &OwnedFd) {
    // The write fails only on overflow, and then the descriptor is already readable.
    let _ = rustix::io::write(descriptor, &1u64.to_ne_bytes());
}

/// Handle for other threads to a participant that runs on its own thread ([`Participant::spawn`]).
///
/// Clones are handles to the same participant. When the last clone is dropped, the loop first sends what writers have
/// handed over, for at most two seconds. Then the participant announces its end, and its thread ends. Dropping the
/// last clone waits for that, unless a callback of the participant drops it. A panic of a callback ends the thread too,
/// and is passed on by the drop that waits, unless the dropping thread already panics.
#[derive(Clone)]
pub struct ParticipantHandle {
    thread: Arc<LoopThread>,
}

/// Thread of the loop; dropping this ends it.
struct LoopThread {
    caller: Caller,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Participant of the thread. Dropping this ends the participant, also if a callback has kept a clone of it.
struct Running(Participant);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.core().abandon();
    }
}

impl Participant {
    /// Builds a participant on a new thread, which runs its loop, and returns a handle for other threads.
    ///
    /// [`Builder::core`](crate::Builder::core) and [`Builder::realtime`](crate::Builder::realtime) place the thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{BuildError, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Speed { metres_per_second: f32 }
    ///
    /// let participant = Participant::spawn(|| Participant::builder(94).loopback().build())?;
    /// let mut reader = participant.create_reader::<Speed>("Speed", &Qos::reliable())?;
    /// let mut writer = participant.create_writer::<Speed>("Speed", &Qos::reliable().transient_local())?;
    ///
    /// writer.write(&Speed { metres_per_second: 3.5 })?;
    /// let sample = reader.take_timeout(Duration::from_secs(5))?.expect("the writer of this process sent it");
    /// assert_eq!(sample.value.unwrap().metres_per_second, 3.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The error of `build`, or [`BuildError::System`] if the thread cannot be started.
    ///
    /// # Panics
    /// If `build` panics.
    pub fn spawn<E: From<BuildError> + Send + 'static>(
        build: impl FnOnce() -> Result<Self, E> + Send + 'static,
    ) -> Result<ParticipantHandle, E> {
        let (built, result) = mpsc::sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            let running = match build() {
                Ok(participant) => Running(participant),
                Err(error) => return drop(built.send(Err(error))),
            };
            let participant = &running.0;
            let descriptor = participant
                .core()
                .state
                .borrow()
                .io
                .poller
                .wake_descriptor();
            let readers = participant.core().state.borrow().protocol.max_readers();
            let (calls, mut received) = RingBuffer::<Call>::new(HANDLE_CALLS + readers);
            // The thread that spawns waits for the result.
            let _ = built.send(Ok((calls, Arc::clone(&descriptor))));
            participant.run_while(|| {
                for call in OWN_CALLS.take() {
                    call.make(participant);
                }
                if let Ok(call) = received.pop() {
                    call.make(participant);
                    if !received.is_empty() {
                        wake(&descriptor);
                    }
                }
                !stopped.load(Ordering::Acquire)
            });
            let core = participant.core();
            core.run_until(HANDLE_LINGER, || core.state.borrow().has_sent_all());
        };
        let thread = thread::Builder::new()
            .name("isolane loop".into())
            .spawn(run)
            .map_err(|source| BuildError::System {
                action: "start the participant's thread",
                source,
            })?;
        let Ok(built) = result.recv() else {
            let panic = thread.join().expect_err("it ended without a result");
            resume_unwind(panic);
        };
        let (calls, wake) = built?;
        let caller = Caller {
            calls: Arc::new(Mutex::new(calls)),
            wake,
            thread: thread.thread().id(),
        };
        Ok(ParticipantHandle {
            thread: Arc::new(LoopThread {
                caller,
                stop,
                thread: Some(thread),
            }),
        })
    }
}

impl ParticipantHandle {
    /// Calls a function on the participant's thread, between two activations of the loop, and returns its result. The
    /// loop runs no job meanwhile, so create endpoints before critical samples flow.
    ///
    /// The function can create what stays on that thread: timers, listeners, and readers with callbacks. A callback
    /// may own endpoints.
    ///
    /// ```
    /// use std::{sync::{Arc, atomic::{AtomicU32, Ordering}}, time::Duration};
    /// use isolane::{Level, Participant};
    ///
    /// let participant = Participant::spawn(|| Participant::builder(95).loopback().build())?;
    /// let ticks = Arc::new(AtomicU32::new(0));
    /// let counted = Arc::clone(&ticks);
    /// participant.with(move |participant| {
    ///     participant.create_timer("tick", Level::MAX, Duration::from_millis(1), Duration::ZERO, move |_| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    /// })??;
    /// while ticks.load(Ordering::Relaxed) < 3 {
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ThreadEnded`], also if the function panics.
    ///
    /// # Panics
    /// On the participant's own thread, which would wait for itself.
    pub fn with<R: Send + 'static>(
        &self,
        function: impl FnOnce(&Participant) -> R + Send + 'static,
    ) -> Result<R, ThreadEnded> {
        self.thread.caller.call(function)
    }

    /// Creates a writer for one other thread: see [`Participant::create_writer_handle`].
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    pub fn create_writer<T: TopicType + 'static>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<WriterHandle<T>, BuildError> {
        let (topic, qos) = (topic.to_owned(), qos.clone());
        self.with(move |participant| participant.create_writer_handle(&topic, &qos))?
    }

    /// Creates a reader for one other thread.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    pub fn create_reader<T: TopicType + Send + 'static>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<ReaderHandle<T>, BuildError> {
        let (topic, qos) = (topic.to_owned(), qos.clone());
        let caller = self.thread.caller.clone();
        self.with(move |participant| {
            let reader = participant.create_reader(&topic, &qos)?;
            ReaderHandle::new(reader, caller)
        })?
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        wake(&self.caller.wake);
        // The thread does not wait for itself; it ends after the callback that drops the handle.
        let thread = self
            .thread
            .take_if(|it| it.thread().id() != thread::current().id());
        if let Some(Err(panic)) = thread.map(JoinHandle::join)
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
