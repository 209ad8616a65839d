//! Non-preemptive fixed-priority executor.
//!
//! Every operation of the middleware is a *job*: receive from a lane, send a HEARTBEAT, answer an ACKNACK, repair,
//! announce, a user's callback. The executor holds the table of jobs with their priorities, chooses which ready job
//! runs next, and records observations. It runs no code itself: the event loop of the crate `isolane` polls the
//! sources, calls the jobs, and sleeps or spins. The clock is a parameter.
//!
//! # States of a job
//!
//! ```text
//!   activate (event)  ─┐                          ┌─ has_more: after its equals
//!   release  (time)   ─┴─> ready ─ next ─> begin ─┴─> finish ─> idle
//! ```
//!
//! A job is *released* at the arrival of its event or an instant of its period, and then ready until it begins.
//! Its *response time* is from release to finish, its *execution time* from begin to finish. One run is an
//! *activation*; it handles at most [`JobConfig::items`] items and is never interrupted.
//!
//! # Why non-preemptive
//!
//! Preemption needs locks, or data that is consistent at every instruction. With locks, a job is blocked for the sum of
//! the critical sections that it meets. Activations are short, a few microseconds, because their items are limited.
//! Running one to its end delays the most critical job by one such activation. In return no protocol data is shared: no
//! locks, no priority inversion by locks, warm caches, and a reproducible order.
//!
//! # Bounds
//!
//! * Choosing the next job takes constant time: a bit and a FIFO list per priority.
//! * Releasing a job by time takes time logarithmic in the number of jobs.
//! * A job waits for at most **one** activation of lower priority (*blocking*), which began before the release. The
//!   item limits bound its length. The job also waits for every activation of higher priority released meanwhile
//!   (*interference*), and for jobs of the same priority that were ready before.
//! * If a priority has a *share* of the next higher one ([`Executor::grant_share`]), jobs of the higher one also wait
//!   for activations of the lower one: one per granted number of items, while a job of the lower one is ready. Such an
//!   activation counts as one of the higher priority.
//! * `has_more` puts a job after the others of its priority, so jobs of equal priority take turns, and none runs before
//!   a more critical one.
//! * Memory is bounded by [`ExecutorConfig::max_jobs`] and allocated in [`Executor::new`].
//!
//! Bounds of response times are not computed yet. They follow from the analysis of non-preemptive fixed priorities over
//! the whole busy period (Davis, Burns, Bril, Lukkien 2007). This crate observes maxima, blocking and priority
//! inversions.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod inversions;
mod job;
pub mod limits;
mod scheduler;
mod time_queue;

pub use inversions::PriorityInversions;
pub use job::{Job, JobConfig, JobId, JobStatistics, Name, Trigger};
pub use scheduler::{Executor, ExecutorConfig, TableFull};

#[cfg(test)]
mod tests;
