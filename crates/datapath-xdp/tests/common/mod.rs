//! What tests and examples with real devices share: two network namespaces joined by a veth pair, and
//! small programs for the driver's hook.
//!
//! It is our own, and not that of the measurements (`isolane-bench`): these tests are about this crate
//! alone, and should build, and fail, without all that stands below it.

#![allow(
    dead_code,
    reason = "each test and example uses a part of what is here"
)]

pub(crate) mod bpf;
pub(crate) mod namespace;
