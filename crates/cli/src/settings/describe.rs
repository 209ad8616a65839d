//! Text of the settings, one line each with its source.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use isolane::limits::UNBOUNDED_BYTES;
use isolane_model::{Source, Sourced, Word, format_duration};

use super::{
    AtEnd, BenchRttSettings, BenchThroughputSettings, Command, ConfigSettings, DemoSettings,
    DoctorSettings, EndpointSettings, Interfaces, LaneSettings, ListSettings, NetworkSettings,
    PublishSettings, RunSettings, Settings, SpySettings, SpySource, TopSettings, TuneSettings,
    WhySettings,
};
use crate::limits::ENCAPSULATION_HEADER_BYTES;
use crate::values::Destination;

/// Column of the sources, unless a line is longer.
const SOURCE_COLUMN: usize = 36;

impl Settings {
    /// All settings with their sources, one line each.
    pub(crate) fn describe(&self) -> String {
        let mut lines = Lines(String::new());
        match &self.command {
            Command::Demo(demo) => lines.demo(demo),
            Command::Publish(publish) => lines.publish(publish),
            Command::Subscribe(subscribe) => {
                lines.endpoint(&subscribe.endpoint);
                let budget = &subscribe.budget;
                let said = budget
                    .value
                    .map_or(String::from("none"), |it| it.to_string());
                lines.line("budget", said, &budget.source);
                lines.optional("count", &subscribe.count, u64::to_string);
                lines.json(subscribe.json.as_ref());
            }
            Command::List(list) => lines.list(list),
            Command::Why(why) => lines.why(why),
            Command::Spy(spy) => lines.spy(spy),
            Command::Top(top) => lines.top(top),
            Command::Doctor(doctor) => lines.doctor(doctor),
            Command::Tune(tune) => lines.tune(tune),
            Command::Completions(_) | Command::Datapaths(_) | Command::Man(_) => {}
            // The command prints it itself.
            Command::Config(ConfigSettings::Example | ConfigSettings::System(..)) => {}
            Command::BenchRtt(rtt) => lines.bench_rtt(rtt),
            Command::BenchThroughput(throughput) => lines.bench_throughput(throughput),
            // The parent process prints the settings.
            Command::Child(_) => {}
        }
        lines.0
    }
}

struct Lines(String);

impl Lines {
    fn network(&mut self, network: &NetworkSettings) {
        self.plain("domain", &network.domain);
        self.plain("interfaces", &network.interfaces);
        self.line("verbosity", network.verbosity, &Source::CommandLine("-v"));
    }

    fn lane(&mut self, lane: &LaneSettings) {
        lane.describe(|name, value, source| self.line(name, value, source));
    }

    fn top(&mut self, top: &TopSettings) {
        let domain = top.domain.map_or(String::from("all"), |n| n.to_string());
        self.line("domain", domain, &top.domain_source);
        self.optional("run_for", &top.run_for, |time| format_duration(*time));
        self.json(top.json.as_ref());
    }

    fn endpoint(&mut self, endpoint: &EndpointSettings) {
        self.network(&endpoint.network);
        self.lane(&endpoint.lane);
        match &endpoint.described {
            Some(described) => self.plain("participant", &described.name),
            None => self.line("participant", "discovered", &Source::Default),
        }
        self.line("topic", &endpoint.topic, &Source::CommandLine("TOPIC"));
        self.word("type", &endpoint.sample_type);
        self.word("reliability", &endpoint.reliability);
        self.word("durability", &endpoint.durability);
        self.plain("history", &endpoint.history);
        self.plain("max_samples", &endpoint.max_samples);
        let max_bytes = endpoint.max_bytes.value;
        let default = UNBOUNDED_BYTES - ENCAPSULATION_HEADER_BYTES;
        let said = max_bytes.map_or(default.to_string(), |bytes| bytes.to_string());
        self.line("max_bytes", &said, &endpoint.max_bytes.source);
        self.line("level", endpoint.level.value.get(), &endpoint.level.source);
        self.optional("deadline", &endpoint.deadline, |time| {
            format_duration(*time)
        });
        self.list_of("peers", &endpoint.peers, ToString::to_string);
        self.word("representation", &endpoint.representation);
        self.optional("run_for", &endpoint.run_for, |time| format_duration(*time));
    }

    fn publish(&mut self, publish: &PublishSettings) {
        self.endpoint(&publish.endpoint);
        self.plain("color", &publish.color);
        self.plain("size", &publish.size);
        self.duration("period", &publish.period);
        self.optional("count", &publish.count, u64::to_string);
        self.plain("at_end", &publish.at_end);
    }

    fn list(&mut self, list: &ListSettings) {
        self.network(&list.network);
        self.lane(&list.lane);
        self.duration("listen_for", &list.listen_for);
        self.list_of("peers", &list.peers, ToString::to_string);
        self.json(list.json.as_ref());
    }

    fn why(&mut self, why: &WhySettings) {
        self.network(&why.network);
        self.lane(&why.lane);
        self.line("topic", &why.topic, &Source::CommandLine("TOPIC"));
        self.list_of("other_domains", &why.other_domains, ToString::to_string);
        self.duration("listen_for", &why.listen_for);
        self.list_of("peers", &why.peers, ToString::to_string);
        self.json(why.json.as_ref());
    }

    fn doctor(&mut self, doctor: &DoctorSettings) {
        self.plain("domain", &doctor.network.domain);
        match &doctor.described_in {
            Some(path) => self.line("description", path.value.display(), &path.source),
            None => self.line("description", "none", &Source::Default),
        }
        self.json(doctor.json.as_ref());
    }

    fn tune(&mut self, tune: &TuneSettings) {
        tune.describe(&mut |name, value, source| self.line(name, value, source));
        self.json(tune.json());
    }

    fn spy(&mut self, spy: &SpySettings) {
        match &spy.source {
            SpySource::File(path) => {
                self.line("file", path.display(), &Source::CommandLine("FILE"));
            }
            SpySource::Live(interfaces) => self.list_of("interfaces", interfaces, String::clone),
        }
        let filter = &spy.filter;
        let domain = filter
            .domain
            .map_or_else(|| String::from("all"), |n| n.to_string());
        self.line("domain", domain, &spy.domain_source);
        for (name, list) in [
            ("topics", filter.topics.join(",")),
            ("writers", join(&filter.entities)),
            ("levels", join(&filter.levels)),
            ("kinds", join(filter.kinds.iter().map(|kind| kind.word()))),
        ] {
            match list.as_str() {
                "" => self.line(name, "all", &Source::Default),
                list => self.line(name, list, &Source::CommandLine("")),
            }
        }
        self.optional("count", &spy.count, u64::to_string);
        self.optional("run_for", &spy.run_for, |time| format_duration(*time));
        self.json(spy.json.as_ref());
        match &spy.write {
            Some(path) => self.line("write", path.display(), &Source::CommandLine("--write")),
            None => self.line("write", "none", &Source::Default),
        }
    }

    fn runs(&mut self, runs: &RunSettings) {
        self.duration("run_for", &runs.run_for);
        self.list_of("datapaths", &runs.datapaths, |datapath| {
            datapath.word().to_owned()
        });
        self.list_of("payloads", &runs.payloads, |payload| {
            payload.get().to_string()
        });
        self.json(runs.json.as_ref());
        if let Some(page) = &runs.page {
            self.line("page", page.display(), &Source::CommandLine("--page"));
        }
    }

    fn bench_rtt(&mut self, rtt: &BenchRttSettings) {
        self.runs(&rtt.runs);
        self.plain("rate_hz", &rtt.rate_hz);
        self.list_of("disturbances", &rtt.disturbances, |word| {
            word.word().to_owned()
        });
        self.list_of("arbiters", &rtt.arbiters, |word| word.word().to_owned());
        self.list_of("orders", &rtt.orders, |word| word.word().to_owned());
    }

    fn demo(&mut self, demo: &DemoSettings) {
        self.runs(&demo.runs);
        self.duration("run_inside_for", &demo.run_inside_for);
        self.list_of("rows", &demo.parts, |word| word.word().to_owned());
    }

    fn bench_throughput(&mut self, throughput: &BenchThroughputSettings) {
        self.runs(&throughput.runs);
        self.word("reliability", &throughput.reliability);
        self.duration("latency_budget", &throughput.latency_budget);
    }

    fn json(&mut self, destination: Option<&Destination>) {
        match destination {
            Some(destination) => self.line("json", destination, &Source::CommandLine("--json")),
            None => self.line("json", "none", &Source::Default),
        }
    }

    fn plain(&mut self, name: &str, setting: &Sourced<impl Display>) {
        self.line(name, &setting.value, &setting.source);
    }

    fn word(&mut self, name: &str, setting: &Sourced<impl Word>) {
        self.line(name, setting.value.word(), &setting.source);
    }

    fn duration(&mut self, name: &str, setting: &Sourced<Duration>) {
        self.line(name, format_duration(setting.value), &setting.source);
    }

    fn optional<T>(
        &mut self,
        name: &str,
        setting: &Sourced<Option<T>>,
        show: impl Fn(&T) -> String,
    ) {
        let shown = setting
            .value
            .as_ref()
            .map_or_else(|| String::from("until stopped"), show);
        self.line(name, shown, &setting.source);
    }

    fn list_of<T>(&mut self, name: &str, setting: &Sourced<Vec<T>>, show: impl Fn(&T) -> String) {
        let shown: Vec<String> = setting.value.iter().map(show).collect();
        let shown = if shown.is_empty() {
            String::from("none")
        } else {
            shown.join(",")
        };
        self.line(name, shown, &setting.source);
    }

    fn line(&mut self, name: &str, value: impl Display, source: &Source) {
        // Names and paths are untrusted and must stay on one line.
        let setting = format!("{name} = {}", value.to_string().escape_debug());
        writeln!(self.0, "{setting:SOURCE_COLUMN$} # {source}")
            .expect("writing to a string does not fail");
    }
}

fn join(values: impl IntoIterator<Item: Display>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    values.join(",")
}

impl Display for Interfaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all that can multicast"),
            Self::Named(names) => formatter.write_str(&names.join(",")),
        }
    }
}

impl Display for AtEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Leave => "leave",
            Self::Dispose => "dispose",
            Self::Unregister => "unregister",
        })
    }
}
