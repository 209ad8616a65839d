//! What the user does with several samples of a reader at a time (DDS 1.4 §2.2.2.5.3).
//!
//! First samples are [selected](Engine::select), then looked at one by one ([`Engine::selected`]), then all of them
//! are marked as read ([`Engine::read_selected`]) or taken ([`Engine::take_selected`]). Nothing else may be done with
//! the reader in between. None of it allocates.

use isolane_wire::cdr::KeyHash;

use crate::{
    access::CachedSample,
    cache::{Cache, Selection},
    engine::Engine,
    history::ChangeKind,
    ids::{ReaderId, WriterId},
};

impl Engine {
    fn cache_mut(&mut self, id: ReaderId) -> Option<&mut Cache> {
        self.readers.get_mut(id.0)?.cache.as_mut()
    }

    fn cache(&self, id: ReaderId) -> Option<&Cache> {
        self.readers.get(id.0)?.cache.as_ref()
    }

    /// Selects samples of a reader; returns how many there are.
    pub fn select(&mut self, id: ReaderId, selection: &Selection<'_>) -> usize {
        let cache = self.cache_mut(id);
        cache.map_or(0, |cache| cache.select(selection))
    }

    /// Whether a selection would have any sample.
    #[must_use]
    pub fn has_any(&self, id: ReaderId, selection: &Selection<'_>) -> bool {
        self.cache(id).is_some_and(|cache| cache.has_any(selection))
    }

    /// The `nth` of the selected samples: those of an instance behind one another, in the order they came, and the
    /// instance first whose oldest sample came first. Where PRESENTATION asks for ordered access of TOPIC or GROUP
    /// scope, all in the order they came (DDS 1.4 §2.2.2.5.3.8).
    #[must_use]
    pub fn selected(&self, id: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        let (info, payload) = self.cache(id)?.selected(nth)?;
        Some(CachedSample { info, payload })
    }

    /// Marks what was selected as read; it stays.
    pub fn read_selected(&mut self, id: ReaderId) {
        if let Some(cache) = self.cache_mut(id) {
            cache.mark_selected();
        }
    }

    /// Takes what was selected out of the cache, as delivered. What was refused for want of room is asked for
    /// again.
    pub fn take_selected(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.get_mut(id.0) else {
            return;
        };
        let Some(cache) = &mut reader.cache else {
            return;
        };
        reader.ledger.delivered += cache.take_selected();
        self.go_on(id.0);
    }

    /// What `find` finds in the samples of an instance, the oldest first, up to the first in which it finds something.
    pub fn find_in_instance<T>(
        &self,
        id: ReaderId,
        instance: KeyHash,
        find: impl FnMut(CachedSample<'_>) -> Option<T>,
    ) -> Option<T> {
        let samples = self.cache(id)?.of_instance(instance);
        let mut samples = samples.map(|(info, payload)| CachedSample { info, payload });
        samples.find_map(find)
    }

    /// The oldest change of an instance that a writer keeps: a value, or with `false` a key.
    #[must_use]
    pub fn kept_change(&self, id: WriterId, instance: KeyHash) -> Option<(bool, &[u8])> {
        let history = self.writers.get(id.0)?.history.as_ref()?;
        let (change, payload) = history.oldest_of(instance)?;
        Some((change.kind == ChangeKind::Alive, payload))
    }

    /// Whether a reader knows an instance: it has samples of it, or had and has not forgotten it since.
    #[must_use]
    pub fn knows_instance(&self, id: ReaderId, instance: KeyHash) -> bool {
        let cache = self.cache(id);
        cache.is_some_and(|cache| cache.instances.known(instance).is_some())
    }
}
