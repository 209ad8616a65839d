//! `isolane spy` seen from outside: captures of other implementations, captures in every form, broken
//! ones, and a live one.

mod captures;
mod forms;
mod golden;
mod live;
mod support;
