//! Tests of `isolane spy`: captures of other implementations, captures in every format, broken captures, and live
//! capture.

mod captures;
#[path = "../command/mod.rs"]
mod command;
mod forms;
mod golden;
mod live;
mod submessages;
mod support;
