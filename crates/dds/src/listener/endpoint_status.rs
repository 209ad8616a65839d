//! Listeners and statuses of writers and readers.

use isolane_wire::cdr::TopicType;

use crate::{
    error::BuildError,
    listener::status::{
        LivelinessChangedStatus, LivelinessLostStatus, OfferedDeadlineMissedStatus,
        OfferedIncompatibleQosStatus, PublicationMatchedStatus, RequestedDeadlineMissedStatus,
        RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedStatus, Statuses,
        SubscriptionMatchedStatus,
    },
    listener::{Endpoint, Kind},
    reader::DataReader,
    writer::DataWriter,
};

impl<T: TopicType> DataWriter<T> {
    /// Sets the listener of `PUBLICATION_MATCHED`: a reader matches, or no longer matches.
    ///
    /// Every listener runs as a separate job at the priority of the topic's protocol work. It may do what any callback
    /// may, and is also notified of changes before it was set.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_publication_matched(
        &self,
        mut listener: impl FnMut(PublicationMatchedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::PublicationMatched, move |statuses| {
            listener(statuses.publication_matched);
        })
    }

    /// Sets the listener of `OFFERED_INCOMPATIBLE_QOS`: a reader requests more than the writer offers.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_offered_incompatible_qos(
        &self,
        mut listener: impl FnMut(OfferedIncompatibleQosStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::OfferedIncompatibleQos, move |statuses| {
            listener(statuses.offered_incompatible_qos);
        })
    }

    /// Sets the listener of `OFFERED_DEADLINE_MISSED`: an instance was not written for a DEADLINE period.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_offered_deadline_missed(
        &self,
        mut listener: impl FnMut(OfferedDeadlineMissedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::OfferedDeadlineMissed, move |statuses| {
            listener(statuses.offered_deadline_missed);
        })
    }

    /// Sets the listener of `LIVELINESS_LOST`: the writer was neither asserted nor written for a lease duration.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_liveliness_lost(
        &self,
        mut listener: impl FnMut(LivelinessLostStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::LivelinessLost, move |statuses| {
            listener(statuses.liveliness_lost);
        })
    }

    fn listen(
        &self,
        kind: Kind,
        listener: impl FnMut(&Statuses) + 'static,
    ) -> Result<(), BuildError> {
        let topic = (self.topic.as_str(), self.level);
        let of = Endpoint::Writer(self.id);
        let former = {
            let state = &mut *self.core.state.borrow_mut();
            state.listeners.listen(
                &mut state.jobs,
                &mut state.executor,
                of,
                kind,
                topic,
                Box::new(listener),
            )?
        };
        // The listener may own a writer, whose deletion borrows the state.
        drop(former);
        Ok(())
    }

    fn status(&self, kind: Kind) -> Statuses {
        let mut state = self.core.state.borrow_mut();
        state.status(Endpoint::Writer(self.id), kind)
    }

    /// Returns `PUBLICATION_MATCHED` (DDS 1.4 §2.2.2.4.2.13).
    #[must_use]
    pub fn publication_matched_status(&self) -> PublicationMatchedStatus {
        self.status(Kind::PublicationMatched).publication_matched
    }

    /// Returns `OFFERED_INCOMPATIBLE_QOS`.
    #[must_use]
    pub fn offered_incompatible_qos_status(&self) -> OfferedIncompatibleQosStatus {
        self.status(Kind::OfferedIncompatibleQos)
            .offered_incompatible_qos
    }

    /// Returns `OFFERED_DEADLINE_MISSED`.
    #[must_use]
    pub fn offered_deadline_missed_status(&self) -> OfferedDeadlineMissedStatus {
        self.status(Kind::OfferedDeadlineMissed)
            .offered_deadline_missed
    }

    /// Returns `LIVELINESS_LOST`.
    #[must_use]
    pub fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        self.status(Kind::LivelinessLost).liveliness_lost
    }
}

impl<T: TopicType> DataReader<T> {
    /// Sets the listener of `SUBSCRIPTION_MATCHED`: a writer matches, or no longer matches.
    ///
    /// Every listener runs as a separate job at the priority of the topic's protocol work. It may do what any callback
    /// may, and is also notified of changes before it was set.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Door { is_open: bool }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let reader = participant.create_reader::<Door>("Doors", &Qos::reliable())?;
    /// let writers = Rc::new(Cell::new(0));
    /// let count = Rc::clone(&writers);
    /// reader.on_subscription_matched(move |status| count.set(status.current_count))?;
    /// let writer = participant.create_writer::<Door>("Doors", &Qos::reliable())?;
    /// assert!(participant.run_until(Duration::from_secs(5), || writers.get() == 1));
    /// drop(writer);
    /// assert!(participant.run_until(Duration::from_secs(5), || writers.get() == 0));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_subscription_matched(
        &self,
        mut listener: impl FnMut(SubscriptionMatchedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::SubscriptionMatched, move |statuses| {
            listener(statuses.subscription_matched);
        })
    }

    /// Sets the listener of `REQUESTED_INCOMPATIBLE_QOS`: a writer offers less than the reader requests.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_requested_incompatible_qos(
        &self,
        mut listener: impl FnMut(RequestedIncompatibleQosStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::RequestedIncompatibleQos, move |statuses| {
            listener(statuses.requested_incompatible_qos);
        })
    }

    /// Sets the listener of `SAMPLE_LOST`: samples will never arrive.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_sample_lost(
        &self,
        mut listener: impl FnMut(SampleLostStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::SampleLost, move |statuses| {
            listener(statuses.sample_lost);
        })
    }

    /// Sets the listener of `SAMPLE_REJECTED`: samples arrived and were not accepted.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_sample_rejected(
        &self,
        mut listener: impl FnMut(SampleRejectedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::SampleRejected, move |statuses| {
            listener(statuses.sample_rejected);
        })
    }

    /// Sets the listener of `REQUESTED_DEADLINE_MISSED`: an instance received no sample for a DEADLINE period.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Pressure { bar: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().deadline(Duration::from_millis(10));
    /// let writer = participant.create_writer::<Pressure>("Pressure", &qos)?;
    /// let reader = participant.create_reader::<Pressure>("Pressure", &qos)?;
    /// let missed = Rc::new(Cell::new(0));
    /// let count = Rc::clone(&missed);
    /// reader.on_requested_deadline_missed(move |status| count.set(status.total_count))?;
    /// writer.write(&Pressure { bar: 2.5 })?; // and no more
    /// assert!(participant.run_until(Duration::from_secs(5), || missed.get() >= 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_requested_deadline_missed(
        &self,
        mut listener: impl FnMut(RequestedDeadlineMissedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::RequestedDeadlineMissed, move |statuses| {
            listener(statuses.requested_deadline_missed);
        })
    }

    /// Sets the listener of `LIVELINESS_CHANGED`: matched writers appear, disappear, lose or regain liveliness.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_liveliness_changed(
        &self,
        mut listener: impl FnMut(LivelinessChangedStatus) + 'static,
    ) -> Result<(), BuildError> {
        self.listen(Kind::LivelinessChanged, move |statuses| {
            listener(statuses.liveliness_changed);
        })
    }

    fn listen(
        &self,
        kind: Kind,
        listener: impl FnMut(&Statuses) + 'static,
    ) -> Result<(), BuildError> {
        let topic = (self.topic.as_str(), self.level);
        let of = Endpoint::Reader(self.id);
        let former = {
            let state = &mut *self.core.state.borrow_mut();
            state.listeners.listen(
                &mut state.jobs,
                &mut state.executor,
                of,
                kind,
                topic,
                Box::new(listener),
            )?
        };
        // The listener may own a writer, whose deletion borrows the state.
        drop(former);
        Ok(())
    }

    fn status(&self, kind: Kind) -> Statuses {
        let mut state = self.core.state.borrow_mut();
        state.status(Endpoint::Reader(self.id), kind)
    }

    /// Returns `SUBSCRIPTION_MATCHED` (DDS 1.4 §2.2.2.5.2.13).
    #[must_use]
    pub fn subscription_matched_status(&self) -> SubscriptionMatchedStatus {
        self.status(Kind::SubscriptionMatched).subscription_matched
    }

    /// Returns `REQUESTED_INCOMPATIBLE_QOS`.
    #[must_use]
    pub fn requested_incompatible_qos_status(&self) -> RequestedIncompatibleQosStatus {
        self.status(Kind::RequestedIncompatibleQos)
            .requested_incompatible_qos
    }

    /// Returns `SAMPLE_LOST`.
    #[must_use]
    pub fn sample_lost_status(&self) -> SampleLostStatus {
        self.status(Kind::SampleLost).sample_lost
    }

    /// Returns `SAMPLE_REJECTED`.
    #[must_use]
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        self.status(Kind::SampleRejected).sample_rejected
    }

    /// Returns `REQUESTED_DEADLINE_MISSED`.
    #[must_use]
    pub fn requested_deadline_missed_status(&self) -> RequestedDeadlineMissedStatus {
        self.status(Kind::RequestedDeadlineMissed)
            .requested_deadline_missed
    }

    /// Returns `LIVELINESS_CHANGED`.
    #[must_use]
    pub fn liveliness_changed_status(&self) -> LivelinessChangedStatus {
        self.status(Kind::LivelinessChanged).liveliness_changed
    }
}
