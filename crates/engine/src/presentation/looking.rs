//! Access to a group of readers: *begin_access*, *end_access*, and the order of their samples.

use crate::{
    engine::Engine,
    ids::{ReaderId, SubscriberId},
};

impl Engine {
    /// Returns the reader of a group with the first available sample (DDS 1.4 §2.2.2.5.2.10): with ordered GROUP
    /// access, the one that a publisher wrote first.
    #[must_use]
    pub fn next_in_order(&self, id: SubscriberId) -> Option<ReaderId> {
        let readers = self.subscribers.get(id.0)?.readers.iter();
        let first = |&reader: &u16| Some((self.cache_of(reader)?.first_shown()?, reader));
        let (_, reader) = readers.filter_map(first).min()?;
        Some(ReaderId(reader))
    }

    /// Begins access to the samples of a group of readers. Until [`end_access`](Self::end_access) no sets and no
    /// ordered samples become available (DDS 1.4 §2.2.2.5.2.8).
    ///
    /// Returns false if the group does not exist, or access has begun.
    pub fn begin_access(&mut self, id: SubscriberId) -> bool {
        let subscriber = self.subscribers.get_mut(id.0);
        subscriber.is_some_and(|it| !core::mem::replace(&mut it.is_accessed, true))
    }

    /// Ends access to a group (§2.2.2.5.2.9); returns false if it had not begun.
    pub fn end_access(&mut self, id: SubscriberId) -> bool {
        let subscriber = self.subscribers.get_mut(id.0);
        let was_accessed =
            subscriber.is_some_and(|it| core::mem::replace(&mut it.is_accessed, false));
        if was_accessed {
            self.looks += 1;
            for nth in 0.. {
                let found = self.subscribers.get(id.0);
                let Some(&reader) = found.and_then(|it| it.readers.get(nth)) else {
                    break;
                };
                self.present_rest_of(reader);
            }
        }
        was_accessed
    }
}
