//! Endpoints of one type in each extensibility and representation: isolane's side of `cargo xtask types`.
//!
//! ```text
//! cargo run --package isolane --example typed w:final_1:1 r:appendable_12:12
//! ```
//!
//! `lab/interop/programs/typed.h` defines the command line, the values and the printed lines. Here a topic's name
//! begins with the extensibility of its type. There is additional output: `TOPIC rejected REASON`, and the library's
//! log on standard error.

use std::{
    collections::HashSet,
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use isolane::{
    DataReader, DataWriter, InstanceState, Participant, PolicyId, Qos, RejectReason,
    Representation, TopicType,
};

/// Number of samples that a writer writes, all of one instance.
const SAMPLES: u8 = 3;
/// Run time unless a signal ends the program.
const RUN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// Operations common to both extensibilities.
trait Reading: TopicType {
    fn sample(number: u8) -> Self;
    fn text(&self) -> String;
}

macro_rules! reading {
    ($module:ident, $extensibility:ident) => {
        mod $module {
            use super::TopicType;

            /// Type `Part` of `Reading.idl`.
            #[derive(TopicType)]
            #[topic(name = "matrix::Part", $extensibility)]
            pub(crate) struct Part {
                #[topic(key)]
                number: u8,
                serial: u64,
                label: String,
                values: Vec<f64>,
            }

            /// Type `Reading` of `Reading.idl`.
            #[derive(TopicType)]
            #[topic(name = "matrix::Reading", $extensibility)]
            pub(crate) struct Reading {
                #[topic(key)]
                name: String,
                #[topic(key)]
                part: Part,
                flag: u8,
                value: f64,
                stamp: u64,
                parts: Vec<Part>,
                notes: Vec<String>,
                counts: Vec<u64>,
            }

            fn part(number: u8, serial: u64, label: &str, values: &[f64]) -> Part {
                Part {
                    number,
                    serial,
                    label: label.into(),
                    values: values.into(),
                }
            }

            fn text(part: &Part) -> String {
                let values: Vec<String> = part.values.iter().map(f64::to_string).collect();
                let (number, serial, label) = (part.number, part.serial, &part.label);
                format!("{number},{serial},{label},{}", values.join("+"))
            }

            impl super::Reading for Reading {
                fn sample(number: u8) -> Self {
                    Self {
                        name: "left".into(),
                        part: part(3, 0x0102_0304_0506_0708, "axle", &[0.5, -2.25]),
                        flag: number,
                        value: 0.125 + f64::from(number),
                        stamp: 0xffff_ffff_0000_0000 + u64::from(number),
                        parts: vec![part(1, 11, "a", &[]), part(2, 22, "bcd", &[1.5])],
                        notes: vec![String::new(), "north".into()],
                        counts: vec![1, 1 << 63],
                    }
                }

                fn text(&self) -> String {
                    let parts: Vec<String> = self.parts.iter().map(text).collect();
                    let counts: Vec<String> = self.counts.iter().map(u64::to_string).collect();
                    let (part, parts) = (text(&self.part), parts.join(";"));
                    let (notes, counts) = (self.notes.join(","), counts.join("+"));
                    format!(
                        "{}/{part}/{}/{}/{}/{parts}/{notes}/{counts}",
                        self.name, self.flag, self.value, self.stamp
                    )
                }
            }
        }
    };
}

reading!(of_final, final_);
reading!(of_appendable, appendable);

/// Writer or reader that is polled periodically.
trait Endpoint {
    fn look(&mut self) -> Result<(), Box<dyn Error>>;
}

/// Lines of a topic, each printed once.
struct Lines {
    topic: String,
    said: HashSet<String>,
}

impl Lines {
    fn say(&mut self, line: String) {
        if !self.said.contains(&line) {
            println!("{} {line}", self.topic);
            self.said.insert(line);
        }
    }

    fn say_incompatible(&mut self, found: Option<isolane::Incompatible>) {
        match found.map(|found| found.policy) {
            Some(PolicyId::DATA_REPRESENTATION) => {
                self.say("incompatible DATA_REPRESENTATION".into());
            }
            Some(_) => self.say("incompatible other".into()),
            None => {}
        }
    }
}

impl<T: Reading> Endpoint for (DataWriter<T>, Lines) {
    fn look(&mut self) -> Result<(), Box<dyn Error>> {
        let (writer, lines) = self;
        lines.say_incompatible(writer.incompatible());
        if writer.matched_readers() > 0 && !lines.said.contains("matched") {
            lines.say("matched".into());
            for number in 0..SAMPLES {
                writer.write(&T::sample(number))?;
            }
            writer.dispose(&T::sample(SAMPLES - 1))?;
            lines.say("written".into());
        }
        Ok(())
    }
}

impl<T: Reading> Endpoint for (DataReader<T>, Lines) {
    fn look(&mut self) -> Result<(), Box<dyn Error>> {
        let (reader, lines) = self;
        lines.say_incompatible(reader.incompatible());
        if reader.matched_writers() > 0 {
            lines.say("matched".into());
        }
        while reader.available() > 0 {
            // A sample that cannot be read counts as rejected, which is printed below.
            let Ok(Some(sample)) = reader.take() else {
                continue;
            };
            if let Some(value) = &sample.value {
                println!("{} sample {}", lines.topic, value.text());
            }
            if sample.info.instance_state == InstanceState::NotAliveDisposed {
                lines.say("disposed".into());
            }
        }
        match reader.sample_rejected_status().last_reason {
            Some(RejectReason::Encapsulation(identifier)) => {
                lines.say(format!("rejected {identifier}"));
            }
            Some(reason) => lines.say(format!("rejected {reason:?}")),
            None => {}
        }
        if reader.sample_lost_status().total_count > 0 {
            lines.say("lost".into());
        }
        Ok(())
    }
}

fn create<T: Reading + 'static>(
    participant: &Participant,
    (kind, topic, representations): (&str, &str, &str),
) -> Result<Box<dyn Endpoint>, Box<dyn Error>> {
    let lines = Lines {
        topic: topic.into(),
        said: HashSet::new(),
    };
    let qos = Qos::reliable().transient_local().keep_all();
    let qos = match representations {
        "1" => qos.only_representation(Representation::Xcdr1),
        "2" => qos.only_representation(Representation::Xcdr2),
        _ => qos,
    };
    Ok(match kind {
        "w" => Box::new((participant.create_writer::<T>(topic, &qos)?, lines)),
        _ => Box::new((participant.create_reader::<T>(topic, &qos)?, lines)),
    })
}

fn endpoint(
    participant: &Participant,
    description: &str,
) -> Result<Box<dyn Endpoint>, Box<dyn Error>> {
    let parts: Vec<&str> = description.split(':').collect();
    match parts[..] {
        [kind @ ("w" | "r"), topic, takes] if topic.starts_with("final") => {
            create::<of_final::Reading>(participant, (kind, topic, takes))
        }
        [kind @ ("w" | "r"), topic, takes] if topic.starts_with("appendable") => {
            create::<of_appendable::Reading>(participant, (kind, topic, takes))
        }
        _ => {
            Err(format!("not an endpoint: {description}; see lab/interop/programs/typed.h").into())
        }
    }
}

/// Logger to standard error.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{}", record.args());
    }

    fn flush(&self) {}
}

fn run() -> Result<(), Box<dyn Error>> {
    log::set_logger(&Log)?;
    log::set_max_level(log::LevelFilter::Warn);
    let participant = Participant::builder(0)
        .name("typed")
        // 48 endpoints of a type without bounds.
        .sample_memory(64 << 20)
        .observable(true)
        .build()?;
    let descriptions: Vec<String> = std::env::args().skip(1).collect();
    let endpoints = descriptions.iter().map(|it| endpoint(&participant, it));
    let mut endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
    // SIGINT ends the process; no final announcement is needed.
    let end = Instant::now() + RUN;
    while Instant::now() < end {
        participant.run_for(LOOK);
        endpoints.iter_mut().try_for_each(|it| it.look())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("typed: {error}");
            ExitCode::FAILURE
        }
    }
}
