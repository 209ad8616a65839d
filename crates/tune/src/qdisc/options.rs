//! Names and options of queueing disciplines, as the kernel wants and tells them.

use netlink_packet_core::DefaultNla;

use super::KIND;
use crate::facts::{CreditShaper, EarliestTime, GateSchedule, QueueQdisc, TrafficClasses};
use crate::netlink::{Attributes, Read, nest, number, text};

/// The attribute that holds the options.
const OPTIONS: u16 = 2;
/// `struct tc_mqprio_qopt`: number of classes, class of each priority, offload, and of each class how
/// many queues and the first.
const MQPRIO_BYTES: usize = 82;
const CLASSES_AT: usize = 1;
const OFFLOADED_AT: usize = 17;
const NUMBERS_AT: usize = 18;
const FIRSTS_AT: usize = 50;
/// Classes there can be.
const MAX_CLASSES: usize = 16;

/// Attributes behind it: mode, shaper, least and largest rates.
const UNKNOWN_OF_MQPRIO: std::ops::RangeInclusive<u16> = 1..=4;

/// Attributes of `taprio`.
mod gates {
    pub(super) const CLASSES: u16 = 1;
    pub(super) const ENTRIES: u16 = 2;
    pub(super) const BASE_TIME: u16 = 3;
    pub(super) const CLOCK: u16 = 5;
    pub(super) const NEXT_SCHEDULE: u16 = 7;
    pub(super) const CYCLE: u16 = 8;
    pub(super) const FLAGS: u16 = 10;
    /// Attributes of an entry, which is one of ENTRIES.
    pub(super) const ENTRY: u16 = 1;
    pub(super) const INDEX: u16 = 1;
    pub(super) const COMMAND: u16 = 2;
    pub(super) const OPEN: u16 = 3;
    pub(super) const INTERVAL: u16 = 4;
    /// In COMMAND: the gates of the mask are open.
    pub(super) const SET_GATES: u8 = 0;
    /// In FLAGS: the device opens them.
    pub(super) const BY_DEVICE: u32 = 2;
    /// In CLOCK: TAI.
    pub(super) const TAI: u32 = 11;
}

/// The attribute of `cbs` and `etf` that holds their structures, and a flag of `etf`.
const PARAMETERS: u16 = 1;
const ETF_BY_DEVICE: u32 = 2;

fn named(kind: &str) -> Attributes {
    Attributes::new().with(text(KIND, kind))
}

/// A queue of so many frames, or as long as the device's.
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
    // The device's part is a flag here; in the classes it would be another kind of offload.
    let classes = emit_classes(&schedule.classes, false);
    let base_time = schedule.base_time_ns.to_ne_bytes().to_vec();
    let options = Attributes::new()
        .with(DefaultNla::new(gates::CLASSES, classes))
        .with(nest(gates::ENTRIES, &entries))
        .with(DefaultNla::new(gates::BASE_TIME, base_time));
    // By the device it is the device's own clock.
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

/// Frames of a `pfifo`: what its options begin with.
pub(super) fn parse_frames(attributes: Read<'_>) -> Option<u32> {
    let options = attributes.value(OPTIONS)?;
    options.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Classes of an `mqprio`; `None` if somebody has given them modes or rates, which are not known here.
pub(super) fn parse_mqprio(attributes: Read<'_>) -> Option<TrafficClasses> {
    let options = attributes.value(OPTIONS)?;
    let more = options.get(MQPRIO_BYTES.next_multiple_of(4)..);
    let mut more = Read(more.unwrap_or_default()).all();
    let has_more = more.any(|(kind, _)| UNKNOWN_OF_MQPRIO.contains(&kind));
    (!has_more).then(|| parse_classes(options)).flatten()
}

/// The schedule that runs; before its first cycle began it is the next one.
pub(super) fn parse_taprio(attributes: Read<'_>) -> Option<GateSchedule> {
    let options = attributes.nest(OPTIONS)?;
    let mut classes = parse_classes(options.value(gates::CLASSES)?)?;
    let flags = options.number(gates::FLAGS).unwrap_or(0);
    classes.offloaded = flags & gates::BY_DEVICE != 0;
    let next = options.nest(gates::NEXT_SCHEDULE);
    let schedule = match options.has(gates::ENTRIES) {
        true => options,
        false => next?,
    };
    let entry = |entry: &[u8]| {
        let entry = Read(entry);
        Some((entry.number(gates::OPEN)?, entry.number(gates::INTERVAL)?))
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
    // Somebody may have given the cycle another length than its entries have.
    let length_ns: i64 = entries.iter().map(|(_, ns)| i64::from(*ns)).sum();
    let has_own_length = long(gates::CYCLE).is_some_and(|cycle| cycle != length_ns);
    (!has_own_length).then_some(GateSchedule {
        classes,
        base_time_ns: long(gates::BASE_TIME)?,
        entries,
    })
}

pub(super) fn parse_of_queue(name: &str, attributes: Read<'_>) -> QueueQdisc {
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

fn parse_credit_shaper(attributes: Read<'_>) -> Option<CreditShaper> {
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

fn parse_earliest_time(attributes: Read<'_>) -> Option<EarliestTime> {
    let bytes: &[u8; 12] = parameters(attributes)?.first_chunk()?;
    Some(EarliestTime {
        delta_ns: number_at(bytes, 0),
        clock: number_at(bytes, 4),
        offloaded: number_at(bytes, 8) as u32 & ETF_BY_DEVICE != 0,
    })
}

fn parameters(attributes: Read<'_>) -> Option<&[u8]> {
    attributes.nest(OPTIONS)?.value(PARAMETERS)
}

fn number_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
