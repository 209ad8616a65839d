//! QoS changes of an existing endpoint (DDS 1.4 §2.2.3, column "Changeable").
//!
//! A changed endpoint is announced and compared again with all others. Incompatible pairs are unmatched and newly
//! compatible ones matched on both sides; a pair that remains compatible continues without a gap. Unlike in the
//! standard, TRANSPORT_PRIORITY cannot change: it is the level, which determines the lane, port and jobs assigned at
//! creation.

use isolane_wire::{
    builtin_data::EndpointData,
    qos::{PolicyId, QosPolicies},
    time::{Duration, Instant},
};
use thiserror::Error;

use crate::{
    coherent_access::Access,
    discovery::{PUBLICATIONS, SUBSCRIPTIONS},
    matching::Before,
    participant::LocalParticipant,
    slab::{ReaderId, WriterId},
    writer::history::ChangeKind,
};

/// Reason why a QoS change was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SetQosError {
    /// The policy is immutable.
    #[error(
        "{0} cannot be changed once an endpoint is created; leave it as it is, or create another endpoint"
    )]
    ImmutablePolicy(PolicyId),
    /// The policy contradicts another one.
    #[error(
        "{0} contradicts another policy: a DEADLINE cannot be kept below the separation of a TIME_BASED_FILTER, nor can coherent sets or the order of a group where it keeps samples back"
    )]
    InconsistentPolicy(PolicyId),
    /// The SEDP history has no room for the announcement.
    #[error("the change cannot be announced now: discovery's history is full; try again later")]
    AnnouncementFull,
    /// The endpoint is statically described, so peers cannot learn of a change.
    #[error(
        "the endpoint is known by a description and not announced, so no peer would learn of the change; describe it so on all sides"
    )]
    Described,
    /// No such endpoint exists.
    #[error("the endpoint no longer exists")]
    Gone,
}

/// Returns the first immutable policy that differs; `None` if the change is allowed.
#[must_use]
pub fn immutable_policy(before: &QosPolicies, after: &QosPolicies) -> Option<PolicyId> {
    let checks = [
        (before.durability == after.durability, PolicyId::DURABILITY),
        (
            before.durability_service == after.durability_service,
            PolicyId::DURABILITY_SERVICE,
        ),
        (
            before.presentation == after.presentation,
            PolicyId::PRESENTATION,
        ),
        (before.ownership == after.ownership, PolicyId::OWNERSHIP),
        (before.liveliness == after.liveliness, PolicyId::LIVELINESS),
        (
            before.reliability == after.reliability,
            PolicyId::RELIABILITY,
        ),
        (
            before.transport_priority == after.transport_priority,
            PolicyId::TRANSPORT_PRIORITY,
        ),
        (
            before.destination_order == after.destination_order,
            PolicyId::DESTINATION_ORDER,
        ),
        (before.history == after.history, PolicyId::HISTORY),
        (
            before.resource_limits == after.resource_limits,
            PolicyId::RESOURCE_LIMITS,
        ),
        (
            before.data_representation == after.data_representation,
            PolicyId::DATA_REPRESENTATION,
        ),
    ];
    first_failed(&checks)
}

/// Returns the first policy that contradicts another one (DDS 1.4 §2.2.3.12); `None` if all are consistent.
#[must_use]
pub fn inconsistent_policy(qos: &QosPolicies) -> Option<PolicyId> {
    let is_filtered = qos.time_based_filter > Duration::ZERO;
    let is_in_turn = Access::of_new(qos) != Ok(None);
    first_failed(&[
        (qos.deadline >= qos.time_based_filter, PolicyId::DEADLINE),
        (!(is_filtered && is_in_turn), PolicyId::PRESENTATION),
    ])
}

fn first_failed(checks: &[(bool, PolicyId)]) -> Option<PolicyId> {
    let failed = checks.iter().find(|(is_kept, _)| !is_kept);
    failed.map(|&(_, policy)| policy)
}

/// Returns the endpoint data with other policies; `None` if nothing changes.
fn changed(data: &EndpointData, qos: &QosPolicies) -> Result<Option<EndpointData>, SetQosError> {
    if data.qos == *qos {
        return Ok(None);
    }
    if let Some(policy) = immutable_policy(&data.qos, qos) {
        return Err(SetQosError::ImmutablePolicy(policy));
    }
    if let Some(policy) = inconsistent_policy(qos) {
        return Err(SetQosError::InconsistentPolicy(policy));
    }
    let qos = qos.clone();
    Ok(Some(EndpointData {
        qos,
        ..data.clone()
    }))
}

impl LocalParticipant {
    /// Changes the policies of a writer, announces them and matches it again.
    ///
    /// # Errors
    /// [`SetQosError`]; nothing is changed then.
    pub fn set_writer_qos(
        &mut self,
        now: Instant,
        id: WriterId,
        qos: &QosPolicies,
    ) -> Result<(), SetQosError> {
        let of_user = self.writers.get(id).filter(|it| it.level.is_some());
        let former = of_user.ok_or(SetQosError::Gone)?.data.clone();
        let Some(data) = changed(&former, qos)? else {
            return Ok(());
        };
        if self.shared.is_described(data.guid.entity) {
            return Err(SetQosError::Described);
        }
        if !self.is_writer_enabled(id) {
            // Not announced yet.
            if let Some(writer) = self.writers.get_mut(id) {
                writer.data = data;
            }
            return Ok(());
        }
        self.announce_endpoint(now, WriterId(PUBLICATIONS), &data, ChangeKind::Alive)
            .map_err(|_| SetQosError::AnnouncementFull)?;
        if let Some(writer) = self.writers.get_mut(id) {
            writer.data = data;
        }
        self.writers.set_writer_clock(&mut self.shared, now, id);
        self.writers.set_batch(&mut self.shared, id);
        self.match_local_writer(now, id, Before::Was(&former));
        Ok(())
    }

    /// Changes the policies of a reader, announces them and matches it again.
    ///
    /// # Errors
    /// Errors of [`LocalParticipant::set_writer_qos`].
    pub fn set_reader_qos(
        &mut self,
        now: Instant,
        id: ReaderId,
        qos: &QosPolicies,
    ) -> Result<(), SetQosError> {
        let of_user = self.readers.get(id).filter(|it| it.level.is_some());
        let former = of_user.ok_or(SetQosError::Gone)?.data.clone();
        let Some(data) = changed(&former, qos)? else {
            return Ok(());
        };
        if self.shared.is_described(data.guid.entity) {
            return Err(SetQosError::Described);
        }
        if !self.is_reader_enabled(id) {
            if let Some(reader) = self.readers.get_mut(id) {
                reader.data = data;
            }
            return Ok(());
        }
        self.announce_endpoint(now, WriterId(SUBSCRIPTIONS), &data, ChangeKind::Alive)
            .map_err(|_| SetQosError::AnnouncementFull)?;
        if let Some(reader) = self.readers.get_mut(id) {
            reader.data = data;
        }
        self.readers.set_reader_clock(&mut self.shared, now, id);
        self.match_local_reader(now, id, Before::Was(&former));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::qos::{PresentationAccessScope, ReliabilityKind};

    use super::*;

    #[test]
    fn a_separation_contradicts_coherent_sets_where_samples_are_kept_back_for_them() {
        use PresentationAccessScope::{Instance, Topic};
        use ReliabilityKind::{BestEffort, Reliable};
        let mut qos = QosPolicies::reader_default();
        qos.time_based_filter = Duration::from_millis(1);
        qos.presentation.coherent = true;
        let of = |scope, reliability| {
            let mut qos = qos.clone();
            qos.presentation.access_scope = scope;
            qos.reliability.kind = reliability;
            inconsistent_policy(&qos)
        };
        let presentation = Some(PolicyId::PRESENTATION);
        assert_eq!(of(Instance, Reliable), presentation);
        assert_eq!(of(Topic, Reliable), presentation);
        assert_eq!(of(Topic, BestEffort), presentation);
        assert_eq!(of(Instance, BestEffort), None, "it has no sets");
    }
}
