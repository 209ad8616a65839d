//! ENTITY_FACTORY and *enable* (DDS 1.4 §2.2.3.20, §2.2.2.1.1.7): participants and endpoints that do not take part
//! yet.
//!
//! There are no publishers and subscribers here, so a participant's policy is about its writers and readers. What is
//! not enabled has its memory and its handle; statuses, listeners and conditions may be set up and its policies
//! changed before anybody hears of it.

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{EnableError, WriterId};
use isolane_wire::cdr::TopicType;

use crate::{
    error::BuildError, participant::Participant, reader::DataReader, state::State,
    writer::DataWriter,
};

impl Participant {
    /// Enables it, where it was [built](crate::Builder::enabled) without: it announces itself from now on, and, unless
    /// [`Builder::autoenable`](crate::Builder::autoenable) says otherwise, all its endpoints are enabled with it.
    /// Nothing happens if it is.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{EnableError, Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Pulse { number: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).autoenable(false).build()?;
    /// let writer = participant.create_writer::<Pulse>("Pulse", &Qos::best_effort())?;
    /// let reader = participant.create_reader::<Pulse>("Pulse", &Qos::best_effort())?;
    /// assert!(writer.write(&Pulse { number: 1 }).is_err(), "it is not enabled");
    /// writer.enable()?;
    /// assert_eq!(reader.matched_writers(), 0, "the reader is not");
    /// reader.enable()?;
    /// assert_eq!(reader.matched_writers(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EnableError::AnnouncementFull`]: some endpoint could not be enabled yet; try again.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core().state.borrow_mut();
        state.engine.enable(monotonic_now())
    }

    /// Whether it takes part in its domain.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core().state.borrow().engine.is_enabled()
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Enables it: it is announced, and meets its readers. Nothing happens if it is.
    ///
    /// # Errors
    /// [`EnableError`]; it is as before then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.engine.enable_writer(monotonic_now(), self.id)
    }

    /// Whether it takes part.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().engine.is_writer_enabled(self.id)
    }
}

impl<T: TopicType> DataReader<T> {
    /// Enables it: it is announced, and meets its writers. Nothing happens if it is.
    ///
    /// # Errors
    /// [`EnableError`]; it is as before then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.engine.enable_reader(monotonic_now(), self.id)
    }

    /// Whether it takes part. While it does not, it has no samples.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().engine.is_reader_enabled(self.id)
    }
}

impl State {
    /// Enables a writer of another thread, which has no other way to be. It goes if it cannot be.
    pub(crate) fn enable_remote(&mut self, writer: WriterId) -> Result<(), BuildError> {
        let now = monotonic_now();
        self.engine.enable_writer(now, writer).map_err(|error| {
            self.engine.delete_writer(now, writer);
            error.into()
        })
    }
}
