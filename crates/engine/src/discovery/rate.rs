//! The rate of discovery's sending.
//!
//! SEDP sends at most [`discovery_bytes_per_s`](crate::EngineConfig::discovery_bytes_per_s): data, history, repairs,
//! HEARTBEATs and ACKNACKs alike. What exceeds it stays filed until a timer lets it go on. SPDP and the messages of
//! liveliness renew leases and are not limited.

use isolane_wire::time::Instant;

use super::SUBSCRIPTIONS;
use crate::{
    engine::{Engine, Subject},
    work::{Destinations, Filed, Work, WorkKind},
};

impl Engine {
    /// Whether filed work is limited by the rate of discovery: it is SEDP's, and sends.
    pub(crate) fn is_limited(&self, Filed { kind, subject }: Filed) -> bool {
        let endpoint = match kind {
            WorkKind::Data | WorkKind::Heartbeat => Some(subject),
            WorkKind::Repair | WorkKind::History => {
                self.reader_proxies.get(subject).map(|proxy| proxy.writer)
            }
            WorkKind::AckNack => self.writer_proxies.get(subject).map(|proxy| proxy.reader),
            _ => None,
        };
        endpoint.is_some_and(|endpoint| endpoint <= SUBSCRIPTIONS)
    }

    /// Counts what discovery sends; holds the rest where that is as much as it may.
    pub(crate) fn pay_for_discovery(&mut self, now: Instant, work: &Work) {
        let copies = match &work.to {
            Destinations::Writer(writer) => self.destinations(*writer).len(),
            Destinations::Announce => self.announce_to().len(),
            Destinations::Subset(_, places) => places.count_ones() as usize,
            Destinations::Listed(listed) => listed.len(),
        };
        if work.bytes > 0 && !self.discovery_rate.pay(now, work.bytes * copies) {
            self.board.hold_limited(true);
            let at = self.discovery_rate.filled_again();
            self.timers.arm(Subject::DISCOVERY_RATE, at);
        }
    }
}
