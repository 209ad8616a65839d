//! Enabling of entities (DDS 1.4 §2.2.3.20, §2.2.2.1.1.7): ENTITY_FACTORY and *enable*.
//!
//! The participant's policy applies to its writers and readers; publishers and subscribers are not enabled separately.
//! A disabled entity is allocated and has a handle, but is not announced or matched. Statuses, listeners, conditions
//! and policies can be set up before.

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::EnableError;
use isolane_wire::cdr::TopicType;

use crate::{participant::Participant, reader::DataReader, writer::DataWriter};

impl Participant {
    /// Enables the participant if it was [built](crate::Builder::enabled) disabled. It is announced from now on, and
    /// its endpoints are enabled too, unless [`Builder::autoenable`](crate::Builder::autoenable) is off. An enabled
    /// participant is unchanged.
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
    /// [`EnableError::AnnouncementFull`]: an endpoint could not be enabled yet; call it again.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core().state.borrow_mut();
        state.protocol.enable(monotonic_now())
    }

    /// Returns whether the participant is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core().state.borrow().protocol.is_enabled()
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Enables the writer: it is announced and matched. An enabled writer is unchanged.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.protocol.enable_writer(monotonic_now(), self.id)
    }

    /// Returns whether the writer is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().protocol.is_writer_enabled(self.id)
    }
}

impl<T: TopicType> DataReader<T> {
    /// Enables the reader: it is announced and matched. An enabled reader is unchanged.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.protocol.enable_reader(monotonic_now(), self.id)
    }

    /// Returns whether the reader is enabled. A disabled reader has no samples.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().protocol.is_reader_enabled(self.id)
    }
}
