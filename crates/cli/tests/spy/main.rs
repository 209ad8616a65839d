//! `isolane spy` seen from outside: captures of other implementations, captures in every form, broken
//! ones, and a live one.

mod captures;
#[path = "../command/mod.rs"]
mod command;
mod forms;
mod golden;
mod live;
mod submessages;
mod support;
