//! Read and take of several samples (DDS 1.4 §2.2.2.5.3).
//!
//! The user [selects](Engine::select) samples, reads them one by one ([`Engine::selected`]), and marks all as read
//! ([`Engine::read_selected`]) or takes them ([`Engine::take_selected`]). No other call on the reader is allowed in
//! between. Nothing allocates.

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

    /// Selects samples of a reader; returns their number.
    pub fn select(&mut self, id: ReaderId, selection: &Selection<'_>) -> usize {
        let cache = self.cache_mut(id);
        cache.map_or(0, |cache| cache.select(selection))
    }

    /// Returns whether a selection has any sample.
    #[must_use]
    pub fn has_any(&self, id: ReaderId, selection: &Selection<'_>) -> bool {
        self.cache(id).is_some_and(|cache| cache.has_any(selection))
    }

    /// Returns the `nth` selected sample: by instance in the order of their oldest samples, and in order of arrival
    /// within an instance. With ordered access of TOPIC or GROUP scope (PRESENTATION), all are in order of arrival (DDS
    /// 1.4 §2.2.2.5.3.8).
    #[must_use]
    pub fn selected(&self, id: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        let (info, payload) = self.cache(id)?.selected(nth)?;
        Some(CachedSample { info, payload })
    }

    /// Marks the selected samples as read; they stay in the cache.
    pub fn read_selected(&mut self, id: ReaderId) {
        if let Some(cache) = self.cache_mut(id) {
            cache.mark_selected();
        }
    }

    /// Takes the selected samples out of the cache and counts them as delivered. Samples refused for lack of room are
    /// requested again.
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

    /// Applies `find` to the samples of an instance, oldest first, and returns its first result.
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

    /// Returns the oldest change of an instance that a writer keeps: `true` with a value, `false` with a key.
    #[must_use]
    pub fn kept_change(&self, id: WriterId, instance: KeyHash) -> Option<(bool, &[u8])> {
        let history = self.writers.get(id.0)?.history.as_ref()?;
        let (change, payload) = history.oldest_of(instance)?;
        Some((change.kind == ChangeKind::Alive, payload))
    }

    /// Returns whether a reader knows an instance, with or without samples.
    #[must_use]
    pub fn knows_instance(&self, id: ReaderId, instance: KeyHash) -> bool {
        let cache = self.cache(id);
        cache.is_some_and(|cache| cache.instances.known(instance).is_some())
    }
}
