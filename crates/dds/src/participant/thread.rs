//! Participant that runs on its own thread, and the handle to it for other threads.
//!
//! The thread builds the participant, because a participant never leaves its thread, and runs its loop. A handle sends
//! calls to the thread through a channel and wakes the loop through its eventfd. The loop makes these calls between two
//! activations. Samples do not pass through this channel: see [`WriterHandle`] and [`ReaderHandle`].

use std::{
    os::fd::OwnedFd,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use isolane_wire::cdr::TopicType;

use crate::{
    error::BuildError, participant::Participant, qos::Qos, reader::handle::ReaderHandle,
    writer::handle::WriterHandle,
};

type Call = Box<dyn FnOnce(&Participant) + Send>;

/// The participant's thread has ended: its handle was dropped, or a callback panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the participant's thread has ended: keep its ParticipantHandle for as long as it is needed, and look for a panic of a callback"
)]
pub struct ThreadEnded;

/// Sender of calls to a participant's thread.
#[derive(Clone)]
pub(crate) struct Caller {
    calls: mpsc::Sender<Call>,
    wake: Arc<OwnedFd>,
}

impl Caller {
    pub(crate) fn send(
        &self,
        call: impl FnOnce(&Participant) + Send + 'static,
    ) -> Result<(), ThreadEnded> {
        self.calls.send(Box::new(call)).map_err(|_| ThreadEnded)?;
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        // The write fails only on overflow, and then the descriptor is already readable.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

/// Handle for other threads to a participant that runs on its own thread ([`Participant::spawn`]).
///
/// Clones are handles to the same participant. When the last clone is dropped, the participant announces its end and
/// its thread ends. A panic of a callback ends the thread too; dropping the last clone passes that panic on, unless the
/// dropping thread already panics.
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

impl Participant {
    /// Builds a participant on a new thread, which runs its loop, and returns a handle for other threads.
    ///
    /// [`Builder::core`](crate::Builder::core) and [`Builder::realtime`](crate::Builder::realtime) place the thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Participant, Qos, TopicType};
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
    pub fn spawn(
        build: impl FnOnce() -> Result<Self, BuildError> + Send + 'static,
    ) -> Result<ParticipantHandle, BuildError> {
        let (calls, received) = mpsc::channel::<Call>();
        let (built, result) = mpsc::sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            let participant = match build() {
                Ok(participant) => participant,
                Err(error) => return drop(built.send(Err(error))),
            };
            let wake = participant
                .core()
                .state
                .borrow()
                .io
                .poller
                .wake_descriptor();
            // The thread that spawns waits for the result.
            let _ = built.send(Ok(wake));
            participant.run_while(|| {
                received.try_iter().for_each(|call| call(&participant));
                !stopped.load(Ordering::Acquire)
            });
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
        let caller = Caller {
            calls,
            wake: built?,
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
    /// Calls a function on the participant's thread, between two activations of the loop, and returns its result.
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
        call: impl FnOnce(&Participant) -> R + Send + 'static,
    ) -> Result<R, ThreadEnded> {
        assert!(
            !self.thread.is_current(),
            "a callback cannot wait for its own thread"
        );
        let (sender, result) = mpsc::sync_channel(1);
        self.thread.caller.send(move |participant| {
            // The calling thread waits for the result.
            let _ = sender.send(call(participant));
        })?;
        result.recv().map_err(|_| ThreadEnded)
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

impl LoopThread {
    fn is_current(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.thread().id() == thread::current().id())
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.caller.wake();
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
