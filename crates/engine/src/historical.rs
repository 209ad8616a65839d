//! *wait_for_historical_data* (DDS 1.4 §2.2.2.5.3.34).
//!
//! The first HEARTBEAT of a matched writer has the last number that existed before the reader asked. The reader has its
//! history when no number up to there is missing.

use crate::{engine::Engine, ids::ReaderId, reader::WriterProxy};

impl WriterProxy {
    /// Returns whether all samples up to the writer's first HEARTBEAT have arrived or are gone.
    fn has_history(&self) -> bool {
        !self.reliable || (self.started && self.expected > self.history_end)
    }
}

impl Engine {
    /// Returns whether a reader has the history of all matched writers. True for VOLATILE and best-effort readers,
    /// which are promised none.
    #[must_use]
    pub fn has_history(&self, id: ReaderId) -> bool {
        let Some(reader) = self.readers.get(id.0) else {
            return true;
        };
        let mut proxies = reader.proxies.iter();
        reader.volatile
            || proxies.all(|&proxy| {
                let proxy = self.writer_proxies.get(proxy);
                proxy.is_none_or(WriterProxy::has_history)
            })
    }
}
