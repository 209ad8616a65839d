//! Non-preemptive fixed-priority jobs.
//!
//! Every operation of the middleware is a *job*: receive from a lane, send a heartbeat, answer
//! an ACKNACK, repair, announce, a user's callback. This crate holds the one table that says
//! which jobs exist and at what priority, chooses which of the ready ones runs next, and keeps
//! what was observed about each. It runs nothing itself: the loop that looks at sources, calls
//! the code of a job, sleeps or spins is `dds::runtime`, and the clock comes in as a parameter.
//!
//! # The way of a job
//!
//! ```text
//!   activate (event)  ─┐                          ┌─ again: behind its equals
//!   release  (time)   ─┴─> ready ─ next ─> begin ─┴─> finish ─> idle
//! ```
//!
//! A job is *released* at an instant: the arrival of its event, or a point of its period. From
//! then on it is ready until it has begun; from release to finish is its *response time*; from
//! begin to finish its *execution time*. One run, from begin to finish, is an *activation*. It
//! handles at most [`JobConfig::items`] items and is never interrupted.
//!
//! # Why non-preemptive
//!
//! Preemption needs either threads and locks between them, whose blocking is the sum of all
//! critical sections a job may meet, or a second stack and data that is consistent at every
//! instruction. Activations of the middleware are short, a few microseconds, since their items
//! are limited. Letting one run to its end costs the most critical job one such activation, and
//! buys that no data of the engine is ever shared: no locks, no priority inversion by a lock,
//! the caches stay warm, and the order of everything is reproducible.
//!
//! # What is bounded by what
//!
//! * The choice of the next job takes constant time: a bit a priority says where jobs are
//!   ready, a list a priority holds them in the order of their release.
//! * Releasing a job by time takes time logarithmic in the number of jobs.
//! * A job waits for at most **one** activation of lower priority (*blocking*), the one that
//!   had begun when it was released: bounded by the longest activation below it, hence by the
//!   item limits. It waits for every activation of higher priority released meanwhile
//!   (*interference*), and for those of its own priority that were ready before it.
//! * Where a priority was granted a *share* of the one right above it
//!   ([`Executor::grant_share`]), a job of the upper one waits besides for one activation of the
//!   lower one for each so many items that jobs of the upper one have handled, if something waits
//!   there. It is judged as one of the upper priority: nobody more urgent waits for it longer than
//!   for any other activation of that.
//! * `again` puts a job behind the others of its priority, so that two equals share the
//!   processor by turns, and never in front of a more critical one.
//! * Memory is bounded by [`ExecutorConfig::max_jobs`] and taken in [`Executor::new`].
//!
//! The bounds themselves will be computed in `model`, by the analysis for non-preemptive fixed
//! priority with all instances of the busy period (Davis, Burns, Bril, Lukkien 2007); this
//! crate observes: maxima, blocking, priority inversions, and which job ran at an instant of the past.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod activation;
mod executor;
mod history;
mod job;
pub mod limits;
mod queues;
mod ready;
mod share;
mod table;
mod time_queue;
mod waited;

pub use executor::{Executor, ExecutorConfig, TableFull};
pub use job::{Job, JobConfig, JobId, Name, Observed, Trigger};
pub use waited::Waited;

#[cfg(test)]
mod tests;
