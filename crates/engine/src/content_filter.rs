//! Content filters: which samples a reader wants, by their values (DDS 1.4 §2.2.2.3.3).
//!
//! What a filter says is the user's language, and the type's; the engine has a function of the payload. It is
//! asked when the sample's turn has come, before anything else a reader may want to know of it: what does not
//! pass is acknowledged, counted, and as if it had never been written for this reader. It takes no room, passes
//! on no ownership and keeps no deadline.

use alloc::boxed::Box;
use core::fmt;

use crate::{cache::Cache, history::ChangeKind, reader::Reader};

/// A question about a payload.
type Wants = dyn Fn(&[u8]) -> bool;

/// Whether a reader wants a sample, by its payload.
pub struct ContentFilter(Box<Wants>);

impl ContentFilter {
    /// A filter that asks a function, which allocates nothing. What is not of the type it lets pass: that is
    /// rejected later, and counted as what it is.
    pub fn new(wants: impl Fn(&[u8]) -> bool + 'static) -> Self {
        Self(Box::new(wants))
    }
}

impl fmt::Debug for ContentFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ContentFilter")
    }
}

impl ContentFilter {
    /// Whether it holds a sample back. The end of an instance has no value to hold it back by.
    fn holds_back(&self, kind: ChangeKind, payload: &[u8]) -> bool {
        kind == ChangeKind::Alive && !self.0(payload)
    }
}

impl Reader {
    /// Whether its filter holds a sample back.
    pub(crate) fn is_unwanted(&self, kind: ChangeKind, payload: &[u8]) -> bool {
        let filter = self.content_filter.as_ref();
        filter.is_some_and(|filter| filter.holds_back(kind, payload))
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
