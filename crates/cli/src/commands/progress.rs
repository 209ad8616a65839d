//! Progress of a measurement on standard error: a bar on a terminal, otherwise a line per part. The remaining time is
//! estimated from the finished parts.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::tell;

/// Parts of a measurement with their expected durations.
pub(crate) struct Progress {
    bar: ProgressBar,
    parts: Vec<Duration>,
    /// Number of parts begun.
    begun: usize,
    part_began: Instant,
    began: Instant,
}

impl Progress {
    /// Creates the progress of parts with the given expected durations.
    pub(crate) fn new(parts: Vec<Duration>) -> Self {
        let bar = ProgressBar::new(milliseconds(parts.iter().sum()));
        // Falls back to the plain bar if the template does not parse.
        if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {wide_bar} {prefix}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            parts,
            begun: 0,
            part_began: Instant::now(),
            began: Instant::now(),
        }
    }

    /// Begins the next part.
    pub(crate) fn begin(&mut self, what: &str) {
        self.begun += 1;
        self.part_began = Instant::now();
        if self.bar.is_hidden() {
            tell(format!(
                "{}/{} (about {} left): {what}",
                self.begun,
                self.parts.len(),
                in_words(self.left(self.began.elapsed()))
            ));
        } else {
            self.bar.set_message(what.to_owned());
            self.tick();
        }
    }

    /// Updates the bar.
    pub(crate) fn tick(&self) {
        let passed = self.passed();
        let left = self.left(self.began.elapsed());
        self.bar
            .set_prefix(format!("about {} left", in_words(left)));
        self.bar.set_position(milliseconds(passed));
    }

    /// Remaining time, scaled by the deviation of the finished parts.
    fn left(&self, elapsed: Duration) -> Duration {
        let passed = self.passed();
        let expected = self.parts.iter().sum::<Duration>().saturating_sub(passed);
        // Few parts do not allow an estimate.
        let is_early = self.begun <= FEW_PARTS || passed.is_zero();
        let slower = match is_early {
            true => 1.0,
            false => elapsed.as_secs_f64() / passed.as_secs_f64(),
        };
        expected.mul_f64(slower)
    }

    /// Expected duration of the finished parts, and of the current one up to its end.
    fn passed(&self) -> Duration {
        let Some((current, before)) = self.parts[..self.begun].split_last() else {
            return Duration::ZERO;
        };
        before.iter().sum::<Duration>() + self.part_began.elapsed().min(*current)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Number of parts after which durations are extrapolated.
const FEW_PARTS: usize = 3;

/// Rounded duration: "40 s", "124 s", "19 min".
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=180 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_behind() {
        let part = Duration::from_secs(10);
        let mut progress = Progress::new(vec![part; 10]);
        assert_eq!(progress.left(Duration::ZERO), part * 10);
        for _ in 0..=FEW_PARTS {
            progress.begin("one");
        }
        // Three parts are done, which took 60 s instead of 30.
        let left = progress.left(Duration::from_secs(60));
        assert!(left > Duration::from_secs(120), "{left:?}");
        assert!(left < Duration::from_secs(141), "{left:?}");
    }

    #[test]
    fn times_are_told_in_seconds_or_minutes() {
        assert_eq!(in_words(Duration::from_millis(39_200)), "40 s");
        assert_eq!(in_words(Duration::from_secs(180)), "180 s");
        assert_eq!(in_words(Duration::from_secs(181)), "4 min");
        assert_eq!(in_words(Duration::from_secs(1_130)), "19 min");
    }

    #[test]
    fn the_bar_advances_within_a_part_and_not_beyond_it() {
        let (long, short) = (Duration::from_secs(1_000), Duration::ZERO);
        let mut progress = Progress::new(vec![long, short, long]);
        assert_eq!(progress.passed(), Duration::ZERO);
        progress.begin("one");
        let passed = progress.passed();
        assert!(passed < long / 2);
        while progress.passed() <= passed {}
        progress.begin("two");
        assert_eq!(progress.passed(), long, "two has no time to take");
    }
}
