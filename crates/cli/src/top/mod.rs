//! `isolane top`: what the isolane processes of this host do, as they say themselves.
//!
//! Found (`find`) in `/proc/net/unix`, which lists the Unix sockets of this network namespace;
//! asked (`connection`) for a snapshot a second; two of them make rates (`rates`); and shown: as JSON
//! (`sample`), as lines of text (`lines`, with `words`, laid out by `columns`), and on a terminal as the same lines
//! in colour, to scroll through (`view`).
//!
//! What a process says is not trusted: a line has a bound, and what is shown holds no control
//! characters.

mod columns;
mod connection;
mod find;
pub(crate) mod lines;
mod rates;
pub(crate) mod sample;
pub(crate) mod view;
pub(crate) mod watcher;
mod words;
