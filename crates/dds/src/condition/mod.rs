//! Conditions of a WaitSet (DDS 1.4 §2.2.2.1.7 and following).
//!
//! A [`ReadCondition`] is true while its reader has samples in certain states, and a [`QueryCondition`] while some of
//! these samples match a query. A [`StatusCondition`] is true while statuses of an endpoint have unread changes. The
//! application sets a [`GuardCondition`]. Each condition is evaluated on demand; nothing is cached. A
//! [`WaitSet`](crate::WaitSet) evaluates its conditions after a change.
//!
//! A condition keeps neither its endpoint nor the participant alive, and is false after the deletion of either.

pub(crate) mod wait_set;

use std::{
    cell::{Cell, RefCell},
    os::fd::OwnedFd,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use isolane_rtps::{Query, ReaderId, Selection, StateMask};
use isolane_wire::cdr::TopicType;

use crate::{
    filter::{Filter, FilterError},
    listener::Endpoint,
    listener::status::StatusMask,
    participant::Participant,
    participant::event_loop::Core,
    reader::{DataReader, drop_expired},
    writer::DataWriter,
};

/// Predicate on a payload.
type OwnedQuery = Box<dyn Fn(&[u8]) -> bool>;

/// Returns whether a condition belongs to this participant.
fn is_same(core: &Rc<Core>, of: &Weak<Core>) -> bool {
    Rc::as_ptr(core) == of.as_ptr()
}

/// Notes that a condition was changed, so that wait sets evaluate the condition again.
fn note_change(core: &Weak<Core>) {
    if let Some(core) = core.upgrade() {
        core.state.borrow_mut().listeners.note_change();
    }
}

/// Definition of a [`ReadCondition`].
struct ReadConditionState {
    core: Weak<Core>,
    reader: ReaderId,
    /// Generation of the reader's slot, which another reader may use later.
    generation: u32,
    mask: StateMask,
    query: Option<OwnedQuery>,
}

/// Condition that is true while a reader has samples in certain states. It is false once the reader is deleted, and
/// does not keep the participant alive. Clones are the same condition.
#[derive(Clone)]
pub struct ReadCondition(Rc<ReadConditionState>);

impl ReadCondition {
    fn new<T: TopicType>(
        reader: &DataReader<T>,
        mask: StateMask,
        query: Option<OwnedQuery>,
    ) -> Self {
        let generation = reader.core.state.borrow().reader_slots[reader.id.index()].generation;
        Self(Rc::new(ReadConditionState {
            core: Rc::downgrade(&reader.core),
            reader: reader.id,
            generation,
            mask,
            query,
        }))
    }

    /// Returns whether the reader has such samples now.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        let condition = &*self.0;
        let Some(core) = condition.core.upgrade() else {
            return false;
        };
        let mut state = core.state.borrow_mut();
        if state.reader_slots[condition.reader.index()].generation != condition.generation {
            return false;
        }
        drop_expired(&mut state.protocol, condition.reader);
        let selection = Selection {
            mask: condition.mask,
            query: self.query(),
            ..Selection::default()
        };
        state.protocol.has_any(condition.reader, &selection)
    }

    /// Returns the states that the condition selects.
    #[must_use]
    pub fn mask(&self) -> StateMask {
        self.0.mask
    }

    pub(crate) fn query(&self) -> Option<Query<'_>> {
        self.0.query.as_deref()
    }

    pub(crate) fn is_of(&self, core: &Rc<Core>, reader: ReaderId) -> bool {
        let condition = &*self.0;
        let has_generation = |core: &Core| {
            core.state.borrow().reader_slots[reader.index()].generation == condition.generation
        };
        is_same(core, &condition.core) && condition.reader == reader && has_generation(core)
    }
}

/// Condition that is true while a reader has samples in certain states that match a query. The query is an expression
/// as for [`Filter`]. A sample without a value, which only reports an instance state, matches no query.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Filter, Network, Participant, Qos, StateMask, TopicType};
///
/// #[derive(TopicType)]
/// struct Reading { celsius: f32 }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let qos = Qos::reliable().keep_all();
/// let writer = participant.create_writer::<Reading>("Readings", &qos)?;
/// let reader = participant.create_reader::<Reading>("Readings", &qos)?;
/// let hot = reader.create_query_condition(StateMask::NOT_READ, Filter::new("celsius > %0", &["90"])?);
/// for celsius in [20.0, 95.0, 40.0] {
///     writer.write(&Reading { celsius })?;
/// }
/// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 3));
/// assert!(hot.as_read_condition().trigger_value());
/// let taken = reader.take_w_condition(hot.as_read_condition(), usize::MAX)?;
/// assert_eq!(taken.len(), 1);
/// assert!(!hot.as_read_condition().trigger_value());
/// hot.set_query_parameters(&["30"])?;
/// assert!(hot.as_read_condition().trigger_value());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QueryCondition<T> {
    condition: ReadCondition,
    filter: Rc<RefCell<Filter<T>>>,
}

impl<T> Clone for QueryCondition<T> {
    fn clone(&self) -> Self {
        Self {
            condition: self.condition.clone(),
            filter: Rc::clone(&self.filter),
        }
    }
}

impl<T: TopicType> QueryCondition<T> {
    /// Returns the condition for reading samples and for wait sets.
    #[must_use]
    pub fn as_read_condition(&self) -> &ReadCondition {
        &self.condition
    }

    /// Returns the query expression.
    #[must_use]
    pub fn query_expression(&self) -> String {
        self.filter.borrow().expression().into()
    }

    /// Returns the query parameters.
    #[must_use]
    pub fn query_parameters(&self) -> Vec<String> {
        self.filter.borrow().parameters().to_vec()
    }

    /// Replaces the query parameters (DDS 1.4 §2.2.2.5.9.3).
    ///
    /// # Errors
    /// As [`Filter::set_parameters`]; the former parameters stay then.
    pub fn set_query_parameters(&self, parameters: &[&str]) -> Result<(), FilterError> {
        self.filter.borrow_mut().set_parameters(parameters)?;
        note_change(&self.condition.0.core);
        Ok(())
    }
}

/// Definition of a [`StatusCondition`].
struct StatusConditionState {
    core: Weak<Core>,
    of: Endpoint,
    generation: u32,
    enabled: Cell<StatusMask>,
}

/// Condition that is true while an enabled status of an endpoint has a change that neither a listener nor a getter has
/// read. It is false once the endpoint is deleted. Clones are the same condition.
#[derive(Clone)]
pub struct StatusCondition(Rc<StatusConditionState>);

impl StatusCondition {
    fn new(core: &Rc<Core>, of: Endpoint, enabled: StatusMask) -> Self {
        let generation = core.state.borrow_mut().listeners.endpoint(of).generation;
        Self(Rc::new(StatusConditionState {
            core: Rc::downgrade(core),
            of,
            generation,
            enabled: Cell::new(enabled),
        }))
    }

    /// Returns whether one of the enabled statuses has changed.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        let condition = &*self.0;
        let Some(core) = condition.core.upgrade() else {
            return false;
        };
        let mut state = core.state.borrow_mut();
        state.take_notes_now();
        let listening = state.listeners.endpoint(condition.of);
        listening.generation == condition.generation
            && listening.changed.intersects(condition.enabled.get())
    }

    /// Returns the enabled statuses.
    #[must_use]
    pub fn enabled_statuses(&self) -> StatusMask {
        self.0.enabled.get()
    }

    /// Replaces the enabled statuses (DDS 1.4 §2.2.2.1.9.1).
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.0.enabled.set(statuses);
        note_change(&self.0.core);
    }
}

/// Condition that the application sets, from any thread or from a callback. Clones are the same condition.
#[derive(Clone, Debug)]
pub struct GuardCondition {
    value: Arc<AtomicBool>,
    /// Eventfd of the participant that created it.
    wake: Arc<OwnedFd>,
}

impl GuardCondition {
    /// Returns the value set last.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        self.value.load(Ordering::Acquire)
    }

    /// Sets the value. True wakes a waiting wait set, which costs a system call.
    pub fn set_trigger_value(&self, value: bool) {
        self.value.store(value, Ordering::Release);
        if value {
            // The write fails only on overflow, and then the descriptor is already readable.
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn is_of(&self, core: &Core) -> bool {
        let wake = core.state.borrow().io.poller.wake_descriptor();
        Arc::ptr_eq(&wake, &self.wake)
    }
}

impl Participant {
    /// Creates a guard condition (DDS 1.4 §2.2.2.1.8), for wait sets that run this participant.
    #[must_use]
    pub fn create_guard_condition(&self) -> GuardCondition {
        GuardCondition {
            value: Arc::new(AtomicBool::new(false)),
            wake: self.core().state.borrow().io.poller.wake_descriptor(),
        }
    }
}

impl<T: TopicType> DataReader<T> {
    /// Creates a condition on samples in these states (DDS 1.4 §2.2.2.5.3.5). For a reader of [views](Self::on_view)
    /// the condition is always false.
    #[must_use]
    pub fn create_read_condition(&self, mask: StateMask) -> ReadCondition {
        ReadCondition::new(self, mask, None)
    }

    /// Creates a condition on samples in these states that match a query (§2.2.2.5.3.6).
    #[must_use]
    pub fn create_query_condition(&self, mask: StateMask, query: Filter<T>) -> QueryCondition<T>
    where
        T: 'static,
    {
        let filter = Rc::new(RefCell::new(query));
        let query = Rc::clone(&filter);
        let holds = move |payload: &[u8]| query.borrow().matches_payload(payload) == Some(true);
        QueryCondition {
            condition: ReadCondition::new(self, mask, Some(Box::new(holds))),
            filter,
        }
    }

    /// Creates a condition on changes of these statuses (§2.2.2.1.1.4).
    #[must_use]
    pub fn status_condition(&self, statuses: StatusMask) -> StatusCondition {
        StatusCondition::new(&self.core, Endpoint::Reader(self.id), statuses)
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Creates a condition on changes of these statuses (DDS 1.4 §2.2.2.1.1.4).
    #[must_use]
    pub fn status_condition(&self, statuses: StatusMask) -> StatusCondition {
        StatusCondition::new(&self.core, Endpoint::Writer(self.id), statuses)
    }
}

/// Condition of any kind.
#[derive(Clone)]
pub enum Condition {
    /// Condition on samples.
    Read(ReadCondition),
    /// Condition on statuses.
    Status(StatusCondition),
    /// Condition set by the application.
    Guard(GuardCondition),
}

impl Condition {
    /// Returns whether the condition is true.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        match self {
            Self::Read(condition) => condition.trigger_value(),
            Self::Status(condition) => condition.trigger_value(),
            Self::Guard(condition) => condition.trigger_value(),
        }
    }

    /// Returns whether the condition can become true without a change in a participant.
    pub(crate) fn is_guard(&self) -> bool {
        matches!(self, Self::Guard(_))
    }

    /// Returns the condition's participant; `None` for a guard, which does not store it.
    pub(crate) fn core(&self) -> Option<&Weak<Core>> {
        match self {
            Self::Read(condition) => Some(&condition.0.core),
            Self::Status(condition) => Some(&condition.0.core),
            Self::Guard(_) => None,
        }
    }
}

/// Identity, not equality of definition.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Read(one), Self::Read(other)) => Rc::ptr_eq(&one.0, &other.0),
            (Self::Status(one), Self::Status(other)) => Rc::ptr_eq(&one.0, &other.0),
            (Self::Guard(one), Self::Guard(other)) => Arc::ptr_eq(&one.value, &other.value),
            _ => false,
        }
    }
}

impl From<&ReadCondition> for Condition {
    fn from(condition: &ReadCondition) -> Self {
        Self::Read(condition.clone())
    }
}

impl From<&StatusCondition> for Condition {
    fn from(condition: &StatusCondition) -> Self {
        Self::Status(condition.clone())
    }
}

impl From<&GuardCondition> for Condition {
    fn from(condition: &GuardCondition) -> Self {
        Self::Guard(condition.clone())
    }
}

/// Another handle to the same condition.
impl From<&Condition> for Condition {
    fn from(condition: &Condition) -> Self {
        condition.clone()
    }
}

impl<T> From<&QueryCondition<T>> for Condition {
    fn from(condition: &QueryCondition<T>) -> Self {
        Self::Read(condition.condition.clone())
    }
}
