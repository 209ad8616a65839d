//! Command-line options in getopt style: short options may be joined with each other and with their values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, ValueEnum};
use isolane::limits::MIN_FRAGMENT_BYTES;
use isolane::{DurabilityKind, LivelinessKind, PresentationAccessScope};
use log::LevelFilter;

use crate::shape::MAX_PAYLOAD_BYTES;

/// Publishes shapes or subscribes to them, for interoperability tests
#[derive(Debug, Parser)]
#[command(name = "isolane-shape-main", version, allow_negative_numbers = true)]
pub(crate) struct Options {
    /// Set the log level: e (errors and warnings) or d (debug)
    #[arg(short = 'v', value_parser = letter(LOG_LEVELS), default_value = "e", value_name = "LEVEL")]
    pub(crate) log_level: LevelFilter,
    /// Publish
    #[arg(
        short = 'P',
        required_unless_present = "subscribe",
        conflicts_with = "subscribe"
    )]
    pub(crate) publish: bool,
    /// Subscribe
    #[arg(short = 'S')]
    pub(crate) subscribe: bool,
    /// Set the topic
    #[arg(short = 't', value_name = "TOPIC")]
    pub(crate) topic: String,
    /// Set the domain
    #[arg(short = 'd', default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=232))]
    pub(crate) domain: u32,
    /// Set RELIABILITY to BEST_EFFORT
    #[arg(short = 'b', overrides_with = "reliable")]
    pub(crate) best_effort: bool,
    /// Set RELIABILITY to RELIABLE, the default
    #[arg(short = 'r', overrides_with = "best_effort")]
    pub(crate) reliable: bool,
    /// Set HISTORY: 0 is KEEP_ALL, else KEEP_LAST with this depth [default: KEEP_LAST 1]
    #[arg(short = 'k', value_name = "N")]
    pub(crate) history: Option<u16>,
    /// Set DEADLINE in milliseconds; 0: none
    #[arg(short = 'f', value_parser = milliseconds, default_value = "0", value_name = "MS")]
    pub(crate) deadline: Duration,
    /// Set OWNERSHIP: -1 is SHARED, else EXCLUSIVE with this writer's strength
    #[arg(short = 's', default_value_t = -1, value_name = "N", value_parser = clap::value_parser!(i32).range(-1..))]
    pub(crate) strength: i32,
    /// Publisher: set the colour of the instance. Subscriber: accept only this colour
    #[arg(short = 'c', value_name = "COLOR")]
    pub(crate) color: Option<String>,
    /// Set PARTITION; either side may use wildcards
    #[arg(short = 'p', value_name = "PARTITION")]
    pub(crate) partition: Option<String>,
    /// Set DURABILITY: v (volatile), l (transient-local), t (transient) or p (persistent)
    #[arg(short = 'D', value_parser = letter(DURABILITIES), default_value = "v", value_name = "KIND")]
    pub(crate) durability: DurabilityKind,
    /// Set the data representation: XCDR 1 or 2
    #[arg(short = 'x', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) representation: u8,
    /// Publisher: print written samples
    #[arg(short = 'w')]
    pub(crate) print_written: bool,
    /// Set shapesize; 0: begin at 1 and grow by 1 per iteration
    #[arg(short = 'z', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) size: i32,
    /// Use read() instead of take()
    #[arg(short = 'R')]
    pub(crate) read: bool,
    /// Set the time between two samples of an instance, in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "33", value_name = "MS")]
    pub(crate) write_period: Duration,
    /// Set the time between two polls of a reader, in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "100", value_name = "MS")]
    pub(crate) read_period: Duration,
    /// Set TIME_BASED_FILTER in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) time_filter: Option<Duration>,
    /// Set LIFESPAN in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) lifespan: Option<Duration>,
    /// Stop after this many iterations
    #[arg(long, value_name = "N")]
    pub(crate) num_iterations: Option<u64>,
    /// Publisher: write this many instances, of colours C, C1, C2, …
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) num_instances: u16,
    /// Use this many topics, T, T1, T2, …, with a writer or reader each
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) num_topics: u16,
    /// Publisher: end the instances as u (unregistered) or d (disposed)
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) final_instance_state: Option<FinalState>,
    /// Set the PRESENTATION access scope: i (instance), t (topic) or g (group)
    #[arg(long, value_parser = letter(ACCESS_SCOPES), default_value = "i", value_name = "SCOPE")]
    pub(crate) access_scope: PresentationAccessScope,
    /// Set PRESENTATION to coherent access
    #[arg(long)]
    pub(crate) coherent: bool,
    /// Set PRESENTATION to ordered access
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Publisher: combine this many iterations into a coherent set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) coherent_sample_count: Option<u32>,
    /// Publisher: set the length of additional_payload_size; every byte is 255
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(crate) additional_payload_size: usize,
    /// Use take() and read() instead of their next_instance forms
    #[arg(long)]
    pub(crate) take_read: bool,
    /// Set the time between two announcements of the participant, in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) periodic_announcement: Option<Duration>,
    /// Set the maximum fragment size in bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) datafrag_size: Option<u16>,
    /// Subscriber: set a content filter, as in `shapesize <= 20`
    #[arg(long, value_name = "EXPRESSION", action = ArgAction::Set)]
    pub(crate) cft: Option<String>,
    /// Beyond the contract: set LIVELINESS, a (automatic), p (manual by participant) or t (manual by topic); see
    /// --lease
    #[arg(long, value_parser = letter(LIVELINESSES), default_value = "a", value_name = "KIND")]
    pub(crate) liveliness: LivelinessKind,
    /// Beyond the contract: set the lease of LIVELINESS in milliseconds [default: infinite]
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) lease: Option<Duration>,
    /// Beyond the contract: set LATENCY_BUDGET in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "0", value_name = "MS")]
    pub(crate) latency_budget: Duration,
    /// Beyond the contract: set USER_DATA of writer or reader
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) user_data: String,
    /// Beyond the contract: set TOPIC_DATA
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) topic_data: String,
    /// Beyond the contract: set GROUP_DATA
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) group_data: String,
    /// Beyond the contract, subscriber: print USER_DATA, TOPIC_DATA and GROUP_DATA of writers of its topic
    #[arg(long)]
    pub(crate) print_data: bool,
    /// Beyond the contract: run the loop's thread on this core
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<u16>,
    /// Beyond the contract: run the loop's thread under SCHED_FIFO with this priority
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=98))]
    pub(crate) priority: Option<u8>,
    /// Beyond the contract: lock all memory of the process, mlockall(2)
    #[arg(long)]
    pub(crate) lock_memory: bool,
    /// With -z 0: grow sizes from 1 to N and begin again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) size_modulo: Option<i32>,
}

const LOG_LEVELS: &[(&str, LevelFilter)] = &[("e", LevelFilter::Warn), ("d", LevelFilter::Debug)];

const DURABILITIES: &[(&str, DurabilityKind)] = &[
    ("v", DurabilityKind::Volatile),
    ("l", DurabilityKind::TransientLocal),
    ("t", DurabilityKind::Transient),
    ("p", DurabilityKind::Persistent),
];

const LIVELINESSES: &[(&str, LivelinessKind)] = &[
    ("a", LivelinessKind::Automatic),
    ("p", LivelinessKind::ManualByParticipant),
    ("t", LivelinessKind::ManualByTopic),
];

const ACCESS_SCOPES: &[(&str, PresentationAccessScope)] = &[
    ("i", PresentationAccessScope::Instance),
    ("t", PresentationAccessScope::Topic),
    ("g", PresentationAccessScope::Group),
];

/// Returns the parser of a letter with its meaning.
fn letter<T: Copy + Send + Sync + 'static>(
    meanings: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let letters = PossibleValuesParser::new(meanings.iter().map(|(letter, _)| *letter));
    letters.map(|letter| {
        let found = meanings.iter().find(|(other, _)| *other == letter);
        found.expect("one of the possible letters").1
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FinalState {
    #[value(name = "u")]
    Unregistered,
    #[value(name = "d")]
    Disposed,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| "whole milliseconds, please")?;
    Ok(Duration::from_millis(number))
}

impl Options {
    /// Checks that the options are supported; otherwise returns the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.subscribe && self.color.is_some() && self.cft.is_some() {
            return Err("a subscriber takes -c or --cft, not both".into());
        }
        if self.additional_payload_size > MAX_PAYLOAD_BYTES {
            return Err(format!(
                "--additional-payload-size is {MAX_PAYLOAD_BYTES} at most"
            ));
        }
        match self.datafrag_size {
            Some(..MIN_FRAGMENT_BYTES) => {
                Err("--datafrag-size: fragments of less than 512 bytes: not supported".into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = String> {
        numbered(&self.topic, self.num_topics)
    }

    /// Returns the colours of the instances, starting with `first`.
    pub(crate) fn colors(&self, first: &str) -> impl Iterator<Item = String> {
        numbered(first, self.num_instances)
    }
}

/// Returns `count` names: the name, then the name with 1, 2, …
fn numbered(name: &str, count: u16) -> impl Iterator<Item = String> {
    (0..count).map(move |number| match number {
        0 => name.to_owned(),
        _ => format!("{name}{number}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Options, clap::Error> {
        let words = std::iter::once("isolane-shape-main").chain(arguments.split_whitespace());
        Options::try_parse_from(words)
    }

    #[test]
    fn options_are_taken_as_getopt_takes_them() {
        let options = parsed("-Pt Square -s-1 -k0 -z 0 -x2 -Dl -bw").unwrap();
        assert!(options.publish && options.best_effort && options.print_written);
        assert_eq!(options.topic, "Square");
        assert_eq!((options.strength, options.history), (-1, Some(0)));
        assert_eq!((options.size, options.representation), (0, 2));
        assert_eq!(options.durability, DurabilityKind::TransientLocal);
        assert_eq!(parsed("-S -t Square -s -1").unwrap().strength, -1);
    }

    #[test]
    fn the_last_of_two_reliabilities_holds() {
        assert!(parsed("-P -t T -b -r").unwrap().reliable);
        assert!(!parsed("-P -t T -b -r").unwrap().best_effort);
        assert!(parsed("-P -t T -r -b").unwrap().best_effort);
    }

    #[test]
    fn defaults_are_the_contract_s() {
        let options = parsed("-S -t T").unwrap();
        assert_eq!(options.write_period, Duration::from_millis(33));
        assert_eq!(options.read_period, Duration::from_millis(100));
        assert_eq!(
            (options.domain, options.size, options.strength),
            (0, 20, -1)
        );
        assert_eq!((options.history, options.representation), (None, 1));
        assert!(!options.best_effort);
    }

    #[test]
    fn it_publishes_or_subscribes_and_needs_a_topic() {
        for wrong in [
            "-t T",
            "-P -S -t T",
            "-P",
            "-P -t T -x 3",
            "-P -t T -D x",
            "-P -t T -f soon",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_isolane_lacks_is_said_in_the_words_that_tests_know() {
        let lacking = parsed("-P -t T --datafrag-size 100").unwrap();
        let problem = lacking.check().unwrap_err();
        assert!(problem.ends_with("not supported"), "{problem}");
        assert!(
            parsed("-P -t T --datafrag-size 1000")
                .unwrap()
                .check()
                .is_ok()
        );
        for scope in ["i", "t", "g"] {
            let presented = format!(
                "-P -t T --coherent --coherent-sample-count 3 --ordered --access-scope {scope}"
            );
            assert!(parsed(&presented).unwrap().check().is_ok());
        }
        let both = parsed("-S -t T -c RED --cft x>1")
            .unwrap()
            .check()
            .unwrap_err();
        assert!(!both.contains("not supported"));
    }

    #[test]
    fn several_topics_and_instances_are_numbered_behind_the_first() {
        let options = parsed("-P -t T --num-topics 3 --num-instances 2").unwrap();
        assert_eq!(options.topics().collect::<Vec<_>>(), ["T", "T1", "T2"]);
        assert_eq!(options.colors("RED").collect::<Vec<_>>(), ["RED", "RED1"]);
    }
}
