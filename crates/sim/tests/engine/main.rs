//! How engines behave in a world: statements about what users and peers see.
//!
//! Every world ends by balancing its ledgers (`World` sees to that when it is dropped).

mod addresses;
mod best_effort;
mod chaos;
mod delivery;
mod discovery;
mod foreign;
mod history;
mod hostile;
mod keyed;
mod matching;
mod peer;
mod refused;
mod support;
mod world;
