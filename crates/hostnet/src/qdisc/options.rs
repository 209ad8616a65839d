//! Kinds and options of queueing disciplines, in the kernel's encoding.

use netlink_packet_core::DefaultNla;

use super::{CreditShaper, EarliestTime, GateSchedule, KIND, QueueQdisc, TrafficClasses};
use crate::netlink::{AttributeReader, Attributes, nest, number, text};

/// Attribute that holds the options.
const OPTIONS: u16 = 2;
/// Offsets in `struct tc_mqprio_qopt`: number of classes, class of each priority, offload, and count and first queue of
/// each class.
const MQPRIO_BYTES: usize = 82;
const CLASSES_AT: usize = 1;
const OFFLOADED_AT: usize = 17;
const NUMBERS_AT: usize = 18;
const FIRSTS_AT: usize = 50;
/// Maximum number of classes (TC_QOPT_MAX_QUEUE).
const MAX_CLASSES: usize = 16;

/// Settings of one class: the only attribute after the structure that may be ignored, if the settings are the
/// defaults. The other attributes are mode, shaper, minimum and maximum rates.
const CLASS_OF_MQPRIO: u16 = 5;
/// Attributes of a class: its index, and frame preemption, whose default is express.
const CLASS_INDEX: u16 = 1;
const CLASS_OF_MQPRIO_PREEMPTION: u16 = 2;
const EXPRESS: u32 = 1;

/// Attributes of `taprio`.
mod gates {
    pub(super) const CLASSES: u16 = 1;
    pub(super) const ENTRIES: u16 = 2;
    pub(super) const BASE_TIME: u16 = 3;
    pub(super) const CLOCK: u16 = 5;
    pub(super) const NEXT_SCHEDULE: u16 = 7;
    pub(super) const CYCLE: u16 = 8;
    pub(super) const EXTENSION: u16 = 9;
    pub(super) const FLAGS: u16 = 10;
    pub(super) const CLASS: u16 = 12;
    /// Padding, to be ignored.
    pub(super) const PADDING: u16 = 6;
    /// Attributes of CLASS: longest frame, frame preemption.
    pub(super) const LONGEST_FRAME: u16 = 2;
    pub(super) const PREEMPTION: u16 = 3;
    /// Attribute of ENTRIES, and attributes of an entry.
    pub(super) const ENTRY: u16 = 1;
    pub(super) const INDEX: u16 = 1;
    pub(super) const COMMAND: u16 = 2;
    pub(super) const OPEN: u16 = 3;
    pub(super) const INTERVAL: u16 = 4;
    /// Value of COMMAND: sets the gates to the mask.
    pub(super) const SET_GATES: u8 = 0;
    /// Value of FLAGS: full offload.
    pub(super) const BY_DEVICE: u32 = 2;
    /// Value of CLOCK: CLOCK_TAI.
    pub(super) const TAI: u32 = 11;
}

/// Attribute of `cbs` and `etf` that holds their structures, and the offload flag of `etf`.
const PARAMETERS: u16 = 1;
const ETF_BY_DEVICE: u32 = 2;

fn named(kind: &str) -> Attributes {
    Attributes::new().with(text(KIND, kind))
}

/// `pfifo` with a limit in frames, or with the device's queue length.
pub(super) fn pfifo(frames: Option<u32>) -> Attributes {
    named("pfifo").with_number(OPTIONS, frames)
}

pub(super) fn mqprio(classes: &TrafficClasses) -> Attributes {
    let options = emit_classes(classes, classes.offloaded);
    named("mqprio").with(DefaultNla::new(OPTIONS, options))
}

pub(super) fn taprio(schedule: &GateSchedule) -> Attributes {
    let mut entries = Attributes::new();
    for (place, (open, interval_ns)) in (0..).zip(&schedule.entries) {
        let entry = Attributes::new()
            .with(number(gates::INDEX, place))
            .with(DefaultNla::new(gates::COMMAND, vec![gates::SET_GATES]))
            .with(number(gates::OPEN, *open))
            .with(number(gates::INTERVAL, *interval_ns));
        entries = entries.with(nest(gates::ENTRY, &entry));
    }
    // taprio's offload is a flag; within the classes it would select another kind.
    let classes = emit_classes(&schedule.classes, false);
    let base_time = schedule.base_time_ns.to_ne_bytes().to_vec();
    let options = Attributes::new()
        .with(DefaultNla::new(gates::CLASSES, classes))
        .with(nest(gates::ENTRIES, &entries))
        .with(DefaultNla::new(gates::BASE_TIME, base_time));
    // With offload, the device's own clock applies.
    let options = match schedule.classes.offloaded {
        true => options.with(number(gates::FLAGS, gates::BY_DEVICE)),
        false => options.with(number(gates::CLOCK, gates::TAI)),
    };
    named("taprio").with(nest(OPTIONS, &options))
}

/// `struct tc_cbs_qopt`.
pub(super) fn credit_shaper(shaper: &CreditShaper) -> Attributes {
    let mut bytes = vec![u8::from(shaper.offloaded), 0, 0, 0];
    for field in [
        shaper.high_credit_bytes,
        shaper.low_credit_bytes,
        shaper.idle_slope_kbps,
        shaper.send_slope_kbps,
    ] {
        bytes.extend(field.to_ne_bytes());
    }
    let options = Attributes::new().with(DefaultNla::new(PARAMETERS, bytes));
    named("cbs").with(nest(OPTIONS, &options))
}

/// `struct tc_etf_qopt`.
pub(super) fn earliest_time(time: &EarliestTime) -> Attributes {
    let flags = if time.offloaded { ETF_BY_DEVICE } else { 0 };
    let mut bytes = time.delta_ns.to_ne_bytes().to_vec();
    bytes.extend(time.clock.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    let options = Attributes::new().with(DefaultNla::new(PARAMETERS, bytes));
    named("etf").with(nest(OPTIONS, &options))
}

fn emit_classes(classes: &TrafficClasses, offloaded: bool) -> Vec<u8> {
    let mut bytes = vec![0; MQPRIO_BYTES];
    let queues = classes.queues.iter().take(MAX_CLASSES);
    bytes[0] = queues.len() as u8;
    bytes[CLASSES_AT..OFFLOADED_AT].copy_from_slice(&classes.class_of_priority);
    bytes[OFFLOADED_AT] = u8::from(offloaded);
    for (index, (number, first)) in queues.enumerate() {
        let at = 2 * index;
        bytes[NUMBERS_AT + at..][..2].copy_from_slice(&number.to_ne_bytes());
        bytes[FIRSTS_AT + at..][..2].copy_from_slice(&first.to_ne_bytes());
    }
    bytes
}

fn parse_classes(bytes: &[u8]) -> Option<TrafficClasses> {
    let bytes: &[u8; MQPRIO_BYTES] = bytes.first_chunk()?;
    let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    let classes = usize::from(bytes[0]).min(MAX_CLASSES);
    Some(TrafficClasses {
        class_of_priority: std::array::from_fn(|priority| bytes[CLASSES_AT + priority]),
        queues: (0..classes)
            .map(|class| (field(NUMBERS_AT + 2 * class), field(FIRSTS_AT + 2 * class)))
            .collect(),
        offloaded: bytes[OFFLOADED_AT] != 0,
    })
}

/// Limit of a `pfifo` in frames, the first field of its options.
pub(super) fn parse_frames(attributes: AttributeReader<'_>) -> Option<u32> {
    let options = attributes.value(OPTIONS)?;
    options.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Classes of an `mqprio`; `None` if it has options that [`TrafficClasses`] cannot express: modes, rates, preemption.
pub(super) fn parse_mqprio(attributes: AttributeReader<'_>) -> Option<TrafficClasses> {
    let options = attributes.value(OPTIONS)?;
    let more = options.get(MQPRIO_BYTES.next_multiple_of(4)..);
    let mut more = AttributeReader(more.unwrap_or_default()).all();
    let is_known = more.all(|(kind, value)| {
        let has_defaults = has_defaults(
            AttributeReader(value),
            &[(CLASS_OF_MQPRIO_PREEMPTION, EXPRESS)],
        );
        kind == CLASS_OF_MQPRIO && has_defaults
    });
    is_known.then(|| parse_classes(options)).flatten()
}

/// Returns whether all attributes of a class have their defaults.
fn has_defaults(class: AttributeReader<'_>, defaults: &[(u16, u32)]) -> bool {
    class.all().all(|(kind, _)| {
        let default = defaults.iter().find(|(known, _)| *known == kind);
        let stands = |(kind, value): &(u16, u32)| class.number(*kind) == Some(*value);
        kind == CLASS_INDEX || default.is_some_and(stands)
    })
}

/// Running schedule, or the next one before its first cycle. `None` if [`GateSchedule`] cannot express it.
pub(super) fn parse_taprio(attributes: AttributeReader<'_>) -> Option<GateSchedule> {
    let options = attributes.nest(OPTIONS)?;
    let mut classes = parse_classes(options.value(gates::CLASSES)?)?;
    classes.offloaded = match options.number(gates::FLAGS) {
        None | Some(0) => false,
        Some(gates::BY_DEVICE) => true,
        // TXTIME_ASSIST: the kernel assigns the times of frames.
        Some(_) => return None,
    };
    // With offload the clock is the device's, and may be omitted.
    let has_clock = match options.number(gates::CLOCK) {
        None => classes.offloaded,
        clock => clock == Some(gates::TAI),
    };
    let is_known = |(kind, value): (u16, &[u8])| match kind {
        gates::CLASSES | gates::CLOCK | gates::FLAGS | gates::NEXT_SCHEDULE => true,
        gates::CLASS => has_defaults(
            AttributeReader(value),
            &[(gates::LONGEST_FRAME, 0), (gates::PREEMPTION, EXPRESS)],
        ),
        kind => IS_OF_SCHEDULE.contains(&kind),
    };
    if !has_clock || !options.all().all(is_known) {
        return None;
    }
    let next = options.nest(gates::NEXT_SCHEDULE);
    let (base_time_ns, entries) = match (options.has(gates::ENTRIES), next) {
        (true, None) => parse_schedule(options)?,
        (false, Some(next)) => {
            let is_known = next.all().all(|(kind, _)| IS_OF_SCHEDULE.contains(&kind));
            is_known.then(|| parse_schedule(next)).flatten()?
        }
        // One schedule runs while another is pending.
        _ => return None,
    };
    Some(GateSchedule {
        classes,
        base_time_ns,
        entries,
    })
}

/// Attributes of a schedule, running or pending.
const IS_OF_SCHEDULE: [u16; 5] = [
    gates::ENTRIES,
    gates::BASE_TIME,
    gates::CYCLE,
    gates::EXTENSION,
    gates::PADDING,
];

/// Base time and entries of a schedule.
fn parse_schedule(schedule: AttributeReader<'_>) -> Option<(i64, Vec<(u32, u32)>)> {
    let entry = |entry: &[u8]| {
        let entry = AttributeReader(entry);
        match entry.number(gates::COMMAND)? == u32::from(gates::SET_GATES) {
            true => Some((entry.number(gates::OPEN)?, entry.number(gates::INTERVAL)?)),
            false => None,
        }
    };
    let entries: Vec<(u32, u32)> = schedule
        .nest(gates::ENTRIES)?
        .all()
        .filter(|(kind, _)| *kind == gates::ENTRY)
        .map(|(_, value)| entry(value))
        .collect::<Option<_>>()?;
    let long = |kind| -> Option<i64> {
        let bytes = schedule.value(kind)?;
        Some(i64::from_ne_bytes(bytes.try_into().ok()?))
    };
    // A cycle time other than the sum of the entries, or an extension, cannot be expressed.
    let length_ns: i64 = entries.iter().map(|(_, ns)| i64::from(*ns)).sum();
    let has_own_length = long(gates::CYCLE).is_some_and(|cycle| cycle != length_ns);
    let is_extended = long(gates::EXTENSION).is_some_and(|extension| extension != 0);
    match has_own_length || is_extended {
        true => None,
        false => Some((long(gates::BASE_TIME)?, entries)),
    }
}

pub(super) fn parse_of_queue(name: &str, attributes: AttributeReader<'_>) -> QueueQdisc {
    let known = match name {
        "pfifo" => parse_frames(attributes).map(|frames| QueueQdisc::Pfifo {
            frames: Some(frames),
        }),
        "cbs" => parse_credit_shaper(attributes).map(QueueQdisc::CreditShaper),
        "etf" => parse_earliest_time(attributes).map(QueueQdisc::EarliestTime),
        _ => None,
    };
    known.unwrap_or_else(|| QueueQdisc::Other { name: name.into() })
}

fn parse_credit_shaper(attributes: AttributeReader<'_>) -> Option<CreditShaper> {
    let bytes: &[u8; 20] = parameters(attributes)?.first_chunk()?;
    let field = |at| number_at(bytes, at);
    Some(CreditShaper {
        offloaded: bytes[0] != 0,
        high_credit_bytes: field(4),
        low_credit_bytes: field(8),
        idle_slope_kbps: field(12),
        send_slope_kbps: field(16),
    })
}

fn parse_earliest_time(attributes: AttributeReader<'_>) -> Option<EarliestTime> {
    let bytes: &[u8; 12] = parameters(attributes)?.first_chunk()?;
    let offloaded = match number_at(bytes, 8) as u32 {
        0 => false,
        ETF_BY_DEVICE => true,
        // Deadline mode, or skipped socket checks.
        _ => return None,
    };
    Some(EarliestTime {
        delta_ns: number_at(bytes, 0),
        clock: number_at(bytes, 4),
        offloaded,
    })
}

fn parameters(attributes: AttributeReader<'_>) -> Option<&[u8]> {
    attributes.nest(OPTIONS)?.value(PARAMETERS)
}

fn number_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
