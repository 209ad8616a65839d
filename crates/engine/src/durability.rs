//! History that a writer keeps for late joiners (DDS 1.4 §2.2.3.4, §2.2.3.5).
//!
//! TRANSIENT and PERSISTENT require a service that keeps samples beyond the life of their writer. There is none: the
//! writer offers the requested kind and serves its history itself while it lives. It also keeps what DURABILITY_SERVICE
//! asks the service to keep: a KEEP_LAST writer keeps the greater of the two depths. A KEEP_ALL service becomes a
//! depth, that of its resource limits, because a write to a KEEP_LAST writer must never be refused for lack of room.
//! For the same reason RESOURCE_LIMITS of the writer bound the instances. `service_cleanup_delay` has no effect: ended
//! instances are kept as by a TRANSIENT_LOCAL writer.

use isolane_wire::qos::{DurabilityKind, DurabilityService, HistoryKind, QosPolicies};

use crate::{history::Keep, limits::DEFAULT_SAMPLES};

/// Returns the history of a writer, extended by DURABILITY_SERVICE from its `own` policies.
pub(crate) fn with_service(qos: &QosPolicies, own: (Keep, u16)) -> (Keep, u16) {
    let (Keep::Last { depth }, samples) = own else {
        return own;
    };
    if qos.durability < DurabilityKind::Transient {
        return own;
    }
    let instances = (samples / depth).max(1);
    let wanted = depth_of(&qos.durability_service, instances).min(u16::MAX / instances);
    if wanted <= depth {
        return own;
    }
    let samples = samples.max(instances * wanted);
    (Keep::Last { depth: wanted }, samples)
}

/// Returns the number of samples per instance that the service is to keep.
fn depth_of(service: &DurabilityService, instances: u16) -> u16 {
    let bound = |value: i32| (value > 0).then(|| u16::try_from(value).unwrap_or(u16::MAX));
    let limits = service.resource_limits;
    let in_all = bound(limits.max_samples).map(|samples| samples / instances);
    let bounds = [in_all, bound(limits.max_samples_per_instance)];
    let bound_of_both = bounds.into_iter().flatten().min();
    match service.history.kind {
        HistoryKind::KeepLast => {
            let depth = bound(service.history.depth).unwrap_or(1);
            bound_of_both.map_or(depth, |bound| bound.min(depth))
        }
        HistoryKind::KeepAll => bound_of_both.unwrap_or(DEFAULT_SAMPLES),
    }
}
