//! Conditions: what one waits for (DDS 1.4 §2.2.2.1.7 and following).
//!
//! A [`ReadCondition`] holds while its reader has samples in some states, a [`QueryCondition`] while it has such of
//! certain values, a [`StatusCondition`] while statuses of an endpoint have changed and were not told, a
//! [`GuardCondition`] while its user says so. Each is worked out when it is asked for, from what the reader
//! has then: nothing is kept up to date beside it. A [`WaitSet`](crate::WaitSet) asks when something has changed.
//!
//! A condition keeps nothing alive: neither its endpoint nor the participant. When these are gone it holds no more.

use std::{
    cell::{Cell, RefCell},
    os::fd::OwnedFd,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use isolane_engine::{Query, ReaderId, Selection, StateMask};
use isolane_wire::cdr::TopicType;

use crate::{
    filter::{Filter, FilterError},
    listeners::Endpoint,
    participant::Participant,
    reader::DataReader,
    runtime::Core,
    status_mask::StatusMask,
    writer::DataWriter,
};

/// A question about a payload.
type OwnedQuery = Box<dyn Fn(&[u8]) -> bool>;

/// Whether this is what a condition is of.
fn is_same(core: &Rc<Core>, of: &Weak<Core>) -> bool {
    Rc::as_ptr(core) == of.as_ptr()
}

/// A condition is about something else: who waits for it asks again.
fn note_change(core: &Weak<Core>) {
    if let Some(core) = core.upgrade() {
        core.state.borrow_mut().note_change();
    }
}

/// What a [`ReadCondition`] is made of.
struct Asked {
    core: Weak<Core>,
    reader: ReaderId,
    /// Of the reader's place: another reader may have it one day.
    generation: u32,
    mask: StateMask,
    query: Option<OwnedQuery>,
}

/// Holds while a reader has samples in some states. Once its reader is deleted it never does; it does not keep its
/// participant. Its clones are the same condition.
#[derive(Clone)]
pub struct ReadCondition(Rc<Asked>);

impl ReadCondition {
    fn new<T: TopicType>(
        reader: &DataReader<T>,
        mask: StateMask,
        query: Option<OwnedQuery>,
    ) -> Self {
        let generation = reader.core.state.borrow().readers[reader.id.index()].generation;
        Self(Rc::new(Asked {
            core: Rc::downgrade(&reader.core),
            reader: reader.id,
            generation,
            mask,
            query,
        }))
    }

    /// Whether there are such samples now.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        let asked = &*self.0;
        let Some(core) = asked.core.upgrade() else {
            return false;
        };
        let mut state = core.state.borrow_mut();
        if state.readers[asked.reader.index()].generation != asked.generation {
            return false;
        }
        state.drop_expired(asked.reader);
        let selection = Selection {
            mask: asked.mask,
            query: self.query(),
            ..Selection::default()
        };
        state.engine.has_any(asked.reader, &selection)
    }

    /// The states it asks for.
    #[must_use]
    pub fn mask(&self) -> StateMask {
        self.0.mask
    }

    pub(crate) fn query(&self) -> Option<Query<'_>> {
        self.0.query.as_deref()
    }

    pub(crate) fn is_of(&self, core: &Rc<Core>, reader: ReaderId) -> bool {
        let asked = &*self.0;
        let has_generation = |core: &Core| {
            core.state.borrow().readers[reader.index()].generation == asked.generation
        };
        is_same(core, &asked.core) && asked.reader == reader && has_generation(core)
    }
}

/// Holds while a reader has samples in some states of which a query holds, an expression as a [`Filter`] takes it.
/// Of what has no value, the end of an instance, no query holds.
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
    /// As what it is read by, and attached to wait sets.
    #[must_use]
    pub fn as_read_condition(&self) -> &ReadCondition {
        &self.condition
    }

    /// The expression.
    #[must_use]
    pub fn query_expression(&self) -> String {
        self.filter.borrow().expression().into()
    }

    /// The parameters.
    #[must_use]
    pub fn query_parameters(&self) -> Vec<String> {
        self.filter.borrow().parameters().to_vec()
    }

    /// Other parameters for the same expression (DDS 1.4 §2.2.2.5.9.3).
    ///
    /// # Errors
    /// As [`Filter::set_parameters`]; the former ones hold then.
    pub fn set_query_parameters(&self, parameters: &[&str]) -> Result<(), FilterError> {
        self.filter.borrow_mut().set_parameters(parameters)?;
        note_change(&self.condition.0.core);
        Ok(())
    }
}

/// What a [`StatusCondition`] is made of.
struct Watched {
    core: Weak<Core>,
    of: Endpoint,
    generation: u32,
    enabled: Cell<StatusMask>,
}

/// Holds while one of some statuses of an endpoint has changed and was not told, by a listener or by its getter. Once
/// its endpoint is deleted it never does. Its clones are the same condition.
#[derive(Clone)]
pub struct StatusCondition(Rc<Watched>);

impl StatusCondition {
    fn new(core: &Rc<Core>, of: Endpoint, enabled: StatusMask) -> Self {
        let generation = core.state.borrow_mut().listening(of).generation;
        Self(Rc::new(Watched {
            core: Rc::downgrade(core),
            of,
            generation,
            enabled: Cell::new(enabled),
        }))
    }

    /// Whether one of the enabled statuses has changed.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        let watched = &*self.0;
        let Some(core) = watched.core.upgrade() else {
            return false;
        };
        let mut state = core.state.borrow_mut();
        state.gather_notes();
        state.listening(watched.of).generation == watched.generation
            && state
                .status_changes(watched.of)
                .intersects(watched.enabled.get())
    }

    /// The statuses it is about.
    #[must_use]
    pub fn enabled_statuses(&self) -> StatusMask {
        self.0.enabled.get()
    }

    /// Makes it about other statuses (DDS 1.4 §2.2.2.1.9.1).
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.0.enabled.set(statuses);
        note_change(&self.0.core);
    }
}

/// Holds while its user says so, from any thread or from a callback. Its clones are the same condition.
#[derive(Clone, Debug)]
pub struct GuardCondition {
    value: Arc<AtomicBool>,
    /// Wakes the participant it was made by.
    wake: Arc<OwnedFd>,
}

impl GuardCondition {
    /// Whether it holds.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        self.value.load(Ordering::Acquire)
    }

    /// Says whether it holds. True wakes a wait set that waits, which costs a system call.
    pub fn set_trigger_value(&self, value: bool) {
        self.value.store(value, Ordering::Release);
        if value {
            // It can only fail by overflow, which means that it is readable already.
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn is_of(&self, core: &Core) -> bool {
        let wake = core.state.borrow().waiter.wake_descriptor();
        Arc::ptr_eq(&wake, &self.wake)
    }
}

impl Participant {
    /// Makes a condition that holds when its user says so (DDS 1.4 §2.2.2.1.8). A wait set that drives this
    /// participant may have it attached.
    #[must_use]
    pub fn create_guard_condition(&self) -> GuardCondition {
        GuardCondition {
            value: Arc::new(AtomicBool::new(false)),
            wake: self.core().state.borrow().waiter.wake_descriptor(),
        }
    }
}

impl<T: TopicType> DataReader<T> {
    /// Makes a condition on samples in these states (DDS 1.4 §2.2.2.5.3.5). A reader that is shown
    /// [views](Self::on_view) has none.
    #[must_use]
    pub fn create_read_condition(&self, mask: StateMask) -> ReadCondition {
        ReadCondition::new(self, mask, None)
    }

    /// Makes a condition on samples in these states of which a query holds (§2.2.2.5.3.6).
    #[must_use]
    pub fn create_query_condition(&self, mask: StateMask, query: Filter<T>) -> QueryCondition<T>
    where
        T: 'static,
    {
        let filter = Rc::new(RefCell::new(query));
        let asked = Rc::clone(&filter);
        let holds = move |payload: &[u8]| asked.borrow().matches_payload(payload) == Some(true);
        QueryCondition {
            condition: ReadCondition::new(self, mask, Some(Box::new(holds))),
            filter,
        }
    }

    /// Makes a condition on changes of these statuses (§2.2.2.1.1.4).
    #[must_use]
    pub fn status_condition(&self, statuses: StatusMask) -> StatusCondition {
        StatusCondition::new(&self.core, Endpoint::Reader(self.id), statuses)
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Makes a condition on changes of these statuses (DDS 1.4 §2.2.2.1.1.4).
    #[must_use]
    pub fn status_condition(&self, statuses: StatusMask) -> StatusCondition {
        StatusCondition::new(&self.core, Endpoint::Writer(self.id), statuses)
    }
}

/// Any condition.
#[derive(Clone)]
pub enum Condition {
    /// On samples.
    Read(ReadCondition),
    /// On statuses.
    Status(StatusCondition),
    /// On what its user says.
    Guard(GuardCondition),
}

impl Condition {
    /// Whether it holds.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        match self {
            Self::Read(condition) => condition.trigger_value(),
            Self::Status(condition) => condition.trigger_value(),
            Self::Guard(condition) => condition.trigger_value(),
        }
    }

    /// Whether it may hold without anything having changed at a participant.
    pub(crate) fn is_guard(&self) -> bool {
        matches!(self, Self::Guard(_))
    }

    /// The participant it depends on; of a guard only its own knows.
    pub(crate) fn core(&self) -> Option<&Weak<Core>> {
        match self {
            Self::Read(condition) => Some(&condition.0.core),
            Self::Status(condition) => Some(&condition.0.core),
            Self::Guard(_) => None,
        }
    }
}

/// Whether they are the same condition, not whether they say the same.
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

impl<T> From<&QueryCondition<T>> for Condition {
    fn from(condition: &QueryCondition<T>) -> Self {
        Self::Read(condition.condition.clone())
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

impl From<&Condition> for Condition {
    fn from(condition: &Condition) -> Self {
        condition.clone()
    }
}
