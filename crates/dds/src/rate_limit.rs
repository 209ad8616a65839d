//! Rate limits of receivers, set at the creation of a reader and changeable at run time.
//!
//! Behnke et al. (*Towards a Real-Time IoT: Approaches for Incoming Packet Processing in Cyber-Physical Systems*, §5.6)
//! give each socket a *priority*, a *capacity* and a *period* by `setsockopt`, and the host a limit over all of them.
//! In isolane the reader corresponds to the socket:
//!
//! | Behnke et al. | isolane | changeable at run time |
//! | --- | --- | --- |
//! | priority of a socket's flow | [`Qos::level`] | no: the level determines the port to which peers send |
//! | capacity and period of a socket | [`Qos::budget`], [`DataReader::set_budget`] | yes |
//! | the same for all other sockets | [`Participant::set_level_limit`] | yes |
//! | dropping of the excess | [`OverBudget::Drop`], or the lowest lane with [`OverBudget::Demote`] | yes |
//! | limit over all flows | [`Participant::set_interface_limit`], with a reserve for the highest level | yes |
//! | flows of the system (ARP, ICMP, DNS) | [`InterfaceRateLimit::foreign`]: all foreign traffic as one | yes |
//! | usage of a flow | [`DataReader::flow`], [`Participant::observe`] | |
//!
//! A budget counts datagrams before they cost a buffer or a wake-up. Only the datapath `xdp` sees them that early. With
//! other datapaths a reader with a budget is still created and receives everything. [`Participant::warnings`] reports
//! this, and later changes of the budget are refused.
//!
//! [`OverBudget::Drop`]: isolane_datapath::OverBudget::Drop
//! [`OverBudget::Demote`]: isolane_datapath::OverBudget::Demote

use isolane_datapath::{
    Budget, FlowId, FlowObservation, InterfaceRateLimit, Observation, OpenError, OverBudget,
    RateLimit, RateLimitError, RateLimitTarget,
};
use isolane_wire::{builtin_data::LocatorList, cdr::TopicType, level::Level};

use crate::{
    error::BuildError,
    limits::{MAX_BUDGET_PERIOD, MIN_BUDGET_PERIOD},
    participant::Participant,
    participant::builder::locators,
    participant::state::State,
    qos::Qos,
    reader::DataReader,
};

/// Port and budget of a reader's datagrams.
#[derive(Debug, Default)]
pub(crate) enum ReaderFlow {
    /// Port of the level.
    #[default]
    Shared,
    /// Dedicated port of the reader.
    Own(FlowId),
    /// Port of the level in spite of a budget, with a warning for the user.
    NotEnforced(String),
}

impl ReaderFlow {
    /// Returns the flow that belongs to this reader only.
    pub(crate) fn own(&self) -> Option<FlowId> {
        match self {
            Self::Own(flow) => Some(*flow),
            Self::Shared | Self::NotEnforced(_) => None,
        }
    }
}

/// Checks a budget against the bounds of all datapaths.
pub(crate) fn check(budget: &Budget) -> Result<(), RateLimitError> {
    let period = budget.period;
    match (MIN_BUDGET_PERIOD..=MAX_BUDGET_PERIOD).contains(&period) {
        true => Ok(()),
        false => Err(RateLimitError::Period { period }),
    }
}

/// Returns the name of a treatment of the excess.
pub(crate) fn word(over: OverBudget) -> &'static str {
    match over {
        OverBudget::Drop => "drop",
        OverBudget::Demote => "demote",
    }
}

impl State {
    /// Opens a flow with a rate limit for a reader with a budget. Without support by the datapath, the reader shares
    /// its level's flow.
    pub(crate) fn open_reader_flow(
        &mut self,
        topic: &str,
        qos: &Qos,
    ) -> Result<ReaderFlow, BuildError> {
        let Some(rate_limit) = qos.rate_limit else {
            return Ok(ReaderFlow::Shared);
        };
        let lane = self.lanes.lane(qos.transport_level());
        let flow = match self.io.datapath.open_flow(lane) {
            Ok(flow) => flow,
            Err(error @ OpenError::NoFlows { .. }) => {
                return Ok(ReaderFlow::NotEnforced(not_enforced(
                    topic,
                    &rate_limit,
                    &error,
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let protected = self
            .io
            .datapath
            .set_rate_limit(RateLimitTarget::Flow(flow), Some(rate_limit));
        if let Err(error) = protected {
            self.io.datapath.close_flow(flow);
            return match error {
                RateLimitError::Unsupported { .. } | RateLimitError::NoLanes => Ok(
                    ReaderFlow::NotEnforced(not_enforced(topic, &rate_limit, &error)),
                ),
                error => Err(error.into()),
            };
        }
        Ok(ReaderFlow::Own(flow))
    }

    /// Returns the locators of a reader's own flow; `None` if the reader shares its level's flow.
    pub(crate) fn flow_locators(&self, flow: &ReaderFlow) -> Option<LocatorList> {
        let flow = flow.own()?;
        Some(locators(self.io.datapath.flow_unicast(flow)))
    }

    pub(crate) fn close_reader_flow(&mut self, flow: &ReaderFlow) {
        if let Some(flow) = flow.own() {
            self.io.datapath.close_flow(flow);
        }
    }

    /// Returns the topic of the reader that owns a flow.
    pub(crate) fn topic_of_flow(&self, flow: FlowId) -> Option<String> {
        let mut readers = self.protocol.local_readers();
        let reader = readers.find(|id| self.reader_slots[id.index()].flow.own() == Some(flow))?;
        Some(
            self.protocol
                .reader_data(reader)?
                .topic_name
                .as_str()
                .into(),
        )
    }

    /// Returns warnings on readers whose budgets are not enforced.
    pub(crate) fn budgets_not_enforced(&self) -> impl Iterator<Item = &str> {
        self.reader_slots
            .iter()
            .filter_map(|slot| match &slot.flow {
                ReaderFlow::NotEnforced(said) => Some(said.as_str()),
                ReaderFlow::Shared | ReaderFlow::Own(_) => None,
            })
    }
}

fn not_enforced(topic: &str, rate_limit: &RateLimit, reason: &dyn std::error::Error) -> String {
    let (capacity, period) = (rate_limit.budget.capacity, rate_limit.budget.period);
    format!(
        "the budget of topic {topic}, {capacity} datagrams in {period:?}, is not enforced: {reason}"
    )
}

impl<T: TopicType> DataReader<T> {
    /// Changes or removes the budget of a reader created with one ([`Qos::budget`]). The change takes effect at once,
    /// with a full budget.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, Level, Network, OverBudget, Participant, RateLimitError, RateLimit, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Report { number: u32 }
    ///
    /// let budget = |capacity| Budget {
    ///     capacity: NonZeroU32::new(capacity).unwrap(),
    ///     period: Duration::from_millis(10),
    /// };
    /// # let network = Network::new(1);
    /// # let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().level(Level::new(1).unwrap()).budget(budget(20), OverBudget::Drop);
    /// let reader = participant.create_reader::<Report>("Reports", &qos)?;
    /// // An update is under way: take more of it for a while.
    /// match reader.set_budget(Some(RateLimit { budget: budget(200), over: OverBudget::Demote })) {
    ///     Ok(()) => {}
    ///     // Not every datapath counts datagrams before they are received: `warnings` said so before.
    ///     Err(RateLimitError::Unsupported { .. }) => assert!(!participant.warnings().is_empty()),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RateLimitError`]; nothing was changed then. [`RateLimitError::NoFlow`] for a reader created without a budget:
    /// peers send to its level's port, whose budget [`Participant::set_level_limit`] sets.
    pub fn set_budget(&self, rate_limit: Option<RateLimit>) -> Result<(), RateLimitError> {
        rate_limit.map_or(Ok(()), |rate_limit| check(&rate_limit.budget))?;
        let mut state = self.core.state.borrow_mut();
        match &state.reader_slots[self.id.index()].flow {
            ReaderFlow::Own(flow) => {
                let what = RateLimitTarget::Flow(*flow);
                state.io.datapath.set_rate_limit(what, rate_limit)
            }
            ReaderFlow::Shared => Err(RateLimitError::NoFlow),
            ReaderFlow::NotEnforced(_) => Err(RateLimitError::Unsupported {
                datapath: state.io.datapath.name(),
            }),
        }
    }

    /// Returns the state of the reader's own flow: destination, remaining budget, and decisions by reason. `None` if
    /// the reader shares its level's flow.
    ///
    /// Intended for diagnostics: it allocates and makes system calls.
    #[must_use]
    pub fn flow(&self) -> Option<FlowObservation> {
        let state = self.core.state.borrow();
        let own = state.reader_slots[self.id.index()].flow.own()?;
        let flows = state.io.datapath.observe().flows;
        flows.into_iter().find(|flow| flow.flow == Some(own))
    }
}

impl Participant {
    /// Sets the budget of a level's receivers, except for readers with own budgets; `None` removes it. The level's port
    /// and its multicast group each have this budget. The change takes effect at once, with a full budget.
    ///
    /// A level's budget can be set before its first endpoint. The budget then applies from the level's first datagram
    /// on. If the level has no lane, the budget applies once another level has a lane. [`Participant::warnings`]
    /// reports if the datapath does not support the budget, or if the budget does not apply yet.
    ///
    /// # Errors
    /// [`RateLimitError`]; nothing was changed then.
    pub fn set_level_limit(
        &self,
        level: Level,
        rate_limit: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        rate_limit.map_or(Ok(()), |rate_limit| check(&rate_limit.budget))?;
        let mut state = self.core().state.borrow_mut();
        let lane = state.lanes.lane(level);
        state
            .io
            .datapath
            .set_rate_limit(RateLimitTarget::Lane(lane), rate_limit)
    }

    /// Sets budgets for all receivers of the used interfaces together, and for all other traffic of the host. A budget
    /// that is `None` sets no limit.
    ///
    /// The call can precede the first endpoint, as [`set_level_limit`](Self::set_level_limit).
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, InterfaceRateLimit, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let budget = Budget {
    ///     capacity: NonZeroU32::new(2_000).unwrap(),
    ///     period: Duration::from_millis(10),
    /// };
    /// // 200 of the 2,000 datagrams are reserved for the highest level; other traffic is not limited.
    /// let rate_limit = InterfaceRateLimit { topics: Some((budget, 200)), foreign: None };
    /// let refused = participant.set_interface_limit(rate_limit).unwrap_err();
    /// assert!(refused.to_string().contains("the datapath memory enforces no budgets"));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`RateLimitError`]; nothing was changed then.
    pub fn set_interface_limit(
        &self,
        rate_limit: InterfaceRateLimit,
    ) -> Result<(), RateLimitError> {
        let flows = rate_limit.topics.map(|(budget, _)| budget);
        flows
            .into_iter()
            .chain(rate_limit.foreign)
            .try_for_each(|budget| check(&budget))?;
        if let Some((budget, reserved)) = rate_limit.topics {
            let capacity = budget.capacity.get();
            if reserved >= capacity {
                return Err(RateLimitError::Reserve { reserved, capacity });
            }
        }
        let mut state = self.core().state.borrow_mut();
        state.io.datapath.set_interface_rate_limit(rate_limit)?;
        state.monitoring.limit_not_enforced = None;
        Ok(())
    }

    /// Returns the name of the abstract Unix socket for observers ([`observe`](crate::observe)); `None` if the
    /// participant is not observable.
    #[must_use]
    pub fn observable_at(&self) -> Option<String> {
        self.core().state.borrow().observable_at()
    }

    /// Returns the name of the datapath in use.
    #[must_use]
    pub fn datapath(&self) -> &'static str {
        self.core().state.borrow().io.datapath.name()
    }

    /// Returns the state of the datapath: interfaces, flows with their budgets, rings. Empty if the datapath has none.
    ///
    /// Intended for diagnostics: it allocates and makes system calls.
    #[must_use]
    pub fn observe(&self) -> Observation {
        self.core().state.borrow().io.datapath.observe()
    }
}
