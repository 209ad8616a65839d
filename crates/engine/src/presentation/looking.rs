//! How the user of a group of readers looks at their samples: together, and in their order.

use crate::{
    engine::Engine,
    ids::{ReaderId, SubscriberId},
};

impl Engine {
    /// The reader of a group whose oldest sample comes first of all that are available (DDS 1.4 §2.2.2.5.2.10): of a
    /// publisher's samples the one written first, where the group's access is ordered.
    #[must_use]
    pub fn next_in_order(&self, id: SubscriberId) -> Option<ReaderId> {
        let readers = self.subscribers.get(id.0)?.readers.iter();
        let first = |&reader: &u16| Some((self.cache_of(reader)?.first_shown()?, reader));
        let (_, reader) = readers.filter_map(first).min()?;
        Some(ReaderId(reader))
    }

    /// The user begins to look at the samples of a group of readers: until it [ends](Self::end_access) no sets and
    /// no ordered samples are added to them (DDS 1.4 §2.2.2.5.2.8).
    ///
    /// False: there is no such group, or it is looked at already.
    pub fn begin_access(&mut self, id: SubscriberId) -> bool {
        let subscriber = self.subscribers.get_mut(id.0);
        subscriber.is_some_and(|it| !core::mem::replace(&mut it.is_accessed, true))
    }

    /// The user has looked (§2.2.2.5.2.9). False: it had not begun.
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
