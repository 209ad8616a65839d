//! Content filters: which samples a reader wants, by their values (DDS 1.4 §2.2.2.3.3).
//!
//! What a filter says is the user's language, and the type's; the engine has a function of the payload. It is
//! asked when the sample's turn has come, before anything else a reader may want to know of it: what does not
//! pass is acknowledged, counted, and as if it had never been written for this reader. It takes no room, passes
//! on no ownership and keeps no deadline.
//!
//! A reader announces its filter ([`ContentFilter::announced`]), and a reliable writer that can make a function of
//! that text ([`Engine::evaluate_filters`]) asks it before it sends: see `transmit/filtered.rs`. The text is
//! a peer's, so it is bounded in bytes, and what becomes of it in work. The text is kept with the reader's announcement; the
//! memory for the function is taken when the reader is matched, the one place where the engine allocates later than at
//! creation with [`Limits::fixed_memory`](crate::Limits).

use alloc::boxed::Box;
use core::fmt;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    ByteOrder, discovery::ContentFilterProperty, limits::MAX_CONTENT_FILTER_BYTES, time::Instant,
};

use crate::{
    cache::Cache,
    discovery::SUBSCRIPTIONS,
    engine::Engine,
    history::ChangeKind,
    ids::{ReaderId, WriterId},
    limits::{FILTER_STEPS, MAX_FILTER_STEPS},
    matching::SetQosError,
    reader::Reader,
};

/// A question about a payload.
type Wants = dyn Fn(&[u8]) -> bool;

/// What makes a function of an announced filter; `None`: it cannot, and the reader gets everything.
pub type CompileFilter = fn(&ContentFilterProperty<'_>) -> Option<ContentFilter>;

/// Whether a reader wants a sample, by its payload.
pub struct ContentFilter {
    wants: Box<Wants>,
    text: Option<Box<FilterText>>,
    steps: u32,
}

/// A filter as it is announced, little-endian.
#[derive(Clone)]
pub(crate) struct FilterText {
    value: BoundedVec<u8, MAX_CONTENT_FILTER_BYTES>,
}

impl FilterText {
    /// `None`: it is longer than is announced.
    fn new(property: &ContentFilterProperty<'_>) -> Option<Self> {
        let mut value = BoundedVec::new();
        value.resize(property.buffer_len(), 0).ok()?;
        property.emit(&mut value);
        Some(Self { value })
    }

    /// Of a reader's announcement; `None`: there is none, or one that cannot be read.
    pub(crate) fn of(announcement: &[u8]) -> Option<Self> {
        let (value, order) = ContentFilterProperty::find(announcement)?;
        Self::new(&ContentFilterProperty::parse(value, order).ok()?)
    }

    fn property(&self) -> Option<ContentFilterProperty<'_>> {
        ContentFilterProperty::parse(&self.value, ByteOrder::Little).ok()
    }

    /// As it is announced.
    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// Whether a writer would make the same function of both. What readers call their filtered topics says nothing
    /// of samples.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.property(), other.property()) else {
            return false;
        };
        one.class_name == two.class_name
            && one.expression == two.expression
            && one.parameters == two.parameters
    }

    /// The function that a writer makes of it.
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
    /// A filter that asks a function, which allocates nothing. What is not of the type it lets pass: that is
    /// rejected later, and counted as what it is.
    pub fn new(wants: impl Fn(&[u8]) -> bool + 'static) -> Self {
        Self {
            wants: Box::new(wants),
            text: None,
            steps: FILTER_STEPS,
        }
    }

    /// The same, which takes so many steps for a sample at most, each about as long as comparing two bytes:
    /// what a writer can ask of its readers' filters is bounded by the sum
    /// ([`MAX_FILTER_STEPS`](crate::limits::MAX_FILTER_STEPS)). Where nothing is said it is a quarter of that.
    #[must_use]
    pub fn taking(mut self, steps: u32) -> Self {
        self.steps = steps.min(MAX_FILTER_STEPS);
        self
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// The same, to be announced as this; a text longer than [`MAX_CONTENT_FILTER_BYTES`] is not.
    #[must_use]
    pub fn announced(mut self, property: &ContentFilterProperty<'_>) -> Self {
        self.text = FilterText::new(property).map(Box::new);
        self
    }

    /// As it is announced, if it is.
    pub(crate) fn text(&self) -> Option<&FilterText> {
        self.text.as_deref()
    }

    /// Whether it lets a payload through.
    pub(crate) fn wants(&self, payload: &[u8]) -> bool {
        (self.wants)(payload)
    }

    /// Whether it holds a sample back. The end of an instance has no value to hold it back by.
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
    /// Whether its filter holds a sample back.
    pub(crate) fn is_unwanted(&self, kind: ChangeKind, payload: &[u8]) -> bool {
        let filter = self.content_filter.as_ref();
        filter.is_some_and(|filter| filter.holds_back(kind, payload))
    }

    /// What is announced of its filter.
    pub(crate) fn filter_text(&self) -> Option<&FilterText> {
        // A best-effort one could not tell what a writer holds back from what is lost.
        let filter = self.content_filter.as_ref().filter(|_| self.reliable)?;
        filter.text()
    }
}

impl Engine {
    /// Lets a writer ask the filters that its readers announce, of now and later, before it sends. Of a
    /// best-effort writer it has no effect: its readers could not tell what they did not want from what was lost.
    pub fn evaluate_filters(&mut self, id: WriterId, compile: CompileFilter) {
        // Whether a set is whole is judged by its numbers: what belongs to one goes to all.
        let writer = self.writers.get_mut(id.0);
        let writer = writer.filter(|writer| writer.reliable && writer.presents.is_none());
        let Some(writer) = writer else { return };
        writer.compile = Some(compile);
        for at in 0.. {
            let writer = self.writers.get(id.0);
            let Some(&index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let Some(guid) = self.reader_proxies.get(index).map(|proxy| proxy.guid) else {
                continue;
            };
            let text = self.announced_filter(guid);
            self.set_proxy_filter(index, text.as_ref());
        }
    }

    /// What a reader, of a peer or of this participant, has announced of its filter.
    fn announced_filter(&self, reader: isolane_wire::guid::Guid) -> Option<FilterText> {
        if let Some(&index) = self.endpoint_by_guid.get(&reader) {
            return self.endpoints.get(index)?.filter(&self.announcements);
        }
        self.filter_of_own(reader).cloned()
    }

    /// The same of a reader here.
    pub(crate) fn filter_of_own(&self, reader: isolane_wire::guid::Guid) -> Option<&FilterText> {
        let mut own = (0..self.readers.end()).filter_map(|index| self.readers.get(index));
        own.find(|own| own.guid == reader)?.filter_text()
    }

    /// Gives a reader another filter, or none, and announces it. What was sent or kept by the former stays as it
    /// is: the new one holds for what comes from now on.
    ///
    /// # Errors
    /// [`SetQosError`]; nothing was changed then.
    pub fn set_reader_filter(
        &mut self,
        now: Instant,
        id: ReaderId,
        filter: Option<ContentFilter>,
    ) -> Result<(), SetQosError> {
        let reader = self.readers.get_mut(id.0).filter(|it| it.level.is_some());
        let reader = reader.ok_or(SetQosError::Gone)?;
        let (data, is_enabled) = (reader.data.clone(), reader.is_enabled);
        let former = core::mem::replace(&mut reader.content_filter, filter);
        if !is_enabled {
            // It is announced when it is enabled.
            return Ok(());
        }
        let announced = self.announce_endpoint(now, SUBSCRIPTIONS, &data, ChangeKind::Alive);
        if announced.is_err() {
            if let Some(reader) = self.readers.get_mut(id.0) {
                reader.content_filter = former;
            }
            return Err(SetQosError::AnnouncementFull);
        }
        self.withhold_from(id.0);
        let text = self.filter_of_own(data.guid).cloned();
        for writer in 0..self.writers.end() {
            if let Some(&index) = self.proxy_of_reader.get(&(writer, data.guid)) {
                self.set_proxy_filter(index, text.as_ref());
            }
        }
        Ok(())
    }
}

/// Whether the nearest sample of a writer that waits is held back; if so, it waits no more.
pub(crate) fn drop_unwanted(filter: &ContentFilter, cache: &mut Cache, proxy: u16) -> bool {
    let waiting = cache.first_waiting_sample(proxy);
    let is_dropped = waiting.is_some_and(|(info, payload)| filter.holds_back(info.kind, payload));
    if is_dropped {
        cache.forget_first_waiting(proxy);
    }
    is_dropped
}
