//! System description `isolane.toml`: hosts, topics, and the requirements of each topic.
//!
//! A description is read once into a [`System`]. A system is complete (defaults are filled in) and consistent (every
//! host that a topic names exists), and has the source of each value. All errors of a description are returned
//! together as [`Problem`]s, each with its location and, in most cases, a suggestion.
//!
//! ```
//! use isolane_datapath::{Kinds, udp::UdpKind};
//! use isolane_model::System;
//!
//! const KINDS: Kinds = &[&UdpKind];
//!
//! let text = r#"
//! [host.left]
//! interface = "eth0"
//!
//! [topic.BrakePressure]
//! type = "vehicle::BrakePressure"
//! level = 7
//! dealine = "400us"
//! max_bytes = 64
//! from = ["left"]
//! to = ["left"]
//! "#;
//! let problems = System::from_toml(text, "isolane.toml", KINDS).unwrap_err();
//! assert_eq!(problems[0].help(), Some("did you mean `deadline`?"));
//! assert_eq!((problems[0].line(), problems[0].column()), (Some(8), Some(1)));
//!
//! let system = System::from_toml(&text.replace("dealine", "deadline"), "isolane.toml", KINDS).unwrap();
//! let topic = system.topic("BrakePressure").unwrap();
//! assert_eq!(topic.level.value.get(), 7);
//! assert_eq!(topic.level.source.to_string(), "isolane.toml:7");
//! assert_eq!(topic.history.source.to_string(), "default");
//! ```
//!
//! This crate reads files, but no other state of the machine. For example, it does not check that an interface exists.

#![forbid(unsafe_code)]

mod datapath;
mod domain;
mod duration;
mod file;
mod host;
pub mod limits;
mod load;
mod participant;
mod print;
mod problem;
mod protect;
mod read;
mod source;
mod system;
mod topic;
mod tuning;
mod visible;
mod word;

pub use datapath::{DatapathChoice, DatapathSettings, Waiting};
pub use domain::{Domain, DomainError};
pub use duration::{DurationError, format_duration, parse_duration};
pub use file::{open_regular, read_opened, read_regular, read_regular_text};
pub use host::{Host, Scheduling, is_interface_name};
pub use isolane_datapath::OverBudget;
pub use load::example;
pub use participant::{Announces, Participant};
pub use problem::{Problem, Severity};
pub use protect::{HostProtection, InterfaceBudget, OthersBudget};
pub use source::{Source, Sourced};
pub use system::System;
pub use topic::{
    Budget, Durability, History, HistoryDepth, HistoryError, Reliability, SampleBytes, Topic,
    TopicNameError, check_topic_name,
};
pub use tuning::{Isolation, ProfileName, Steering, Switch, Transmit, Tuning, switches};
pub use visible::{visible, visible_line};
pub use word::Word;
