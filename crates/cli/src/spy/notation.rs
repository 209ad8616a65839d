//! How times, numbers and bytes are written.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// The time of day, UTC, in microseconds.
pub(super) fn time_of_day(time_ns: Option<u64>) -> String {
    const DAY_NS: u64 = 86_400 * 1_000_000_000;
    let Some(time) = time_ns else {
        return String::from("--:--:--.------");
    };
    let microseconds = time % DAY_NS / 1_000;
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    format!(
        "{:02}:{:02}:{:02}.{fraction:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Date and time, UTC, as RFC 3339 writes it.
pub(super) fn date_and_time(time_ns: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(time_ns);
    humantime::format_rfc3339_nanos(time).to_string()
}

/// Ascending numbers, neighbours as ranges: `3 5..9`.
pub(super) fn ranges(numbers: impl Iterator<Item = i64>) -> String {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => found.push((number, number)),
        }
    }
    let found: Vec<String> = found
        .into_iter()
        .map(|(first, last)| range(first, last))
        .collect();
    found.join(" ")
}

fn range(first: i64, last: i64) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}..{last}")
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_ranges() {
        assert_eq!(ranges([3, 5, 6, 7, 9].into_iter()), "3 5..7 9");
        assert_eq!(ranges([].into_iter()), "");
        assert_eq!(ranges([i64::MAX].into_iter()), i64::MAX.to_string());
    }

    #[test]
    fn times_are_of_the_day() {
        let time = (86_400 + 3_661) * 1_000_000_000 + 5_999;
        assert_eq!(time_of_day(Some(time)), "01:01:01.000005");
        assert_eq!(date_and_time(time), "1970-01-02T01:01:01.000005999Z");
    }
}
