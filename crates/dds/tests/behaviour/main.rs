//! Behaviour that users may rely on. Each test runs on the memory datapath and on UDP over 127.0.0.1, unless it
//! concerns only one of them. Every test ends with balanced ledgers, and with all frames returned.

mod announced;
mod batched;
mod best_effort;
mod budgets;
mod bursts;
mod callbacks;
mod creation;
mod described;
#[cfg(feature = "config")]
mod description;
mod discovered;
mod enabling;
mod faults;
mod filtered;
mod foreign_loop;
mod groups;
mod inversions;
mod keyed;
mod large;
mod limits;
mod many_readers;
mod matching;
mod panics;
mod priorities;
mod reliable;
mod representation;
mod response;
mod saturated;
mod segments;
mod selection;
mod statuses;
mod support;
mod thread;
mod timed;
mod timers;
mod wait_sets;
mod writer_handle;
