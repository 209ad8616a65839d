//! How much a writer keeps for readers that come late (DDS 1.4 §2.2.3.4, §2.2.3.5).
//!
//! TRANSIENT and PERSISTENT ask for a service that keeps samples beyond their writer. There is none: such
//! a writer offers what the standard orders above TRANSIENT_LOCAL, and serves its history itself, while it
//! lives. What DURABILITY_SERVICE asks the service to keep is then kept by the writer, as far as it is more
//! than HISTORY says: a KEEP_LAST writer keeps the greater of the two depths. The service's KEEP_ALL becomes a
//! depth as well, that of its limits: a KEEP_LAST writer is never refused a write for want of room, and must
//! not be because of what it keeps besides. For the same reason the instances are those of RESOURCE_LIMITS.
//! `service_cleanup_delay` has no effect: instances that end are kept as a TRANSIENT_LOCAL writer keeps them.

use isolane_wire::qos::{DurabilityKind, DurabilityService, HistoryKind, QosPolicies};

use crate::{history::Keep, limits::DEFAULT_SAMPLES};

/// What a writer keeps that keeps so much by its own policies.
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

/// How many samples of each of so many instances the service is to keep.
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
