//! Rate limit of discovery traffic.
//!
//! SEDP sends at most [`discovery_bytes_per_s`](crate::EngineConfig::discovery_bytes_per_s): data, history, repairs,
//! HEARTBEATs and ACKNACKs together. Work beyond the limit stays filed until a timer releases it. SPDP and liveliness
//! messages renew leases and are exempt.

use isolane_wire::time::Instant;

use super::SUBSCRIPTIONS;
use crate::{
    engine::{Engine, Subject},
    work::{Destinations, Filed, Work, WorkKind},
};

impl Engine {
    /// Returns whether filed work is subject to the rate limit: it sends on a SEDP endpoint.
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

    /// Charges sent bytes to the rate limit. When the limit is exceeded, limited work is held until the timer fires.
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
