//! Replacement of a reader's content filter.

use isolane_datapath::clock::monotonic_now;
use isolane_wire::cdr::TopicType;

use crate::{error::QosError, filter::Filter, reader::DataReader};

impl<T: TopicType> DataReader<T> {
    /// Replaces or removes the reader's content filter (DDS 1.4 §2.2.2.3.3, `set_expression_parameters`).
    ///
    /// The filter is announced and applies to samples received from now on. Cached samples stay, and samples that a
    /// writer did not send because of the former filter are not sent later.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Filter, Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Reading { celsius: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().keep_all();
    /// let writer = participant.create_writer::<Reading>("Readings", &qos)?;
    /// let warmer_than = |celsius: &str| Filter::new("celsius > %0", &[celsius]);
    /// let reader = participant.create_filtered_reader::<Reading>("Readings", &qos, warmer_than("90")?)?;
    /// writer.write(&Reading { celsius: 50.0 })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || writer.all_acknowledged()));
    /// reader.set_filter(Some(warmer_than("40")?))?;
    /// writer.write(&Reading { celsius: 51.0 })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 1));
    /// assert_eq!(reader.take()?.and_then(|warm| warm.value).map(|warm| warm.celsius), Some(51.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`QosError`] if the filter cannot be announced now; the former filter stays then.
    pub fn set_filter(&self, filter: Option<Filter<T>>) -> Result<(), QosError> {
        let filter = filter.map(|filter| filter.into_protocol(&self.topic));
        let mut state = self.core.state.borrow_mut();
        let protocol = &mut state.protocol;
        protocol.set_reader_filter(monotonic_now(), self.id, filter)?;
        Ok(())
    }
}
