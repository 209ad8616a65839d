//! Timestamps of round trips, and the statistics derived from them.
//!
//! Each end fills its own recorder, reserved before the start. The ping side records when a message was due, sent and
//! returned; the pong side records when it was received and answered. Both, and the cable's timestamps if any, are then
//! merged by id into [`Rounds`].
//!
//! Each timestamp has an array, and percentiles come from sorting exact values: a run has some ten thousand samples, so
//! a histogram would save nothing and blur the tail. A [`Distribution`] serves figures. No sample is ever trimmed.

mod distribution;
mod one_way;
mod recorder;
mod rounds;
mod statistics;

pub use distribution::Distribution;
pub(crate) use distribution::{bucket, bucket_start_us};
pub use one_way::{OneWay, StampClock};
pub(crate) use recorder::stamp;
pub use recorder::{PingRecorder, PongRecorder, Stamp, Verdict, nonce};
pub use rounds::{MergeError, Rounds};
pub(crate) use statistics::percentile_us;
pub use statistics::{Statistics, Window, window_p99_median_us, windows};
