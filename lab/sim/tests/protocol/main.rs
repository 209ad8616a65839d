//! Behaviour of local participants in a simulated world, as users and peers see it.
//!
//! Every world checks that its ledgers balance when it is dropped (`World`).

mod addresses;
mod best_effort;
mod change;
mod chaos;
mod content_filter;
#[path = "../../../../tests/support/conversation.rs"]
mod conversation;
mod data_lifecycle;
mod deadline;
mod delivery;
mod destination_order;
mod discovered;
mod discovery;
mod discovery_rate;
mod durability;
mod enable;
mod filtered_history;
mod filtered_sharing;
mod filtered_writer;
mod flight;
mod foreign;
mod fragments;
mod history;
mod hostile;
mod ignore;
mod instance_states;
mod keyed;
mod large_domain;
mod latency_budget;
mod lifespan;
mod liveliness;
mod matching;
mod moving;
mod ownership;
mod partition;
mod peer;
mod presentation;
mod refused;
mod static_discovery;
mod static_impostors;
#[path = "../support/submessages.rs"]
mod submessages;
mod support;
mod time_based_filter;
mod world;
