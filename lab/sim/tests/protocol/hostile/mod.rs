//! Hostile peers: what they can do, what they cannot, and what is counted of it.
//!
//! `docs/threats.md` lists them for users, each with its test; [`page`] sees to it that those exist.
//!
//! # What an attacker is assumed to be able to do
//!
//! To send any datagram to any port of a participant, with any source address, in the name of any participant
//! whose GUID it has seen or made up, as often as it likes.
//!
//! # What holds nevertheless
//!
//! - Nothing panics, and every ledger balances ([`noise`]).
//! - Every table stays within its limit, nothing is allocated, and a datagram files a bounded number of
//!   steps ([`floods`], `tests/hostile_memory.rs`).
//! - Those that are matched go on: reliable KEEP_ALL topics deliver everything ([`floods`]).
//! - What others announce is taken in, however fast it announces itself, its endpoints or made-up participants
//!   ([`announcers`]).
//! - An address from which a participant has not answered is sent no samples, and at most three bytes for one
//!   ([`amplification`]); one that answers cannot have samples sent to others ([`third_parties`]).
//!
//! # What cannot be withstood without authentication
//!
//! An attacker that knows a participant's GUID, as everybody in its network does, can speak in its name. That is
//! believed, and counted ([`forgery`]):
//!
//! - A GAP or HEARTBEAT of a matched writer makes its readers pass over samples that would have come: `lost`.
//! - DATA of a matched writer is delivered in place of the sample with its number: the true one is a
//!   `duplicate`.
//! - An ACKNACK of a matched reader makes the writer give up what that reader has not got: a GAP, `lost`
//!   there. One that acknowledges nothing holds a KEEP_ALL writer up as long as the reader is matched.
//! - A farewell, or a lease of nothing, parts it from all until it announces itself again.
//! - Another address in its announcement redirects its traffic to that address.
//! - Answers with a forged source address have samples go to that address, until the lease of who announced it ends.
//! - Participants that renew their leases keep the tables full: newcomers are refused, and counted, until
//!   there is a place.

mod amplification;
mod announcers;
mod floods;
mod forgery;
mod jumps;
mod noise;
mod page;
mod third_parties;
