//! `isolane sub`: a reader that prints each received shape on a line, as text or as JSON.

use std::collections::BTreeMap;

use clap::Args;
use isolane::{Budget, DataReader, InstanceState, Qos, Sample, SampleInfo};
use isolane_model::{Sourced, Topic, visible_line};
use serde_json::{Value, json};

use super::match_report::{MatchReport, Side};
use super::shape::{ShapeType, line};
use super::{EndpointArguments, EndpointSettings};
use crate::commands::ledger_text;
use crate::commands::participant::{Until, build_endpoint, failure};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::MAX_COLORS;
use crate::output::{JsonLines, count_of, print, tell};
use crate::settings::Settings;
use crate::values::{Destination, ReceiveBudget, count};

#[derive(Debug, Args)]
pub(crate) struct Subscribe {
    #[command(flatten)]
    endpoint: EndpointArguments,
    /// Accept at most N datagrams in each PERIOD (100us to 10s), as 20/10ms. Append /drop to drop the others (the
    /// default), or /demote to move them to the lowest lane
    ///
    /// A budget needs the datapath xdp. The default is the description's, else no limit.
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<ReceiveBudget>,
    /// Stop after this many samples; exit code 1 if --seconds ends first
    ///
    /// The default is no limit, and exit code 0 even if no sample arrives.
    #[arg(long, value_name = "N", value_parser = count())]
    count: Option<u64>,
    /// Write each sample as a line of JSON to this file; `-` prints JSON instead of text
    ///
    /// With a file, the text is printed too.
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// Complete settings of a subscriber.
#[derive(Debug)]
pub(crate) struct SubscribeSettings {
    pub(crate) endpoint: EndpointSettings,
    /// Receive budget of the topic; `None`: unlimited.
    pub(crate) budget: Option<ReceiveBudget>,
    /// Number of samples to print; `None`: until the time is over or a signal arrives.
    count: Option<u64>,
    json: Option<Destination>,
}

impl Subscribe {
    /// Subscribes until the count is reached, the time is over, or a signal arrives.
    pub(crate) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let subscribe = self.resolve(&mut settings)?;
        settings.begin()?;
        run(&subscribe)
    }

    /// Resolves the options with the description.
    pub(crate) fn resolve(self, settings: &mut Settings) -> Result<SubscribeSettings, Failure> {
        let system = settings.system.as_ref();
        let topic = system.and_then(|system| system.topic(&self.endpoint.topic));
        let described = topic.and_then(described_budget);
        let budget = settings.layered(
            "--budget",
            self.budget.map(Some),
            described.as_ref(),
            Sourced::default_value(None),
            |budget| budget.map_or(String::from("none"), |it| it.to_string()),
        );
        Ok(SubscribeSettings {
            endpoint: self.endpoint.resolve(Side::Reader, None, settings)?,
            budget,
            count: self.count,
            json: self.json,
        })
    }
}

fn described_budget(topic: &Topic) -> Option<Sourced<Option<ReceiveBudget>>> {
    let budget = topic.budget.as_ref()?;
    let received = ReceiveBudget {
        capacity: budget.capacity.value,
        period: budget.period.value,
        over: budget.over.value,
    };
    Some(Sourced::new(Some(received), budget.capacity.source.clone()))
}

fn run(settings: &SubscribeSettings) -> Result<ExitCode, Failure> {
    let mut printer = Printer::new(settings)?;
    let until = Until::new(settings.endpoint.run_for)?.with_network(&settings.endpoint.network);
    let verbosity = settings.endpoint.network.verbosity;
    let (participant, mut notes) = build_endpoint(
        &format!("isolane sub {}", settings.endpoint.topic),
        &settings.endpoint,
    )?;
    let reader = participant
        .create_reader::<ShapeType>(&settings.endpoint.topic, &with_budget(settings))
        .map_err(failure)?;
    notes.tell(&participant);

    let mut report = MatchReport::new(Side::Reader, verbosity);
    let mut printed = Ok(());
    until.run(&participant, || {
        report.look(reader.matched_writers(), reader.incompatible());
        // After a failure nothing more is printed: the loop calls this closure again before it ends.
        if printed.is_ok() {
            printed = printer.print_available(&reader);
        }
        printed.is_err() || printer.printed >= printer.wanted
    });
    printed?;
    printer.print_available(&reader)?;
    printer.finish()?;

    report.look(reader.matched_writers(), reader.incompatible());
    report.tell_end();
    tell(format!("{} printed", count_of(printer.printed, "sample")));
    if printer.beyond > 0 {
        tell(format!(
            "{} arrived after the last one and {} not printed",
            count_of(printer.beyond, "more sample"),
            if printer.beyond == 1 { "was" } else { "were" }
        ));
    }
    tell(format!(
        "in all: {}",
        ledger_text::of_reader(&reader.ledger())
    ));
    if let Some(response) = reader.response_deadline() {
        tell(ledger_text::of_response(
            &settings.endpoint.topic,
            &response,
        ));
    }
    let silent = reader.requested_deadline_missed_status().total_count;
    if silent > 0 {
        tell(format!(
            "{}: QoS DEADLINE missed {} (no sample within period + deadline)",
            settings.endpoint.topic,
            count_of(silent, "time")
        ));
    }
    let by_budget = dropped_by_budget(&reader);
    if by_budget > 0 {
        tell(format!(
            "{} dropped by this reader's own budget; the samples in them count as lost",
            count_of(by_budget, "datagram")
        ));
    }
    if printer.unreadable > 0 {
        tell(format!(
            "{} of the rejected samples are not of the type ShapeType",
            printer.unreadable
        ));
    }
    if verbosity > 1 {
        ledger_text::tell_all(&participant);
    }
    let count = settings.count;
    Ok(if until.interrupted() {
        ExitCode::Interrupted
    } else if count.is_some_and(|count| printer.printed < count) {
        tell(match reader.matched_writers() {
            0 => "the time ended before all samples arrived; no writer is matched",
            _ => "the time ended before all samples arrived",
        });
        ExitCode::AnswerIsNo
    } else {
        ExitCode::Done
    })
}

fn with_budget(settings: &SubscribeSettings) -> Qos {
    let qos = settings.endpoint.qos.clone();
    match settings.budget {
        Some(ReceiveBudget {
            capacity,
            period,
            over,
        }) => qos.budget(Budget { capacity, period }, over),
        None => qos,
    }
}

/// Number of datagrams that were dropped because they exceeded the reader's budget.
fn dropped_by_budget(reader: &DataReader<ShapeType>) -> u64 {
    let flow = reader.flow();
    let decisions = flow.iter().flat_map(|flow| &flow.decisions);
    let over = decisions.filter(|(reason, _)| *reason == "over budget");
    over.map(|(_, count)| count).sum()
}

struct Printer {
    topic: String,
    json: Option<JsonLines>,
    /// True if samples are printed as text.
    text: bool,
    /// Colours by key hash. The message that ends an instance may contain only the hash.
    colors: BTreeMap<[u8; 16], String>,
    /// Number of samples to print.
    wanted: u64,
    printed: u64,
    /// Number of samples received after `wanted` samples were printed.
    beyond: u64,
    unreadable: u64,
}

impl Printer {
    fn new(settings: &SubscribeSettings) -> Result<Self, Failure> {
        let json = settings.json.as_ref();
        Ok(Self {
            topic: settings.endpoint.topic.clone(),
            text: json != Some(&Destination::StandardOutput),
            json: json.map(JsonLines::new).transpose()?,
            colors: BTreeMap::new(),
            wanted: settings.count.unwrap_or(u64::MAX),
            printed: 0,
            beyond: 0,
            unreadable: 0,
        })
    }

    /// Completes the JSON file, even if no sample was received.
    fn finish(&mut self) -> Result<(), Failure> {
        self.json.as_mut().map_or(Ok(()), JsonLines::finish)
    }

    fn print_available(&mut self, reader: &DataReader<ShapeType>) -> Result<(), Failure> {
        loop {
            match reader.take() {
                Ok(Some(sample)) if sample.value.is_some() && self.printed == self.wanted => {
                    self.beyond += 1;
                }
                Ok(Some(sample)) => self.print(&sample)?,
                Ok(None) => return Ok(()),
                Err(_) => self.unreadable += 1,
            }
        }
    }

    fn print(&mut self, sample: &Sample<ShapeType>) -> Result<(), Failure> {
        if sample.value.is_some() {
            self.printed += 1;
        } else if sample.info.instance_state == InstanceState::Alive {
            // One of several writers unregistered the instance, which stays alive. Nothing is printed.
            return Ok(());
        }
        if let Some(lines) = &mut self.json {
            lines.write(&as_json(&self.topic, sample))?;
        }
        if self.text {
            print(&self.as_text(sample))?;
        }
        Ok(())
    }

    fn as_text(&mut self, sample: &Sample<ShapeType>) -> String {
        let key = sample.info.key_hash.unwrap_or_default();
        match &sample.value {
            Some(shape) => {
                if self.colors.len() < MAX_COLORS {
                    self.colors
                        .entry(key)
                        .or_insert_with(|| shape.color.as_str().into());
                }
                format!("{}\n", visible_line(&line(&self.topic, shape)))
            }
            None => {
                let color = self.colors.get(&key).map_or("?", String::as_str);
                let state = state(&sample.info);
                let line = format!("{:<10} {color:<10} {state}_INSTANCE_STATE", self.topic);
                format!("{}\n", visible_line(&line))
            }
        }
    }
}

/// Name of the instance state (DDS 1.4 §2.2.2.5.1.3).
fn state(info: &SampleInfo) -> &'static str {
    match info.instance_state {
        InstanceState::Alive => "ALIVE",
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS",
    }
}

/// JSON form of a sample. For the end of an instance, `value` is null.
fn as_json(topic: &str, sample: &Sample<ShapeType>) -> Value {
    let value = sample.value.as_ref().map(|shape| {
        json!({
            "color": shape.color.as_str(),
            "x": shape.x,
            "y": shape.y,
            "shapesize": shape.shapesize,
            "additional_payload_size": shape.additional_payload_size,
        })
    });
    let info = &sample.info;
    let hex = |key: [u8; 16]| key.map(|byte| format!("{byte:02x}")).concat();
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    json!({
        "topic": topic,
        "value": value,
        "info": {
            "writer": info.writer.to_string(),
            "sequence": info.sequence.get(),
            "source_timestamp_us": info.source_timestamp.map(|time| microseconds(time.to_nanos())),
            "instance_state": state(info),
            "key_hash": info.key_hash.map(hex),
        },
    })
}
