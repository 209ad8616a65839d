//! Content filters on sample values (DDS 1.4 §2.2.2.3.3).
//!
//! The filter language belongs to the user and the type; the participant has a function of the payload. It evaluates
//! the filter when the sample is next in order, before other policies. A rejected sample is acknowledged and counted,
//! and otherwise has no effect on this reader: it takes no room, transfers no ownership and meets no deadline.
//!
//! A reader announces its filter ([`ContentFilter::announced`]). A reliable writer that can compile the text
//! ([`LocalParticipant::evaluate_filters`]) evaluates it before it sends: see `writer/filtering.rs`. The text comes
//! from a peer, so its length and the cost of evaluation are bounded. The text is stored with the reader's
//! announcement. The compiled function is allocated when the reader is matched: the only allocation after creation with
//! [`Limits::fixed_memory`](crate::Limits).

use alloc::boxed::Box;
use core::fmt;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    ByteOrder, builtin_data::ContentFilterProperty, limits::MAX_CONTENT_FILTER_BYTES, time::Instant,
};

use crate::{
    discovery::SUBSCRIPTIONS,
    limits::{FILTER_STEPS, MAX_FILTER_STEPS},
    matching::SetQosError,
    participant::LocalParticipant,
    reader::{Reader, Readers, cache::Cache},
    slab::{ReaderId, WriterId, WriterProxyId},
    writer::history::ChangeKind,
};

/// Predicate on a payload.
type Wants = dyn Fn(&[u8]) -> bool;

/// Compiles an announced filter. Returns `None` if it cannot be compiled; the reader then gets all samples.
pub type CompileFilter = fn(&ContentFilterProperty<'_>) -> Option<ContentFilter>;

/// Content filter of a reader: a predicate on the payload.
pub struct ContentFilter {
    wants: Box<Wants>,
    text: Option<Box<FilterText>>,
    steps: u32,
}

/// Announced form of a filter, little-endian.
#[derive(Clone)]
pub(crate) struct FilterText {
    value: BoundedVec<u8, MAX_CONTENT_FILTER_BYTES>,
}

impl FilterText {
    /// Serialises the property; `None` if it is too long to be announced.
    fn new(property: &ContentFilterProperty<'_>) -> Option<Self> {
        let mut value = BoundedVec::new();
        value.resize(property.buffer_len(), 0).ok()?;
        property.emit(&mut value);
        Some(Self { value })
    }

    /// Parses a reader's announcement; `None` if it has no filter, or an unreadable one.
    pub(crate) fn of(announcement: &[u8]) -> Option<Self> {
        let (value, order) = ContentFilterProperty::find(announcement)?;
        Self::new(&ContentFilterProperty::parse(value, order).ok()?)
    }

    fn property(&self) -> Option<ContentFilterProperty<'_>> {
        ContentFilterProperty::parse(&self.value, ByteOrder::Little).ok()
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// Returns whether both texts compile to the same function. The name of the filtered topic does not matter.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.property(), other.property()) else {
            return false;
        };
        one.class_name == two.class_name
            && one.expression == two.expression
            && one.parameters == two.parameters
    }

    pub(crate) fn compiled(&self, compile: CompileFilter) -> Option<ContentFilter> {
        compile(&self.property()?)
    }
}

impl fmt::Debug for FilterText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.property().fmt(formatter)
    }
}

impl ContentFilter {
    /// Creates a filter from a predicate, which must not allocate. The predicate accepts payloads that are not of the
    /// type: those are rejected later, and counted as such.
    pub fn new(wants: impl Fn(&[u8]) -> bool + 'static) -> Self {
        Self {
            wants: Box::new(wants),
            text: None,
            steps: FILTER_STEPS,
        }
    }

    /// Sets the maximum number of steps for one sample, each about as long as comparing two bytes. A writer evaluates
    /// its readers' filters up to a sum of [`MAX_FILTER_STEPS`](crate::limits::MAX_FILTER_STEPS). The default is a
    /// quarter of that.
    #[must_use]
    pub fn taking(mut self, steps: u32) -> Self {
        self.steps = steps.min(MAX_FILTER_STEPS);
        self
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Sets the announced form of the filter; a text longer than [`MAX_CONTENT_FILTER_BYTES`] is not announced.
    #[must_use]
    pub fn announced(mut self, property: &ContentFilterProperty<'_>) -> Self {
        self.text = FilterText::new(property).map(Box::new);
        self
    }

    /// Returns the announced form, if any.
    pub(crate) fn text(&self) -> Option<&FilterText> {
        self.text.as_deref()
    }

    /// Returns whether a payload passes the filter.
    pub(crate) fn wants(&self, payload: &[u8]) -> bool {
        (self.wants)(payload)
    }

    /// Returns whether the filter rejects a sample. Ends of instances have no value and always pass.
    pub(crate) fn holds_back(&self, kind: ChangeKind, payload: &[u8]) -> bool {
        kind == ChangeKind::Alive && !self.wants(payload)
    }
}

impl fmt::Debug for ContentFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ContentFilter")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn is_filtered_out(&self, kind: ChangeKind, payload: &[u8]) -> bool {
        let filter = self.content_filter.as_ref();
        filter.is_some_and(|filter| filter.holds_back(kind, payload))
    }

    /// Returns the filter that the reader announces, if any.
    pub(crate) fn filter_text(&self) -> Option<&FilterText> {
        // A best-effort reader cannot distinguish filtered samples from lost ones.
        let filter = self.content_filter.as_ref().filter(|_| self.reliable)?;
        filter.text()
    }
}

impl LocalParticipant {
    /// Makes a writer evaluate the filters that its present and future readers announce. It has no effect on a
    /// best-effort writer, whose readers cannot distinguish filtered samples from lost ones.
    pub fn evaluate_filters(&mut self, id: WriterId, compile: CompileFilter) {
        // Readers detect an incomplete set by its numbers, so samples of sets go to all readers.
        let writer = self.writers.get_mut(id);
        let writer = writer.filter(|writer| writer.reliable && writer.presents.is_none());
        let Some(writer) = writer else { return };
        writer.compile = Some(compile);
        for at in 0.. {
            let writer = self.writers.get(id);
            let Some(&index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let Some(guid) = self.writers.proxies.get(index).map(|proxy| proxy.guid) else {
                continue;
            };
            let text = self.announced_filter(guid);
            self.writers.set_proxy_filter(index, text.as_ref());
        }
    }

    /// Returns the filter announced by a reader of a peer or of this participant.
    fn announced_filter(&self, reader: isolane_wire::guid::Guid) -> Option<FilterText> {
        if let Some(&index) = self.discovery.by_guid.get(&reader) {
            return self
                .discovery
                .endpoints
                .get(index)?
                .filter(&self.discovery.announcements);
        }
        self.readers.filter_of_own(reader).cloned()
    }

    /// Replaces or removes a reader's filter, and announces it. The new filter applies to samples that arrive from now
    /// on.
    ///
    /// # Errors
    /// [`SetQosError`]; nothing was changed then.
    pub fn set_reader_filter(
        &mut self,
        now: Instant,
        id: ReaderId,
        filter: Option<ContentFilter>,
    ) -> Result<(), SetQosError> {
        let reader = self.readers.get_mut(id).filter(|it| it.level.is_some());
        let reader = reader.ok_or(SetQosError::Gone)?;
        let (data, is_enabled) = (reader.data.clone(), reader.is_enabled);
        let former = core::mem::replace(&mut reader.content_filter, filter);
        if !is_enabled {
            // Enabling the reader announces the filter.
            return Ok(());
        }
        let announced =
            self.announce_endpoint(now, WriterId(SUBSCRIPTIONS), &data, ChangeKind::Alive);
        if announced.is_err() {
            if let Some(reader) = self.readers.get_mut(id) {
                reader.content_filter = former;
            }
            return Err(SetQosError::AnnouncementFull);
        }
        self.readers.withhold_from(id);
        let text = self.readers.filter_of_own(data.guid).cloned();
        for writer in self.writers.table.ids() {
            if let Some(&index) = self.writers.proxy_by_reader.get(&(writer, data.guid)) {
                self.writers.set_proxy_filter(index, text.as_ref());
            }
        }
        Ok(())
    }
}

impl Readers {
    /// Returns the filter announced by a reader of this participant.
    pub(crate) fn filter_of_own(&self, reader: isolane_wire::guid::Guid) -> Option<&FilterText> {
        let mut own = self.table.ids().filter_map(|index| self.table.get(index));
        own.find(|own| own.guid == reader)?.filter_text()
    }
}

/// Removes the first waiting sample of a writer if the filter rejects it; returns whether it did.
pub(crate) fn drop_filtered(
    filter: &ContentFilter,
    cache: &mut Cache,
    proxy: WriterProxyId,
) -> bool {
    let waiting = cache.first_waiting_sample(proxy);
    let is_dropped = waiting.is_some_and(|(info, payload)| filter.holds_back(info.kind, payload));
    if is_dropped {
        cache.forget_first_waiting(proxy);
    }
    is_dropped
}
