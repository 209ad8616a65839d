//! Conversion of options to QoS.

use std::time::Duration;

use isolane::limits::MAX_DATAGRAM_SAMPLE_BYTES;
use isolane::{OwnershipKind, Qos, Representation};

use crate::options::{FinalState, Options};
use crate::shape::MAX_PAYLOAD_BYTES;

/// Size of a sample without its payload, in bytes: header, colour, numbers, lengths and padding.
const SHAPE_BYTES: usize = 192;
/// Maximum number of samples with KEEP_ALL: more than a test writes in one period of a reader.
const KEEP_ALL_SAMPLES: usize = 512;
/// Maximum memory of samples with KEEP_ALL, in bytes. It limits the number of large samples.
const KEEP_ALL_BYTES: usize = 64 << 20;
/// Minimum number of samples with KEEP_ALL.
const KEEP_ALL_LEAST_SAMPLES: usize = 16;
/// Maximum time for which the end of a coherent set waits for room in a history.
const END_PATIENCE: Duration = Duration::from_millis(100);
/// Maximum sample size of a reader, in bytes. A slot's memory is used only when a sample fills it.
const READER_MAX_BYTES: usize = SHAPE_BYTES + MAX_PAYLOAD_BYTES;
/// Address space of a reader's slots, in bytes.
const READER_SLOT_BYTES: usize = 1 << 30;
/// Maximum number of instances of a reader. A reader with a shallow history has this many.
const READER_MOST_INSTANCES: usize = 512;
/// Minimum number of instances of a reader.
const READER_LEAST_INSTANCES: usize = 32;

/// Policies common to writers and readers.
fn common(options: &Options) -> Qos {
    let mut qos = match options.best_effort {
        true => Qos::best_effort(),
        false => Qos::reliable(),
    };
    qos = match options.history {
        None => qos.keep_last(1),
        Some(0) => qos.keep_all().max_samples(keep_all_samples(options)),
        Some(depth) => qos.keep_last(depth),
    };
    qos = qos.durability(options.durability);
    if !options.deadline.is_zero() {
        qos = qos.deadline(options.deadline);
    }
    if options.strength >= 0 {
        qos = qos.ownership(OwnershipKind::Exclusive);
    }
    if !options.latency_budget.is_zero() {
        qos = qos.latency_budget(options.latency_budget);
    }
    let representation = match options.representation {
        1 => Representation::Xcdr1,
        _ => Representation::Xcdr2,
    };
    qos.only_representation(representation)
        .liveliness(options.liveliness, options.lease.unwrap_or(Duration::MAX))
        .user_data(options.user_data.as_bytes())
        .topic_data(options.topic_data.as_bytes())
}

fn keep_all_samples(options: &Options) -> u16 {
    let sample_bytes = SHAPE_BYTES + options.additional_payload_size;
    let samples = (KEEP_ALL_BYTES / sample_bytes).clamp(KEEP_ALL_LEAST_SAMPLES, KEEP_ALL_SAMPLES);
    u16::try_from(samples).unwrap_or(u16::MAX)
}

/// Returns the QoS of the publisher or subscriber.
pub(crate) fn of_group(options: &Options) -> Qos {
    let qos = Qos::reliable()
        .max_blocking_time(END_PATIENCE)
        .presentation(options.access_scope, options.coherent, options.ordered)
        .group_data(options.group_data.as_bytes());
    match &options.partition {
        Some(partition) => qos.partition(partition),
        None => qos,
    }
}

pub(crate) fn of_writer(options: &Options) -> Qos {
    let mut qos = common(options)
        .max_instances(options.num_instances)
        .max_bytes(SHAPE_BYTES + options.additional_payload_size);
    if let Some(bytes) = options.datafrag_size {
        qos = qos.max_datagram_bytes(usize::from(bytes).min(MAX_DATAGRAM_SAMPLE_BYTES));
    }
    if options.strength >= 0 {
        qos = qos.ownership_strength(options.strength);
    }
    if let Some(lifespan) = options.lifespan {
        qos = qos.lifespan(lifespan);
    }
    if options.final_instance_state == Some(FinalState::Unregistered) {
        qos = qos.autodispose(false);
    }
    qos
}

pub(crate) fn of_reader(options: &Options) -> Qos {
    let mut qos = common(options)
        .max_instances(reader_instances(options))
        .max_bytes(READER_MAX_BYTES);
    if let Some(separation) = options.time_filter {
        qos = qos.time_based_filter(separation);
    }
    qos
}

/// Returns the number of instances for which the address space has enough slots, with the depth of the history.
fn reader_instances(options: &Options) -> u16 {
    let depth = usize::from(options.history.unwrap_or(1).max(1));
    let fitting = READER_SLOT_BYTES / READER_MAX_BYTES / depth;
    let instances = fitting.clamp(READER_LEAST_INSTANCES, READER_MOST_INSTANCES);
    u16::try_from(instances).unwrap_or(u16::MAX)
}
