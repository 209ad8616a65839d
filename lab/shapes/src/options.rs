//! The options, as a getopt program takes them: short ones may be joined and may join their value.

use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};

use isolane::limits::MIN_FRAGMENT_BYTES;

use crate::shape::MAX_PAYLOAD_BYTES;

/// Publishes shapes or subscribes to them, for interoperability tests
#[derive(Debug, Parser)]
#[command(name = "isolane-shape-main", version, allow_negative_numbers = true)]
pub(crate) struct Options {
    /// Log level: e (errors and warnings) or d (debug)
    #[arg(short = 'v', value_enum, default_value = "e", value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
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
    /// The topic
    #[arg(short = 't', value_name = "TOPIC")]
    pub(crate) topic: String,
    /// The domain
    #[arg(short = 'd', default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=232))]
    pub(crate) domain: u32,
    /// BEST_EFFORT
    #[arg(short = 'b', overrides_with = "reliable")]
    pub(crate) best_effort: bool,
    /// RELIABLE, which is the default
    #[arg(short = 'r', overrides_with = "best_effort")]
    pub(crate) reliable: bool,
    /// HISTORY: 0 is KEEP_ALL, else KEEP_LAST of so many; KEEP_LAST 1 without it
    #[arg(short = 'k', value_name = "N")]
    pub(crate) history: Option<u16>,
    /// DEADLINE in milliseconds; 0: none
    #[arg(short = 'f', value_parser = milliseconds, default_value = "0", value_name = "MS")]
    pub(crate) deadline: Duration,
    /// OWNERSHIP: -1 is SHARED, else EXCLUSIVE, and a writer's strength
    #[arg(short = 's', default_value_t = -1, value_name = "N", value_parser = clap::value_parser!(i32).range(-1..))]
    pub(crate) strength: i32,
    /// Publisher: colour of the instance; subscriber: only this colour
    #[arg(short = 'c', value_name = "COLOR")]
    pub(crate) color: Option<String>,
    /// PARTITION; wildcards on either side
    #[arg(short = 'p', value_name = "PARTITION")]
    pub(crate) partition: Option<String>,
    /// DURABILITY: v (volatile), l (transient-local), t (transient) or p (persistent)
    #[arg(short = 'D', value_enum, default_value = "v", value_name = "KIND")]
    pub(crate) durability: Durability,
    /// Data representation: XCDR 1 or 2
    #[arg(short = 'x', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) representation: u8,
    /// Publisher: print what is written
    #[arg(short = 'w')]
    pub(crate) print_written: bool,
    /// shapesize; 0: begins at 1 and grows by 1 an iteration
    #[arg(short = 'z', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) size: i32,
    /// read() instead of take()
    #[arg(short = 'R')]
    pub(crate) read: bool,
    /// Time between two samples of an instance, in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "33", value_name = "MS")]
    pub(crate) write_period: Duration,
    /// Time between two looks at a reader, in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "100", value_name = "MS")]
    pub(crate) read_period: Duration,
    /// TIME_BASED_FILTER in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) time_filter: Option<Duration>,
    /// LIFESPAN in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) lifespan: Option<Duration>,
    /// Iterations after which the program ends
    #[arg(long, value_name = "N")]
    pub(crate) num_iterations: Option<u64>,
    /// Publisher: so many instances, of colours C, C1, C2, …
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) num_instances: u16,
    /// So many topics, T, T1, T2, …, with a writer or reader each
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) num_topics: u16,
    /// Publisher: what becomes of the instances at the end: u (unregistered) or d (disposed)
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) final_instance_state: Option<FinalState>,
    /// PRESENTATION access scope: i (instance), t (topic) or g (group)
    #[arg(long, value_enum, default_value = "i", value_name = "SCOPE")]
    pub(crate) access_scope: AccessScope,
    /// PRESENTATION: coherent access
    #[arg(long)]
    pub(crate) coherent: bool,
    /// PRESENTATION: ordered access
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Publisher: iterations in a coherent set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) coherent_sample_count: Option<u32>,
    /// Publisher: length of additional_payload_size; every byte is 255
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(crate) additional_payload_size: usize,
    /// take() and read() instead of their next_instance forms
    #[arg(long)]
    pub(crate) take_read: bool,
    /// Time between two announcements of the participant, in milliseconds
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) periodic_announcement: Option<Duration>,
    /// Bytes of a fragment at most
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) datafrag_size: Option<u16>,
    /// Subscriber: content filter, as in `shapesize <= 20`
    #[arg(long, value_name = "EXPRESSION", action = ArgAction::Set)]
    pub(crate) cft: Option<String>,
    /// Beyond the contract: LIVELINESS, a (automatic), p (manual by participant) or t (manual by topic); see --lease
    #[arg(long, value_enum, default_value = "a", value_name = "KIND")]
    pub(crate) liveliness: Liveliness,
    /// Beyond the contract: lease of LIVELINESS in milliseconds; without it there is no end
    #[arg(long, value_parser = milliseconds, value_name = "MS")]
    pub(crate) lease: Option<Duration>,
    /// Beyond the contract: LATENCY_BUDGET in milliseconds
    #[arg(long, value_parser = milliseconds, default_value = "0", value_name = "MS")]
    pub(crate) latency_budget: Duration,
    /// Beyond the contract: USER_DATA of writer or reader
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) user_data: String,
    /// Beyond the contract: TOPIC_DATA
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) topic_data: String,
    /// Beyond the contract: GROUP_DATA
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
    /// With -z 0: sizes run from 1 to N and begin again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) size_modulo: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    #[value(name = "e")]
    Errors,
    #[value(name = "d")]
    Debug,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    #[value(name = "v")]
    Volatile,
    #[value(name = "l")]
    TransientLocal,
    #[value(name = "t")]
    Transient,
    #[value(name = "p")]
    Persistent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Liveliness {
    #[value(name = "a")]
    Automatic,
    #[value(name = "p")]
    ManualByParticipant,
    #[value(name = "t")]
    ManualByTopic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FinalState {
    #[value(name = "u")]
    Unregistered,
    #[value(name = "d")]
    Disposed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessScope {
    #[value(name = "i")]
    Instance,
    #[value(name = "t")]
    Topic,
    #[value(name = "g")]
    Group,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| "whole milliseconds, please")?;
    Ok(Duration::from_millis(number))
}

impl Options {
    /// What cannot be done as it was asked for, in words.
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

    /// The topics' names.
    pub(crate) fn topics(&self) -> impl Iterator<Item = String> {
        numbered(&self.topic, self.num_topics)
    }

    /// The instances' colours, the first being this.
    pub(crate) fn colors(&self, first: &str) -> impl Iterator<Item = String> {
        numbered(first, self.num_instances)
    }
}

/// A name, then the name with 1, 2, …
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
        assert_eq!(options.durability, Durability::TransientLocal);
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
