//! What is recorded of round trips, and the numbers made of it.
//!
//! Each end fills a recorder of its own, reserved before the start: the ping side knows when a
//! message was meant to leave, left and came back, the pong side when it arrived and was answered.
//! Afterwards both, and the cable's stamps where there are any, are merged by id into [`Rounds`].
//!
//! Storage is one array of stamps each, and percentiles come from sorting the exact values: a run
//! has some ten thousand samples, so a histogram would save nothing and blur the tail. For pictures
//! there is a [`Distribution`] beside them. Nothing is ever trimmed.

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
