//! `isolane top`: live state of the isolane processes on this host, as they report it.
//!
//! `find` lists their sockets from `/proc/net/unix` of this network namespace; `connection` reads a snapshot per
//! second; `rates` compares two of them. Output is JSON (`sample`), text (`lines`, with `words` and `columns`), or a
//! scrollable terminal view (`view`).
//!
//! Reports are not trusted: a line has a bound, and control characters are not shown.

mod columns;
mod connection;
mod find;
pub(crate) mod lines;
mod rates;
pub(crate) mod sample;
pub(crate) mod view;
pub(crate) mod watcher;
mod words;
