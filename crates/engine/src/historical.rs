//! Whether a reader that came late has what was written before (DDS 1.4 §2.2.2.5.3.34).
//!
//! The first HEARTBEAT of a matched writer says up to which number there was something before the reader asked: what
//! lies up to there is its history, which the reader has when it waits for nothing of it any more.

use crate::{engine::Engine, ids::ReaderId, reader::WriterProxy};

impl WriterProxy {
    /// Whether all that the writer had when it first spoke has come, or never will.
    fn has_history(&self) -> bool {
        !self.reliable || (self.started && self.expected > self.history_end)
    }
}

impl Engine {
    /// Whether a reader has the history of all writers it is matched with now. One that is VOLATILE, or best
    /// effort, is promised none, and has it.
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
