//! The peer Dust DDS for the matrix of types. Usage: ../../typed.h; before the endpoints stands `final` or
//! `appendable`.

use std::collections::HashSet;
use std::env;
use std::future::{Future, ready};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::dds_async::data_writer::DataWriterAsync;
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    DATA_REPRESENTATION_QOS_POLICY_ID, DataRepresentationQosPolicy, DurabilityQosPolicy,
    DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind, QosPolicyId,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind, XCDR_DATA_REPRESENTATION,
    XCDR2_DATA_REPRESENTATION,
};
use dust_dds::infrastructure::sample_info::{
    ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE, InstanceStateKind,
};
use dust_dds::infrastructure::status::{
    NO_STATUS, OfferedIncompatibleQosStatus, RequestedIncompatibleQosStatus, StatusKind,
};
use dust_dds::infrastructure::time::DurationKind;
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::publication::data_writer_listener::DataWriterListener;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::subscription::data_reader_listener::DataReaderListener;
use dust_dds::xtypes::type_support::TypeSupport;

const SAMPLES: u8 = 3;
const RUN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// What both extensibilities have in common.
trait Reading: TypeSupport + Sized {
    fn sample(number: u8) -> Self;
    fn text(&self) -> String;
}

macro_rules! reading {
    ($module:ident, $extensibility:literal) => {
        mod $module {
            use super::*;

            #[derive(DdsType, Clone, Debug)]
            #[dust_dds(extensibility = $extensibility, nested)]
            pub struct Part {
                #[dust_dds(key)]
                number: u8,
                serial: u64,
                label: String,
                values: Vec<f64>,
            }

            #[derive(DdsType, Clone, Debug)]
            #[dust_dds(extensibility = $extensibility)]
            pub struct Reading {
                #[dust_dds(key)]
                name: String,
                #[dust_dds(key)]
                part: Part,
                flag: u8,
                value: f64,
                stamp: u64,
                parts: Vec<Part>,
                notes: Vec<String>,
                counts: Vec<u64>,
            }

            fn part(number: u8, serial: u64, label: &str, values: &[f64]) -> Part {
                let (label, values) = (label.into(), values.into());
                Part {
                    number,
                    serial,
                    label,
                    values,
                }
            }

            fn text(part: &Part) -> String {
                let values: Vec<String> = part.values.iter().map(f64::to_string).collect();
                format!(
                    "{},{},{},{}",
                    part.number,
                    part.serial,
                    part.label,
                    values.join("+")
                )
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
                    format!(
                        "{}/{}/{}/{}/{}/{}/{}/{}",
                        self.name,
                        text(&self.part),
                        self.flag,
                        self.value,
                        self.stamp,
                        parts.join(";"),
                        self.notes.join(","),
                        counts.join("+")
                    )
                }
            }
        }
    };
}

reading!(final_type, "final");
reading!(appendable_type, "appendable");

/// Prints lines of a topic, each once.
struct Said {
    topic: String,
    lines: HashSet<String>,
}

impl Said {
    fn say(&mut self, line: String) {
        if self.lines.insert(line.clone()) {
            println!("{} {line}", self.topic);
        }
    }

    fn has(&self, line: &str) -> bool {
        self.lines.contains(line)
    }
}

/// Prints which incompatible endpoint was met: the getters of the status are not implemented in this version.
struct Heard {
    topic: String,
    is_said: bool,
}

impl Heard {
    fn say(&mut self, policy: QosPolicyId) {
        let policy = match policy {
            DATA_REPRESENTATION_QOS_POLICY_ID => "DATA_REPRESENTATION",
            _ => "other",
        };
        if !std::mem::replace(&mut self.is_said, true) {
            println!("{} incompatible {policy}", self.topic);
        }
    }
}

impl<T: 'static> DataWriterListener<T> for Heard {
    fn on_offered_incompatible_qos(
        &mut self,
        _: DataWriterAsync<T>,
        status: OfferedIncompatibleQosStatus,
    ) -> impl Future<Output = ()> + Send {
        self.say(status.last_policy_id);
        ready(())
    }
}

impl<T: 'static> DataReaderListener<T> for Heard {
    fn on_requested_incompatible_qos(
        &mut self,
        _: DataReaderAsync<T>,
        status: RequestedIncompatibleQosStatus,
    ) -> impl Future<Output = ()> + Send {
        self.say(status.last_policy_id);
        ready(())
    }
}

enum Endpoint<T> {
    Writer(DataWriter<T>, Said),
    Reader(DataReader<T>, Said),
}

fn create<T: Reading + 'static>(
    participant: &DomainParticipant,
    description: &str,
) -> Option<Endpoint<T>> {
    let mut parts = description.split(':');
    let (kind, topic, takes) = (parts.next()?, parts.next()?, parts.next()?);
    let mut said = Said {
        topic: topic.into(),
        lines: HashSet::new(),
    };
    let representations = [
        ("1", XCDR_DATA_REPRESENTATION),
        ("2", XCDR2_DATA_REPRESENTATION),
    ];
    let taken = representations
        .iter()
        .filter(|(digit, _)| takes.contains(digit));
    let representation = DataRepresentationQosPolicy {
        value: taken.map(|(_, id)| *id).collect(),
    };
    let reliability = ReliabilityQosPolicy {
        kind: ReliabilityQosPolicyKind::Reliable,
        max_blocking_time: DurationKind::Finite(dust_dds::infrastructure::time::Duration::new(
            1, 0,
        )),
    };
    let durability = DurabilityQosPolicy {
        kind: DurabilityQosPolicyKind::TransientLocal,
    };
    let history = HistoryQosPolicy {
        kind: HistoryQosPolicyKind::KeepAll,
    };
    let heard = Some(Heard {
        topic: topic.into(),
        is_said: false,
    });
    let topic = participant.create_topic::<T>(
        topic,
        "matrix::Reading",
        QosKind::Default,
        NO_LISTENER,
        NO_STATUS,
    );
    let made = topic.and_then(|topic| match kind {
        "w" => {
            let publisher =
                participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS)?;
            let qos = DataWriterQos {
                representation,
                reliability,
                durability,
                history,
                ..Default::default()
            };
            publisher
                .create_datawriter(
                    &topic,
                    QosKind::Specific(qos),
                    heard,
                    &[StatusKind::OfferedIncompatibleQos],
                )
                .map(Err)
        }
        _ => {
            let subscriber =
                participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS)?;
            let qos = DataReaderQos {
                representation,
                reliability,
                durability,
                history,
                ..Default::default()
            };
            subscriber
                .create_datareader::<T>(
                    &topic,
                    QosKind::Specific(qos),
                    heard,
                    &[StatusKind::RequestedIncompatibleQos],
                )
                .map(Ok)
        }
    });
    match made {
        Ok(Err(writer)) => Some(Endpoint::Writer(writer, said)),
        Ok(Ok(reader)) => Some(Endpoint::Reader(reader, said)),
        Err(error) => {
            said.say(format!("impossible {error:?}"));
            None
        }
    }
}

fn look<T: Reading + Clone + 'static>(endpoint: &mut Endpoint<T>) {
    match endpoint {
        Endpoint::Writer(writer, said) => {
            let matched = writer.get_publication_matched_status();
            if matched.is_ok_and(|status| status.current_count > 0) && !said.has("matched") {
                said.say("matched".into());
                let written =
                    (0..SAMPLES).try_for_each(|number| writer.write(T::sample(number), None));
                let ended = written.and_then(|()| writer.dispose(T::sample(SAMPLES - 1), None));
                said.say(match ended {
                    Ok(()) => "written".into(),
                    Err(error) => format!("impossible {error:?}"),
                });
            }
        }
        Endpoint::Reader(reader, said) => {
            if reader
                .get_subscription_matched_status()
                .is_ok_and(|status| status.total_count > 0)
            {
                said.say("matched".into());
            }
            let taken = reader.take(16, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE);
            for sample in taken.unwrap_or_default() {
                if let Some(value) = &sample.data {
                    println!("{} sample {}", said.topic, value.text());
                }
                if sample.sample_info.instance_state == InstanceStateKind::NotAliveDisposed {
                    said.say("disposed".into());
                }
            }
        }
    }
}

fn run<T: Reading + Clone + 'static>(descriptions: &[String]) {
    let factory = DomainParticipantFactory::get_instance();
    let participant = factory
        .create_participant(0, QosKind::Default, NO_LISTENER, NO_STATUS)
        .expect("a participant");
    let mut endpoints: Vec<Endpoint<T>> = descriptions
        .iter()
        .filter_map(|description| create(&participant, description))
        .collect();
    // SIGINT ends the process: nothing here needs a farewell.
    let end = Instant::now() + RUN;
    while Instant::now() < end {
        endpoints.iter_mut().for_each(look);
        sleep(LOOK);
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((kind, endpoints)) if kind == "final" => run::<final_type::Reading>(endpoints),
        Some((kind, endpoints)) if kind == "appendable" => {
            run::<appendable_type::Reading>(endpoints)
        }
        _ => {
            eprintln!("typed: say `final` or `appendable`, and endpoints; see typed.h");
            std::process::exit(2);
        }
    }
}
