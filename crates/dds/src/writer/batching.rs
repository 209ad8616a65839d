//! Batched samples (LATENCY_BUDGET): when a best-effort writer sends its batch, and how the application flushes it.

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::Priority;
use isolane_wire::cdr::TopicType;

use crate::{limits::FLUSHED_DATAGRAMS, participant::state::State, writer::DataWriter};

impl<T: TopicType> DataWriter<T> {
    /// Sends the samples that this writer has batched because of its [LATENCY_BUDGET](crate::Qos::latency_budget). A
    /// best-effort writer sends them before this returns; the loop sends those of a reliable one. Without a budget it
    /// does nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Trace { value: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::best_effort().latency_budget(Duration::from_secs(1)).keep_last(8);
    /// let writer = participant.create_writer::<Trace>("Traces", &qos)?;
    /// let reader = participant.create_reader::<Trace>("Traces", &qos)?;
    /// for value in 0..3 {
    ///     writer.write(&Trace { value })?;
    /// }
    /// assert_eq!(writer.ledger().pending, 3);
    /// writer.flush();
    /// assert_eq!(writer.ledger().sent, 3); // in one datagram
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) {
        self.let_go(&mut self.core.state.borrow_mut());
    }

    pub(crate) fn let_go(&self, state: &mut State) {
        state.protocol.flush(self.id);
        self.send_full(state);
    }

    /// Sends full datagrams of a best-effort writer before `write` returns.
    pub(crate) fn send_full(&self, state: &mut State) {
        if self.encoding.reliable || self.max_bytes_are_cut(state) {
            return;
        }
        let priority = Priority::of_data(self.level);
        for _ in 0..FLUSHED_DATAGRAMS {
            // Work of other writers of the level may be queued before it; it is as urgent.
            let is_under_way = state.io.has_pending(priority);
            if !(is_under_way || state.protocol.is_filed(self.id))
                || state.work(monotonic_now(), priority, 1) == 0
            {
                return;
            }
        }
    }

    /// Returns whether samples may be fragmented. The loop sends those, at a priority below the level's samples.
    fn max_bytes_are_cut(&self, state: &State) -> bool {
        !state.protocol.sends_whole(self.id)
    }
}
