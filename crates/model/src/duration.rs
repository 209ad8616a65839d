//! Durations in descriptions and on the command line: a whole number and a unit, `"500us"`, `"10ms"`, `"1s"`.
//! Numbers have no fraction, so values are exact and are printed back unchanged.

use core::fmt;
use core::time::Duration;

use crate::limits::MAX_DURATION;
use crate::word::closest;

/// Units in nanoseconds, largest first.
const UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Error of parsing a duration; [`DurationError::help`] suggests a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// The text does not begin with a digit.
    NoNumber,
    /// The unit is missing.
    NoUnit {
        /// Parsed number.
        number: String,
    },
    /// The unit is unknown.
    UnknownUnit {
        /// Text after the number.
        unit: String,
    },
    /// The number has a fraction.
    Fraction,
    /// The duration is zero, which is no valid period or deadline.
    Zero,
    /// The duration is longer than [`MAX_DURATION`].
    TooLong,
}

impl DurationError {
    /// Suggests what to write instead.
    pub fn help(&self) -> String {
        match self {
            Self::NoNumber => {
                String::from("write a number and its unit: \"500us\", \"10ms\", \"1s\"")
            }
            Self::NoUnit { number } => {
                format!("write \"{number}us\", \"{number}ms\" or \"{number}s\"")
            }
            Self::UnknownUnit { unit } => match unit.as_str() {
                "µs" | "μs" => String::from("write `us`"),
                _ => closest(unit, UNITS.map(|(name, _)| name)).map_or_else(
                    || String::from("the units are `ns`, `us`, `ms` and `s`"),
                    |known| {
                        format!("did you mean `{known}`? The units are `ns`, `us`, `ms` and `s`")
                    },
                ),
            },
            Self::Fraction => {
                String::from("write a whole number of a smaller unit: \"1500us\" for 1.5 ms")
            }
            Self::Zero => String::from("leave the line out if there is none"),
            Self::TooLong => format!("at most {}", format_duration(MAX_DURATION)),
        }
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => formatter.write_str("a duration starts with a whole number"),
            Self::NoUnit { number } => write!(formatter, "{number} has no unit"),
            Self::UnknownUnit { unit } => write!(formatter, "`{unit}` is no unit of time"),
            Self::Fraction => formatter.write_str("a duration is a whole number of a unit"),
            Self::Zero => formatter.write_str("a duration of zero"),
            Self::TooLong => formatter.write_str("the duration is too long"),
        }
    }
}

impl core::error::Error for DurationError {}

/// Parses a duration above zero and at most [`MAX_DURATION`].
///
/// # Errors
/// A [`DurationError`], which suggests a correction.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(DurationError::NoNumber);
    }
    if rest.starts_with(['.', ',']) {
        return Err(DurationError::Fraction);
    }
    let unit = rest.trim_start();
    if unit.is_empty() {
        let is_zero = number.bytes().all(|digit| digit == b'0');
        return Err(match is_zero {
            // Zero is invalid with every unit, so the missing unit is not reported.
            true => DurationError::Zero,
            false => DurationError::NoUnit {
                number: number.to_owned(),
            },
        });
    }
    let Some((_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(DurationError::UnknownUnit {
            unit: unit.to_owned(),
        });
    };
    // The number has only digits, so a parse error means overflow.
    let count: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    let nanoseconds = count.checked_mul(*unit_ns).ok_or(DurationError::TooLong)?;
    match Duration::from_nanos(nanoseconds) {
        Duration::ZERO => Err(DurationError::Zero),
        duration if duration > MAX_DURATION => Err(DurationError::TooLong),
        duration => Ok(duration),
    }
}

/// Formats a duration as [`parse_duration`] reads it, in the largest exact unit.
pub fn format_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let (unit, unit_ns) = UNITS
        .into_iter()
        .find(|(_, unit_ns)| nanoseconds.is_multiple_of(u128::from(*unit_ns)))
        .expect("every whole number of nanoseconds is a multiple of one");
    format!("{}{unit}", nanoseconds / u128::from(unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_is_a_duration() {
        assert_eq!(parse_duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(parse_duration("10 ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_duration("1ns"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn whatever_else_is_refused_with_its_reason() {
        assert_eq!(parse_duration(""), Err(DurationError::NoNumber));
        assert_eq!(parse_duration("-1ms"), Err(DurationError::NoNumber));
        assert_eq!(
            parse_duration("500"),
            Err(DurationError::NoUnit {
                number: "500".into()
            })
        );
        assert_eq!(
            parse_duration("5msec"),
            Err(DurationError::UnknownUnit {
                unit: "msec".into()
            })
        );
        assert_eq!(parse_duration("1.5ms"), Err(DurationError::Fraction));
        assert_eq!(parse_duration("0s"), Err(DurationError::Zero));
        assert_eq!(parse_duration("0"), Err(DurationError::Zero));
        assert_eq!(parse_duration("3601s"), Err(DurationError::TooLong));
        assert_eq!(
            parse_duration("99999999999999999999s"),
            Err(DurationError::TooLong)
        );
        assert_eq!(
            parse_duration("18446744073709551615s"),
            Err(DurationError::TooLong)
        );
    }

    #[test]
    fn a_duration_is_printed_in_its_largest_exact_unit() {
        for text in ["500us", "10ms", "1s", "1500us", "1ns", "3600s"] {
            assert_eq!(format_duration(parse_duration(text).expect(text)), text);
        }
        assert_eq!(format_duration(Duration::from_micros(1000)), "1ms");
    }
}
