//! What receivers are protected with: budgets, set when a reader is created and changed while the
//! participant runs.
//!
//! Paper 004 (§5.6) gives each socket a *priority*, a *capacity* and a *period* by `setsockopt`, and
//! the host a limit over all of them. Here a reader takes the socket's place:
//!
//! | in paper 004 | here | changeable while running |
//! | --- | --- | --- |
//! | priority of a socket's flow | [`Qos::level`] | no: peers know it as the topic's port |
//! | capacity and period of a socket | [`Qos::budget`], [`DataReader::set_budget`] | yes |
//! | the same of sockets nobody named | [`Participant::protect_level`] | yes |
//! | what is beyond it is dropped | [`Over::Drop`]; or it comes last, [`Over::Demote`] | yes |
//! | limit over all flows | [`Participant::protect_interface`], of which the highest level has a share of its own | yes |
//! | flows of the system (ARP, ICMP, DNS) | [`InterfaceProtection::others`]: all that is not ours, in one | yes |
//! | how much a flow took | [`DataReader::flow`], [`Participant::observe`] | |
//!
//! A budget counts datagrams before they cost a buffer or a wake-up, so it takes a datapath that sees
//! them there: xdp. On the others a reader with a budget is created all the same, takes what comes, and
//! [`Participant::notes`] say so; what is asked of them later is refused by name.
//!
//! [`Over::Drop`]: isolane_datapath::Over::Drop
//! [`Over::Demote`]: isolane_datapath::Over::Demote

use isolane_datapath::{
    Budget, FlowId, FlowObservation, InterfaceProtection, Observation, OpenError, Over,
    ProtectError, Protected, Protection,
};
use isolane_wire::{cdr::TopicType, discovery::LocatorList, level::Level};

use crate::{
    builder::locators,
    error::BuildError,
    limits::{MAX_BUDGET_PERIOD, MIN_BUDGET_PERIOD},
    participant::Participant,
    qos::Qos,
    reader::DataReader,
    state::State,
};

/// How a reader's datagrams reach it.
#[derive(Debug, Default)]
pub(crate) enum ReaderFlow {
    /// With all of its level.
    #[default]
    Shared,
    /// By a port of its own.
    Own(FlowId),
    /// With all of its level, although it has a budget: the sentence that says so.
    NotEnforced(String),
}

impl ReaderFlow {
    /// The flow that is the reader's alone.
    pub(crate) fn own(&self) -> Option<FlowId> {
        match self {
            Self::Own(flow) => Some(*flow),
            Self::Shared | Self::NotEnforced(_) => None,
        }
    }
}

/// Whether a budget can be kept at all, by whatever datapath.
pub(crate) fn check(budget: &Budget) -> Result<(), ProtectError> {
    let period = budget.period;
    match (MIN_BUDGET_PERIOD..=MAX_BUDGET_PERIOD).contains(&period) {
        true => Ok(()),
        false => Err(ProtectError::Period { period }),
    }
}

/// A word for what becomes of datagrams beyond a budget.
pub(crate) fn word(over: Over) -> &'static str {
    match over {
        Over::Drop => "drop",
        Over::Demote => "demote",
    }
}

impl State {
    /// Gives a reader with a budget a flow of its own, and protects it. Where the datapath can do
    /// neither, the reader shares its level's.
    pub(crate) fn open_reader_flow(
        &mut self,
        topic: &str,
        qos: &Qos,
    ) -> Result<ReaderFlow, BuildError> {
        let Some(protection) = qos.protection else {
            return Ok(ReaderFlow::Shared);
        };
        let lane = self.lanes.lane(qos.transport_level());
        let flow = match self.datapath.open_flow(lane) {
            Ok(flow) => flow,
            Err(error @ OpenError::NoFlows { .. }) => {
                return Ok(ReaderFlow::NotEnforced(not_enforced(
                    topic,
                    &protection,
                    &error,
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let protected = self
            .datapath
            .protect(Protected::Flow(flow), Some(protection));
        if let Err(error) = protected {
            self.datapath.close_flow(flow);
            return match error {
                ProtectError::Unsupported { .. } | ProtectError::NoLanes => Ok(
                    ReaderFlow::NotEnforced(not_enforced(topic, &protection, &error)),
                ),
                error => Err(error.into()),
            };
        }
        Ok(ReaderFlow::Own(flow))
    }

    /// Where a reader is reached by a flow of its own; `None` if it shares its level's.
    pub(crate) fn flow_locators(&self, flow: &ReaderFlow) -> Option<LocatorList> {
        let flow = flow.own()?;
        Some(locators(self.datapath.flow_unicast(flow)))
    }

    /// Gives a reader's flow back, if it had one.
    pub(crate) fn close_reader_flow(&mut self, flow: &ReaderFlow) {
        if let Some(flow) = flow.own() {
            self.datapath.close_flow(flow);
        }
    }

    /// The topic of the reader whose own a flow is.
    pub(crate) fn topic_of_flow(&self, flow: FlowId) -> Option<String> {
        let mut readers = self.engine.local_readers();
        let reader = readers.find(|id| self.readers[id.index()].flow.own() == Some(flow))?;
        Some(self.engine.reader_data(reader)?.topic_name.as_str().into())
    }

    /// Readers whose budgets are not kept, in sentences.
    pub(crate) fn budgets_not_enforced(&self) -> impl Iterator<Item = &str> {
        self.readers.iter().filter_map(|slot| match &slot.flow {
            ReaderFlow::NotEnforced(said) => Some(said.as_str()),
            ReaderFlow::Shared | ReaderFlow::Own(_) => None,
        })
    }
}

fn not_enforced(topic: &str, protection: &Protection, reason: &dyn std::error::Error) -> String {
    let (capacity, period) = (protection.budget.capacity, protection.budget.period);
    format!(
        "the budget of topic {topic}, {capacity} datagrams in {period:?}, is not enforced: {reason}"
    )
}

impl<T: TopicType> DataReader<T> {
    /// Changes the budget of a reader that was created with one ([`Qos::budget`]), or takes it away.
    /// It takes effect at once, with a full budget.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, Level, Network, Over, Participant, ProtectError, Protection, Qos, TopicType};
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
    /// let qos = Qos::reliable().level(Level::new(1).unwrap()).budget(budget(20), Over::Drop);
    /// let reader = participant.create_reader::<Report>("Reports", &qos)?;
    /// // An update is under way: take more of it for a while.
    /// match reader.set_budget(Some(Protection { budget: budget(200), over: Over::Demote })) {
    ///     Ok(()) => {}
    ///     // Not every datapath counts datagrams before they are received: `notes` said so before.
    ///     Err(ProtectError::Unsupported { .. }) => assert!(!participant.notes().is_empty()),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was: [`ProtectError::NoFlow`] for a reader that was
    /// created without a budget, since peers send to its level's port, where
    /// [`Participant::protect_level`] sets one for all.
    pub fn set_budget(&self, protection: Option<Protection>) -> Result<(), ProtectError> {
        protection.map_or(Ok(()), |protection| check(&protection.budget))?;
        let mut state = self.core.state.borrow_mut();
        match &state.readers[self.id.index()].flow {
            ReaderFlow::Own(flow) => {
                let what = Protected::Flow(*flow);
                state.datapath.protect(what, protection)
            }
            ReaderFlow::Shared => Err(ProtectError::NoFlow),
            ReaderFlow::NotEnforced(_) => Err(ProtectError::Unsupported {
                datapath: state.datapath.name(),
            }),
        }
    }

    /// What becomes of the datagrams of a reader with a flow of its own: where they arrive, what is
    /// left of the budget now, and what was decided, by reason. `None` if it shares its level's. For
    /// people: it allocates and calls the system.
    #[must_use]
    pub fn flow(&self) -> Option<FlowObservation> {
        let state = self.core.state.borrow();
        let own = state.readers[self.id.index()].flow.own()?;
        let flows = state.datapath.observe().flows;
        flows.into_iter().find(|flow| flow.flow == Some(own))
    }
}

impl Participant {
    /// Protects the receivers of a level, but those with budgets of their own: the level's port and
    /// its group get this budget each. `None`: no longer. At once, with a full budget.
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was. A level may be protected before its first endpoint:
    /// the budget is kept until then, and counts from the level's first datagram on; a level that has
    /// no lane is counted from the first lane of another level on. Where it turns out then that the
    /// datapath cannot, or nobody counts yet, [`Participant::notes`] say so.
    pub fn protect_level(
        &self,
        level: Level,
        protection: Option<Protection>,
    ) -> Result<(), ProtectError> {
        protection.map_or(Ok(()), |protection| check(&protection.budget))?;
        let mut state = self.core().state.borrow_mut();
        let lane = state.lanes.lane(level);
        state.datapath.protect(Protected::Lane(lane), protection)
    }

    /// Protects all receivers of the interfaces in use together, and the rest of the host's traffic,
    /// as far as it says so.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, InterfaceProtection, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let budget = Budget {
    ///     capacity: NonZeroU32::new(2_000).unwrap(),
    ///     period: Duration::from_millis(10),
    /// };
    /// // 200 of the 2,000 datagrams are the highest level's alone; what is not ours is left alone.
    /// let protection = InterfaceProtection { flows: Some((budget, 200)), others: None };
    /// let refused = participant.protect_interface(protection).unwrap_err();
    /// assert!(refused.to_string().contains("the datapath memory enforces no budgets"));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was. It may come before the first endpoint, as
    /// [`protect_level`](Self::protect_level).
    pub fn protect_interface(&self, protection: InterfaceProtection) -> Result<(), ProtectError> {
        let flows = protection.flows.map(|(budget, _)| budget);
        flows
            .into_iter()
            .chain(protection.others)
            .try_for_each(|budget| check(&budget))?;
        if let Some((budget, reserved)) = protection.flows {
            let capacity = budget.capacity.get();
            if reserved >= capacity {
                return Err(ProtectError::Reserve { reserved, capacity });
            }
        }
        self.core()
            .state
            .borrow_mut()
            .datapath
            .protect_interface(protection)
    }

    /// The name of the abstract Unix socket at which other processes may look at this participant
    /// ([`observe`](crate::observe)), if they may.
    #[must_use]
    pub fn observable_at(&self) -> Option<String> {
        self.core().state.borrow().observable_at()
    }

    /// The datapath in use, by name: what `auto` has chosen, too.
    #[must_use]
    pub fn datapath(&self) -> &'static str {
        self.core().state.borrow().datapath.name()
    }

    /// What the datapath does at this moment: interfaces, flows with their budgets, rings. Empty
    /// where it has none. For people: it allocates and calls the system.
    #[must_use]
    pub fn observe(&self) -> Observation {
        self.core().state.borrow().datapath.observe()
    }
}
