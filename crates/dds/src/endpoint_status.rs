//! Listeners and statuses, as writers and readers offer them.

use isolane_wire::cdr::TopicType;

use crate::{
    error::BuildError,
    listeners::{Endpoint, Kind},
    reader::DataReader,
    status::{
        OfferedIncompatibleQosStatus, PublicationMatchedStatus, RequestedIncompatibleQosStatus,
        SampleLostStatus, SampleRejectedStatus, Statuses, SubscriptionMatchedStatus,
    },
    writer::DataWriter,
};

impl<T: TopicType> DataWriter<T> {
    /// Sets the listener of `PUBLICATION_MATCHED`: readers join and part. Like every listener it runs
    /// as a job of its own at the priority of the topic's protocol work, may do what any callback may,
    /// and is told of what happened before it was set.
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

    /// Sets the listener of `OFFERED_INCOMPATIBLE_QOS`: a reader requests more than is offered.
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

    fn listen(
        &self,
        kind: Kind,
        listener: impl FnMut(&Statuses) + 'static,
    ) -> Result<(), BuildError> {
        let topic = (self.topic.as_str(), self.level);
        let of = Endpoint::Writer(self.id);
        let former = {
            let mut state = self.core.state.borrow_mut();
            state.listen(of, kind, topic, Box::new(listener))?
        };
        // What it owns may be a writer, which is deleted now that the state is free.
        drop(former);
        Ok(())
    }

    fn status(&self, kind: Kind) -> Statuses {
        let mut state = self.core.state.borrow_mut();
        state.status(Endpoint::Writer(self.id), kind)
    }

    /// `PUBLICATION_MATCHED` now (DDS 1.4 §2.2.2.4.2.13).
    #[must_use]
    pub fn publication_matched_status(&self) -> PublicationMatchedStatus {
        self.status(Kind::PublicationMatched).publication_matched
    }

    /// `OFFERED_INCOMPATIBLE_QOS` now.
    #[must_use]
    pub fn offered_incompatible_qos_status(&self) -> OfferedIncompatibleQosStatus {
        self.status(Kind::OfferedIncompatibleQos)
            .offered_incompatible_qos
    }
}

impl<T: TopicType> DataReader<T> {
    /// Sets the listener of `SUBSCRIPTION_MATCHED`: writers join and part. Like every listener it runs
    /// as a job of its own at the priority of the topic's protocol work, may do what any callback may,
    /// and is told of what happened before it was set.
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
    /// let told = Rc::clone(&writers);
    /// reader.on_subscription_matched(move |status| told.set(status.current_count))?;
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

    /// Sets the listener of `REQUESTED_INCOMPATIBLE_QOS`: a writer offers less than is requested.
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

    /// Sets the listener of `SAMPLE_LOST`: samples will never come.
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

    /// Sets the listener of `SAMPLE_REJECTED`: samples came and were not taken in.
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

    fn listen(
        &self,
        kind: Kind,
        listener: impl FnMut(&Statuses) + 'static,
    ) -> Result<(), BuildError> {
        let topic = (self.topic.as_str(), self.level);
        let of = Endpoint::Reader(self.id);
        let former = {
            let mut state = self.core.state.borrow_mut();
            state.listen(of, kind, topic, Box::new(listener))?
        };
        // What it owns may be a writer, which is deleted now that the state is free.
        drop(former);
        Ok(())
    }

    fn status(&self, kind: Kind) -> Statuses {
        let mut state = self.core.state.borrow_mut();
        state.status(Endpoint::Reader(self.id), kind)
    }

    /// `SUBSCRIPTION_MATCHED` now (DDS 1.4 §2.2.2.5.2.13).
    #[must_use]
    pub fn subscription_matched_status(&self) -> SubscriptionMatchedStatus {
        self.status(Kind::SubscriptionMatched).subscription_matched
    }

    /// `REQUESTED_INCOMPATIBLE_QOS` now.
    #[must_use]
    pub fn requested_incompatible_qos_status(&self) -> RequestedIncompatibleQosStatus {
        self.status(Kind::RequestedIncompatibleQos)
            .requested_incompatible_qos
    }

    /// `SAMPLE_LOST` now.
    #[must_use]
    pub fn sample_lost_status(&self) -> SampleLostStatus {
        self.status(Kind::SampleLost).sample_lost
    }

    /// `SAMPLE_REJECTED` now.
    #[must_use]
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        self.status(Kind::SampleRejected).sample_rejected
    }
}
