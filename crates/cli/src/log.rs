//! Printer of the library's `log` records to standard error, with time and level.

use std::time::SystemTime;

use ::log::{Level, LevelFilter, Log, Metadata, Record};
use isolane_model::visible_line;

use crate::output::tell;

struct Printer;

static PRINTER: Printer = Printer;

/// Part of a warning that `pub` and `sub` report themselves; it is printed twice only with higher verbosity.
const TOLD_BY_COMMANDS: &str = "they do not match";

/// Installs the printer: warnings, with verbosity 1 also information, with verbosity 2 everything.
pub(crate) fn install(verbosity: u8) {
    let filter = match verbosity {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    // Another installed logger is acceptable.
    if ::log::set_logger(&PRINTER).is_ok() {
        ::log::set_max_level(filter);
    }
}

impl Log for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Records of other libraries are ignored.
        metadata.target().starts_with("isolane")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = line(record, SystemTime::now());
        if ::log::max_level() > LevelFilter::Warn || !line.contains(TOLD_BY_COMMANDS) {
            tell(line);
        }
    }

    fn flush(&self) {}
}

fn line(record: &Record<'_>, now: SystemTime) -> String {
    let level = match record.level() {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug | Level::Trace => "debug",
    };
    let time = humantime::format_rfc3339_micros(now);
    // A peer's name must not add lines.
    let said = record.args().to_string();
    format!("{time} {level}: {}", visible_line(&said))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_line_has_time_and_level_and_stays_one_line() {
        let record = Record::builder()
            .level(Level::Warn)
            .target("isolane::discovery")
            .args(format_args!("a\nb"))
            .build();
        assert_eq!(
            line(&record, UNIX_EPOCH),
            "1970-01-01T00:00:00.000000Z warning: a\\u000ab"
        );
        assert!(PRINTER.enabled(record.metadata()));
    }
}
